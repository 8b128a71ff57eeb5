/*
 * Actors that belong to one thread, of a pool, of their own, or the main one; where the others run; and that what any
 * of them does keeps the system up.
 */
#define _GNU_SOURCE
#define SUITE actor_pinned
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <pthread.h>
#include <unistd.h>

STRAND_MESSAGE(step, { int n; });

static strand_event done;
static _Atomic int count;

static void begin(void)
{
    done = (strand_event){{0}};
    count = 0;
}

static strand_actor spawn_on(strand_actors system, const char *dispatcher, const strand_actor_class *class,
                             const void *args, size_t size)
{
    return strand_actor_spawn(system, STRAND_ACTOR_ATTR(.dispatcher = dispatcher), class, args, size);
}

static void tell(strand_actor a, int n)
{
    CHECK_EQ(strand_tell(a, STRAND_MSG(step, n)), 0);
}

/* ---- on its thread, from any sender -------------------------------------------------------------------------- */

enum { SENDERS = 6, EACH = 30 };

/* The thread on which one is that the runtime plays has no other name. */
struct place {
    strand_pool pool;
    int index;
    pid_t id;
};

static struct place here(void)
{
    return (struct place){strand_pool_self(), strand_thread_index(), gettid()};
}

static void check_same(const struct place *a, const struct place *b)
{
    CHECK_EQ(a->pool.bits[0], b->pool.bits[0]);
    CHECK_EQ(a->pool.bits[1], b->pool.bits[1]);
    CHECK_EQ(a->index, b->index);
    CHECK_EQ(a->id, b->id);
}

struct resident {
    int index; /* where it belongs; -1: anywhere */
    int turns, most;
    struct place place;
};

/* Gives its thread to others now and then: it has to come back to the same one. */
static void stay(void *state, strand_message *message)
{
    struct resident *me = state;
    int n = STRAND_IS(message, step)->n;
    struct place now = here();
    if (!me->turns++)
        me->place = now;
    check_same(&now, &me->place);
    CHECK_EQ(now.index, me->index);
    if (n % 5 == 0)
        strand_yield();
    if (n % 11 == 0)
        strand_sleep(20 * STRAND_US);
    now = here();
    check_same(&now, &me->place);
    if (me->turns == me->most && ++count == 2)
        strand_event_set(&done);
}

static const strand_actor_class resident = {
    .size = sizeof resident, .name = "resident", .state_size = sizeof(struct resident), .receive = stay};

/* Passes its message on. */
static void pass_on(void *state, strand_message *message)
{
    if (STRAND_IS(message, step)->n % 3 == 0)
        strand_yield();
    CHECK_EQ(strand_message_forward(message, *(const strand_actor *)state), 0);
}

static const strand_actor_class relay = {
    .size = sizeof relay, .name = "relay", .state_size = sizeof(strand_actor), .receive = pass_on};

static void *tell_each(void *arg)
{
    const strand_actor *to = arg;
    for (int i = 0; i < EACH; i++) {
        tell(to[i % 2], i / 2);
        tell(to[(i + 1) % 2], i / 2);
        if (i % 7 == 0)
            strand_yield();
    }
    return NULL;
}

static const strand_dispatcher two_pinned[] = {
    {.size = sizeof *two_pinned, .name = "first", .executor = "fork-join-executor", .threads = 2, .pin = STRAND_PIN(0)},
    {.size = sizeof *two_pinned,
     .name = "third",
     .executor = "fork-join-executor",
     .threads = 3,
     .pin = STRAND_PIN(2)}};

static strand_actor spawn_resident(strand_actors system, const char *dispatcher, int index, int most)
{
    struct resident r = {.index = index, .most = most};
    return spawn_on(system, dispatcher, &resident, &r, sizeof r);
}

/* Strands, actors of other threads and actors of its own pool send to it. */
/* S-20, S-38, S-41 */
TEST_RACE(a_pinned_actor_has_all_its_turns_on_its_thread_for_any_sender)
{
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = two_pinned, .dispatchers_count = 2));
    STRAND_SCOPE(scope);
    strand_actor a = spawn_resident(system, "first", 0, SENDERS * EACH),
                 b = spawn_resident(system, "third", 2, SENDERS * EACH);
    strand_actor by_others[] = {spawn_on(system, NULL, &relay, &a, sizeof a),
                                spawn_on(system, NULL, &relay, &b, sizeof b)},
                 by_each_other[] = {spawn_on(system, "third", &relay, &a, sizeof a),
                                    spawn_on(system, "first", &relay, &b, sizeof b)},
                 themselves[] = {a, b};
    const strand_actor *const ways[] = {themselves, by_others, by_each_other};
    for (int i = 0; i < SENDERS; i++)
        strand_spawn_with(scope, NULL, tell_each, ways[i % 3], 2 * sizeof(strand_actor));
    strand_scope_join(scope);
    strand_event_wait(&done);
}

