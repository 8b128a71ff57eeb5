/*
 * Misuse of actors.
 */
#include "cases.h"

#include "strand/actor.h"
#include "strand/check.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <pthread.h>
#include <stdint.h>

STRAND_MESSAGE(number, { int n; });

/* ---- an actor that calls a function, once ---------------------------------------------------------------- */

typedef void act(strand_message *message);

static void perform(void *state, strand_message *message)
{
    (*(act **)state)(message);
}

static const strand_actor_class performer = {
    .size = sizeof performer, .name = "performer", .state_size = sizeof(act *), .receive = perform};

static void *in_an_actor(act *what)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &performer, &what, sizeof what);
    strand_tell(a, STRAND_MSG(number, 1));
    strand_actors_join(system);
    return NULL;
}

/* In a strand that has opened a system. */
#define MISUSE_IN_A_SYSTEM(name, ...)                                                                                  \
    static void name##_(strand_actors system);                                                                         \
    MISUSE(name, __VA_ARGS__)                                                                                          \
    {                                                                                                                  \
        STRAND_ACTORS(system, NULL);                                                                                   \
        name##_(system);                                                                                               \
        return arg;                                                                                                    \
    }                                                                                                                  \
    static void name##_(strand_actors system)
/* While an actor handles a message. */
#define MISUSE_IN_AN_ACTOR(name, ...)                                                                                  \
    static void name##_(strand_message *message);                                                                      \
    MISUSE(name, __VA_ARGS__)                                                                                          \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return in_an_actor(name##_);                                                                                   \
    }                                                                                                                  \
    static void name##_(strand_message *message)

/* ---- in the wrong place ----------------------------------------------------------------------------------------- */

MISUSE_IN_A_SYSTEM(watch_outside, "strand_actor_watch", "not an actor that handles a message")
{
    strand_actor_watch(strand_actor_spawn(system, NULL, &performer, NULL, 0));
}

MISUSE_IN_A_SYSTEM(unwatch_outside, "strand_actor_unwatch", "not an actor that handles a message")
{
    strand_actor_unwatch(strand_actor_spawn(system, NULL, &performer, NULL, 0));
}

MISUSE_IN_A_SYSTEM(become_outside, "strand_actor_become", "not an actor that handles a message")
{
    (void)system;
    strand_actor_become(perform);
}

MISUSE_IN_A_SYSTEM(unbecome_outside, "strand_actor_unbecome", "not an actor that handles a message")
{
    (void)system;
    strand_actor_unbecome();
}

MISUSE_IN_A_SYSTEM(unstash_outside, "strand_actor_unstash_all", "not an actor that handles a message")
{
    (void)system;
    strand_actor_unstash_all();
}

MISUSE_IN_A_SYSTEM(timer_outside, "strand_actor_timer", "not an actor that handles a message")
{
    (void)system;
    strand_actor_timer(NULL, 1, 0, STRAND_MSG(number, 1));
}

MISUSE_IN_A_SYSTEM(timer_stop_outside, "strand_actor_timer_stop", "not an actor that handles a message")
{
    (void)system;
    strand_actor_timer_stop(NULL);
}

MISUSE_IN_A_SYSTEM(receive_timeout_outside, "strand_actor_receive_timeout", "not an actor that handles a message")
{
    (void)system;
    strand_actor_receive_timeout(1);
}

MISUSE_IN_A_SYSTEM(spawn_child_outside, "strand_actor_spawn_child", "not an actor that handles a message")
{
    (void)system;
    strand_actor_spawn_child(NULL, &performer, NULL, 0);
}

MISUSE_IN_A_SYSTEM(scope_outside, "strand_actor_scope", "not an actor that handles a message")
{
    (void)system;
    strand_actor_scope();
}

static void *join_it(void *system)
{
    strand_actors_join(*(strand_actors *)system);
    return NULL;
}

MISUSE_IN_A_SYSTEM(join_by_another, "strand_actors_join", "only the strand that opened a system")
{
    static strand_actors at;
    at = system;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, join_it, &at));
}

/* ---- messages that are not in hand ---------------------------------------------------------------------------- */

static strand_message mine = {.type = &number_message};

MISUSE_IN_AN_ACTOR(take_another, "strand_message_take", "not the one that the caller handles")
{
    (void)message;
    strand_message_take(&mine);
}

MISUSE_IN_AN_ACTOR(forward_twice, "strand_message_forward", "not the one that the caller handles")
{
    strand_message_forward(message, (strand_actor){{0, 0}});
    strand_message_forward(&mine, (strand_actor){{0, 0}});
}

