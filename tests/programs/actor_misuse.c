/*
 * Each kind of misuse of actors, by name: the program aborts with a report, after the hook.
 */
#include "strand.h"
#include "strand/actor.h"
#include "strand/sync.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

STRAND_MESSAGE(number, { int n; });

static void tell(const strand_misuse *misuse, void *arg)
{
    printf("hook %s: function=%s; what=%s; made=%s\n", (const char *)arg, misuse->function, misuse->what, misuse->made);
    fflush(stdout);
}

/* ---- an actor that does what it is told, once ---------------------------------------------------------------- */

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

/* CASE(name): in a strand; IN_AN_ACTOR(name): in an actor's turn. */
#define CASE(name)                                                                                                     \
    static void name##_(strand_actors system);                                                                         \
    static void *name(void *arg)                                                                                       \
    {                                                                                                                  \
        STRAND_ACTORS(system, NULL);                                                                                   \
        name##_(system);                                                                                               \
        return arg;                                                                                                    \
    }                                                                                                                  \
    static void name##_(strand_actors system)
#define IN_AN_ACTOR(name)                                                                                              \
    static void name##_(strand_message *message);                                                                      \
    static void *name(void *arg)                                                                                       \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return in_an_actor(name##_);                                                                                   \
    }                                                                                                                  \
    static void name##_(strand_message *message)

/* ---- in the wrong place ----------------------------------------------------------------------------------------- */

CASE(watch_outside)
{
    strand_actor_watch(strand_actor_spawn(system, NULL, &performer, NULL, 0));
}

CASE(unwatch_outside)
{
    strand_actor_unwatch(strand_actor_spawn(system, NULL, &performer, NULL, 0));
}

CASE(become_outside)
{
    (void)system;
    strand_actor_become(perform);
}

CASE(unbecome_outside)
{
    (void)system;
    strand_actor_unbecome();
}

CASE(unstash_outside)
{
    (void)system;
    strand_actor_unstash_all();
}

CASE(timer_outside)
{
    (void)system;
    strand_actor_timer(NULL, 1, 0, STRAND_MSG(number, 1));
}

CASE(timer_stop_outside)
{
    (void)system;
    strand_actor_timer_stop(NULL);
}

CASE(receive_timeout_outside)
{
    (void)system;
    strand_actor_receive_timeout(1);
}

CASE(spawn_child_outside)
{
    (void)system;
    strand_actor_spawn_child(NULL, &performer, NULL, 0);
}

CASE(scope_outside)
{
    (void)system;
    strand_actor_scope();
}

static void *join_it(void *system)
{
    strand_actors_join(*(strand_actors *)system);
    return NULL;
}

CASE(join_by_another)
{
    static strand_actors at;
    at = system;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, join_it, &at));
}

/* ---- messages that are not in hand ---------------------------------------------------------------------------- */

static strand_message mine = {.type = &number_message};

IN_AN_ACTOR(take_another)
{
    (void)message;
    strand_message_take(&mine);
}

IN_AN_ACTOR(forward_twice)
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

CASE(forward_what_was_taken)
{
    static const strand_actor_class thief = {.size = sizeof thief, .name = "thief", .receive = take_and_forward};
    strand_tell(strand_actor_spawn(system, NULL, &thief, NULL, 0), STRAND_MSG(parcel, "letters"));
    strand_actors_join(system);
}

IN_AN_ACTOR(stash_another)
{
    (void)message;
    strand_message_stash(&mine);
}

IN_AN_ACTOR(unhandle_another)
{
    (void)message;
    strand_message_unhandled(&mine);
}

IN_AN_ACTOR(unbecome_nothing)
{
    (void)message;
    strand_actor_unbecome();
}

IN_AN_ACTOR(become_nothing)
{
    (void)message;
    strand_actor_become(NULL);
}

/* ---- what can't be ------------------------------------------------------------------------------------------------
 */