static strand_actor from_outside[2];

static void *tell_from_outside(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        tell(from_outside[0], i);
        tell(from_outside[1], i);
    }
    return arg;
}

/* S-38, S-41 */
TEST_REAL_RACE(a_pinned_actor_that_plain_threads_tell_stays_on_its_thread)
{
    pthread_t threads[SENDERS];
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = two_pinned, .dispatchers_count = 2));
    from_outside[0] = spawn_resident(system, "first", 0, SENDERS * EACH);
    from_outside[1] = spawn_resident(system, "third", 2, SENDERS * EACH);
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, tell_from_outside, NULL), 0);
    strand_event_wait(&done);
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- nobody else runs it ----------------------------------------------------------------------------------- */

static _Atomic int held, released;

/* Blocks its thread, and not only itself. */
static void hold_thread(void *state, strand_message *message)
{
    (void)state, (void)message;
    held = 1;
    while (!released)
        usleep(1000);
}

static const strand_actor_class holder = {.size = sizeof holder, .name = "holder", .receive = hold_thread};

static void note_turn(void *state, strand_message *message)
{
    (void)state;
    CHECK(STRAND_IS(message, step)->n >= 0);
    count++;
}

static const strand_actor_class noting = {.size = sizeof noting, .name = "noting", .receive = note_turn};

static void check_held(strand_actors system, const char *dispatcher)
{
    begin();
    held = released = 0;
    strand_actor h = spawn_on(system, dispatcher, &holder, NULL, 0), a = spawn_on(system, dispatcher, &noting, NULL, 0);
    tell(a, 0); /* it has run there */
    test_yield_until(&count, 1);
    tell(h, 0);
    test_yield_until(&held, 1);
    for (int i = 0; i < 5; i++)
        tell(a, i);
    strand_sleep(20 * STRAND_MS); /* there are threads that have nothing else to do */
    CHECK_EQ(count, 1);
    released = 1;
    test_yield_until(&count, 6);
}

/* S-40, S-41 */
TEST_REAL_RACE(a_pinned_actor_waits_for_its_thread_although_others_have_nothing_to_do)
{
    static const strand_dispatcher dispatchers[] = {{.size = sizeof *dispatchers,
                                                     .name = "alone",
                                                     .executor = "fork-join-executor",
                                                     .threads = 1,
                                                     .scheduler = "dedicated"},
                                                    {.size = sizeof *dispatchers,
                                                     .name = "second",
                                                     .executor = "fork-join-executor",
                                                     .threads = 3,
                                                     .pin = STRAND_PIN(1)}};
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dispatchers, .dispatchers_count = 2));
    check_held(system, "alone");
    check_held(system, "second");
}

/* ---- different actors, different threads ------------------------------------------------------------------- */

enum { CONNECTIONS = 3, QUERIES = 5 };

static struct {
    _Atomic int here;
    pid_t threads[CONNECTIONS];
} connections;

struct connection {
    int number, thread, queries; /* thread: its index in the pool */
};

/* All are inside at once, each with a thread that it does not give away; and always with the same one. */
static void query(void *state, strand_message *message)
{
    struct connection *me = state;
    int round = STRAND_IS(message, step)->n;
    if (!me->queries++)
        connections.threads[me->number] = gettid();
    CHECK_EQ(connections.threads[me->number], gettid());
    CHECK_EQ(strand_thread_index(), me->thread);
    connections.here++;
    while (connections.here < (round + 1) * CONNECTIONS)
        usleep(1000);
    if (me->queries == QUERIES && ++count == CONNECTIONS)
        strand_event_set(&done);
}

static const strand_actor_class connection = {
    .size = sizeof connection, .name = "connection", .state_size = sizeof(struct connection), .receive = query};

static const char *const names[CONNECTIONS] = {"one", "two", "three"};

