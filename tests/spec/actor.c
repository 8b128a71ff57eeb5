/*
 * Actors: messages, one at a time and in order; beginning and end; what they spawn; mailboxes.
 */
#define SUITE actor
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(get, { char none; });
STRAND_MESSAGE(greet, { strand_actor whom; });

static strand_event done;

static void begin(void)
{
    done = (strand_event){{0}};
}

/* ---- messages ---------------------------------------------------------------------------------------------- */

static void add(void *state, strand_message *message)
{
    int *sum = state;
    const number *n = STRAND_IS(message, number);
    CHECK(n != NULL);
    *sum += n->n;
    if (*sum == 10)
        strand_event_set(&done);
}

static const strand_actor_class adder = {
    .size = sizeof adder, .name = "adder", .state_size = sizeof(int), .receive = add};

/* S-14, A-01, A-06 */
TEST_INSIDE(an_actor_handles_the_messages_that_it_gets)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    for (int i = 1; i <= 4; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    strand_event_wait(&done);
}

/* */
TEST_INSIDE(its_state_begins_with_its_arguments)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &adder, &(int){7}, sizeof(int));
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 3)), 0);
    strand_event_wait(&done);
}

enum { SENDERS = 5, EACH = 50 };

struct history {
    int last[SENDERS], count;
    _Atomic int inside;
};

STRAND_MESSAGE(step, { int sender, n; });

static void record_step(void *state, strand_message *message)
{
    struct history *me = state;
    const step *s = STRAND_IS(message, step);
    CHECK_EQ(me->inside++, 0);
    CHECK_EQ(s->n, me->last[s->sender] + 1);
    me->last[s->sender] = s->n;
    if (s->n % 16 == 0)
        strand_yield();
    me->inside--;
    if (++me->count == SENDERS * EACH)
        strand_event_set(&done);
}

static const strand_actor_class historian = {
    .size = sizeof historian, .name = "historian", .state_size = sizeof(struct history), .receive = record_step};

struct sender {
    strand_actor to;
    int number;
};

static void *send_steps(void *arg)
{
    const struct sender *me = arg;
    for (int i = 1; i <= EACH; i++) {
        CHECK_EQ(strand_tell(me->to, STRAND_MSG(step, me->number, i)), 0);
        if (i % 8 == me->number)
            strand_yield();
    }
    return NULL;
}

/* S-01, S-03, S-05, S-07, S-10, S-13, S-15, S-18, A-03, A-05, A-08, contract 6.2 */
TEST_RACE(messages_of_a_sender_are_handled_in_order_and_one_at_a_time)
{
    begin();
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    strand_actor to = strand_actor_spawn(system, NULL, &historian, NULL, 0);
    for (int i = 0; i < SENDERS; i++) {
        struct sender s = {to, i};
        strand_spawn_with(scope, NULL, send_steps, &s, sizeof s);
    }
    strand_scope_join(scope);
    strand_event_wait(&done);
}

static void answer(void *state, strand_message *message)
{
    (void)state;
    const greet *g = STRAND_IS(message, greet);
    if (g) {
        CHECK_EQ(strand_tell(g->whom, STRAND_MSG(get)), 0);
    } else if (STRAND_IS(message, get)) {
        CHECK_EQ(strand_reply(message, STRAND_MSG(number, 5)), 0);
    } else {
        CHECK_EQ(STRAND_IS(message, number)->n, 5);
        strand_event_set(&done);
    }
}

static const strand_actor_class polite = {.size = sizeof polite, .name = "polite", .receive = answer};

/* S-07, A-17 */
TEST_INSIDE(a_reply_goes_to_the_actor_that_has_sent_the_message)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &polite, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &polite, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(greet, b)), 0);
    strand_event_wait(&done);
}

static void pass_on(void *state, strand_message *message)
{
    CHECK_EQ(strand_message_forward(message, *(strand_actor *)state), 0);
}

static const strand_actor_class relay = {
    .size = sizeof relay, .name = "relay", .state_size = sizeof(strand_actor), .receive = pass_on};

TEST_INSIDE(a_forwarded_message_keeps_its_sender)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &polite, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &polite, NULL, 0),
                 between = strand_actor_spawn(system, NULL, &relay, &b, sizeof b);
    CHECK_EQ(strand_tell(a, STRAND_MSG(greet, between)), 0);
    strand_event_wait(&done);
}

static _Atomic int dropped;

static void drop(void *body)
{
    dropped += *(int *)body;
}

STRAND_MESSAGE_WITH(owned, drop, { int n; });