CASE(spawn_of_no_class)
{
    strand_actor_spawn(system, NULL, NULL, NULL, 0);
}

CASE(spawn_of_a_class_without_a_size)
{
    static const strand_actor_class wrong = {.receive = perform};
    strand_actor_spawn(system, NULL, &wrong, NULL, 0);
}

CASE(spawn_of_a_class_that_receives_nothing)
{
    static const strand_actor_class deaf = {.size = sizeof deaf, .name = "deaf"};
    strand_actor_spawn(system, NULL, &deaf, NULL, 0);
}

CASE(spawn_with_an_attr_without_a_size)
{
    strand_actor_spawn(system, &(strand_actor_attr){.name = "it"}, &performer, NULL, 0);
}

CASE(spawn_with_no_arguments)
{
    strand_actor_spawn(system, NULL, &performer, NULL, 8);
}

IN_AN_ACTOR(spawn_a_child_of_no_class)
{
    (void)message;
    strand_actor_spawn_child(NULL, NULL, NULL, 0);
}

static void *open_without_a_size(void *arg)
{
    STRAND_ACTORS(system, &(strand_actors_attr){.name = "it"});
    return arg;
}

static void *open_with_dispatcher(const strand_dispatcher *dispatcher)
{
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = dispatcher, .dispatchers_count = 1));
    return NULL;
}

static void *open_with_a_dispatcher_without_a_size(void *arg)
{
    (void)arg;
    return open_with_dispatcher(&(strand_dispatcher){.name = "it"});
}

static void *open_with_a_dispatcher_without_a_name(void *arg)
{
    (void)arg;
    return open_with_dispatcher(&(strand_dispatcher){.size = sizeof(strand_dispatcher)});
}

CASE(router_without_a_size)
{
    strand_router_spawn(system, NULL, &(strand_router){.count = 1, .class_ = &performer});
}

CASE(router_of_nobody)
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.class_ = &performer));
}

CASE(router_of_no_class)
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1));
}

CASE(router_with_no_arguments)
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1, .class_ = &performer, .size_of_args = 8));
}

CASE(router_by_no_route)
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1, .class_ = &performer, .route = 77));
}

CASE(spawn_of_a_class_that_is_full_in_no_way)
{
    static const strand_actor_class full = {.size = sizeof full, .name = "full", .receive = perform, .mailbox_full = 9};
    strand_actor_spawn(system, NULL, &full, NULL, 0);
}

CASE(stop_in_no_way)
{
    strand_actor_stop(strand_actor_spawn(system, NULL, &performer, NULL, 0), 77);
}

CASE(reply_to_nothing)
{
    (void)system;
    STRAND_IGNORE(strand_reply(NULL, STRAND_MSG(number, 1)));
}

CASE(path_into_nothing)
{
    strand_actor_path(strand_actor_spawn(system, NULL, &performer, NULL, 0), NULL, 5);
}

IN_AN_ACTOR(timer_of_no_type)
{
    (void)message;
    strand_actor_timer(&performer, 1, 1, NULL, NULL, 0);
}

IN_AN_ACTOR(timer_of_no_body)
{
    (void)message;
    strand_actor_timer(&performer, 1, 0, &number_message, NULL, sizeof(number));
}

static void *open_without_the_dispatchers(void *arg)
{
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers_count = 1));
    return arg;
}

static void *open_with_a_dispatcher_below_zero(void *arg)
{
    (void)arg;
    return open_with_dispatcher(
        &(strand_dispatcher){.size = sizeof(strand_dispatcher), .name = "it", .quantum_ns = -1});
}

CASE(router_without_a_hash)
{
    strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 1, .class_ = &performer, .route = STRAND_ROUTE_HASH));
}

CASE(run_nothing)
{
    strand_actors_run(system, NULL, NULL, NULL);
}