static void leave_it(void *body)
{
    (void)body;
}

STRAND_MESSAGE_WITH(parcel, leave_it, { char text[8]; });

static void take_and_forward(void *state, strand_message *message)
{
    (void)state;
    strand_message_take(message);
    strand_message_forward(message, strand_actor_self());
}

MISUSE_IN_A_SYSTEM(forward_what_was_taken, "strand_message_forward", "body has been taken")
{
    static const strand_actor_class thief = {.size = sizeof thief, .name = "thief", .receive = take_and_forward};
    strand_tell(strand_actor_spawn(system, NULL, &thief, NULL, 0), STRAND_MSG(parcel, "letters"));
    strand_actors_join(system);
}

MISUSE_IN_AN_ACTOR(stash_another, "strand_message_stash", "not the one that the caller handles")
{
    (void)message;
    strand_message_stash(&mine);
}

MISUSE_IN_AN_ACTOR(unhandle_another, "strand_message_unhandled", "not the one that the caller handles")
{
    (void)message;
    strand_message_unhandled(&mine);
}

MISUSE_IN_AN_ACTOR(unbecome_nothing, "strand_actor_unbecome", "there is no behaviour to return from")
{
    (void)message;
    strand_actor_unbecome();
}

MISUSE_IN_AN_ACTOR(become_nothing, "strand_actor_become", "the behaviour is NULL")
{
    (void)message;
    strand_actor_become(NULL);
}

/* ---- what can't be ------------------------------------------------------------------------------------------------
 */

MISUSE_IN_A_SYSTEM(spawn_of_no_class, "strand_actor_spawn", "the class is NULL")
{
    strand_actor_spawn(system, NULL, NULL, NULL, 0);
}

MISUSE_IN_A_SYSTEM(spawn_of_a_class_without_a_size, "strand_actor_spawn", "strand_actor_class.size is 0")
{
    static const strand_actor_class wrong = {.receive = perform};
    strand_actor_spawn(system, NULL, &wrong, NULL, 0);
}

MISUSE_IN_A_SYSTEM(spawn_of_a_class_that_receives_nothing, "strand_actor_spawn", "the class 'deaf'")
{
    static const strand_actor_class deaf = {.size = sizeof deaf, .name = "deaf"};
    strand_actor_spawn(system, NULL, &deaf, NULL, 0);
}

MISUSE_IN_A_SYSTEM(spawn_with_an_attr_without_a_size, "strand_actor_spawn", "strand_actor_attr.size is 0")
{
    strand_actor_spawn(system, &(strand_actor_attr){.name = "it"}, &performer, NULL, 0);
}

MISUSE_IN_A_SYSTEM(spawn_with_no_arguments, "strand_actor_spawn",
                   "the size of the arguments is 8, but their address is NULL: pass their address, or the size 0")
{
    strand_actor_spawn(system, NULL, &performer, NULL, 8);
}

MISUSE_IN_AN_ACTOR(spawn_a_child_of_no_class, "strand_actor_spawn_child", "the class is NULL")
{
    (void)message;
    strand_actor_spawn_child(NULL, NULL, NULL, 0);
}

MISUSE(open_without_a_size, "STRAND_ACTORS", "strand_actors_attr.size is 0")
DOES(STRAND_ACTORS(system, &(strand_actors_attr){.name = "it"}))

static void *open_with_dispatcher(const strand_dispatcher *dispatcher)
{
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dispatcher, .dispatchers_count = 1));
    return NULL;
}

MISUSE(open_with_a_dispatcher_without_a_size, "STRAND_ACTORS", "strand_dispatcher.size is 0")
{
    (void)arg;
    return open_with_dispatcher(&(strand_dispatcher){.name = "it"});
}

MISUSE(open_with_a_dispatcher_without_a_name, "STRAND_ACTORS", "no name")
{
    (void)arg;
    return open_with_dispatcher(&(strand_dispatcher){.size = sizeof(strand_dispatcher)});
}

MISUSE_IN_A_SYSTEM(router_without_a_size, "strand_router_spawn", "strand_router.size is 0")
{
    strand_router_spawn(system, NULL, &(strand_router){.count = 1, .class_ = &performer});
}

MISUSE_IN_A_SYSTEM(router_of_nobody, "strand_router_spawn", "strand_router.count is 0: set how many routees")
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.class_ = &performer));
}

MISUSE_IN_A_SYSTEM(router_of_no_class, "strand_router_spawn", "strand_router.class_ is NULL: set the class")
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1));
}

