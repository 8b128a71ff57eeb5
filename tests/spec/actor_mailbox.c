/*
 * Full mailboxes, mailboxes with priorities, and stashed messages: the order of messages, and the waits of senders.
 */
#define SUITE actor_mailbox
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(put_aside, { int n; });
STRAND_MESSAGE(bring_back, { char none; });
STRAND_MESSAGE(block, { char none; });
STRAND_MESSAGE(halt, { char none; });
STRAND_MESSAGE(tell_self, { int times; });
STRAND_MESSAGE(set_timer, { int64_t ns; });

static strand_event go, later;
static _Atomic int asked_for_priority, halted;

static void begin(void)
{
    go = later = (strand_event){{0}};
    asked_for_priority = halted = 0;
}

/* Stashes some messages, until a message makes it unstash them. */
static void receive(void *state, strand_message *message)
{
    bool *back = state;
    const number *n = STRAND_IS(message, number);
    const put_aside *p = STRAND_IS(message, put_aside);
    const tell_self *t = STRAND_IS(message, tell_self);
    const set_timer *s = STRAND_IS(message, set_timer);
    if (n) {
        test_log("%d", n->n);
    } else if (p && *back) {
        test_log("%d", p->n);
    } else if (p) {
        strand_message_stash(message);
    } else if (STRAND_IS(message, bring_back)) {
        *back = true;
        test_log("back-%zu", strand_actor_unstash_all());
    } else if (STRAND_IS(message, block)) {
        strand_event_wait(&go);
    } else if (STRAND_IS(message, halt)) {
        halted = 1;
        strand_event_wait(&later);
    } else if (t) {
        for (int i = 0; i < t->times; i++)
            CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(number, i)), 0);
        strand_event_wait(&go);
    } else {
        CHECK_EQ(strand_actor_timer(state, s->ns, 0, STRAND_MSG(number, 0)), 0);
    }
}

/* Tens of numbers; all else comes first. */
static unsigned priority(const strand_message *message)
{
    asked_for_priority++;
    if (message->type == &number_message)
        return (unsigned)((const number *)message->body)->n / 10;
    return message->type == &put_aside_message ? (unsigned)((const put_aside *)message->body)->n / 10 : 0;
}

enum { MOST = 3 };

#define CLASS(called, ...)                                                                                             \
    static const strand_actor_class called = {                                                                         \
        .size = sizeof called, .name = #called, .state_size = sizeof(bool), .receive = receive, __VA_ARGS__}

CLASS(plain, .max_mailbox = 0);
CLASS(sorted, .priority = priority);
CLASS(waiting, .max_mailbox = MOST);
CLASS(waiting_sorted, .max_mailbox = MOST, .priority = priority);
CLASS(failing, .max_mailbox = MOST, .mailbox_full = STRAND_MAILBOX_FULL_FAIL);
CLASS(failing_sorted, .max_mailbox = MOST, .mailbox_full = STRAND_MAILBOX_FULL_FAIL, .priority = priority);
CLASS(forgetful, .max_mailbox = MOST, .mailbox_full = STRAND_MAILBOX_FULL_OLDEST);

/* For a mailbox that refuses senders when it is full: it has room for MOST messages, no more and no fewer. */
static void check_room(strand_actors system, strand_actor a)
{
    strand_actors_join(system);
    test_log_clear();
    CHECK_EQ(strand_actor_suspend(a), 0);
    strand_actors_join(system);
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 9)), -EAGAIN);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("0 1 2");
}

static void *tell_number(void *actor)
{
    return TEST_PTR(strand_tell(*(strand_actor *)actor, STRAND_MSG(number, 77)));
}

/* ---- putting aside ----------------------------------------------------------------------------------------------- */

static void put_aside_and_bring_back(const strand_actor_class *class)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, class, NULL, 0);
    static const int numbers[] = {31, 12, 23, 14};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(strand_tell(a, STRAND_MSG(put_aside, numbers[i])), 0);
        strand_actors_join(system);
    }
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(bring_back)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
}