static void take_even(void *state, strand_message *message)
{
    (void)state;
    owned *o = STRAND_IS(message, owned);
    if (o->n % 2 == 0)
        CHECK_PTR(strand_message_take(message), o);
    if (o->n == 4)
        strand_event_set(&done);
}

static const strand_actor_class taker = {.size = sizeof taker, .name = "taker", .receive = take_even};

/* */
TEST_INSIDE(the_resources_of_a_message_are_dropped_unless_they_are_taken)
{
    begin();
    static owned given[5];
    dropped = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &taker, NULL, 0);
    for (int i = 1; i <= 4; i++) {
        given[i].n = i;
        if (i < 3)
            CHECK_EQ(strand_tell(a, STRAND_MSG(owned, i)), 0);
        else
            CHECK_EQ(strand_actor_give(a, &owned_message, &given[i]), 0);
    }
    strand_event_wait(&done);
    CHECK_EQ(dropped, 1 + 3);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    while (!strand_actor_ended(a))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(owned, 10)), -EPIPE);
    CHECK_EQ(dropped, 1 + 3 + 10);
}

STRAND_MESSAGE(large, { char bytes[5000]; });

static void check_large(void *state, strand_message *message)
{
    (void)state;
    const large *l = STRAND_IS(message, large);
    for (size_t i = 0; i < sizeof l->bytes; i++)
        CHECK_EQ(l->bytes[i], (char)i);
    strand_event_set(&done);
}

static const strand_actor_class reader = {.size = sizeof reader, .name = "reader", .receive = check_large};

TEST_INSIDE(messages_may_be_long)
{
    static large l;
    begin();
    for (size_t i = 0; i < sizeof l.bytes; i++)
        l.bytes[i] = (char)i;
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &reader, NULL, 0), &large_message, &l, sizeof l), 0);
    strand_event_wait(&done);
}

struct big {
    char bytes[3000];
    int count;
};

static void fill_up(void *state, strand_message *message)
{
    struct big *me = state;
    (void)message;
    for (size_t i = 0; i < sizeof me->bytes; i++)
        CHECK_EQ(me->bytes[i], me->count);
    memset(me->bytes, ++me->count, sizeof me->bytes);
    if (me->count == 3)
        strand_event_set(&done);
}

static const strand_actor_class giant = {
    .size = sizeof giant, .name = "giant", .state_size = sizeof(struct big), .receive = fill_up};

TEST_INSIDE(states_may_be_large)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &giant, NULL, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    strand_event_wait(&done);
}

/* ---- it is a strand ---------------------------------------------------------------------------------------- */

static void *wait_for_it(void *arg)
{
    strand_event_wait(arg);
    return arg;
}

static strand_event go;

static void block(void *state, strand_message *message)
{
    int *count = state;
    (void)message;
    strand child = strand_spawn(strand_actor_scope(), wait_for_it, &go);
    CHECK_PTR(strand_join(child), &go);
    if (++*count == 3)
        strand_event_set(&done);
}

static const strand_actor_class blocker = {
    .size = sizeof blocker, .name = "blocker", .state_size = sizeof(int), .receive = block};

/* contract 6.3 */
TEST_INSIDE(an_actor_may_block_and_spawn_while_it_handles_a_message)
{
    begin();
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &blocker, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    CHECK_EQ(strand_tell(b, STRAND_MSG(number, 10)), 0);
    strand_event_wait(&done); /* the other one goes on meanwhile */
    done = (strand_event){{0}};
    strand_event_set(&go);
    strand_event_wait(&done);
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

static void log_stop(void *state)
{
    test_log("%c", *(char *)state);
}

static void be_parent(void *state, strand_message *message);

static const strand_actor_class family = {
    .size = sizeof family, .name = "family", .state_size = 1, .receive = be_parent, .stop = log_stop};

static void be_parent(void *state, strand_message *message)
{
    char child = *(char *)state;
    (void)message;
    child++;
    strand_actor a = strand_actor_spawn_child(NULL, &family, &child, 1);
    if (child < 'd')
        CHECK_EQ(strand_tell(a, STRAND_MSG(get)), 0);
    else
        strand_event_set(&done);
}

/* A-04, contract 6.4 */
TEST_INSIDE(leaving_a_system_stops_children_before_their_parents)
{
    begin();
    {
        STRAND_ACTORS(system, NULL);
        strand_tell(strand_actor_spawn(system, NULL, &family, "a", 1), STRAND_MSG(get));
        strand_event_wait(&done);
    }
    CHECK_LOG("d c b a");
}

static void stop_at_five(void *state, strand_message *message)
{
    int *sum = state;
    *sum += STRAND_IS(message, number)->n;
    test_log("%d", *sum);
    if (*sum == 2)
        CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

static const strand_actor_class mortal = {
    .size = sizeof mortal, .name = "mortal", .state_size = sizeof(int), .receive = stop_at_five};

/* contract 6.2 */
TEST_INSIDE(a_stop_comes_before_the_messages_that_wait)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &mortal, NULL, 0);
    STRAND_SHIELD;
    for (int i = 0; i < 5; i++)
        (void)strand_tell(a, STRAND_MSG(number, 1));
    while (!strand_actor_ended(a))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), -EPIPE);
    CHECK_LOG("1 2");
}

