/*
 * Actors on real threads: strands, plain threads and actors tell, ask, watch, make, restart and stop each other, on
 * pools of several kinds and with mailboxes of several kinds. Each sent message is handled or becomes a dead letter,
 * once, and its resources are freed once; a watcher is notified once; an ask gets an answer or the end of the actor; a
 * parent whose failed child waits for its decision can't wait for that child (-EDEADLK); an actor does one thing at a
 * time, begins as often as it ends, and gets the messages of a sender in order.
 */
#define SUITE stress_actors
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum {
    SLOTS = 96,
    FIRST = 12,
    LETTERS = 3000,
    PRODUCERS = 6,
    OUTSIDERS = 2,
    ASKERS = 4,
    WATCHERS = 3,
    SENDERS = PRODUCERS + OUTSIDERS + SLOTS
};

static struct {
    strand_actors system;
    strand_actor manager, watcher[WATCHERS];
    _Atomic int slots, letters, ends, dead, decisions;
    _Atomic bool over;
    struct slot {
        strand_actor ref;
        _Atomic int known, inside, began, ended;
        int next[SENDERS]; /* what comes of each has that number, or a greater one */
    } slot[SLOTS];
    struct {
        _Atomic int sent, handled, dropped;
    } letter[LETTERS];
    _Atomic int watched[WATCHERS][SLOTS], notices[WATCHERS][SLOTS];
} world;

static unsigned draw(uint64_t *chance, unsigned below)
{
    *chance = *chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*chance >> 33) % below;
}

/* Continues unless the caller itself must end. */
static void go_on_after(strand_exception *e)
{
    if (e && strand_exception_is(e, &STRAND_INTERRUPTED))
        strand_rethrow(e);
    strand_exception_release(e);
}

static bool try_it(strand_fn *fn, void *arg)
{
    strand_exception *e = strand_try(fn, arg, NULL);
    go_on_after(e);
    return !e;
}

struct call {
    strand_fn *fn;
    void *arg;
};

/* Those who wait for each other, since their mailboxes are full, do not do so for ever. */
static void *call_in_time(void *arg)
{
    struct call *call = arg;
    STRAND_DEADLINE(strand_in(200 * STRAND_US));
    return call->fn(call->arg);
}

/* ---- letters ----------------------------------------------------------------------------------------------- */

#define LETTER                                                                                                         \
    {                                                                                                                  \
        int number, from;                                                                                              \
        bool odd; /* it was put aside, or passed on: no order is promised */                                           \
        uint64_t chance;                                                                                               \
    }

static void drop_copied(void *body);
static void drop_given(void *body);

STRAND_MESSAGE_WITH(copied, drop_copied, LETTER);
STRAND_MESSAGE_WITH(given, drop_given, LETTER);
STRAND_MESSAGE(question, { uint64_t number, chance; });
STRAND_MESSAGE(answer, { uint64_t number; });
STRAND_MESSAGE(tick, { char none; });
STRAND_MESSAGE(make, { uint64_t chance; });
STRAND_MESSAGE(look_at, { int slot; });
STRAND_MESSAGE(look_away, { int slot; });

static void drop_copied(void *body)
{
    CHECK_EQ(world.letter[((copied *)body)->number].dropped++, 0);
}

static void drop_given(void *body)
{
    CHECK_EQ(world.letter[((given *)body)->number].dropped++, 0);
    free(body);
}

static struct slot *somebody(uint64_t *chance)
{
    int count = world.slots < SLOTS ? world.slots : SLOTS;
    struct slot *slot = &world.slot[draw(chance, (unsigned)count)];
    return slot->known ? slot : NULL;
}

struct sending {
    strand_actor to;
    copied letter;
    given *body; /* NULL: it is copied */
    int error;
};

static void *send_it(void *arg)
{
    struct sending *s = arg;
    s->error = s->body ? strand_actor_give(s->to, &given_message, s->body)
                       : strand_tell(s->to, &copied_message, &s->letter, sizeof s->letter);
    return arg;
}

