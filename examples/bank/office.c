/*
 * Transfers, and the office that supervises them.
 */
#include "bank.h"

/* How long a transfer waits for an answer before it asks again. */
static const int64_t patience = 50 * STRAND_MS;

STRAND_MESSAGE(done, { bool refused; });

/* ---- a transfer ---------------------------------------------------------------------------------------------- */

struct plan {
    struct bank *bank;
    uint64_t number; /* two orders: 2 n, 2 n + 1 */
    uint32_t from, to;
    int64_t amount;
};

struct transfer {
    struct plan plan;
    enum { TAKES, GIVES, DONE } stage;
    uint64_t chance;
};

/* What it waits for now. A transfer that has crashed begins from the start: what has been done already is said again.
 */
static void ask(struct transfer *me)
{
    const struct plan *p = &me->plan;
    if (me->stage == TAKES)
        strand_tell(p->bank->account[p->from], STRAND_MSG(book, 2 * p->number, -p->amount));
    else
        strand_tell(p->bank->account[p->to], STRAND_MSG(book, 2 * p->number + 1, p->amount));
}

static void begin(void *state, const void *args)
{
    static _Atomic uint64_t starts;
    struct transfer *me = state;
    *me = (struct transfer){.plan = *(const struct plan *)args, .chance = ++starts << 32};
    strand_actor_receive_timeout(patience);
    ask(me);
}

static void end(struct transfer *me, bool refused)
{
    const struct plan *p = &me->plan;
    me->stage = DONE;
    strand_tell(p->bank->account[p->from], STRAND_MSG(forget, 2 * p->number));
    strand_tell(p->bank->account[p->to], STRAND_MSG(forget, 2 * p->number + 1));
    strand_tell(strand_actor_parent(), STRAND_MSG(done, refused));
    strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT);
}

static void be_transfer(void *state, strand_message *message)
{
    struct transfer *me = state;
    const booked *b = STRAND_IS(message, booked);
    if (me->stage == DONE)
        return;
    may_crash(me->plan.bank, &me->chance);
    if (STRAND_IS(message, strand_receive_timeout)) {
        ask(me);
    } else if (b && b->number == 2 * me->plan.number + me->stage) {
        if (b->refused || me->stage == GIVES) {
            end(me, b->refused);
            return;
        }
        me->stage = GIVES;
        ask(me);
    }
}

static const strand_actor_class transfer_class = {.size = sizeof transfer_class,
                                                  .name = "transfer",
                                                  .state_size = sizeof(struct transfer),
                                                  .receive = be_transfer,
                                                  .start = begin};

/* ---- the office ---------------------------------------------------------------------------------------------- */

struct office {
    struct bank *bank;
    strand_actor whom;
    uint64_t begun, done, refused, chance;
};

static void begin_one(struct office *me)
{
    struct bank *bank = me->bank;
    struct plan plan = {.bank = bank, .number = me->begun++};
    plan.from = (uint32_t)(next_random(&me->chance) % bank->accounts);
    plan.to = (uint32_t)(next_random(&me->chance) % (bank->accounts - 1));
    plan.to += plan.to >= plan.from;
    plan.amount = (int64_t)(next_random(&me->chance) % 100) + 1;
    strand_actor_spawn_child(NULL, &transfer_class, &plan, sizeof plan);
}

static void be_office(void *state, strand_message *message)
{
    struct office *me = state;
    const open_office *o = STRAND_IS(message, open_office);
    const done *d = STRAND_IS(message, done);
    if (o) {
        me->bank = o->bank;
        me->whom = message->sender;
        while (me->begun < me->bank->transfers && me->begun < me->bank->at_once)
            begin_one(me);
    } else if (d) {
        me->done++;
        me->refused += d->refused;
        if (me->begun < me->bank->transfers)
            begin_one(me);
    }
    if (me->done == me->bank->transfers)
        strand_tell(me->whom, STRAND_MSG(closed, me->done, me->refused));
}

static enum strand_directive restart(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child;
    return strand_exception_is(why, &CRASH) ? STRAND_RESTART : STRAND_ESCALATE;
}

const strand_actor_class office_class = {.size = sizeof office_class,
                                         .name = "office",
                                         .state_size = sizeof(struct office),
                                         .receive = be_office,
                                         .decide = restart};

STRAND_MESSAGE_DEFINE(open_office, NULL);
STRAND_MESSAGE_DEFINE(closed, NULL);
