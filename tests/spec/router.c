/*
 * Routers.
 */
#define SUITE router
#include "listener.h"
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

STRAND_MESSAGE(job, {
    int n;
    bool blocks, fails, ends, lingers;
});

enum { WORKERS = 4, JOBS = 200, KEYS = 50 };

static _Atomic int done_by[64], workers, handled, over;
static strand_event go;

static void begin(void)
{
    workers = handled = over = 0;
    go = (strand_event){{0}};
    for (int i = 0; i < 64; i++)
        done_by[i] = 0;
}

static void get_number(void *state, const void *args)
{
    CHECK_EQ(*(const int *)args, 7);
    *(int *)state = workers++;
}

static _Atomic int handler_of[JOBS];

static void work(void *state, strand_message *message)
{
    const job *j = STRAND_IS(message, job);
    done_by[*(int *)state]++;
    handler_of[j->n] = *(int *)state;
    handled++;
    if (j->blocks)
        strand_event_wait(&go);
    while (j->lingers && !over) /* it runs all the time */
        strand_yield();
    if (j->fails)
        strand_throw(&TEST_ERROR, "failed");
    if (j->ends)
        CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

static const strand_actor_class worker = {
    .size = sizeof worker, .name = "worker", .state_size = sizeof(int), .receive = work, .start = get_number};

static uint64_t hash(const strand_message *message)
{
    return (uint64_t)(STRAND_IS(message, job)->n % KEYS);
}

static strand_actor spawn_router(strand_actors system, enum strand_route route)
{
    static const int seven = 7;
    return strand_router_spawn(system, NULL,
                               STRAND_ROUTER(.route = route, .count = WORKERS, .class_ = &worker, .args = &seven,
                                             .size_of_args = sizeof seven, .hash = hash));
}

static void route_all(enum strand_route route)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = spawn_router(system, route);
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i)), 0);
    strand_actors_join(system);
    CHECK_EQ(workers, WORKERS);
}

TEST_INSIDE(a_router_may_pass_messages_on_in_turn)
{
    route_all(STRAND_ROUTE_IN_TURN);
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(done_by[i], JOBS / WORKERS);
}

TEST_INSIDE(a_router_may_pass_messages_on_at_random)
{
    route_all(STRAND_ROUTE_RANDOM);
    CHECK_EQ(handled, JOBS);
    bool in_turn = true;
    for (int i = WORKERS; i < JOBS; i++)
        in_turn &= handler_of[i] == handler_of[i - WORKERS];
    CHECK(!in_turn);
    for (int i = 0; i < WORKERS; i++)
        CHECK(done_by[i] > 0);
}

TEST_INSIDE(a_router_may_pass_messages_on_to_all)
{
    route_all(STRAND_ROUTE_ALL);
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(done_by[i], JOBS);
}

TEST_INSIDE(a_router_may_pass_those_of_one_hash_on_to_one)
{
    route_all(STRAND_ROUTE_HASH);
    CHECK_EQ(handled, JOBS);
    for (int i = KEYS; i < JOBS; i++)
        CHECK_EQ(handler_of[i], handler_of[i % KEYS]);
    for (int i = 0; i < WORKERS; i++)
        CHECK(done_by[i] > 0);
}

TEST_INSIDE(when_one_of_a_router_by_hash_ends_only_what_was_its_own_goes_to_others)
{
    int before[KEYS];
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = spawn_router(system, STRAND_ROUTE_HASH);
    for (int i = 0; i < KEYS; i++)
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i)), 0);
    strand_actors_join(system);
    for (int i = 0; i < KEYS; i++)
        before[i] = handler_of[i];
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 0, .ends = true)), 0);
    strand_actors_join(system);
    for (int i = 0; i < KEYS; i++)
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i)), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, 2 * KEYS + 1);
    for (int i = 0; i < KEYS; i++)
        CHECK((handler_of[i] == before[i]) == (before[i] != before[0]));
}