TEST_INSIDE(unstashed_messages_come_before_all_waiting_ones_in_their_order)
{
    put_aside_and_bring_back(&plain);
    CHECK_LOG("back-4 31 12 23 14 1 2");
}

TEST_INSIDE(stashed_messages_are_not_sorted_again)
{
    put_aside_and_bring_back(&sorted);
    CHECK_LOG("back-4 31 12 23 14 1 2");
    CHECK_EQ(asked_for_priority, 4 + 3);
}

static void put_aside_twice(const strand_actor_class *class)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, class, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(bring_back)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(bring_back)), 0);
    strand_actors_join(system);
    CHECK_LOG("back-0 back-0");
}

TEST_INSIDE(nothing_may_have_been_put_aside)
{
    put_aside_twice(&plain);
    test_log_clear();
    put_aside_twice(&sorted);
}

/* What is put aside takes no room, before and after it has been brought back. */
static void put_aside_much(const strand_actor_class *class)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, class, NULL, 0);
    for (int i = 0; i < 3 * MOST; i++) {
        CHECK_EQ(strand_tell(a, STRAND_MSG(put_aside, 7)), 0);
        strand_actors_join(system);
    }
    CHECK_EQ(strand_tell(a, STRAND_MSG(bring_back)), 0);
    strand_actors_join(system);
    CHECK_LOG("back-9 7 7 7 7 7 7 7 7 7");
    check_room(system, a);
    check_room(system, a);
}

TEST_INSIDE(stashed_messages_take_no_room)
{
    put_aside_much(&failing);
    test_log_clear();
    put_aside_much(&failing_sorted);
}

/* There is one message in hand, and what was brought back after it, when others want to send. */
static void send_when_it_has_been_brought_back(const strand_actor_class *class)
{
    static strand_actor a;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, class, NULL, 0);
    for (int i = 0; i < 2 * MOST; i++) {
        CHECK_EQ(strand_tell(a, STRAND_MSG(put_aside, 7)), 0);
        strand_actors_join(system);
    }
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(bring_back)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(block)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    STRAND_SCOPE(scope);
    strand senders[2 * MOST];
    for (int i = 0; i < 2 * MOST; i++)
        senders[i] = strand_spawn(scope, tell_number, &a);
    strand_actors_join(system);
    strand_event_set(&go);
    for (int i = 0; i < 2 * MOST; i++)
        CHECK_PTR(strand_join(senders[i]), NULL);
    strand_actors_join(system);
    CHECK_LOG("back-6 7 7 7 7 7 7 77 77 77 77 77 77");
}

TEST_INSIDE(senders_that_wait_come_in_after_what_was_put_aside)
{
    send_when_it_has_been_brought_back(&waiting);
    test_log_clear();
    send_when_it_has_been_brought_back(&waiting_sorted);
}

/* ---- its own messages ----------------------------------------------------------------------------------------------
 */

static void tell_itself_much(const strand_actor_class *class)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, class, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(tell_self, 2 * MOST)), 0);
    strand_actors_join(system); /* it is in hand */
    for (int i = 0; i < MOST - 1; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, 7)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 8)), -EAGAIN);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_LOG("0 1 2 3 4 5 7 7");
    check_room(system, a);
    check_room(system, a);
}

TEST_INSIDE(messages_of_an_actor_to_itself_take_no_room)
{
    tell_itself_much(&failing);
    test_log_clear();
    tell_itself_much(&failing_sorted);
}

TEST_INSIDE(nobody_waits_for_room_because_of_what_an_actor_tells_itself)
{
    static strand_actor a;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &waiting, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(tell_self, 2 * MOST)), 0);
    strand_actors_join(system);
    STRAND_SCOPE(scope);
    for (int i = 0; i < MOST - 1; i++)
        CHECK_PTR(strand_join(strand_spawn(scope, tell_number, &a)), NULL);
    strand last = strand_spawn(scope, tell_number, &a);
    strand_actors_join(system);
    CHECK(!strand_ended(last));
    strand_event_set(&go);
    CHECK_PTR(strand_join(last), NULL);
}