TEST_INSIDE(the_last_stop_comes_after_them)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &mortal, &(int){3}, sizeof(int));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    (void)strand_tell(a, STRAND_MSG(number, 1));
    while (!strand_actor_ended(a))
        strand_yield();
    CHECK_LOG("4 5 6");
}

static void sleep_long(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_event_set(&done);
    strand_sleep(FOREVER);
}

static const strand_actor_class sleeper = {.size = sizeof sleeper, .name = "sleeper", .receive = sleep_long};

/* contract 6.3 */
TEST_INSIDE(a_stop_at_once_interrupts_the_message_in_hand)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &sleeper, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(get)), 0);
    strand_event_wait(&done);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
    while (!strand_actor_ended(a))
        strand_yield();
    strand_actor b =
        strand_actor_spawn(system, NULL, &adder, NULL, 0); /* the strand that was cancelled is not used again */
    done = (strand_event){{0}};
    CHECK_EQ(strand_tell(b, STRAND_MSG(number, 10)), 0);
    strand_event_wait(&done);
}

static void *leave_by_an_exception(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_tell(strand_actor_spawn(system, NULL, &sleeper, NULL, 0), STRAND_MSG(get));
    strand_event_wait(&done);
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

TEST_INSIDE(leaving_a_system_by_an_exception_interrupts_the_messages_in_hand)
{
    begin();
    CHECK_THROWS(leave_by_an_exception, NULL, &TEST_ERROR);
}

TEST_INSIDE(a_system_may_be_joined_when_its_run_is_out_of_work)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 10)), 0);
    strand_actors_join(system);
    strand_event_wait(&done);
    CHECK(!strand_actor_ended(a));
}

static void stop_all(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_actors_stop(strand_actor_system(), STRAND_STOP_NEXT);
}

static const strand_actor_class ender = {.size = sizeof ender, .name = "ender", .receive = stop_all};

static void *yield_until_released(void *flag)
{
    while (!*(_Atomic int *)flag)
        strand_yield();
    return flag;
}

TEST_INSIDE(a_system_is_joined_when_it_has_been_stopped)
{
    static _Atomic int released;
    released = 0;
    STRAND_SCOPE(scope);
    strand_spawn(scope, yield_until_released, (void *)&released); /* so the run is not out of work */
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &ender, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(get)), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(a));
    released = 1;
    strand_scope_join(scope);
}

/* ---- what comes first -------------------------------------------------------------------------------------- */

static unsigned tens(const strand_message *message)
{
    return (unsigned)STRAND_IS(message, number)->n / 10;
}

static void log_number(void *state, strand_message *message)
{
    (void)state;
    int n = STRAND_IS(message, number)->n;
    test_log("%d", n);
    if (n == 30)
        strand_event_wait(&go);
    if (n == 31)
        CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(number, 1)), 0);
    if (n == 41)
        strand_event_set(&done);
}

static const strand_actor_class choosy = {
    .size = sizeof choosy, .name = "choosy", .receive = log_number, .priority = tens};

/* contract 6.4 */
TEST_INSIDE(messages_may_have_priorities)
{
    begin();
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "choosy"), &choosy, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 30)), 0);
    while (!test_log_is("30"))
        strand_yield();
    static const int numbers[] = {40, 31, 32, 10, 41, 20, 11};
    for (int i = 0; i < 7; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, numbers[i])), 0);
    strand_event_set(&go);
    strand_event_wait(&done);
    CHECK_LOG("30 10 11 20 31 1 32 40 41");
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 30)), 0);
}

/* */
TEST_INSIDE(an_actor_that_is_suspended_handles_no_messages)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &mortal, &(int){10}, sizeof(int));
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("");
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("11");
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_restart(a), 0);
    strand_actors_join(system);
    CHECK_LOG("11 11");
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("11 11");
}

