/*
 * An asker is notified when there will be no answer, and no actor gets an outdated notice: rare cases.
 */
#define SUITE actor_answers
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(fail, { char none; });
STRAND_MESSAGE(rest, { char none; });

static int ask(strand_actor whom)
{
    number got = {0};
    return strand_ask(whom, STRAND_MSG(number, 1), STRAND_INTO(number, &got));
}

static void *ask_and_log(void *arg)
{
    int error = ask(*(strand_actor *)arg);
    test_log(error == -EPIPE ? "none" : error ? "error" : "answer");
    return NULL;
}

/* ---- questions that nobody can answer -------------------------------------------------------------------------- */

/* The first question is answered by the second one. */
static void answer_with_a_question(void *state, strand_message *message)
{
    strand_actor *first = state;
    if (!first->bits[1])
        *first = message->sender;
    else
        CHECK_EQ(strand_message_forward(message, *first), 0);
}

static const strand_actor_class confused = {
    .size = sizeof confused, .name = "confused", .state_size = sizeof(strand_actor), .receive = answer_with_a_question};

TEST_INSIDE(asking_with_a_message_that_becomes_an_answer_returns_that_there_is_none)
{
    static strand_actor a;
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    a = strand_actor_spawn(system, NULL, &confused, NULL, 0);
    strand one = strand_spawn(scope, ask_and_log, &a), other = strand_spawn(scope, ask_and_log, &a);
    strand_join(one);
    strand_join(other);
    CHECK(test_log_is("answer none") || test_log_is("none answer"));
}

/* An asker is not an actor of another run, and can't be asked. */
static void ask_back(void *state, strand_message *message)
{
    (void)state;
    strand_actor asker = message->sender;
    CHECK_EQ(strand_actor_stop(asker, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(asker), 0);
    CHECK_EQ(ask(asker), -EPIPE);
    test_log("back");
}

static const strand_actor_class curious = {.size = sizeof curious, .name = "curious", .receive = ask_back};

TEST_INSIDE(asking_the_asker_back_returns_that_there_is_no_answer)
{
    static strand_actor a;
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    a = strand_actor_spawn(system, NULL, &curious, NULL, 0);
    strand_join(strand_spawn(scope, ask_and_log, &a));
    strand_actors_join(system);
    CHECK(test_log_is("answer back") || test_log_is("back answer"));
}

/* It reports each question as unhandled, and answers it after the next one. */
static void leave_unhandled(void *state, strand_message *message)
{
    strand_actor *before = state;
    if (before->bits[1])
        test_log(strand_tell(*before, STRAND_MSG(number, 0)) == -EPIPE ? "late" : "taken");
    *before = message->sender;
    strand_message_unhandled(message);
}

static const strand_actor_class unable = {
    .size = sizeof unable, .name = "unable", .state_size = sizeof(strand_actor), .receive = leave_unhandled};

static void answer_and_leave_unhandled(void *state, strand_message *message)
{
    (void)state;
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(number, 0)));
    strand_message_unhandled(message);
}

static const strand_actor_class both = {.size = sizeof both, .name = "both", .receive = answer_and_leave_unhandled};

/* contract 6.4 */
TEST_INSIDE(asking_with_a_message_that_is_unhandled_returns_that_there_is_no_answer)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &unable, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &both, NULL, 0);
    CHECK_EQ(ask(a), -EPIPE);
    CHECK_EQ(ask(a), -EPIPE);
    CHECK_EQ(ask(strand_actor_find(system, "/user")), -EPIPE);
    CHECK_EQ(ask(b), 0);
    CHECK_LOG("late");
}

static strand_event kept;

static void keep(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_event_set(&kept);
}

static const strand_actor_class keeper = {.size = sizeof keeper, .name = "keeper", .receive = keep};

TEST_INSIDE(asking_a_restarting_actor_returns_that_there_is_no_answer)
{
    static strand_actor a;
    kept = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    a = strand_actor_spawn(system, NULL, &keeper, NULL, 0);
    strand asker = strand_spawn(scope, ask_and_log, &a);
    strand_event_wait(&kept);
    CHECK_EQ(strand_actor_restart(a), 0);
    strand_join(asker);
    CHECK(!strand_actor_ended(a));
    CHECK_LOG("none");
}

/* ---- receive timeouts ------------------------------------------------------------------------------------------- */

static _Atomic int timeouts, starts, resting, failures;