/* False: there are no letters any more. A plain thread does not wait. */
static bool tell_somebody(uint64_t *chance, int from, bool outside)
{
    struct slot *to = somebody(chance);
    if (!to)
        return world.letters < LETTERS;
    int number = world.letters++;
    if (number >= LETTERS)
        return false;
    struct sending s = {.to = to->ref,
                        .letter = {.number = number, .from = from, .chance = *chance + (uint64_t)number},
                        .error = -ETIMEDOUT};
    if (number % 2) {
        s.body = malloc(sizeof *s.body);
        CHECK(s.body != NULL);
        memcpy(s.body, &s.letter, sizeof s.letter);
    }
    strand_exception *e = NULL;
    if (outside)
        send_it(&s);
    else
        e = strand_try(call_in_time, &(struct call){send_it, &s}, NULL);
    if (s.error == 0 || s.error == -EPIPE) {
        world.letter[number].sent = 1;
        return true;
    }
    CHECK(s.error == -EAGAIN || s.error == -ETIMEDOUT || s.error == -EDEADLK);
    CHECK_EQ(world.letter[number].handled, 0);
    CHECK_EQ(world.letter[number].dropped, 0);
    free(s.body);
    go_on_after(e);
    return true;
}

/* ---- actors ------------------------------------------------------------------------------------------------ */

struct state {
    struct slot *slot;
    int guard;
};

static void come_out(struct slot **slot)
{
    (*slot)->inside--;
}

#define INSIDE(slot_)                                                                                                  \
    struct slot *inside __attribute__((cleanup(come_out), unused)) = (slot_);                                          \
    CHECK_EQ(inside->inside++, 0)

static void begin(void *state, const void *args)
{
    struct state *me = state;
    me->slot = *(struct slot *const *)args;
    INSIDE(me->slot);
    CHECK_EQ(me->guard++, 0);
    me->slot->began++;
}

static void end(void *state)
{
    struct state *me = state;
    INSIDE(me->slot);
    CHECK_EQ(me->guard--, 1);
    me->slot->ended++;
    if (me->slot->ended % 2)
        strand_yield();
    else
        strand_sleep(10 * STRAND_US);
}

static enum strand_directive decide(void *state, strand_actor child, const strand_exception *why)
{
    static const enum strand_directive directives[] = {STRAND_RESTART, STRAND_RESUME, STRAND_RESTART, STRAND_STOP};
    (void)state, (void)child;
    CHECK_KIND(why, &TEST_ERROR);
    return directives[world.decisions++ % 4];
}

static void receive(void *state, strand_message *message);

static unsigned priority(const strand_message *message)
{
    const copied *letter = message->body; /* a given one is the same */
    bool is_letter = message->type == &copied_message || message->type == &given_message;
    return is_letter ? (unsigned)letter->from % 5 : 0; /* one sender's have one priority */
}

#define CLASS(name_, ...)                                                                                              \
    {                                                                                                                  \
        .size = sizeof(strand_actor_class), .name = name_, .state_size = sizeof(struct state), .receive = receive,     \
        .start = begin, .stop = end, .decide = decide, __VA_ARGS__                                                     \
    }
static const strand_actor_class classes[] = {
    CLASS("plain", .max_mailbox = 0), CLASS("waiting", .max_mailbox = 3),
    CLASS("refusing", .max_mailbox = 3, .mailbox_full = STRAND_MAILBOX_FULL_FAIL),
    CLASS("forgetful", .max_mailbox = 3, .mailbox_full = STRAND_MAILBOX_FULL_OLDEST),
    CLASS("choosy", .priority = priority, .all_for_one = true)};
static const char *const dispatchers[] = {NULL, NULL, "pool", "pinned"};

static void *spawn_child(void *arg)
{
    uint64_t chance = *(uint64_t *)arg;
    int number = world.slots;
    do
        if (number >= SLOTS || world.over)
            return arg;
    while (!atomic_compare_exchange_weak(&world.slots, &number, number + 1));
    struct slot *slot = &world.slot[number];
    slot->ref = strand_actor_spawn_child(STRAND_ACTOR_ATTR(.dispatcher = dispatchers[draw(&chance, 4)]),
                                         &classes[draw(&chance, 5)], &slot, sizeof slot);
    slot->known = 1;
    return arg;
}