/* ---- names ------------------------------------------------------------------------------------------------- */

static void *spawn_named(void *arg)
{
    strand_actor_spawn(*(strand_actors *)arg, STRAND_ACTOR_ATTR(.name = "till"), &adder, NULL, 0);
    return arg;
}

static void check_refused(strand_actors system, const char *name, int code)
{
    (void)name;
    strand_exception *e = strand_try(spawn_named, &system, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), code);
    strand_exception_release(e);
}

/* */
TEST_INSIDE(an_actor_is_found_by_its_path)
{
    char path[100];
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "till"), &adder, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    strand_actor found = strand_actor_find(system, "/user/till");
    CHECK(!memcmp(&found, &a, sizeof a));
    CHECK_EQ(strand_actor_path(a, path, sizeof path), strlen("/user/till"));
    CHECK_STR(path, "/user/till");
    CHECK(strand_actor_path(b, path, sizeof path) > strlen("/user/$"));
    CHECK_CONTAINS(path, "/user/$");
    CHECK_EQ(strand_actor_path(strand_actor_find(system, "/"), path, sizeof path), 1);
    CHECK_STR(path, "/");
    CHECK(strand_actor_find(system, "/system").bits[1] != 0);
    CHECK(strand_actor_find(system, "/user/nobody").bits[1] == 0);
    CHECK(strand_actor_find(system, "till").bits[1] == 0);
    check_refused(system, "till", -EEXIST);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK(strand_actor_find(system, "/user/till").bits[1] == 0);
    CHECK_EQ(strand_actor_path(a, path, sizeof path), 0);
    strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "till"), &adder, NULL, 0);
}

TEST_INSIDE(many_actors_may_have_names)
{
    char name[20];
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "a%d", i);
        strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = name), &adder, NULL, 0);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "/user/a%d", i);
        CHECK(!strand_actor_ended(strand_actor_find(system, name)));
    }
}

/* ---- what it becomes --------------------------------------------------------------------------------------- */

static void be_angry(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (!n) {
        strand_actor_unbecome();
        CHECK_EQ(strand_actor_unstash_all(), 2);
    } else if (n->n < 10) {
        test_log("angry%d", n->n);
    } else {
        strand_message_stash(message);
    }
}

static void be_calm(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (n)
        test_log("calm%d", n->n);
    else
        strand_actor_become(be_angry);
    if (n && n->n == 3)
        strand_event_set(&done);
}

static const strand_actor_class moody = {.size = sizeof moody, .name = "moody", .receive = be_calm};

/* */
TEST_INSIDE(an_actor_becomes_and_puts_messages_aside)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &moody, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(get)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 10)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 11)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(get)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 3)), 0);
    strand_event_wait(&done);
    CHECK_LOG("calm1 angry2 calm10 calm11 calm3");
}

/* ---- full mailboxes ---------------------------------------------------------------------------------------- */

static void handle_slowly(void *state, strand_message *message)
{
    int *count = state;
    strand_event_wait(&go);
    test_log("%d", STRAND_IS(message, number)->n);
    if (++*count == 3)
        strand_event_set(&done);
}

static const strand_actor_class failing = {.size = sizeof failing,
                                           .name = "failing",
                                           .state_size = sizeof(int),
                                           .receive = handle_slowly,
                                           .max_mailbox = 3,
                                           .mailbox_full = STRAND_MAILBOX_FULL_FAIL},
                                waiting = {.size = sizeof waiting,
                                           .name = "waiting",
                                           .state_size = sizeof(int),
                                           .receive = handle_slowly,
                                           .max_mailbox = 2},
                                forgetting = {.size = sizeof forgetting,
                                              .name = "forgetting",
                                              .state_size = sizeof(int),
                                              .receive = handle_slowly,
                                              .max_mailbox = 3,
                                              .mailbox_full = STRAND_MAILBOX_FULL_OLDEST};

/* contract 6.4 */
TEST_INSIDE(a_full_mailbox_may_refuse)
{
    begin();
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &failing, NULL, 0);
    for (int i = 1; i <= 3; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 4)), -EAGAIN);
    strand_event_set(&go);
    strand_event_wait(&done);
    CHECK_LOG("1 2 3");
}

static void *tell_three(void *arg)
{
    for (int i = 1; i <= 3; i++)
        CHECK_EQ(strand_tell(*(strand_actor *)arg, STRAND_MSG(number, i)), 0);
    test_log("told");
    return arg;
}