static void query_all(const strand_dispatcher *dispatchers, bool one_pool)
{
    strand_actor a[CONNECTIONS];
    begin();
    connections.here = 0;
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dispatchers, .dispatchers_count = CONNECTIONS));
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection c = {.number = i, .thread = one_pool ? CONNECTIONS - 1 - i : 0};
        a[i] = spawn_on(system, names[i], &connection, &c, sizeof c);
    }
    for (int round = 0; round < QUERIES; round++)
        for (int i = 0; i < CONNECTIONS; i++)
            tell(a[i], round);
    strand_event_wait(&done);
    for (int i = 0; i < CONNECTIONS; i++)
        CHECK(connections.threads[i] != connections.threads[(i + 1) % CONNECTIONS]);
}

/* A pool for each, of its only thread. */
/* S-39 */
TEST_REAL_INSIDE(pinned_actors_may_have_a_dedicated_thread_each)
{
    strand_dispatcher dispatchers[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        dispatchers[i] = (strand_dispatcher){.size = sizeof *dispatchers,
                                             .name = names[i],
                                             .executor = "fork-join-executor",
                                             .threads = 1,
                                             .scheduler = "dedicated"};
    query_all(dispatchers, false);
}

/* The threads of one pool. */
/* S-39 */
TEST_REAL_INSIDE(actors_may_be_pinned_to_different_threads_of_one_pool)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = CONNECTIONS));
    strand_dispatcher dispatchers[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        dispatchers[i] = (strand_dispatcher){
            .size = sizeof *dispatchers, .name = names[i], .pool = pool, .pin = STRAND_PIN(CONNECTIONS - 1 - i)};
    query_all(dispatchers, true);
}

/* ---- they wake whom they like ------------------------------------------------------------------------------ */

static const char *const elsewhere[] = {NULL, "stealing", "global", "dedicated", "pinned"};
enum { ELSEWHERE = sizeof elsewhere / sizeof *elsewhere, CALLS = 20 };

static strand_actor called[ELSEWHERE];

STRAND_MESSAGE(call, { int round; });
STRAND_MESSAGE(answer, { int round; });

static void be_called(void *state, strand_message *message)
{
    (void)state;
    CHECK_EQ(strand_reply(message, STRAND_MSG(answer, STRAND_IS(message, call)->round)), 0);
}

static const strand_actor_class callee = {.size = sizeof callee, .name = "callee", .receive = be_called};

/* One round after the other; between any two all others fall asleep, or are about to. */
static void call_all(void *state, strand_message *message)
{
    int *answers = state, round = 0;
    const answer *a = STRAND_IS(message, answer);
    if (a && ++*answers % ELSEWHERE)
        return;
    if (a)
        round = a->round + 1;
    if (round == CALLS) {
        strand_event_set(&done);
        return;
    }
    strand_sleep(round % 3 ? 100 * STRAND_US : 3 * STRAND_MS);
    for (int i = 0; i < ELSEWHERE; i++)
        CHECK_EQ(strand_tell(called[i], STRAND_MSG(call, round)), 0);
}

static const strand_actor_class caller = {
    .size = sizeof caller, .name = "caller", .state_size = sizeof(int), .receive = call_all};

#define OWN_POOL(name_, ...)                                                                                           \
    {                                                                                                                  \
        .size = sizeof(strand_dispatcher), .name = name_, .executor = "fork-join-executor", __VA_ARGS__                \
    }

/* S-20, S-59 */
TEST_RACE(a_pinned_actor_wakes_actors_of_any_dispatcher_whose_threads_sleep)
{
    static const strand_dispatcher dispatchers[] = {
        OWN_POOL("stealing", .threads = 2, .scheduler = "stealing"),
        OWN_POOL("global", .threads = 2, .scheduler = "global"),
        OWN_POOL("dedicated", .threads = 1, .scheduler = "dedicated"),
        OWN_POOL("pinned", .threads = 2, .pin = STRAND_PIN(1)),
        OWN_POOL("caller", .threads = 1, .scheduler = "dedicated"),
        {.size = sizeof *dispatchers, .name = "main", .executor = "current-context-executor"}};
    static const char *const from[] = {"caller", "pinned", "main"};
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dispatchers, .dispatchers_count = 6));
    for (int i = 0; i < ELSEWHERE; i++)
        called[i] = spawn_on(system, elsewhere[i], &callee, NULL, 0);
    for (int i = 0; i < 3; i++) {
        begin();
        tell(spawn_on(system, from[i], &caller, NULL, 0), 0);
        strand_event_wait(&done);
    }
}

/* ---- what keeps the system up ------------------------------------------------------------------------------ */

