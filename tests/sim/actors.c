/*
 * Actors that tell, ask, watch, spawn, fail and stop each other, with mailboxes of several kinds; strands send to them,
 * and are cancelled meanwhile. Each message is handled once or dropped once, or it was not sent; messages of one sender
 * arrive in order; an actor handles one at a time; a watcher is notified at most once, and after the end; an ask is
 * answered, refused or interrupted; the stop function is not interrupted.
 */
/* S-03, S-17, S-18, contract 6.2 */
#include "sim.h"

#include "strand/actor.h"

#include <errno.h>
#include <string.h>

enum { ACTORS = 24, LETTERS = 512, TELLERS = 4, TURNS = 12, FIRST = 4 };

static struct {
    strand_actors system;
    _Atomic int actors, letters;
    struct one {
        strand_actor ref;
        _Atomic int known, inside, ending, watched, notices;
        int last[TELLERS + ACTORS]; /* by sender: the number of the last message */
    } actor[ACTORS];
    struct letter {
        _Atomic int accepted, handled, dropped;
    } letter[LETTERS];
    int numbers[TELLERS + ACTORS][ACTORS]; /* of messages so far, by sender and receiver: the sender's */
} world;

/* What an actor, or a strand, does about a message depends on the message alone. */
struct order {
    struct sim_chance chance;
    int letter, from, number;
};

static void drop_letter(void *body)
{
    struct order *order = body;
    SIM_CHECK_EQ(world.letter[order->letter].dropped++, 0);
    SIM_CHECK_EQ(world.letter[order->letter].handled, 0);
}

STRAND_MESSAGE_WITH(letter_type, drop_letter, { struct order order; });
STRAND_MESSAGE(question, { struct order order; });
STRAND_MESSAGE(answer, { int number; });

/* ---- telling ----------------------------------------------------------------------------------------------- */

static struct one *somebody(struct sim_chance *chance)
{
    int count = world.actors;
    struct one *one = count ? &world.actor[sim_draw(chance, (uint32_t)count)] : NULL;
    return one && one->known ? one : NULL;
}

/* `from` is the teller's number. */
static void tell(struct sim_chance *chance, int from)
{
    struct one *to = somebody(chance);
    int number = world.letters++;
    if (!to || number >= LETTERS)
        return;
    struct order order = {
        .chance = {chance->state * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)number}, .letter = number, .from = from};
    order.number = ++world.numbers[from][to - world.actor];
    STRAND_DEADLINE(strand_in(200 * STRAND_US)); /* two whose mailboxes are full may wait for each other */
    int error = strand_tell(to->ref, STRAND_MSG(letter_type, order));
    world.letter[number].accepted = !error || error == -EPIPE;
    if (error == -EPIPE)
        SIM_CHECK_EQ(world.letter[number].dropped, 1);
    else if (error)
        SIM_CHECK(error == -EAGAIN || error == -EDEADLK || (error == -ENOMEM && sim_refuses_memory()));
}

static void ask(struct sim_chance *chance)
{
    struct one *to = somebody(chance);
    if (!to)
        return;
    answer got = {0};
    int number = (int)sim_draw(chance, 1000);
    struct order order = {.chance = *chance, .number = number};
    STRAND_DEADLINE(strand_in(STRAND_MS));
    int error = strand_ask(to->ref, STRAND_MSG(question, order), STRAND_INTO(answer, &got));
    if (!error)
        SIM_CHECK_EQ(got.number, number + 1);
    else
        SIM_CHECK(error == -EPIPE || error == -EAGAIN || error == -EDEADLK ||
                  (error == -ENOMEM && sim_refuses_memory()));
}

/* ---- actors ------------------------------------------------------------------------------------------------ */

struct state {
    struct one *me;
    int guard;
};

static const strand_actor_class plain, bounded, choosy, forgetful;

static void make(struct sim_chance *chance, bool child)
{
    static const strand_actor_class *const classes[] = {&plain, &bounded, &choosy, &forgetful};
    int number = world.actors;
    do
        if (number >= ACTORS)
            return;
    while (!atomic_compare_exchange_strong(&world.actors, &number, number + 1));
    struct one *one = &world.actor[number];
    const strand_actor_class *class = classes[sim_draw(chance, 4)];
    if (child)
        one->ref = strand_actor_spawn_child(NULL, class, &one, sizeof one);
    else
        one->ref = strand_actor_spawn(world.system, NULL, class, &one, sizeof one);
    one->known = 1;
}

static void start(void *state, const void *args)
{
    struct state *me = state;
    me->me = *(struct one *const *)args;
    SIM_CHECK_EQ(me->guard++, 0);
}

static void stop(void *state)
{
    struct one *one = ((struct state *)state)->me;
    SIM_CHECK_EQ(one->inside, 0);
    one->ending = 1;
    strand_yield();
    one->ending = 0;
}

static void fail_now_and_then(struct sim_chance *chance)
{
    static const strand_kind quiet = STRAND_KIND("sim-failure", &STRAND_ERROR);
    if (sim_one_in(chance, 4))
        strand_throw(&quiet, "on purpose");
}