MISUSE_IN_A_SYSTEM(router_with_no_arguments, "strand_router_spawn",
                   "strand_router.size_of_args is 8, but .args is NULL: set both or neither")
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1, .class_ = &performer, .size_of_args = 8));
}

MISUSE_IN_A_SYSTEM(router_by_no_route, "strand_router_spawn", "strand_router.route is 77: set an enumerator")
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1, .class_ = &performer, .route = 77));
}

MISUSE_IN_A_SYSTEM(spawn_of_a_class_that_is_full_in_no_way, "strand_actor_spawn",
                   "mailbox_full of the class 'full' is 9: set an enumerator, such as STRAND_MAILBOX_FULL_FAIL")
{
    static const strand_actor_class full = {.size = sizeof full, .name = "full", .receive = perform, .mailbox_full = 9};
    strand_actor_spawn(system, NULL, &full, NULL, 0);
}

MISUSE_IN_A_SYSTEM(stop_in_no_way, "strand_actor_stop", "77 is not a way of stopping")
{
    strand_actor_stop(strand_actor_spawn(system, NULL, &performer, NULL, 0), 77);
}

MISUSE_IN_A_SYSTEM(reply_to_nothing, "strand_reply", "the message is NULL")
{
    (void)system;
    STRAND_IGNORE(strand_reply(NULL, STRAND_MSG(number, 1)));
}

MISUSE_IN_A_SYSTEM(path_into_nothing, "strand_actor_path", "the buffer for the path is NULL")
{
    strand_actor_path(strand_actor_spawn(system, NULL, &performer, NULL, 0), NULL, 5);
}

MISUSE_IN_AN_ACTOR(timer_of_no_type, "strand_actor_timer", "the type is NULL")
{
    (void)message;
    strand_actor_timer(&performer, 1, 1, NULL, NULL, 0);
}

MISUSE_IN_AN_ACTOR(timer_of_no_body, "strand_actor_timer", "the body is NULL")
{
    (void)message;
    strand_actor_timer(&performer, 1, 0, &number_message, NULL, sizeof(number));
}

MISUSE(open_without_the_dispatchers, "STRAND_ACTORS", "the table of dispatchers is NULL")
DOES(STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers_count = 1)))

MISUSE(open_with_a_dispatcher_below_zero, "STRAND_ACTORS", "negative quantum")
{
    (void)arg;
    return open_with_dispatcher(
        &(strand_dispatcher){.size = sizeof(strand_dispatcher), .name = "it", .quantum_ns = -1});
}

MISUSE_IN_A_SYSTEM(router_without_a_hash, "strand_router_spawn", "strand_router.hash is NULL")
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1, .class_ = &performer, .route = STRAND_ROUTE_HASH));
}

MISUSE_IN_A_SYSTEM(run_nothing, "strand_actors_run", "the function is NULL")
{
    strand_actors_run(system, NULL, NULL, NULL);
}

MISUSE_IN_A_SYSTEM(give_nothing, "strand_actor_give", "the body is NULL")
{
    strand_actor_give(strand_actor_spawn(system, NULL, &performer, NULL, 0), &number_message, NULL);
}

MISUSE_IN_A_SYSTEM(find_no_path, "strand_actor_find", "the path is NULL")
{
    strand_actor_find(system, NULL);
}

MISUSE_IN_A_SYSTEM(ask_into_nothing, "strand_ask", "the buffer for the answer is NULL")
{
    STRAND_IGNORE(strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), STRAND_MSG(number, 1),
                             &number_message, NULL, 4));
}

MISUSE_IN_A_SYSTEM(ask_for_nothing, "strand_ask", "the type of the answer is NULL")
{
    number got;
    STRAND_IGNORE(strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), STRAND_MSG(number, 1), NULL, &got,
                             sizeof got));
}

MISUSE_IN_A_SYSTEM(ask_by_no_type, "strand_ask", "the type is NULL")
{
    number got;
    STRAND_IGNORE(
        strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), NULL, &got, 4, STRAND_INTO(number, &got)));
}

MISUSE_IN_A_SYSTEM(ask_by_no_body, "strand_ask", "the body is NULL")
{
    number got;
    STRAND_IGNORE(strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), &number_message, NULL, 4,
                             STRAND_INTO(number, &got)));
}

MISUSE_IN_AN_ACTOR(forward_no_message, "strand_message_forward", "the message is not the one that the caller handles")
{
    strand_message_forward(NULL, message->sender);
}

MISUSE_IN_AN_ACTOR(take_no_message, "strand_message_take", "the message is not the one that the caller handles")
{
    (void)message;
    strand_message_take(NULL);
}

