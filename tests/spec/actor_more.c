/*
 * Further rules of actors: parents, more awake actors than strands, stop functions that throw, answers that are given,
 * routers that lose their routees, reuse of an actor's memory, and the size of an idle actor.
 */
#define SUITE actor_more
#include "test.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/sync.h"

#include <errno.h>
#include <unistd.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(fail, { int n; });

static _Atomic int count;

static void count_drop(void *body)
{
    (void)body;
    count++;
}

STRAND_MESSAGE_WITH(owned, count_drop, { int n; });

/* ---- parents and guardians ------------------------------------------------------------------------------------ */

static strand_actor parent;

static void check_parent(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK_EQ(strand_actor_parent().bits[1], parent.bits[1]);
    test_log("child");
}

static const strand_actor_class child_class = {.size = sizeof child_class, .name = "child", .receive = check_parent};

static void be_parent(void *state, strand_message *message)
{
    (void)state;
    parent = strand_actor_self();
    strand_message_forward(message, strand_actor_spawn_child(NULL, &child_class, NULL, 0));
    CHECK_EQ(strand_actor_parent().bits[1], strand_actor_find(strand_actor_system(), "/user").bits[1]);
}

static const strand_actor_class parent_class = {.size = sizeof parent_class, .name = "parent", .receive = be_parent};

TEST_INSIDE(an_actor_knows_its_parent_and_a_strand_has_none)
{
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_actor_parent().bits[1], 0);
    CHECK_EQ(strand_actor_system().bits[1], 0);
    CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &parent_class, NULL, 0), STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("child");
}

static void log_unhandled(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    test_log("%s", p->kind == STRAND_ACTOR_UNHANDLED ? "unhandled" : "?");
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = log_unhandled};

static strand_actor listen(strand_actors system)
{
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, STRAND_ACTOR_UNHANDLED), 0);
    return l;
}

TEST_INSIDE(a_guardian_handles_no_messages)
{
    STRAND_ACTORS(system, NULL);
    listen(system);
    CHECK_EQ(strand_tell(strand_actor_find(system, "/user"), STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(strand_actor_find(system, "/"), STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("unhandled unhandled");
}

struct naming {
    strand_actors system;
    const char *name, *dispatcher;
};

static void *spawn_named(void *arg)
{
    const struct naming *it = arg;
    strand_actor_spawn(it->system, STRAND_ACTOR_ATTR(.name = it->name, .dispatcher = it->dispatcher), &child_class,
                       NULL, 0);
    return NULL;
}

static void check_name(strand_actors system, const char *name, int code)
{
    struct naming it = {system, name, NULL};
    strand_exception *e = strand_try(spawn_named, &it, NULL);
    if (code) {
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), code);
        CHECK_CONTAINS(strand_exception_text(e), name);
        CHECK_CONTAINS(strand_exception_text(e), code == -EEXIST ? "as a sibling of it is" : "1 to 63 bytes");
    } else {
        CHECK(e == NULL);
    }
    strand_exception_release(e);
}

TEST_INSIDE(some_names_are_refused)
{
    char longest[65] = "";
    memset(longest, 'n', 64);
    STRAND_ACTORS(system, NULL);
    check_name(system, longest, -EINVAL);
    longest[63] = 0;
    check_name(system, longest, 0);
    check_name(system, longest, -EEXIST);
    check_name(system, "", -EINVAL);
    check_name(system, "a/b", -EINVAL);
    check_name(system, "$1", -EINVAL);
    check_name(system, "a\nb", -EINVAL);
    check_name(system, "a\177", -EINVAL);
    check_name(system, "k\303\251", 0);
    CHECK_EQ(strand_actor_find(system, "user").bits[1], 0);
    CHECK_EQ(strand_actor_find(system, "/user/nobody").bits[1], 0);
}

/* ---- many at once ------------------------------------------------------------------------------------------------ */

enum { MANY = 3000 };

static void count_message(void *state, strand_message *message)
{
    (void)state, (void)message;
    count++;
}

static const strand_actor_class counter = {.size = sizeof counter, .name = "counter", .receive = count_message};

TEST_INSIDE(more_actors_may_get_messages_at_once_than_may_have_strands)
{
    count = 0;
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &counter, NULL, 0), STRAND_MSG(number, i)), 0);
    strand_actors_join(system);
    CHECK_EQ(count, MANY);
}

static void block(void *state, strand_message *message)
{
    count_message(state, message);
    strand_event_wait(*(strand_event **)state);
    count++;
}

static const strand_actor_class blocker = {
    .size = sizeof blocker, .name = "blocker", .state_size = sizeof(strand_event *), .receive = block};

TEST_INSIDE(so_many_actors_may_all_block)
{
    static strand_event go;
    strand_event *at = &go;
    go = (strand_event){{0}};
    count = 0;
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &blocker, &at, sizeof at), STRAND_MSG(number, i)), 0);
    while (count < MANY)
        strand_yield();
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_EQ(count, 2 * MANY);
}

/* ---- ending badly ------------------------------------------------------------------------------------------------ */

static void log_or_fail(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (!n)
        strand_throw(&TEST_ERROR, "on purpose");
    test_log("%d", n->n);
}

static void stop_badly(void *state)
{
    (void)state;
    test_log("stop");
    strand_throw(&TEST_ERROR, "in stop");
}

