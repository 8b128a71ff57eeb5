/*
 * Being told of an actor's end; asking.
 */
#define SUITE watch
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <pthread.h>

#include <errno.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(look_at, { strand_actor whom; });
STRAND_MESSAGE(look_away, { strand_actor whom; });
STRAND_MESSAGE(hold, { char none; });
STRAND_MESSAGE(question, { int n; });
STRAND_MESSAGE(answer, { int n; });
STRAND_MESSAGE(other, { int n; });

static strand_event done, go;

static void begin(void)
{
    done = go = (strand_event){{0}};
}

/* ---- watching ---------------------------------------------------------------------------------------------- */

static void be_watcher(void *state, strand_message *message)
{
    int *notices = state;
    const look_at *l = STRAND_IS(message, look_at);
    const number *n = STRAND_IS(message, number);
    const strand_terminated *t = STRAND_IS(message, strand_terminated);
    const look_away *w = STRAND_IS(message, look_away);
    if (STRAND_IS(message, hold)) {
        strand_event_wait(&go);
    } else if (w) {
        strand_actor_unwatch(w->whom);
    } else if (l) {
        CHECK_EQ(strand_actor_watch(l->whom), 0);
        CHECK_EQ(strand_actor_watch(l->whom), 0);
        test_log("watches");
    } else if (t) {
        ++*notices;
        CHECK(strand_actor_ended(t->who));
        test_log("ended");
    } else {
        test_log("%d", n->n);
    }
    if (n && !n->n)
        strand_event_set(&done);
}

static const strand_actor_class watcher_class = {
    .size = sizeof watcher_class, .name = "watcher", .state_size = sizeof(int), .receive = be_watcher};

static void tell_and_end(void *state, strand_message *message)
{
    strand_actor *to = state;
    const look_at *l = STRAND_IS(message, look_at);
    const number *n = STRAND_IS(message, number);
    if (l)
        *to = l->whom;
    else if (n->n == 9)
        CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
    else
        CHECK_EQ(strand_tell(*to, STRAND_MSG(number, n->n)), 0);
}

static const strand_actor_class watched_class = {
    .size = sizeof watched_class, .name = "watched", .state_size = sizeof(strand_actor), .receive = tell_and_end};

/* contract 6.4 */
TEST_INSIDE(a_watcher_is_notified_once_after_all_sent_messages)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &watcher_class, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &watched_class, &a, sizeof a);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    while (!test_log_is("watches"))
        strand_yield();
    CHECK_EQ(strand_tell(b, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(b, STRAND_MSG(number, 2)), 0);
    CHECK_EQ(strand_tell(b, STRAND_MSG(number, 9)), 0);
    CHECK_EQ(strand_actor_wait(b), 0);
    while (!test_log_is("watches 1 2 ended"))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_event_wait(&done);
    CHECK_LOG("watches 1 2 ended 0");
}

/* contract 6.4 */
TEST_INSIDE(a_watcher_of_an_ended_actor_is_notified_at_once)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &watcher_class, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &watched_class, &a, sizeof a);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(b), 0);
    CHECK_EQ(strand_actor_wait(b), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    while (!test_log_is("watches ended"))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_event_wait(&done);
    CHECK_LOG("watches ended 0");
}

/* contract 6.4 */
TEST_INSIDE(a_watch_ends_with_its_notice_and_may_begin_again)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &watcher_class, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &watched_class, &a, sizeof a);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_LAST), 0);
    while (!test_log_is("watches ended"))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    while (!test_log_is("watches ended watches ended"))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_event_wait(&done);
    CHECK_LOG("watches ended watches ended 0");
}

TEST_INSIDE(an_actor_that_stops_watching_is_not_notified)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &watcher_class, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &watched_class, &a, sizeof a);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_away, b)), 0);
    while (!test_log_is("watches"))
        strand_yield();
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(b), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_event_wait(&done);
    CHECK_LOG("watches 0");
}

/* contract 6.4 */
TEST_INSIDE(not_even_by_a_notice_that_is_in_the_mailbox_already)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &watcher_class, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &watched_class, &a, sizeof a);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(hold)), 0);
    test_await_blocked("waits for event", 1);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_away, b)), 0);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(b), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_event_set(&go);
    strand_event_wait(&done);
    CHECK_LOG("watches 0");
}

/* contract 6.4 */
TEST_RACE(whatever_races_there_is_one_notice_at_most)
{
    begin();
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 5; i++) {
        test_log_clear();
        strand_actor a = strand_actor_spawn(system, NULL, &watcher_class, NULL, 0),
                     b = strand_actor_spawn(system, NULL, &watched_class, &a, sizeof a);
        CHECK_EQ(strand_tell(b, STRAND_MSG(number, 9)), 0);
        CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
        if (i % 2)
            CHECK_EQ(strand_tell(a, STRAND_MSG(look_away, b)), 0);
        CHECK_EQ(strand_actor_wait(b), 0);
        while (!test_log_is("watches ended") && !(i % 2 && test_log_is("watches")))
            strand_yield();
        CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
        CHECK_EQ(strand_actor_wait(a), 0);
        CHECK(test_log_is("watches ended") || (i % 2 && test_log_is("watches")));
    }
}

