/*
 * Misuse of actors is reported with the function and what was done, after the hook; then the program aborts. Each case
 * is a run of tests/programs/actor_misuse.c.
 */
#define SUITE actor_misuse
#include "test.h"

#include <signal.h>

static struct test_output o;

/* Runs the case; it has to abort with a report that names the function, and what was wrong. */
static void misuse_by_a_thread(const char *name, const char *function, const char *what)
{
    char expected[100];
    snprintf(expected, sizeof expected, "misuse of %s:", function);
    test_program(&o, "actor_misuse", name);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, expected);
    CHECK_CONTAINS(o.err, what);
}

/* The same of a strand, whose run's hook is told. */
static void misuse(const char *name, const char *function, const char *what)
{
    misuse_by_a_thread(name, function, what);
    CHECK_CONTAINS(o.out, "hook told: function=");
}

TEST_PROGRAM(what_an_actor_does_in_its_turn_is_misuse_elsewhere)
{
    misuse("watch_outside", "strand_actor_watch", "not an actor that handles a message");
    misuse("unwatch_outside", "strand_actor_unwatch", "not an actor that handles a message");
    misuse("become_outside", "strand_actor_become", "not an actor that handles a message");
    misuse("unbecome_outside", "strand_actor_unbecome", "not an actor that handles a message");
    misuse("unstash_outside", "strand_actor_unstash_all", "not an actor that handles a message");
    misuse("timer_outside", "strand_actor_timer", "not an actor that handles a message");
    misuse("timer_stop_outside", "strand_actor_timer_stop", "not an actor that handles a message");
    misuse("receive_timeout_outside", "strand_actor_receive_timeout", "not an actor that handles a message");
    misuse("spawn_child_outside", "strand_actor_spawn_child", "not an actor that handles a message");
    misuse("scope_outside", "strand_actor_scope", "not an actor that handles a message");
}

TEST_PROGRAM(waiting_for_a_system_that_another_strand_has_opened_is_misuse)
{
    misuse("join_by_another", "strand_actors_join", "only the strand that opened a system");
}

TEST_PROGRAM(a_message_that_is_not_in_hand_is_nobodys_to_deal_with)
{
    misuse("take_another", "strand_message_take", "not the one that the caller handles");
    misuse("forward_twice", "strand_message_forward", "not the one that the caller handles");
    misuse("stash_another", "strand_message_stash", "not the one that the caller handles");
    misuse("unhandle_another", "strand_message_unhandled", "not the one that the caller handles");
}

TEST_PROGRAM(an_actor_that_becomes_nothing_is_misuse)
{
    misuse("become_nothing", "strand_actor_become", "the behaviour is NULL");
    misuse("unbecome_nothing", "strand_actor_unbecome", "there is no behaviour to return from");
}

TEST_PROGRAM(what_no_actor_can_be_is_misuse)
{
    misuse("spawn_of_no_class", "strand_actor_spawn", "the class is NULL");
    misuse("spawn_a_child_of_no_class", "strand_actor_spawn_child", "the class is NULL");
    misuse("spawn_of_a_class_without_a_size", "strand_actor_spawn", "strand_actor_class.size is 0");
    misuse("spawn_of_a_class_that_receives_nothing", "strand_actor_spawn", "the class 'deaf'");
    misuse("spawn_with_an_attr_without_a_size", "strand_actor_spawn", "strand_actor_attr.size is 0");
    misuse("spawn_of_a_class_that_is_full_in_no_way", "strand_actor_spawn", "of the class 'full', mailbox_full is 9");
    misuse("spawn_with_no_arguments", "strand_actor_spawn", "the arguments are NULL, and their size is 8");
}

TEST_PROGRAM(what_no_system_can_be_is_misuse)
{
    misuse("open_without_a_size", "STRAND_ACTORS", "strand_actors_attr.size is 0");
    misuse("open_with_a_dispatcher_without_a_size", "STRAND_ACTORS", "strand_dispatcher.size is 0");
    misuse("open_with_a_dispatcher_without_a_name", "STRAND_ACTORS", "no name");
    misuse("open_without_the_dispatchers", "STRAND_ACTORS", "the table of dispatchers is NULL");
    misuse("open_with_a_dispatcher_below_zero", "STRAND_ACTORS", "negative quantum");
}

TEST_PROGRAM(what_no_router_can_be_is_misuse)
{
    misuse("router_without_a_size", "strand_router_spawn", "strand_router.size is 0");
    misuse("router_of_nobody", "strand_router_spawn", "a router needs a count, a class");
    misuse("router_of_no_class", "strand_router_spawn", "a router needs a count, a class");
    misuse("router_with_no_arguments", "strand_router_spawn", "the arguments are NULL, and their size is 8");
    misuse("router_by_no_route", "strand_router_spawn", "77 is not a route");
    misuse("router_without_a_hash", "strand_router_spawn", "by hash a hash function");
}