static void act(struct state *me, struct sim_chance *chance)
{
    struct one *other;
    switch (sim_draw(chance, 9)) {
    case 0:
    case 1:
    case 2:
        tell(chance, TELLERS + (int)(me->me - world.actor));
        break;
    case 3:
        make(chance, true);
        break;
    case 4:
        strand_yield();
        break;
    case 5:
        strand_sleep((int64_t)sim_draw(chance, 4) * 20 * STRAND_US);
        break;
    case 6:
        if ((other = somebody(chance)) && other != me->me && !strand_actor_watch(other->ref))
            me->me->watched++;
        break;
    case 7:
        if (sim_one_in(chance, 3) && (other = somebody(chance)))
            (void)strand_actor_stop(other->ref, (enum strand_actor_stopping)sim_draw(chance, 3));
        break;
    default:
        fail_now_and_then(chance);
        break;
    }
}

static void leave(struct one **one)
{
    (*one)->inside--;
}

static void be_actor(void *state, strand_message *message)
{
    struct state *me = state;
    struct one *one __attribute__((cleanup(leave))) = me->me;
    const letter_type *l = STRAND_IS(message, letter_type);
    const question *q = STRAND_IS(message, question);
    const strand_terminated *t = STRAND_IS(message, strand_terminated);
    SIM_CHECK_EQ(one->inside++, 0);
    SIM_CHECK_EQ(me->guard, 1);
    if (t) {
        SIM_CHECK(strand_actor_ended(t->who));
        SIM_CHECK(++one->notices <= one->watched);
        return;
    }
    struct sim_chance chance = l ? l->order.chance : q->order.chance;
    if (l) {
        (void)strand_message_take(message);
        SIM_CHECK_EQ(world.letter[l->order.letter].handled++, 0);
        SIM_CHECK_EQ(world.letter[l->order.letter].dropped, 0);
        SIM_CHECK(l->order.number > one->last[l->order.from]);
        one->last[l->order.from] = l->order.number;
    } else if (!sim_one_in(&chance, 4)) {
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, q->order.number + 1)));
    }
    for (uint32_t i = sim_draw(&chance, 4); i > 0; i--)
        act(me, &chance);
}

/* Those of one sender stay in order: it has one priority. */
static unsigned priority(const strand_message *message)
{
    const letter_type *l = STRAND_IS(message, letter_type);
    return l ? (unsigned)l->order.from % 4 : 0;
}

#define CLASS(name_, ...)                                                                                              \
    {                                                                                                                  \
        .size = sizeof(strand_actor_class), .name = name_, .state_size = sizeof(struct state), .receive = be_actor,    \
        .start = start, .stop = stop, .max_restarts = 3, __VA_ARGS__                                                   \
    }
static const strand_actor_class plain = CLASS("plain", .backoff_ns = 0), bounded = CLASS("bounded", .max_mailbox = 2),
                                choosy = CLASS("choosy", .priority = priority),
                                forgetful =
                                    CLASS("forgetful", .max_mailbox = 2, .mailbox_full = STRAND_MAILBOX_FULL_OLDEST);

/* ---- strands ----------------------------------------------------------------------------------------------- */

static void be_teller(struct sim_life *me, void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        if (sim_one_in(&me->chance, 6))
            ask(&me->chance);
        else if (sim_one_in(&me->chance, 8))
            make(&me->chance, false);
        else
            tell(&me->chance, me->tag);
        if (sim_one_in(&me->chance, 4))
            strand_yield();
    }
}

static void settle(strand_exception *e)
{
    if (e && (strand_exception_is(e, &STRAND_TIMED_OUT) || sim_no_memory(e)))
        strand_exception_release(e);
    else
        sim_settle(e);
}

static void be_patient_teller(struct sim_life *me, void *arg)
{
    settle(sim_try(me, be_teller, arg));
}

static void run_system(struct sim_life *me, void *arg)
{
    (void)arg;
    struct sim_life *tellers[TELLERS];
    STRAND_ACTORS(system, NULL);
    world.system = system;
    for (int i = 0; i < FIRST; i++)
        make(&me->chance, false);
    STRAND_SCOPE(scope);
    for (int i = 0; i < TELLERS; i++)
        tellers[i] = sim_spawn_tagged(me, scope, be_patient_teller, NULL, i);
    if (sim_one_in(&me->chance, 4))
        strand_actors_stop(system, sim_draw(&me->chance, 2) ? STRAND_STOP_NOW : STRAND_STOP_NEXT);
    for (int i = 0; i < TELLERS; i++) {
        if (sim_one_in(&me->chance, 4))
            sim_cancel(tellers[i], "enough");
        (void)sim_join(tellers[i]);
    }
    if (sim_one_in(&me->chance, 2))
        strand_actors_join(system);
}

static void root(struct sim_life *me, void *arg)
{
    strand_exception *e = sim_try(me, run_system, arg);
    if (e && !sim_no_memory(e) && !strand_exception_is(e, &STRAND_TIMED_OUT) &&
        !strstr(strand_exception_text(e), "on purpose"))
        sim_unexpected(e, "the system");
    strand_exception_release(e); /* what failed too often is the system's failure */
}

static void oracle(void)
{
    for (int i = 0; i < LETTERS; i++) {
        const struct letter *l = &world.letter[i];
        SIM_CHECK_EQ(l->handled + l->dropped, l->accepted); /* interrupted it was not sent */
    }
    for (int i = 0; i < ACTORS; i++) {
        const struct one *one = &world.actor[i];
        SIM_CHECK(one->notices <= one->watched);
        SIM_CHECK_EQ(one->ending, 0);
    }
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, actors, root, oracle, world);