static void *ask_somebody(void *arg)
{
    uint64_t *chance = arg;
    struct slot *to = somebody(chance);
    answer got = {0};
    if (to && to->ref.bits[1] == strand_actor_self().bits[1]) /* misuse */
        return arg;
    int error = to ? strand_ask(to->ref, STRAND_MSG(question, *chance, *chance), STRAND_INTO(answer, &got)) : -EPIPE;
    if (!error)
        CHECK_EQ(got.number, *chance);
    else
        CHECK(error == -EPIPE || error == -EAGAIN || error == -EDEADLK);
    return arg;
}

static void *be_left(void *arg)
{
    strand_yield();
    return arg;
}

static void treat(struct slot *slot, unsigned how)
{
    int error = 0;
    if (how < 3)
        error = strand_actor_stop(slot->ref, (enum strand_actor_stopping)how);
    else if (how < 6)
        error = strand_actor_restart(slot->ref);
    else if (how < 7)
        error = strand_actor_suspend(slot->ref);
    else
        error = strand_actor_resume(slot->ref);
    CHECK_EQ(error, 0);
}

static void act(struct state *me, uint64_t *chance)
{
    struct slot *other;
    switch (draw(chance, 16)) {
    case 0:
        try_it(spawn_child, chance); /* its parent may be about to stop */
        break;
    case 1:
        strand_yield();
        break;
    case 2:
        strand_sleep(draw(chance, 3) * 10 * STRAND_US);
        break;
    case 3:
        try_it(call_in_time, &(struct call){ask_somebody, chance});
        break;
    case 4:
        if ((other = somebody(chance)))
            treat(other, draw(chance, 12));
        break;
    case 5:
        CHECK_EQ(strand_actor_timer(me, draw(chance, 50) * STRAND_US, 0, STRAND_MSG(tick)), 0);
        break;
    case 6:
        (void)strand_actor_unstash_all();
        break;
    case 7:
        strand_cancel(strand_spawn(strand_actor_scope(), be_left, NULL), "left behind");
        break;
    case 8:
        strand_throw(&TEST_ERROR, "on purpose");
    default:
        (void)tell_somebody(chance, PRODUCERS + OUTSIDERS + (int)(me->slot - world.slot), false);
        break;
    }
}

struct handling {
    struct state *me;
    strand_message *message;
    uint64_t chance;
};

static void *act_some(void *arg)
{
    struct handling *h = arg;
    for (unsigned i = draw(&h->chance, 4); i > 0; i--)
        act(h->me, &h->chance);
    return arg;
}

struct passing {
    strand_message *message;
    strand_actor to;
    int error;
};

static void *pass_on(void *arg)
{
    struct passing *p = arg;
    p->error = strand_message_forward(p->message, p->to);
    return arg;
}

/* Whether it is not in hand any more. */
static bool send_away(struct handling *h)
{
    struct slot *other;
    unsigned way = draw(&h->chance, 12);
    if (way == 0) {
        strand_message_stash(h->message);
        return true;
    }
    if (way > 1 || !(other = somebody(&h->chance)))
        return false;
    struct passing p = {.message = h->message, .to = other->ref};
    if (!try_it(call_in_time, &(struct call){pass_on, &p}))
        return false; /* it took too long, and nothing was done */
    CHECK(p.error == 0 || p.error == -EPIPE || p.error == -EAGAIN || p.error == -EDEADLK);
    return p.error == 0 || p.error == -EPIPE;
}

static void take_now_and_then(struct handling *h)
{
    if (draw(&h->chance, 4))
        return;
    void *body = strand_message_take(h->message);
    h->message->type->drop(body);
}

/* What a stop interrupts is a dead letter; what fails has been handled. */
static void handle_letter(struct handling *h, copied *letter)
{
    int number = letter->number;
    if (!letter->odd) {
        CHECK(number >= h->me->slot->next[letter->from]);
        h->me->slot->next[letter->from] = number + 1;
    }
    letter->odd = true;
    letter->chance += 12345;
    if (send_away(h))
        return;
    strand_exception *e = strand_try(act_some, h, NULL);
    if (e && strand_exception_is(e, &STRAND_INTERRUPTED))
        strand_rethrow(e);
    CHECK_EQ(world.letter[number].handled++, 0);
    if (e)
        strand_rethrow(e);
    take_now_and_then(h);
}