CASE(give_nothing)
{
    strand_actor_give(strand_actor_spawn(system, NULL, &performer, NULL, 0), &number_message, NULL);
}

CASE(find_no_path)
{
    strand_actor_find(system, NULL);
}

CASE(ask_into_nothing)
{
    STRAND_IGNORE(strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), STRAND_MSG(number, 1),
                             &number_message, NULL, 4));
}

CASE(ask_for_nothing)
{
    number got;
    STRAND_IGNORE(strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), STRAND_MSG(number, 1), NULL, &got,
                             sizeof got));
}

CASE(ask_by_no_type)
{
    number got;
    STRAND_IGNORE(
        strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), NULL, &got, 4, STRAND_INTO(number, &got)));
}

CASE(ask_by_no_body)
{
    number got;
    STRAND_IGNORE(strand_ask(strand_actor_spawn(system, NULL, &performer, NULL, 0), &number_message, NULL, 4,
                             STRAND_INTO(number, &got)));
}

IN_AN_ACTOR(forward_no_message)
{
    strand_message_forward(NULL, message->sender);
}

IN_AN_ACTOR(take_no_message)
{
    (void)message;
    strand_message_take(NULL);
}

IN_AN_ACTOR(stash_no_message)
{
    (void)message;
    strand_message_stash(NULL);
}

IN_AN_ACTOR(leave_no_message)
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

static void *spawn_in_a_system_that_is_gone(void *arg)
{
    strand_actor_spawn(gone_system(), NULL, &performer, NULL, 0);
    return arg;
}

static void *stop_a_system_that_is_gone(void *arg)
{
    strand_actors_stop(gone_system(), STRAND_STOP_NEXT);
    return arg;
}

static void *find_in_no_system(void *arg)
{
    strand_actor_find((strand_actors){{0, 0}}, "/user");
    return arg;
}

CASE(subscribe_to_a_system_that_is_gone)
{
    strand_actor a = strand_actor_spawn(system, NULL, &performer, NULL, 0);
    strand_actors_subscribe(gone_system(), a, STRAND_ACTOR_END);
}

IN_AN_ACTOR(ask_itself)
{
    number answer;
    (void)message;
    STRAND_IGNORE(strand_ask(strand_actor_self(), STRAND_MSG(number, 1), STRAND_INTO(number, &answer)));
}

IN_AN_ACTOR(wait_for_itself)
{
    (void)message;
    strand_actor_wait(strand_actor_self());
}

/* ---- what a message leaves ------------------------------------------------------------------------------------- */

IN_AN_ACTOR(keep_a_mutex)
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

CASE(decide_nonsense)
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

IN_AN_ACTOR(send_what_is_owned_again_and_again)
{
    (void)message;
    strand_actor_timer(NULL, 1, 1, STRAND_MSG(sleeping, 1));
}

CASE(suspend_in_a_drop)
{
    (void)system;
    strand_tell((strand_actor){{0, 0}}, STRAND_MSG(sleeping, 1));
}

CASE(throw_in_a_drop)
{
    (void)system;
    strand_tell((strand_actor){{0, 0}}, STRAND_MSG(throwing, 1));
}

CASE(watch_in_a_drop)
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

CASE(suspend_in_a_priority)
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

CASE(wait_for_room_in_a_section)
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

/* ---- plain threads ----------------------------------------------------------------------------------------------- */

static void stop_nobody(void)
{
    strand_actor_stop((strand_actor){{0, 0}}, STRAND_STOP_NEXT);
}

static void suspend_nobody(void)
{
    strand_actor_suspend((strand_actor){{0, 0}});
}

static void self_nobody(void)
{
    strand_actor_self();
}

static void ended_nobody(void)
{
    strand_actor_ended((strand_actor){{0, 0}});
}

static void path_nobody(void)
{
    strand_actor_path((strand_actor){{0, 0}}, NULL, 0);
}

static void watch_nobody(void)
{
    strand_actor_watch((strand_actor){{0, 0}});
}