/* ---- what the oldest is --------------------------------------------------------------------------------------------
 */

TEST_INSIDE(a_full_mailbox_forgets_the_oldest)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetful, NULL, 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    for (int i = 1; i <= 2 * MOST; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("4 5 6");
}

/* It takes up one at a time: else those would be safe that came together with the one in hand. */
TEST_INSIDE(a_full_mailbox_forgets_the_oldest_of_all_that_have_not_begun)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetful, NULL, 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(block)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    test_await_blocked("waits for event", 1);
    for (int i = 3; i <= 5; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_LOG("4 5");
}

TEST_INSIDE(a_full_mailbox_forgets_nothing_that_its_actor_told_itself)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetful, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(tell_self, 2)), 0);
    test_await_blocked("waits for event", 1);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 11)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 12)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(halt)), 0); /* in the place of 11 */
    strand_event_set(&go);
    test_yield_until(&halted, 1);
    for (int i = 21; i <= 23; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    strand_event_set(&later);
    strand_actors_join(system);
    CHECK_LOG("0 1 12 22 23");
}

TEST_INSIDE(a_full_mailbox_forgets_no_timer)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetful, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set_timer, STRAND_MS)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(block)), 0);
    strand_actors_join(system); /* there is nothing that would send by itself any more */
    for (int i = 1; i <= 2 * MOST; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK(test_log_is("0 5 6") || test_log_is("0 6") || test_log_is("0 4 5 6"));
}

/* ---- all of it -----------------------------------------------------------------------------------------------------
 */

enum { SENDERS = 4, EACH = 60, ALL = SENDERS * EACH };

static _Atomic int handled[ALL], extra;
static bool was_aside[ALL];
static strand_actor chaotic;

static void be_chaotic(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (!n) {
        extra += STRAND_IS(message, block) != NULL;
        strand_actor_unstash_all();
    } else if (n->n % 5 == 0 && !was_aside[n->n]) {
        was_aside[n->n] = true;
        strand_message_stash(message);
    } else {
        handled[n->n]++;
        if (n->n % 7 == 0)
            strand_actor_unstash_all();
        if (n->n % 11 == 0)
            CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(block)), 0);
        if (n->n % 3 == 0)
            strand_yield();
    }
}

static void *tell_numbers(void *first)
{
    for (int i = 0; i < EACH; i++)
        CHECK_EQ(strand_tell(chaotic, STRAND_MSG(number, (int)(intptr_t)first * EACH + i)), 0);
    return NULL;
}

static void handle_all(const strand_actor_class *class)
{
    extra = 0;
    for (int i = 0; i < ALL; i++)
        handled[i] = was_aside[i] = false;
    STRAND_ACTORS(system, NULL);
    chaotic = strand_actor_spawn(system, NULL, class, NULL, 0);
    STRAND_SCOPE(scope);
    for (int i = 0; i < SENDERS; i++)
        strand_spawn(scope, tell_numbers, TEST_PTR(i));
    strand_scope_join(scope);
    CHECK_EQ(strand_tell(chaotic, STRAND_MSG(bring_back)), 0);
    strand_actors_join(system);
    for (int i = 0; i < ALL; i++)
        CHECK_EQ(handled[i], 1);
    CHECK_EQ(extra, (ALL + 10) / 11);
}

TEST_RACE(no_message_is_lost_among_stashes_and_waiting_senders)
{
    static strand_actor_class class;
    class = waiting;
    class.receive = be_chaotic;
    handle_all(&class);
}

TEST_RACE(nothing_is_lost_by_priorities_either)
{
    static strand_actor_class class;
    class = waiting_sorted;
    class.receive = be_chaotic;
    handle_all(&class);
}