TEST_PROGRAM(nothing_is_no_argument)
{
    misuse("run_nothing", "strand_actors_run", "the function is NULL");
    misuse("give_nothing", "strand_actor_give", "the body is NULL");
    misuse("find_no_path", "strand_actor_find", "the path is NULL");
    misuse("reply_to_nothing", "strand_reply", "the message is NULL");
    misuse("path_into_nothing", "strand_actor_path", "the buffer for the path is NULL");
    misuse("timer_of_no_type", "strand_actor_timer", "the type is NULL");
    misuse("timer_of_no_body", "strand_actor_timer", "the body is NULL");
    misuse("stop_in_no_way", "strand_actor_stop", "77 is not a way of stopping");
    misuse("ask_into_nothing", "strand_ask", "the buffer for the answer is NULL");
    misuse("ask_for_nothing", "strand_ask", "the type of the answer is NULL");
    misuse("ask_by_no_type", "strand_ask", "the type is NULL");
    misuse("ask_by_no_body", "strand_ask", "the body is NULL");
    misuse("forward_no_message", "strand_message_forward", "the message is not the one that the caller handles");
    misuse("take_no_message", "strand_message_take", "the message is not the one that the caller handles");
    misuse("stash_no_message", "strand_message_stash", "the message is not the one that the caller handles");
    misuse("leave_no_message", "strand_message_unhandled", "the message is not the one that the caller handles");
}

TEST_PROGRAM(a_system_that_is_gone_is_misuse)
{
    misuse("spawn_in_a_system_that_is_gone", "strand_actor_spawn", "its block has been left");
    misuse("stop_a_system_that_is_gone", "strand_actors_stop", "its block has been left");
    misuse("find_in_no_system", "strand_actor_find", "no system of actors behind {0}: STRAND_ACTORS opens one");
    misuse("subscribe_to_a_system_that_is_gone", "strand_actors_subscribe", "its block has been left");
}

TEST_PROGRAM(an_actor_that_waits_for_itself_is_misuse)
{
    misuse("ask_itself", "strand_ask", "would wait for itself");
    misuse("wait_for_itself", "strand_actor_wait", "would wait for itself");
}

TEST_PROGRAM(a_message_whose_body_was_taken_is_not_passed_on)
{
    misuse("forward_what_was_taken", "strand_message_forward", "body has been taken");
}

/* As soon as it has been handled: another message may be another actor's. */
TEST_PROGRAM(a_mutex_that_is_held_when_a_message_has_been_handled_is_misuse)
{
    misuse("keep_a_mutex", "strand_actor_class.receive", "strand 'performer' #");
    CHECK_CONTAINS(o.err, "has handled a message, and still holds a mutex");
}

TEST_PROGRAM(a_decision_that_is_none_is_misuse)
{
    misuse("decide_nonsense", "strand_actor_class.decide", "of the class 'mad'");
}

TEST_PROGRAM(a_timer_that_sends_what_is_owned_again_and_again_is_misuse)
{
    misuse("send_what_is_owned_again_and_again", "strand_actor_timer", "a 'sleeping' owns something");
}

TEST_PROGRAM(functions_that_the_library_calls_in_the_middle_may_not_suspend_nor_throw)
{
    misuse("suspend_in_a_drop", "strand_sleep", "inside strand_message_type.drop");
    CHECK_CONTAINS(o.out, "made=the message is a 'sleeping'");
    misuse("throw_in_a_drop", "strand_message_type.drop", "the function has thrown 'in drop'");
    misuse("watch_in_a_drop", "strand_actor_watch", "not an actor that handles a message");
    misuse("suspend_in_a_priority", "strand_sleep", "inside strand_actor_class.priority");
    CHECK_CONTAINS(o.out, "made=the class is 'slow'");
}

TEST_PROGRAM(waiting_for_room_in_a_section_is_misuse)
{
    misuse("wait_for_room_in_a_section", "strand_tell", "inside a no-suspend section");
}

TEST_PROGRAM(a_plain_thread_can_only_tell)
{
    static const char *const functions[] = {"strand_actor_stop",  "strand_actor_suspend", "strand_actor_self",
                                            "strand_actor_ended", "strand_actor_path",    "strand_actor_watch",
                                            "strand_reply",       "STRAND_ACTORS"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char name[100];
        snprintf(name, sizeof name, "outside:%s", functions[i]);
        misuse_by_a_thread(name, functions[i], "from a plain thread");
    }
}