MISUSE_IN_AN_ACTOR(stash_no_message, "strand_message_stash", "the message is not the one that the caller handles")
{
    (void)message;
    strand_message_stash(NULL);
}

MISUSE_IN_AN_ACTOR(leave_no_message, "strand_message_unhandled", "the message is not the one that the caller handles")
{
    (void)message;
    strand_message_unhandled(NULL);
}

/* ---- handles -------------------------------------------------------------------------------------------------------
 */

static strand_actors gone_system(void)
{
    STRAND_ACTORS(system, NULL);
    return system;
}

MISUSE(spawn_in_a_system_that_is_gone, "strand_actor_spawn", "its block has been left")
DOES(strand_actor_spawn(gone_system(), NULL, &performer, NULL, 0))

MISUSE(stop_a_system_that_is_gone, "strand_actors_stop", "its block has been left")
DOES(strand_actors_stop(gone_system(), STRAND_STOP_NEXT))

MISUSE(find_in_no_system, "strand_actor_find", "no system of actors behind {0}: STRAND_ACTORS opens one")
DOES(strand_actor_find((strand_actors){{0, 0}}, "/user"))

MISUSE_IN_A_SYSTEM(subscribe_to_a_system_that_is_gone, "strand_actors_subscribe", "its block has been left")
{
    strand_actor a = strand_actor_spawn(system, NULL, &performer, NULL, 0);
    strand_actors_subscribe(gone_system(), a, STRAND_ACTOR_END);
}

MISUSE_IN_AN_ACTOR(ask_itself, "strand_ask", "would wait for itself")
{
    number answer;
    (void)message;
    STRAND_IGNORE(strand_ask(strand_actor_self(), STRAND_MSG(number, 1), STRAND_INTO(number, &answer)));
}

MISUSE_IN_AN_ACTOR(wait_for_itself, "strand_actor_wait", "would wait for itself")
{
    (void)message;
    strand_actor_wait(strand_actor_self());
}

/* ---- what a message leaves ------------------------------------------------------------------------------------- */

MISUSE_IN_AN_ACTOR(keep_a_mutex, "strand_actor_class.receive", "strand 'performer' #",
                   "has handled a message, and still holds a mutex")
{
    static strand_mutex mutex;
    (void)message;
    strand_mutex_lock(&mutex);
    if (!strand_mutex_held(&mutex))
        puts("it is not held");
}

/* ---- functions of the user's ------------------------------------------------------------------------------------ */

static enum strand_directive decide_anything(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child, (void)why;
    return (enum strand_directive)17;
}

static void fail(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_throw(&STRAND_ERROR, "on purpose");
}

static void have_a_child_that_fails(void *state, strand_message *message)
{
    static const strand_actor_class failing = {.size = sizeof failing, .name = "failing", .receive = fail};
    (void)state;
    strand_message_forward(message, strand_actor_spawn_child(NULL, &failing, NULL, 0));
}

MISUSE_IN_A_SYSTEM(decide_nonsense, "strand_actor_class.decide", "decide of the class 'mad' has returned 17")
{
    static const strand_actor_class mad = {
        .size = sizeof mad, .name = "mad", .receive = have_a_child_that_fails, .decide = decide_anything};
    strand_tell(strand_actor_spawn(system, NULL, &mad, NULL, 0), STRAND_MSG(number, 1));
    strand_actors_join(system);
}

static void drop_and_sleep(void *body)
{
    (void)body;
    strand_sleep(1);
}

static void drop_and_throw(void *body)
{
    (void)body;
    strand_throw(&STRAND_ERROR, "in drop");
}

static void drop_and_watch(void *body)
{
    strand_actor_watch(*(strand_actor *)body);
}

STRAND_MESSAGE_WITH(sleeping, drop_and_sleep, { int n; });
STRAND_MESSAGE_WITH(throwing, drop_and_throw, { int n; });
STRAND_MESSAGE_WITH(watching, drop_and_watch, { strand_actor whom; });

MISUSE_IN_AN_ACTOR(send_what_is_owned_again_and_again, "strand_actor_timer", "a 'sleeping' owns something")
{
    (void)message;
    strand_actor_timer(NULL, 1, 1, STRAND_MSG(sleeping, 1));
}

MISUSE_IN_A_SYSTEM(suspend_in_a_drop, "strand_sleep", "inside strand_message_type.drop", "the message is a 'sleeping'")
{
    (void)system;
    strand_tell((strand_actor){{0, 0}}, STRAND_MSG(sleeping, 1));
}

MISUSE_IN_A_SYSTEM(throw_in_a_drop, "strand_message_type.drop", "the function has thrown 'in drop'")
{
    (void)system;
    strand_tell((strand_actor){{0, 0}}, STRAND_MSG(throwing, 1));
}