static void handle_question(struct handling *h, const question *q)
{
    unsigned way = draw(&h->chance, 8);
    if (way == 0)
        strand_message_stash(h->message);
    else if (way == 1)
        strand_throw(&TEST_ERROR, "at a question");
    else if (way == 2)
        act_some(h);
    else if (way != 3)
        STRAND_IGNORE(strand_reply(h->message, STRAND_MSG(answer, q->number)));
}

static void receive(void *state, strand_message *message)
{
    struct state *me = state;
    bool is_letter = message->type == &copied_message || message->type == &given_message;
    question *q = STRAND_IS(message, question);
    INSIDE(me->slot);
    CHECK_EQ(me->guard, 1);
    if (is_letter) {
        struct handling h = {me, message, ((copied *)message->body)->chance};
        handle_letter(&h, message->body);
    } else if (q) {
        struct handling h = {me, message, q->chance++};
        handle_question(&h, q);
    }
}

/* ---- those that do not end --------------------------------------------------------------------------------- */

static void manage(void *state, strand_message *message)
{
    (void)state;
    try_it(spawn_child, &STRAND_IS(message, make)->chance);
}

static void watch(void *state, strand_message *message)
{
    int me = *(int *)state;
    const look_at *at = STRAND_IS(message, look_at);
    const look_away *away = STRAND_IS(message, look_away);
    const strand_terminated *t = STRAND_IS(message, strand_terminated);
    int i = at ? at->slot : away ? away->slot : 0;
    while (t && (!world.slot[i].known || memcmp(&world.slot[i].ref, &t->who, sizeof t->who) != 0))
        i++;
    if (t) {
        CHECK(strand_actor_ended(t->who));
        CHECK_EQ(world.watched[me][i], 1);
        CHECK_EQ(world.notices[me][i]++, 0);
    } else if (at && !world.watched[me][i]) {
        CHECK_EQ(strand_actor_watch(world.slot[i].ref), 0);
        world.watched[me][i] = 1;
    } else if (away && world.watched[me][i] && !world.notices[me][i]) {
        strand_actor_unwatch(world.slot[i].ref);
        world.watched[me][i] = 2;
    }
}

static void listen(void *state, strand_message *message)
{
    const strand_published *p = STRAND_IS(message, strand_published);
    (void)state;
    if (p->kind == STRAND_ACTOR_END)
        world.ends++;
    else if (p->type == &copied_message || p->type == &given_message)
        world.dead++;
}

static const strand_actor_class
    manager_class = {.size = sizeof manager_class, .name = "manager", .receive = manage, .decide = decide},
    watcher_class = {.size = sizeof watcher_class, .name = "watcher", .state_size = sizeof(int), .receive = watch},
    listener_class = {.size = sizeof listener_class, .name = "listener", .receive = listen};

/* ---- strands and threads ----------------------------------------------------------------------------------- */

static void watch_somebody(uint64_t *chance)
{
    struct slot *slot = somebody(chance);
    strand_actor watcher = world.watcher[draw(chance, WATCHERS)];
    if (slot && draw(chance, 4))
        CHECK_EQ(strand_tell(watcher, STRAND_MSG(look_at, (int)(slot - world.slot))), 0);
    else if (slot)
        CHECK_EQ(strand_tell(watcher, STRAND_MSG(look_away, (int)(slot - world.slot))), 0);
}

static void *produce(void *arg)
{
    uint64_t chance = (uintptr_t)arg * 7919 + (uintptr_t)world.decisions;
    while (tell_somebody(&chance, (int)(intptr_t)arg, false)) {
        unsigned what = draw(&chance, 16);
        if (what < 2)
            watch_somebody(&chance);
        else if (what == 2)
            (void)strand_tell(world.manager, STRAND_MSG(make, chance));
        else if (what < 6)
            strand_yield();
    }
    return arg;
}