TEST_INSIDE(a_router_may_forward_to_the_routee_with_the_fewest_messages)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = spawn_router(system, STRAND_ROUTE_SMALLEST);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i, .blocks = i < WORKERS - 1)), 0);
        strand_actors_join(system); /* some are blocked, and nobody else has anything to do */
    }
    CHECK_EQ(handled, 10);
    strand_event_set(&go);
}

TEST_INSIDE(an_unblocked_routee_is_chosen_among_those_with_as_few_messages)
{
    static const int seven = 7;
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = strand_router_spawn(system, NULL,
                                         STRAND_ROUTER(.route = STRAND_ROUTE_SMALLEST, .count = 2, .class_ = &worker,
                                                       .args = &seven, .size_of_args = sizeof seven));
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 0, .blocks = true)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 1, .lingers = true)), 0);
    while (handled < 2)
        strand_yield();
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 2)), 0);
    for (int i = 0; i < 1000; i++) /* the router has passed it on by then: else nothing is found out */
        strand_yield();
    over = 1;
    strand_actors_join(system);
    CHECK_EQ(handled, 3);
    CHECK_EQ(handler_of[1], handler_of[2]);
    strand_event_set(&go);
}

static strand_actor one;
static _Atomic int noted;

static void note_self(void *state, strand_message *message)
{
    (void)state, (void)message;
    if (!noted++)
        one = strand_actor_self();
    handled++; /* a reader of the count sees the routee's identity */
}

static const strand_actor_class noter = {.size = sizeof noter, .name = "noter", .receive = note_self};

static void lose_one(enum strand_route route)
{
    begin();
    noted = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor r = strand_router_spawn(system, NULL, STRAND_ROUTER(.route = route, .count = 3, .class_ = &noter));
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 0)), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, 1);
    CHECK_EQ(strand_actor_suspend(r), 0);
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i)), 0);
    CHECK_EQ(strand_actor_stop(one, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(one), 0);
    CHECK_EQ(strand_actor_resume(r), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, JOBS + 1);
}

STRAND_MESSAGE(question, { char none; });

static void answer(void *state, strand_message *message)
{
    if (STRAND_IS(message, question))
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(job, .n = 1))); /* the first one counts */
    else
        note_self(state, message);
}

static const strand_actor_class answerer = {.size = sizeof answerer, .name = "answerer", .receive = answer};

static void *ask_all(void *arg)
{
    job got;
    return TEST_PTR(strand_ask(*(strand_actor *)arg, STRAND_MSG(question), STRAND_INTO(job, &got)));
}

TEST_INSIDE(asking_all_gets_an_answer_although_one_has_ended)
{
    static strand_actor r;
    begin();
    noted = 0;
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    r = strand_router_spawn(system, NULL, STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = 3, .class_ = &answerer));
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 0)), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, 3);
    CHECK_EQ(strand_actor_suspend(r), 0);
    strand asker = strand_spawn(scope, ask_all, &r);
    test_await_blocked("waits for the answer of a", 1);
    CHECK_EQ(strand_actor_stop(one, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(one), 0);
    CHECK_EQ(strand_actor_resume(r), 0);
    CHECK_PTR(strand_join(asker), NULL);
}

/* Its notice is behind all of them. */
TEST_INSIDE(the_waiting_messages_of_a_router_go_to_the_routees_that_are_left)
{
    lose_one(STRAND_ROUTE_IN_TURN);
    lose_one(STRAND_ROUTE_SMALLEST);
    lose_one(STRAND_ROUTE_RANDOM);
}

TEST_INSIDE(a_routers_actor_that_fails_is_restarted)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = spawn_router(system, STRAND_ROUTE_IN_TURN);
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i, .fails = i == 3)), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, JOBS);
    CHECK_EQ(workers, WORKERS + 1);
}