static const strand_dispatcher dedicated_and_pinned[] = {OWN_POOL("dedicated", .threads = 1, .scheduler = "dedicated"),
                                                         OWN_POOL("pinned", .threads = 2, .pin = STRAND_PIN(1)),
                                                         OWN_POOL("other", .threads = 1, .scheduler = "dedicated")};

static strand_actor ring[4];
enum { RING = sizeof ring / sizeof *ring, HOPS = 30 };

/* There is nothing but this one message, and it is in the hands of a dedicated thread most of the time. */
static void hand_on(void *state, strand_message *message)
{
    int left = STRAND_IS(message, step)->n;
    (void)state;
    if (left % 4 == 1)
        strand_yield();
    if (left % 7 == 1)
        strand_sleep(10 * STRAND_US);
    count++;
    if (left)
        tell(ring[left % RING], left - 1);
}

static const strand_actor_class hand = {.size = sizeof hand, .name = "hand", .receive = hand_on};

/* S-42 */
TEST_RACE(work_of_actors_on_dedicated_threads_keeps_the_system_up)
{
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dedicated_and_pinned, .dispatchers_count = 3));
    for (int i = 0; i < RING; i++)
        ring[i] = spawn_on(system, i ? dedicated_and_pinned[i - 1].name : NULL, &hand, NULL, 0);
    for (int round = 1; round <= test_scale(50); round++) {
        tell(ring[round % RING], HOPS);
        strand_actors_join(system);
        CHECK_EQ(count, round * (HOPS + 1));
    }
}

static void block_and_tell(void *state, strand_message *message)
{
    (void)state, (void)message;
    usleep(30000); /* all others are idle long since */
    count++;
    tell(ring[0], 0);
}

static const strand_actor_class late = {.size = sizeof late, .name = "late", .receive = block_and_tell};

/* S-42 */
TEST_REAL_RACE(a_dedicated_thread_that_is_the_last_to_work_keeps_the_system_up)
{
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dedicated_and_pinned, .dispatchers_count = 3));
    ring[0] = spawn_on(system, NULL, &hand, NULL, 0);
    for (int i = 0; i < 3; i++) {
        tell(spawn_on(system, dedicated_and_pinned[i].name, &late, NULL, 0), 0);
        strand_actors_join(system);
        CHECK_EQ(count, 2 * (i + 1));
    }
}

/* ---- the last message -------------------------------------------------------------------------------------- */

enum { BOATLOAD = 20, CRATES = 3 };

/* The ordinary actor, and those that it starts: each gets its message from the one before, and most are new. */
static void save_progress(void *state, strand_message *message)
{
    int n = STRAND_IS(message, step)->n;
    (void)state;
    static const strand_actor_class saver = {.size = sizeof saver, .name = "saver", .receive = save_progress};
    for (int i = 0; n == 0 && i < BOATLOAD; i++)
        tell(strand_actor_spawn_child(NULL, &saver, NULL, 0), 1);
    if (n > 0 && n < CRATES)
        tell(strand_actor_spawn_child(NULL, &saver, NULL, 0), n + 1);
    if (n % 2)
        strand_yield();
    count++;
}

static const strand_actor_class keeper = {.size = sizeof keeper, .name = "keeper", .receive = save_progress};

/* The pinned one: while all others are idle it gets its "quit", tells the other, and is gone. */
static void handle_event(void *state, strand_message *message)
{
    if (STRAND_IS(message, step)->n) {
        CHECK_EQ(strand_actor_timer(state, STRAND_MS / 10, 0, STRAND_MSG(step, 0)), 0);
        return;
    }
    tell(*(const strand_actor *)state, 0);
    CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

static const strand_actor_class events = {
    .size = sizeof events, .name = "events", .state_size = sizeof(strand_actor), .receive = handle_event};

/* S-65 */
TEST_RACE(what_a_pinned_actors_last_message_starts_is_done_before_the_system_is_out_of_work)
{
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dedicated_and_pinned, .dispatchers_count = 3));
    for (int round = 1; round <= test_scale(40); round++) {
        strand_actor k = spawn_on(system, round % 4 ? NULL : "other", &keeper, NULL, 0),
                     e = spawn_on(system, dedicated_and_pinned[round % 2].name, &events, &k, sizeof k);
        tell(e, 1);
        strand_actors_join(system);
        CHECK(strand_actor_ended(e));
        CHECK_EQ(count, round * (1 + BOATLOAD * CRATES));
        CHECK_EQ(strand_actor_stop(k, STRAND_STOP_NEXT), 0);
    }
}
