/*
 * Actors of another run of the same process: what may be said to them, and that the rest is refused, and told.
 */
#define SUITE actor_elsewhere
#include "test.h"

#include "strand/actor.h"

#include <errno.h>

STRAND_MESSAGE(question, { char none; });
STRAND_MESSAGE(number, { int n; });

static void answer(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, question))
        CHECK_EQ(strand_reply(message, STRAND_MSG(number, 7)), 0);
}

static const strand_actor_class answerer = {.size = sizeof answerer, .name = "answerer", .receive = answer};

static int ask(strand_actor whom)
{
    number got = {0};
    int error = strand_ask(whom, STRAND_MSG(question), STRAND_INTO(number, &got));
    CHECK_EQ(got.n, error ? 0 : 7);
    return error;
}

/* In a turn of an actor of this run; its state is the one of the other. */
static void try_in_a_turn(void *state, strand_message *message)
{
    strand_actor there = *(strand_actor *)state;
    CHECK_EQ(strand_actor_watch(there), -EREMOTE);
    strand_actor_unwatch(there);
    CHECK_EQ(strand_message_forward(message, there), -EREMOTE);
    CHECK(STRAND_IS(message, question) != NULL); /* it is in hand still */
    CHECK_EQ(strand_reply(message, STRAND_MSG(number, 7)), 0);
    test_log("turn");
}

static const strand_actor_class trier = {
    .size = sizeof trier, .name = "trier", .state_size = sizeof(strand_actor), .receive = try_in_a_turn};

static void *try_there(void *arg)
{
    strand_actor there = *(strand_actor *)arg;
    char path[64] = "";
    CHECK_EQ(ask(there), -EREMOTE);
    CHECK_EQ(strand_actor_wait(there), -EREMOTE);
    CHECK_EQ(strand_actor_stop(there, STRAND_STOP_NEXT), -EREMOTE);
    CHECK_EQ(strand_actor_stop(there, STRAND_STOP_LAST), -EREMOTE);
    CHECK_EQ(strand_actor_stop(there, STRAND_STOP_NOW), -EREMOTE);
    CHECK_EQ(strand_actor_suspend(there), -EREMOTE);
    CHECK_EQ(strand_actor_resume(there), -EREMOTE);
    CHECK_EQ(strand_actor_restart(there), -EREMOTE);
    CHECK_EQ(strand_actor_path(there, path, sizeof path), 0);
    CHECK(!strand_actor_ended(there));
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_actors_subscribe(system, there, STRAND_ACTOR_END), -ESRCH);
    CHECK_EQ(ask(strand_actor_spawn(system, NULL, &trier, arg, sizeof there)), 0);
    return NULL;
}

static void in_another_run(strand_fn *fn, strand_actor *a)
{
    strand_run(STRAND_OPTIONS(.threads = 1, .own_threads = true), fn, a);
}

/* */
TEST_REAL_INSIDE(what_an_actor_of_another_run_cannot_be_asked_is_refused)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &answerer, NULL, 0);
    in_another_run(try_there, &a);
    CHECK_LOG("turn");
    CHECK_EQ(ask(a), 0); /* nothing has happened to it */
}

static void *see_whether_it_has_ended(void *arg)
{
    strand_actor there = *(strand_actor *)arg;
    test_log(strand_actor_ended(there) ? "ended" : "there");
    return NULL;
}

TEST_REAL_INSIDE(whether_an_actor_of_another_run_has_ended_is_known)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &answerer, NULL, 0);
    in_another_run(see_whether_it_has_ended, &a);
    CHECK_EQ(ask(a), 0); /* awake, or just falling dormant */
    in_another_run(see_whether_it_has_ended, &a);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    in_another_run(see_whether_it_has_ended, &a);
    CHECK_LOG("there there ended");
}

static void *leave_one(void *arg)
{
    STRAND_ACTORS(system, NULL);
    *(strand_actor *)arg = strand_actor_spawn(system, NULL, &answerer, NULL, 0);
    return NULL;
}

static void watch_it(void *state, strand_message *message)
{
    const strand_terminated *ended = STRAND_IS(message, strand_terminated);
    strand_actor whom = *(strand_actor *)state;
    if (!ended)
        CHECK_EQ(strand_actor_watch(whom), 0);
    else if (ended->who.bits[1] == whom.bits[1])
        test_log("told");
}

static const strand_actor_class watcher = {
    .size = sizeof watcher, .name = "watcher", .state_size = sizeof(strand_actor), .receive = watch_it};

TEST_REAL_INSIDE(an_actor_whose_run_has_ended_has_ended)
{
    strand_actor a;
    in_another_run(leave_one, &a);
    CHECK(strand_actor_ended(a));
    CHECK_EQ(ask(a), -EPIPE);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &watcher, &a, sizeof a), STRAND_MSG(question)), 0);
    strand_actors_join(system);
    CHECK_LOG("told");
}