static void reply_nobody(void)
{
    STRAND_IGNORE(strand_reply(&mine, STRAND_MSG(number, 1)));
}

static void open_nothing(void)
{
    STRAND_ACTORS(system, NULL);
}

static const struct {
    const char *name;
    void (*call)(void);
} outsides[] = {
    {"outside:strand_actor_stop", stop_nobody}, {"outside:strand_actor_suspend", suspend_nobody},
    {"outside:strand_actor_self", self_nobody}, {"outside:strand_actor_ended", ended_nobody},
    {"outside:strand_actor_path", path_nobody}, {"outside:strand_actor_watch", watch_nobody},
    {"outside:strand_reply", reply_nobody},     {"outside:STRAND_ACTORS", open_nothing},
};

static const struct {
    const char *name;
    strand_fn *root;
} cases[] = {
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    ROW(watch_outside),
    ROW(unwatch_outside),
    ROW(become_outside),
    ROW(unbecome_outside),
    ROW(unstash_outside),
    ROW(timer_outside),
    ROW(timer_stop_outside),
    ROW(receive_timeout_outside),
    ROW(spawn_child_outside),
    ROW(scope_outside),
    ROW(join_by_another),
    ROW(take_another),
    ROW(forward_twice),
    ROW(forward_what_was_taken),
    ROW(stash_another),
    ROW(unhandle_another),
    ROW(unbecome_nothing),
    ROW(become_nothing),
    ROW(spawn_of_no_class),
    ROW(spawn_of_a_class_without_a_size),
    ROW(spawn_of_a_class_that_receives_nothing),
    ROW(spawn_with_an_attr_without_a_size),
    ROW(spawn_with_no_arguments),
    ROW(spawn_a_child_of_no_class),
    ROW(open_without_a_size),
    ROW(open_with_a_dispatcher_without_a_size),
    ROW(open_with_a_dispatcher_without_a_name),
    ROW(router_without_a_size),
    ROW(router_of_nobody),
    ROW(router_of_no_class),
    ROW(router_without_a_hash),
    ROW(router_with_no_arguments),
    ROW(router_by_no_route),
    ROW(spawn_of_a_class_that_is_full_in_no_way),
    ROW(stop_in_no_way),
    ROW(reply_to_nothing),
    ROW(path_into_nothing),
    ROW(timer_of_no_type),
    ROW(timer_of_no_body),
    ROW(open_without_the_dispatchers),
    ROW(open_with_a_dispatcher_below_zero),
    ROW(run_nothing),
    ROW(give_nothing),
    ROW(find_no_path),
    ROW(ask_into_nothing),
    ROW(ask_for_nothing),
    ROW(ask_by_no_type),
    ROW(ask_by_no_body),
    ROW(forward_no_message),
    ROW(take_no_message),
    ROW(stash_no_message),
    ROW(leave_no_message),
    ROW(spawn_in_a_system_that_is_gone),
    ROW(stop_a_system_that_is_gone),
    ROW(find_in_no_system),
    ROW(subscribe_to_a_system_that_is_gone),
    ROW(ask_itself),
    ROW(wait_for_itself),
    ROW(keep_a_mutex),
    ROW(decide_nonsense),
    ROW(send_what_is_owned_again_and_again),
    ROW(suspend_in_a_drop),
    ROW(throw_in_a_drop),
    ROW(watch_in_a_drop),
    ROW(suspend_in_a_priority),
    ROW(wait_for_room_in_a_section),
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    strand_options options = {.size = sizeof options, .on_misuse = tell, .hook_arg = "told"};
    for (size_t i = 0; i < sizeof outsides / sizeof *outsides; i++)
        if (strcmp(name, outsides[i].name) == 0)
            outsides[i].call();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0)
            strand_run(&options, cases[i].root, NULL);
    puts("still alive");
    return 0;
}
