/*
 * Nothing is lost: messages that are passed on, put aside, or come from outside while something fails, ends or is
 * interrupted; and what actors leave behind is of use to others.
 */
#define SUITE actor_delivery_failures
#include "test.h"

#include "listener.h"

#include "strand/chan.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>

static _Atomic int dropped;

static void drop(void *body)
{
    (void)body;
    dropped++;
}

STRAND_MESSAGE_WITH(owned, drop, { int n; });
STRAND_MESSAGE(answer, { int n; });

static strand_event go, held;

static void begin(void)
{
    go = held = (strand_event){{0}};
    dropped = dead_letters = 0;
}

static void tell(strand_actor a, int n)
{
    CHECK_EQ(strand_tell(a, STRAND_MSG(owned, n)), 0);
}

/* ---- from outside ------------------------------------------------------------------------------------------ */

static strand_actor ended;

static void *tell_the_ended(void *arg)
{
    static int body;
    tell(ended, 1);
    CHECK_EQ(strand_actor_give(ended, &owned_message, &body), 0);
    return arg;
}

TEST_REAL_INSIDE(a_message_of_a_plain_thread_to_an_ended_actor_is_dropped_as_a_dead_letter)
{
    pthread_t thread;
    begin();
    STRAND_ACTORS(system, NULL);
    spawn_listener(system, STRAND_ACTOR_DEAD_LETTER);
    ended = strand_actor_spawn(system, NULL, &listener, NULL, 0);
    CHECK_EQ(strand_actor_stop(ended, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(ended), 0);
    CHECK_EQ(pthread_create(&thread, NULL, tell_the_ended, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    strand_actors_join(system);
    CHECK_EQ(dropped, 2);
    CHECK_EQ(dead_letters, 2);
}

/* ---- questions --------------------------------------------------------------------------------------------- */

enum { FAILS, LEAVES_A_CHILD };

static void answer_not(void *state, strand_message *message)
{
    (void)state;
    strand_event_set(&held);
    if (STRAND_IS(message, owned)->n == FAILS)
        strand_throw(&TEST_ERROR, "at the question");
    strand_cancel(strand_spawn(strand_actor_scope(), test_return, NULL), "left behind");
}

static const strand_actor_class oracle = {.size = sizeof oracle, .name = "oracle", .receive = answer_not};

struct asking {
    strand_actor whom;
    int how;
};

static void *ask(void *arg)
{
    const struct asking *asking = arg;
    answer got;
    return TEST_PTR(strand_ask(asking->whom, STRAND_MSG(owned, asking->how), STRAND_INTO(answer, &got)));
}

static void ask_and_stop(int how)
{
    begin();
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    struct asking asking = {strand_actor_spawn(system, NULL, &oracle, NULL, 0), how};
    strand asker = strand_spawn_with(scope, NULL, ask, &asking, sizeof asking);
    strand_event_wait(&held);
    CHECK_EQ(strand_actor_stop(asking.whom, STRAND_STOP_LAST), 0);
    CHECK_PTR(strand_join(asker), TEST_PTR(-EPIPE));
}

TEST_INSIDE(an_asker_of_an_actor_that_fails_at_the_question_gets_its_end)
{
    ask_and_stop(FAILS);
}

TEST_INSIDE(an_asker_of_an_actor_that_leaves_a_child_behind_gets_its_end)
{
    ask_and_stop(LEAVES_A_CHILD);
}

/* ---- passed on, put aside ---------------------------------------------------------------------------------- */

static strand_actor other;
static _Atomic int decided;

enum { PUT_ASIDE, PASSED_ON };

static void send_away_and_fail(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, owned)->n == PUT_ASIDE)
        strand_message_stash(message);
    else
        CHECK_EQ(strand_message_forward(message, other), 0);
    strand_throw(&TEST_ERROR, "with nothing in hand");
}

static const strand_actor_class careless = {.size = sizeof careless, .name = "careless", .receive = send_away_and_fail};

static enum strand_directive stop_it(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child;
    CHECK_KIND(why, &TEST_ERROR);
    decided++;
    return STRAND_STOP;
}

static void be_parent(void *state, strand_message *message)
{
    (void)state;
    CHECK_EQ(strand_message_forward(message, strand_actor_spawn_child(NULL, &careless, NULL, 0)), 0);
}

static const strand_actor_class parent = {
    .size = sizeof parent, .name = "parent", .receive = be_parent, .decide = stop_it};

TEST_INSIDE(an_actor_that_throws_when_it_has_sent_its_message_away_has_failed)
{
    begin();
    decided = 0;
    STRAND_ACTORS(system, NULL);
    other = spawn_listener(system, STRAND_ACTOR_DEAD_LETTER);
    strand_actor a = strand_actor_spawn(system, NULL, &parent, NULL, 0);
    tell(a, PUT_ASIDE);
    strand_actors_join(system);
    CHECK_EQ(decided, 1);
    tell(a, PASSED_ON);
    strand_actors_join(system);
    CHECK_EQ(decided, 2);
    CHECK_EQ(dropped, 2);
}

static void wait_to_go(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_event_wait(&go);
}

static const strand_actor_class narrow = {
    .size = sizeof narrow, .name = "narrow", .receive = wait_to_go, .max_mailbox = 1};

static void pass_on(void *state, strand_message *message)
{
    (void)state;
    CHECK_EQ(strand_message_forward(message, other), 0);
}

static const strand_actor_class relay = {.size = sizeof relay, .name = "relay", .receive = pass_on};

/* One is in hand of the other, one waits for room there, and one waits in the relay's mailbox. */
TEST_INSIDE(a_message_that_waits_for_room_when_its_relay_is_stopped_is_a_dead_letter)
{
    begin();
    STRAND_ACTORS(system, NULL);
    spawn_listener(system, STRAND_ACTOR_DEAD_LETTER);
    other = strand_actor_spawn(system, NULL, &narrow, NULL, 0);
    strand_actor r = strand_actor_spawn(system, NULL, &relay, NULL, 0);
    for (int i = 0; i < 3; i++)
        tell(r, i);
    test_await_blocked("waits for room in the mailbox", 1);
    CHECK_EQ(strand_actor_stop(r, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(r), 0);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_EQ(dropped, 3);
    CHECK_EQ(dead_letters, 2);
}

static void hoard(void *state, strand_message *message)
{
    int *handled = state, n = STRAND_IS(message, owned)->n;
    if (++*handled <= 2)
        strand_message_stash(message);
    else if (n == 3)
        CHECK_EQ(strand_actor_unstash_all(), 2);
    if (*handled > 3 && n % 2 == 0) {
        strand_event_set(&held);
        strand_event_wait(&go);
        go = (strand_event){{0}};
    }
}

static unsigned all_the_same(const strand_message *message)
{
    (void)message;
    return 0;
}

static const strand_actor_class hoarder = {
    .size = sizeof hoarder, .name = "hoarder", .state_size = sizeof(int), .receive = hoard, .priority = all_the_same};

static void *tell_one_more(void *arg)
{
    tell(*(strand_actor *)arg, 5);
    return arg;
}

TEST_INSIDE(stashed_messages_do_not_fill_an_unbounded_mailbox)
{
    static strand_actor a;
    begin();
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    a = strand_actor_spawn(system, NULL, &hoarder, NULL, 0);
    for (int i = 1; i <= 3; i++)
        tell(a, i);
    strand_event_wait(&held); /* 2, for the second time */
    held = (strand_event){{0}};
    tell(a, 4);
    strand_event_set(&go);
    strand_event_wait(&held); /* 4 */
    CHECK_PTR(strand_join(strand_spawn(scope, tell_one_more, &a)), &a);
    strand_event_set(&go);
}

/* ---- ends -------------------------------------------------------------------------------------------------- */

static void end_slowly(void *state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        strand_sleep(20 * STRAND_US);
}

static const strand_actor_class slow = {
    .size = sizeof slow, .name = "slow", .receive = listen_to_events, .stop = end_slowly};

static strand_actors churned;

static void *churn(void *arg)
{
    strand_actor a[8];
    for (long i = 0; i < test_scale(1000); i++) {
        for (int j = 0; j < 8; j++) {
            a[j] = strand_actor_spawn(churned, NULL, &slow, NULL, 0);
            tell(a[j], j);
            CHECK_EQ(strand_actor_stop(a[j], STRAND_STOP_LAST), 0);
        }
        for (int j = 0; j < 8; j++)
            CHECK_EQ(strand_actor_wait(a[j]), 0);
    }
    return arg;
}

TEST_RACE(an_actor_may_block_when_it_ends_after_its_last_message)
{
    begin();
    STRAND_ACTORS(system, NULL);
    churned = system;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn(scope, churn, NULL);
    strand_scope_join(scope);
    CHECK_EQ(dropped, 8 * 8 * test_scale(1000));
}

TEST_RACE(after_a_system_others_use_what_it_has_left)
{
    for (int i = 0; i < 10; i++) {
        {
            STRAND_ACTORS(system, NULL);
            tell(strand_actor_spawn(system, NULL, &listener, NULL, 0), i);
            strand_actors_join(system);
        }
        STRAND_SCOPE(scope);
        for (int n = 0; n < 20; n++) {
            strand_chan chan = strand_chan_open(scope, sizeof n, 1, NULL);
            int got = -1;
            CHECK_EQ(strand_chan_send(chan, &n), 0);
            CHECK_EQ(strand_chan_receive(chan, &got), 0);
            CHECK_EQ(got, n);
        }
    }
}