static void *wait_for_the_end(void *arg)
{
    CHECK_EQ(strand_actor_wait(*(strand_actor *)arg), 0);
    return arg;
}

TEST_INSIDE(strands_may_wait_for_an_end_and_be_interrupted)
{
    static strand_actor a;
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &watched_class, NULL, 0);
    STRAND_SCOPE(scope);
    strand one = strand_spawn(scope, wait_for_the_end, &a), two = strand_spawn(scope, wait_for_the_end, &a);
    test_await_blocked("waits for the end of actor", 2);
    strand_cancel(one, NULL);
    CHECK(test_join_interrupted(one));
    CHECK(!strand_ended(two));
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_PTR(strand_join(two), &a);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

static strand_actor kept;

static void be_oracle(void *state, strand_message *message)
{
    (void)state;
    const question *q = STRAND_IS(message, question);
    if (q->n == 0)
        kept = message->sender; /* to be answered later */
    else if (q->n == 1)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(other, 1)));
    else if (q->n == 2)
        strand_event_wait(&go);
    if (q->n >= 3) {
        CHECK_EQ(strand_reply(message, STRAND_MSG(answer, 2 * q->n)), 0);
        CHECK_EQ(strand_reply(message, STRAND_MSG(answer, 2 * q->n)), -EPIPE);
    }
    strand_event_set(&done);
}

static const strand_actor_class oracle = {.size = sizeof oracle, .name = "oracle", .receive = be_oracle};

/* contract 6.4 */
TEST_INSIDE(an_answer_comes_to_the_asker)
{
    begin();
    answer got = {0};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &oracle, NULL, 0);
    for (int i = 3; i < 10; i++) {
        CHECK_EQ(strand_ask(a, STRAND_MSG(question, i), STRAND_INTO(answer, &got)), 0);
        CHECK_EQ(got.n, 2 * i);
    }
}

TEST_INSIDE(an_answer_of_another_type_is_an_error)
{
    begin();
    answer got = {0};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &oracle, NULL, 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(question, 1), STRAND_INTO(answer, &got)), -EBADMSG);
}

static void *ask(void *n)
{
    answer got = {0};
    static strand_actor a;
    a = *(strand_actor *)n;
    int error = strand_ask(a, STRAND_MSG(question, 0), STRAND_INTO(answer, &got));
    return TEST_PTR(error ? error : got.n);
}

TEST_INSIDE(an_answer_may_come_later)
{
    static strand_actor a;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &oracle, NULL, 0);
    STRAND_SCOPE(scope);
    strand asker = strand_spawn(scope, ask, &a);
    strand_event_wait(&done);
    test_await_blocked("waits for the answer of actor", 1);
    CHECK_EQ(strand_tell(kept, STRAND_MSG(answer, 77)), 0);
    CHECK_PTR(strand_join(asker), TEST_PTR(77));
    CHECK_EQ(strand_tell(kept, STRAND_MSG(answer, 77)), -EPIPE);
}

static void *answer_from_outside(void *arg)
{
    *(int *)arg = strand_tell(kept, STRAND_MSG(answer, 78));
    return arg;
}

static void *have_a_thread_answer(void *arg)
{
    static strand_actor a;
    pthread_t thread;
    int error = 1;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &oracle, NULL, 0);
    STRAND_SCOPE(scope);
    strand asker = strand_spawn(scope, ask, &a);
    strand_event_wait(&done);
    CHECK_EQ(pthread_create(&thread, NULL, answer_from_outside, &error), 0);
    while (!strand_ended(asker)) /* the run does not know that it waits for a thread */
        strand_sleep(STRAND_MS);
    CHECK_PTR(strand_join(asker), TEST_PTR(78));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(error, 0);
    return arg;
}

TEST_REAL(a_plain_thread_may_answer)
{
    strand_options options = test_options();
    strand_run(&options, have_a_thread_answer, NULL);
}

/* contract 6.4 */
TEST_INSIDE(an_asker_of_an_actor_that_ends_gets_an_error)
{
    static strand_actor a;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &oracle, NULL, 0);
    STRAND_SCOPE(scope);
    strand one = strand_spawn(scope, ask, &a); /* its question has been handled */
    strand_event_wait(&done);
    CHECK_EQ(strand_tell(a, STRAND_MSG(question, 2)), 0);
    strand two = strand_spawn(scope, ask, &a); /* its question will not be */
    test_await_blocked("waits for the answer of actor", 2);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    strand_event_set(&go);
    CHECK_PTR(strand_join(one), TEST_PTR(-EPIPE));
    CHECK_PTR(strand_join(two), TEST_PTR(-EPIPE));
    CHECK_PTR(ask(&a), TEST_PTR(-EPIPE)); /* and now there is nobody */
}

static void *ask_with_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    return ask(arg);
}

TEST_INSIDE(asking_may_have_a_deadline_and_a_late_answer_is_nobodys)
{
    static strand_actor a;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &oracle, NULL, 0);
    CHECK_THROWS(ask_with_a_deadline, &a, &STRAND_TIMED_OUT);
    strand_event_wait(&done);
    CHECK_EQ(strand_tell(kept, STRAND_MSG(answer, 77)), -EPIPE);
}