static const strand_actor_class bad = {.size = sizeof bad, .name = "bad", .receive = log_or_fail, .stop = stop_badly};

TEST_INSIDE(an_actor_that_throws_while_it_stops_has_stopped)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &bad, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("stop 1");
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("stop 1 stop");
}

static void make_one_that_fails(void *state, strand_message *message)
{
    strand_actor *child = state;
    if (STRAND_IS(message, number) || strand_actor_ended(*child))
        *child = strand_actor_spawn_child(NULL, &bad, NULL, 0);
    strand_message_forward(message, *child);
}

static const strand_actor_class strict = {.size = sizeof strict,
                                          .name = "strict",
                                          .state_size = sizeof(strand_actor),
                                          .receive = make_one_that_fails,
                                          .max_restarts = 1};

TEST_INSIDE(restarts_of_children_that_have_ended_do_not_count)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &strict, NULL, 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
        for (int j = 0; j < 2; j++) {
            CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
            strand_actors_join(system);
        }
    }
    CHECK_LOG("1 stop stop 2 stop stop 3 stop stop");
}

static void stop_slowly(void *state)
{
    (void)state;
    test_log("stops");
    strand_sleep(5 * STRAND_MS);
    test_log("stopped");
}

static const strand_actor_class slow = {
    .size = sizeof slow, .name = "slow", .receive = log_or_fail, .stop = stop_slowly};

TEST_INSIDE(a_stop_at_once_does_not_interrupt_the_function_for_the_end)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    while (!test_log_is("stops"))
        strand_yield();
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("stops stopped");
}

/* ---- answers -------------------------------------------------------------------------------------------------------
 */

static void give_answer(void *state, strand_message *message)
{
    static number answer = {7};
    (void)state;
    strand_actor_give(message->sender, &number_message, &answer);
}

static const strand_actor_class giver = {.size = sizeof giver, .name = "giver", .receive = give_answer};

TEST_INSIDE(an_answer_may_be_given)
{
    number *answer = NULL;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &giver, NULL, 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(number, 1), STRAND_INTO_GIVEN(number, &answer)), 0);
    CHECK_EQ(answer->n, 7);
}

/* ---- routers -------------------------------------------------------------------------------------------------------
 */

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
    listen(system);
    strand_actor r = strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 2, .class_ = &mortal));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(strand_tell(r, STRAND_MSG(fail)), 0);
        strand_actors_join(system);
        CHECK_EQ(strand_tell(r, STRAND_MSG(number, 1)), 0);
        strand_actors_join(system);
    }
    CHECK_LOG("got unhandled");
}

TEST_INSIDE(what_is_owned_is_not_for_all)
{
    count = 0;
    STRAND_ACTORS(system, NULL);
    listen(system);
    strand_actor r =
        strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 2, .class_ = &counter, .route = STRAND_ROUTE_ALL));
    CHECK_EQ(strand_tell(r, STRAND_MSG(owned, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("unhandled");
    CHECK_EQ(count, 1);
}

/* ---- memory that is used again ----------------------------------------------------------------------------------- */

static void ask_and_wait(void)
{
    number *answer;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &giver, NULL, 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(number, 1), STRAND_INTO_GIVEN(number, &answer)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
}

TEST_INSIDE(channels_may_lie_where_actors_lay)
{
    enum { CHANNELS = 300 };
    for (int i = 0; i < 5; i++)
        ask_and_wait();
    STRAND_SCOPE(scope);
    for (long i = 0, got = 0; i < CHANNELS; i++) {
        strand_chan c = strand_chan_open(scope, sizeof i, 1, NULL);
        CHECK_EQ(strand_chan_send(c, &i), 0);
        CHECK_EQ(strand_chan_receive(c, &got), 0);
        CHECK_EQ(got, i);
    }
}

/* ---- what a dormant one takes --------------------------------------------------------------------------------- */

#if !TEST_ASAN && !TEST_TSAN /* they have bytes of their own beside each */
static void add_to(void *state, strand_message *message)
{
    *(uint64_t *)state += (uint64_t)STRAND_IS(message, number)->n;
    count++;
}

static const strand_actor_class small = {
    .size = sizeof small, .name = "small", .state_size = sizeof(uint64_t), .receive = add_to};

static void *count_bytes(void *arg)
{
    enum { FIRST = 1000, ACTORS = 200000, TOLD = 50 };
    count = 0;
    STRAND_ACTORS(system, NULL);
    long before = 0;
    for (int i = 0; i < FIRST + ACTORS; i++) {
        if (i == FIRST)
            before = (long)test_resident_bytes();
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &small, NULL, 0), STRAND_MSG(number, i)), 0);
        while (i % TOLD == 0 && count < i)
            strand_yield();
    }
    strand_actors_join(system);
    CHECK_EQ(count, FIRST + ACTORS);
    CHECK(((long)test_resident_bytes() - before) / ACTORS < 72); /* memory comes in pieces of some MiB */
    return arg;
}

/* 56 bytes with the state. Each has been awake; no more than a few at a time. */
/* S-09, S-12 */
TEST_REAL(an_actor_that_has_been_awake_takes_no_more_than_its_cell)
{
    strand_options options = test_options();
    options.threads = 1; /* each thread has memory of its own at hand */
    strand_run(&options, count_bytes, NULL);
}
#endif