static void *produce_outside(void *arg)
{
    uint64_t chance = (uintptr_t)arg * 104729;
    while (tell_somebody(&chance, (int)(intptr_t)arg, true))
        if (draw(&chance, 8) == 0)
            sched_yield();
    return arg;
}

/* Without a deadline: all have ended, or answered, at last. */
static void *ask_till_the_end(void *arg)
{
    uint64_t chance = (uintptr_t)arg * 3571;
    while (!world.over) {
        ask_somebody(&chance);
        strand_yield();
    }
    return arg;
}

static void check_laws(void)
{
    int dead = 0, made = 0;
    for (int i = 0; i < LETTERS; i++) {
        CHECK_EQ(world.letter[i].dropped, world.letter[i].sent);
        dead += world.letter[i].sent - world.letter[i].handled;
    }
    CHECK_EQ(world.dead, dead);
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &world.slot[i];
        made += slot->known;
        CHECK(!slot->known || strand_actor_ended(slot->ref));
        CHECK_EQ(slot->ended, slot->began);
        for (int j = 0; j < WATCHERS; j++)
            CHECK_EQ(world.notices[j][i], world.watched[j][i] == 1);
    }
    CHECK_EQ(world.ends, made + 1); /* and the manager's */
}

static void found_system(strand_actors system)
{
    memset(&world, 0, sizeof world);
    world.system = system;
    world.manager = strand_actor_spawn(system, NULL, &manager_class, NULL, 0);
    for (int i = 0; i < WATCHERS; i++)
        world.watcher[i] = strand_actor_spawn(system, NULL, &watcher_class, &i, sizeof i);
    strand_actor listener = strand_actor_spawn(system, NULL, &listener_class, NULL, 0);
    CHECK_EQ(
        strand_actors_subscribe(system, listener, STRAND_ACTOR_DEAD_LETTER | STRAND_ACTOR_END | STRAND_ACTOR_FAILURE),
        0);
    for (uint64_t i = 0; i < FIRST; i++)
        CHECK_EQ(strand_tell(world.manager, STRAND_MSG(make, i * 7907)), 0);
    while (!world.slots)
        strand_yield();
}

static void be_busy_once(void)
{
    static const strand_dispatcher more[] = {
        {.size = sizeof *more, .name = "pool", .executor = "fork-join-executor", .threads = 2},
        {.size = sizeof *more, .name = "pinned", .executor = "fork-join-executor", .threads = 2, .pin = STRAND_PIN(1)}};
    pthread_t outsiders[OUTSIDERS];
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = more, .dispatchers_count = 2));
    found_system(system);
    STRAND_SCOPE(scope);
    for (intptr_t i = 0; i < PRODUCERS; i++)
        strand_spawn(scope, produce, (void *)i);
    for (intptr_t i = 0; i < OUTSIDERS; i++)
        CHECK_EQ(pthread_create(&outsiders[i], NULL, produce_outside, (void *)(PRODUCERS + i)), 0);
    for (intptr_t i = 1; i <= ASKERS; i++)
        strand_spawn(scope, ask_till_the_end, (void *)i);
    while (world.letters < LETTERS * 3 / 4)
        strand_sleep(100 * STRAND_US);
    world.over = true;
    CHECK_EQ(strand_actor_stop(world.manager, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(world.manager), 0);
    strand_scope_join(scope);
    for (int i = 0; i < OUTSIDERS; i++)
        CHECK_EQ(pthread_join(outsiders[i], NULL), 0);
    strand_actors_join(system);
    check_laws();
}

static void *be_busy_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(300) * STRAND_MS);
    do
        be_busy_once();
    while (strand_now().ns < until.ns);
    return arg;
}

static void keep_quiet(const char *message, void *arg)
{
    (void)arg;
    CHECK(!strstr(message, "dead letter"));
}

/* S-04, S-05, S-18, A-03, A-26, contract 6.5 */
TEST_REAL(no_message_notice_or_answer_is_lost_or_doubled_whatever_actors_do_to_each_other)
{
    strand_options options = test_options();
    options.on_log = keep_quiet;
    strand_run(&options, be_busy_for_a_while, NULL);
}