TEST_INSIDE(a_routers_actor_that_fails_too_often_is_stopped)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = strand_router_spawn(system, NULL,
                                         STRAND_ROUTER(.count = 2, .class_ = &worker, .args = &(const int){7},
                                                       .size_of_args = sizeof(int), .max_restarts = 1,
                                                       .restarts_within_ns = STRAND_S));
    for (int i = 0; i < 8; i++) /* each fails twice, and is stopped; what waits there is dead letters */
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i, .fails = true)), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, 4);
    CHECK_EQ(workers, 4);
}

TEST_INSIDE(a_failed_routee_may_stay_suspended_before_it_is_restarted)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor r = strand_router_spawn(system, NULL,
                                         STRAND_ROUTER(.count = 1, .class_ = &worker, .args = &(const int){7},
                                                       .size_of_args = sizeof(int), .backoff_ns = 20 * STRAND_MS,
                                                       .max_backoff_ns = 30 * STRAND_MS));
    int64_t begun = strand_now().ns;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = i, .fails = true)), 0);
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 3, .blocks = true)), 0);
    strand_event_set(&go);
    while (handled < 4)
        strand_sleep(STRAND_MS);
    CHECK(strand_now().ns - begun >= (20 + 30 + 30) * STRAND_MS);
    CHECK_EQ(workers, 4);
}

static _Atomic int strange;

static void take_anything(void *state, strand_message *message)
{
    (void)state;
    strange += STRAND_IS(message, strand_terminated) != NULL;
    handled++;
}

static const strand_actor_class taker = {.size = sizeof taker, .name = "taker", .receive = take_anything};

TEST_INSIDE(a_notice_of_somebody_elses_end_is_passed_on_as_any_message)
{
    begin();
    strange = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor other = strand_actor_spawn(system, NULL, &taker, NULL, 0),
                 r = strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 2, .class_ = &taker));
    CHECK_EQ(strand_tell(r, STRAND_MSG(strand_terminated, other)), 0);
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 0)), 0);
    CHECK_EQ(strand_tell(r, STRAND_MSG(job, .n = 1)), 0);
    strand_actors_join(system);
    CHECK_EQ(strange, 1);
    CHECK_EQ(handled, 3);
}

/* ---- messages that no routee gets ------------------------------------------------------------------------------- */

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(fail, { char none; });

static void stop_at_a_failure(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, fail))
        CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
    else
        test_log("got");
}

static const strand_actor_class mortal = {.size = sizeof mortal, .name = "mortal", .receive = stop_at_a_failure};

TEST_INSIDE(a_router_goes_on_with_those_that_are_left)
{
    STRAND_ACTORS(system, NULL);
    spawn_listener(system, STRAND_ACTOR_UNHANDLED);
    strand_actor r = strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 2, .class_ = &mortal));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(strand_tell(r, STRAND_MSG(fail)), 0);
        strand_actors_join(system);
        CHECK_EQ(strand_tell(r, STRAND_MSG(number, 1)), 0);
        strand_actors_join(system);
    }
    CHECK_LOG("got unhandled");
}

static _Atomic int dropped;

static void count_drop(void *body)
{
    (void)body;
    dropped++;
}

STRAND_MESSAGE_WITH(owned, count_drop, { int n; });

static void get_owned(void *state, strand_message *message)
{
    (void)state, (void)message;
    test_log("got");
}

static const strand_actor_class owner = {.size = sizeof owner, .name = "owner", .receive = get_owned};

TEST_INSIDE(what_is_owned_is_not_for_all)
{
    dropped = 0;
    STRAND_ACTORS(system, NULL);
    spawn_listener(system, STRAND_ACTOR_UNHANDLED);
    strand_actor r =
        strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 2, .class_ = &owner, .route = STRAND_ROUTE_ALL));
    CHECK_EQ(strand_tell(r, STRAND_MSG(owned, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("unhandled");
    CHECK_EQ(dropped, 1);
}