static void want_timeouts_at_first(void *state, const void *args)
{
    (void)state, (void)args;
    if (!starts++)
        CHECK_EQ(strand_actor_receive_timeout(STRAND_MS), 0);
}

static void count_timeouts(void *state, strand_message *message)
{
    (void)state;
    timeouts += STRAND_IS(message, strand_receive_timeout) != NULL;
    if (STRAND_IS(message, rest)) {
        CHECK_EQ(strand_actor_suspend(strand_actor_self()), 0);
        resting = 1; /* from here on it handles nothing */
    }
    if (STRAND_IS(message, fail))
        strand_throw(&TEST_ERROR, "on purpose");
}

static const strand_actor_class idle = {
    .size = sizeof idle, .name = "idle", .receive = count_timeouts, .start = want_timeouts_at_first};

TEST_INSIDE(a_suspended_actor_gets_one_receive_timeout_when_it_is_resumed)
{
    timeouts = starts = resting = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &idle, NULL, 0);
    while (!timeouts)
        strand_sleep(STRAND_MS);
    CHECK_EQ(strand_tell(a, STRAND_MSG(rest)), 0);
    test_yield_until(&resting, 1);
    int before = timeouts;
    strand_sleep(50 * STRAND_MS);
    CHECK_EQ(timeouts, before);
    int64_t begun = strand_now().ns;
    CHECK_EQ(strand_actor_resume(a), 0);
    while (timeouts == before)
        strand_sleep(100 * STRAND_US);
    CHECK(timeouts - before <= 1 + (strand_now().ns - begun) / STRAND_MS);
}

static strand_actor child;
static _Atomic bool child_is_there;

static void pass_on(void *state, strand_message *message)
{
    (void)state;
    if (!child.bits[1]) {
        child = strand_actor_spawn_child(NULL, &idle, NULL, 0);
        atomic_store(&child_is_there, true);
    } else {
        strand_message_forward(message, child);
    }
}

static const strand_actor_class slow = {.size = sizeof slow,
                                        .name = "slow",
                                        .receive = pass_on,
                                        .backoff_ns = 50 * STRAND_MS,
                                        .max_backoff_ns = 80 * STRAND_MS};

TEST_INSIDE(a_restarted_actor_does_not_get_the_receive_timeout_of_its_last_life)
{
    timeouts = starts = 0;
    child = (strand_actor){{0, 0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    while (starts < 2)
        strand_sleep(STRAND_MS);
    int before = timeouts;
    strand_sleep(20 * STRAND_MS);
    CHECK_EQ(timeouts, before);
}

static const strand_actor_class open_book = {
    .size = sizeof open_book, .name = "open book", .receive = count_timeouts, .log_receives = true};

/* As the library marks its own. */
TEST_INSIDE(a_message_that_looks_like_a_receive_timeout_is_an_ordinary_one)
{
    timeouts = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &open_book, NULL, 0);
    CHECK_EQ(strand_tell_as(a, (strand_actor){{1, 5}}, STRAND_MSG(strand_receive_timeout)), 0);
    strand_actors_join(system);
    CHECK_EQ(timeouts, 1);
}

/* ---- delayed restarts --------------------------------------------------------------------------------- */

static void count_failures(void *state, strand_message *message)
{
    (void)state, (void)message;
    failures++;
}

static const strand_actor_class observer = {.size = sizeof observer, .name = "observer", .receive = count_failures};

/* It fails, is resumed by hand, and fails once more while the first restart is still to come. */
TEST_INSIDE(a_restart_is_for_the_failure_that_it_was_decided_for)
{
    timeouts = failures = 0;
    starts = 1; /* no receive timeouts */
    atomic_store(&child_is_there, false);
    child = (strand_actor){{0, 0}};
    STRAND_ACTORS(system, NULL);
    strand_actor eyes = strand_actor_spawn(system, NULL, &observer, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, eyes, STRAND_ACTOR_FAILURE), 0);
    strand_actor a = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    int64_t begun = strand_now().ns;
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    test_yield_until(&failures, 1);
    strand_sleep(20 * STRAND_MS);
    CHECK(atomic_load(&child_is_there));
    CHECK_EQ(strand_actor_resume(child), 0);
    int64_t again = strand_now().ns;
    CHECK_EQ(strand_tell(child, STRAND_MSG(fail)), 0);
    while (starts < 3)
        strand_sleep(STRAND_MS);
    int64_t now = strand_now().ns;
    CHECK(again - begun > 50 * STRAND_MS || now - again >= 80 * STRAND_MS); /* else it was too late for that */
}