MISUSE_IN_A_SYSTEM(watch_in_a_drop, "strand_actor_watch", "not an actor that handles a message")
{
    strand_actor a = strand_actor_spawn(system, NULL, &performer, NULL, 0);
    strand_tell((strand_actor){{0, 0}}, STRAND_MSG(watching, a));
}

static unsigned sleep_and_choose(const strand_message *message)
{
    (void)message;
    strand_sleep(1);
    return 0;
}

MISUSE_IN_A_SYSTEM(suspend_in_a_priority, "strand_sleep", "inside strand_actor_class.priority", "the class is 'slow'")
{
    static const strand_actor_class slow = {
        .size = sizeof slow, .name = "slow", .receive = perform, .priority = sleep_and_choose};
    strand_tell(strand_actor_spawn(system, NULL, &slow, NULL, 0), STRAND_MSG(number, 1));
    strand_actors_join(system);
}

static void be_slow(strand_message *message)
{
    (void)message;
    strand_sleep(3600 * STRAND_S);
}

MISUSE_IN_A_SYSTEM(wait_for_room_in_a_section, "strand_tell", "inside a no-suspend section")
{
    static const strand_actor_class narrow = {
        .size = sizeof narrow, .name = "narrow", .state_size = sizeof(act *), .receive = perform, .max_mailbox = 1};
    act *what = be_slow;
    strand_actor a = strand_actor_spawn(system, NULL, &narrow, &what, sizeof what);
    for (int i = 0; i < 2; i++) {
        STRAND_NO_SUSPEND;
        strand_tell(a, STRAND_MSG(number, 1));
    }
}

MISUSE(open_in_a_section, "STRAND_ACTORS", "it may block, inside a no-suspend section")
DOES(STRAND_NO_SUSPEND; STRAND_ACTORS(system, NULL))

MISUSE(leave_with_a_mutex, "STRAND_ACTORS", "it may block, while the strand holds a pthread mutex")
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    STRAND_ACTORS(system, NULL);
    pthread_mutex_lock(&mutex);
    return arg;
}

static void *stop_in_a_section(void *arg)
{
    STRAND_ACTORS(system, NULL);
    STRAND_NO_SUSPEND;
    strand_actors_stop(system, STRAND_STOP_NEXT);
    return arg;
}

static void *stop_often_in_a_section(void *arg)
{
    for (int i = 0; i < 10000; i++)
        strand_exception_release(strand_try(stop_in_a_section, NULL, NULL));
    return arg;
}

/* Memory is refused at random: sooner or later a system opens, and then its stop finds none. */
MISUSE_OUTSIDE(stop_without_memory_in_a_section, "strand_actors_stop", "it may block, inside a no-suspend section")
DOES(strand_run(STRAND_OPTIONS(.has_seed = true, .seed = 1, .sim = STRAND_SIM(.memory = 20)), stop_often_in_a_section,
                NULL))

/* ---- plain threads ----------------------------------------------------------------------------------------------- */

MISUSE_OUTSIDE(stop_on_a_plain_thread, "strand_actor_stop", "from a plain thread")
DOES(strand_actor_stop((strand_actor){{0, 0}}, STRAND_STOP_NEXT))

MISUSE_OUTSIDE(suspend_on_a_plain_thread, "strand_actor_suspend", "from a plain thread")
DOES(strand_actor_suspend((strand_actor){{0, 0}}))

MISUSE_OUTSIDE(self_on_a_plain_thread, "strand_actor_self", "from a plain thread")
DOES(strand_actor_self())

MISUSE_OUTSIDE(ended_on_a_plain_thread, "strand_actor_ended", "from a plain thread")
DOES(strand_actor_ended((strand_actor){{0, 0}}))

MISUSE_OUTSIDE(path_on_a_plain_thread, "strand_actor_path", "from a plain thread")
DOES(strand_actor_path((strand_actor){{0, 0}}, NULL, 0))

MISUSE_OUTSIDE(watch_on_a_plain_thread, "strand_actor_watch", "from a plain thread")
DOES(strand_actor_watch((strand_actor){{0, 0}}))

MISUSE_OUTSIDE(reply_on_a_plain_thread, "strand_reply", "from a plain thread")
DOES(STRAND_IGNORE(strand_reply(&mine, STRAND_MSG(number, 1))))

MISUSE_OUTSIDE(open_on_a_plain_thread, "STRAND_ACTORS", "from a plain thread")
DOES(STRAND_ACTORS(system, NULL))