/* contract 6.4 */
TEST_INSIDE(a_full_mailbox_may_make_senders_wait)
{
    static strand_actor a;
    begin();
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &waiting, NULL, 0);
    STRAND_SCOPE(scope);
    strand teller = strand_spawn(scope, tell_three, &a);
    test_await_blocked("waits for room in the mailbox", 1);
    CHECK(!strand_ended(teller));
    strand_event_set(&go);
    strand_event_wait(&done);
    strand_join(teller);
    CHECK(test_log_is("1 2 told 3") || test_log_is("1 told 2 3") || test_log_is("1 2 3 told"));
}

static void *tell_till_interrupted(void *arg)
{
    for (;;)
        CHECK_EQ(strand_tell(*(strand_actor *)arg, STRAND_MSG(number, 1)), 0);
    return arg;
}

TEST_INSIDE(a_sender_that_waits_for_room_can_be_interrupted_and_has_sent_nothing)
{
    static strand_actor a;
    begin();
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &waiting, NULL, 0);
    STRAND_SCOPE(scope);
    strand teller = strand_spawn(scope, tell_till_interrupted, &a);
    test_await_blocked("waits for room in the mailbox", 1);
    strand_cancel(teller, NULL);
    CHECK(test_join_interrupted(teller));
    strand_event_set(&go);
    while (!test_log_is("1 1"))
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    strand_event_wait(&done);
    CHECK_LOG("1 1 2");
}

static void *tell_the_dying(void *arg)
{
    int error = 0;
    while (!error)
        error = strand_tell(*(strand_actor *)arg, STRAND_MSG(number, 1));
    CHECK_EQ(error, -EPIPE);
    return arg;
}

TEST_INSIDE(a_sender_that_waits_for_room_gets_an_error_when_the_actor_ends)
{
    static strand_actor a;
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &waiting, NULL, 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, tell_the_dying, &a);
    strand_spawn(scope, tell_the_dying, &a);
    test_await_blocked("waits for room in the mailbox", 2);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
    strand_scope_join(scope);
}

/* contract 6.4 */
TEST_INSIDE(a_full_mailbox_may_forget_the_oldest)
{
    begin();
    go = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetting, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    test_await_blocked("waits for event", 1);
    for (int i = 2; i <= 6; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    strand_event_set(&go);
    strand_event_wait(&done);
    CHECK_LOG("1 5 6");
}

/* ---- from outside ------------------------------------------------------------------------------------------ */

struct outside {
    strand_actor to;
    int result;
};

static void *tell_from_outside(void *arg)
{
    struct outside *outside = arg;
    for (int i = 1; i <= EACH; i++)
        CHECK_EQ(strand_tell(outside->to, STRAND_MSG(step, outside->result, i)), 0);
    return arg;
}

/* contract 6.5 */
TEST_REAL_INSIDE(plain_threads_may_tell)
{
    pthread_t threads[SENDERS];
    struct outside outside[SENDERS];
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &historian, NULL, 0);
    for (int i = 0; i < SENDERS; i++) {
        outside[i] = (struct outside){a, i};
        CHECK_EQ(pthread_create(&threads[i], NULL, tell_from_outside, &outside[i]), 0);
    }
    strand_event_wait(&done);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
}

static void *tell_from_another_run(void *arg)
{
    CHECK_EQ(strand_tell(*(strand_actor *)arg, STRAND_MSG(number, 10)), 0);
    return arg;
}

static void *run_another(void *arg)
{
    strand_run(NULL, tell_from_another_run, arg);
    return arg;
}

/* A-02, contract 6.5 */
TEST_REAL_INSIDE(strands_of_other_runs_may_tell)
{
    pthread_t thread;
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    CHECK_EQ(pthread_create(&thread, NULL, run_another, &a), 0);
    strand_event_wait(&done);
    pthread_join(thread, NULL);
}

static strand_actor of_a_run_that_has_ended;

static void *spawn_one(void *arg)
{
    STRAND_ACTORS(system, NULL);
    of_a_run_that_has_ended = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    return arg;
}

/* A-09, contract 6.5 */
TEST_REAL(a_message_to_an_actor_of_an_ended_run_is_refused)
{
    test_run(spawn_one, NULL);
    CHECK_EQ(strand_tell(of_a_run_that_has_ended, STRAND_MSG(number, 10)), -EPIPE);
    CHECK_EQ(strand_tell((strand_actor){{0, 0}}, STRAND_MSG(number, 10)), -EPIPE);
}
