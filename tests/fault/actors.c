/*
 * Actors, in three workloads: they send to each other; they end and are watched; they get messages from clocks,
 * routers, dispatchers and plain threads. Whatever fails: a message that was sent is handled or dropped once, and one
 * that was not sent stays the sender's; a promised notice arrives; a living actor handles all its messages; the system
 * ends.
 */
#include "fault.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 600, SENDERS = 4, EACH = 6 };

static struct {
    strand_actors system;
    _Atomic int letters, failed; /* failed: something was thrown in an actor, which has lost its message */
    struct {
        _Atomic int accepted, handled, dropped;
        bool lives; /* its receiver is not stopped */
    } letter[LETTERS];
    _Atomic int watched, notices, ticks, idle;
    strand_event done;
} world;

static const strand_kind on_purpose = STRAND_KIND("on-purpose", &STRAND_ERROR);

static void drop_letter(void *body)
{
    int n;
    memcpy(&n, body, sizeof n);
    FAULT_CHECK(world.letter[n].dropped++ == 0);
}

static void drop_given(void *body)
{
    drop_letter(body);
    free(body);
}

STRAND_MESSAGE_WITH(letter, drop_letter, { int n; });
STRAND_MESSAGE_WITH(parcel, drop_given, { int n; });
STRAND_MESSAGE(order, { strand_actor whom; });
STRAND_MESSAGE(answer, { int n; });
STRAND_MESSAGE(letter_free, { int n; });

/* ---- sending ------------------------------------------------------------------------------------------------------
 */

static int new_letter(bool lives)
{
    int n = world.letters++;
    FAULT_CHECK(n < LETTERS);
    world.letter[n].lives = lives;
    return n;
}

static int note(int n, int error)
{
    FAULT_CHECK(error == 0 || error == -ENOMEM || error == -EPIPE || error == -EAGAIN);
    world.letter[n].accepted = !error || error == -EPIPE;
    return error == -EPIPE || error == -EAGAIN ? 0 : error;
}

static int send(strand_actor to, bool lives)
{
    int n = new_letter(lives);
    return note(n, strand_tell(to, STRAND_MSG(letter, n)));
}

static int give(strand_actor to)
{
    parcel *body = malloc(sizeof *body);
    FAULT_CHECK(body != NULL);
    int n = body->n = new_letter(true);
    int error = note(n, strand_actor_give(to, &parcel_message, body));
    if (!world.letter[n].accepted)
        free(body);
    return error;
}

static void check_all_handled(void)
{
    for (int i = 0; i < world.letters && !world.failed; i++)
        FAULT_CHECK(!world.letter[i].lives || world.letter[i].handled == world.letter[i].accepted);
}

static void check_all_dropped(strand_actors *none)
{
    (void)none;
    for (int i = 0; i < world.letters; i++)
        FAULT_CHECK(world.letter[i].dropped == world.letter[i].accepted);
    FAULT_CHECK(world.notices <= world.watched);
}

/* ---- actors ---------------------------------------------------------------------------------------------------------
 */

static void read_letter(strand_message *message)
{
    if (message->type == &letter_message || message->type == &parcel_message)
        world.letter[((const letter *)message->body)->n].handled++;
}

static void note_failure(int *failed)
{
    world.failed += *failed;
}

/* In an actor: whatever is thrown from here on loses its message. */
#define MAY_FAIL int may_fail __attribute__((cleanup(note_failure))) = 1
#define HAS_NOT_FAILED may_fail = 0

static void be_reader(void *state, strand_message *message)
{
    (void)state;
    read_letter(message);
    if (STRAND_IS(message, order))
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, 1)));
}

static unsigned by_number(const strand_message *message)
{
    return message->type == &letter_message ? (unsigned)((const letter *)message->body)->n % 5 : 0;
}

static const strand_actor_class
    reader = {.size = sizeof reader, .name = "reader", .receive = be_reader},
    large = {.size = sizeof large, .name = "large", .receive = be_reader, .state_size = 9999},
    narrow = {.size = sizeof narrow, .name = "narrow", .receive = be_reader, .max_mailbox = 2},
    refusing = {.size = sizeof refusing,
                .name = "refusing",
                .receive = be_reader,
                .max_mailbox = 2,
                .mailbox_full = STRAND_MAILBOX_FULL_FAIL},
    forgetful = {.size = sizeof forgetful,
                 .name = "forgetful",
                 .receive = be_reader,
                 .max_mailbox = 2,
                 .mailbox_full = STRAND_MAILBOX_FULL_OLDEST},
    choosy = {.size = sizeof choosy, .name = "choosy", .receive = be_reader, .priority = by_number};

/* Puts letters aside until it gets a parcel. */
static void be_stasher(void *state, strand_message *message)
{
    (void)state;
    MAY_FAIL;
    if (STRAND_IS(message, parcel)) {
        strand_actor_become(be_reader);
        (void)strand_actor_unstash_all();
        read_letter(message);
    } else {
        strand_message_stash(message);
    }
    HAS_NOT_FAILED;
}

static const strand_actor_class stasher = {.size = sizeof stasher, .name = "stasher", .receive = be_stasher};

/* Passes all on to a child, which it makes when it gets the first. */
static void be_parent(void *state, strand_message *message)
{
    strand_actor *child = state;
    MAY_FAIL;
    if (!child->bits[1])
        *child = strand_actor_spawn_child(STRAND_ACTOR_ATTR(.name = "child"), &reader, NULL, 0);
    strand_must(strand_message_forward(message, *child));
    HAS_NOT_FAILED;
}

static const strand_actor_class parent = {
    .size = sizeof parent, .name = "parent", .state_size = sizeof(strand_actor), .receive = be_parent};

/* ---- those that send ------------------------------------------------------------------------------------------------
 */

static void *be_sender(void *actor)
{
    for (int i = 0; i < EACH; i++)
        strand_must(send(*(strand_actor *)actor, true));
    return NULL;
}

static void send_from_strands(const strand_actor_class *class)
{
    static strand_actor to;
    to = strand_actor_spawn(world.system, NULL, class, NULL, 0);
    STRAND_SCOPE(scope);
    for (int i = 0; i < SENDERS; i++)
        strand_spawn(scope, be_sender, &to);
    strand_scope_join(scope);
    for (int i = 0; i < EACH; i++)
        strand_must(give(to));
}

static void send_to_one_that_refuses(const strand_actor_class *class)
{
    strand_actor to = strand_actor_spawn(world.system, NULL, class, NULL, 0);
    for (int i = 0; i < EACH; i++)
        strand_must(send(to, false));
}

static void send_to_many(void)
{
    char name[] = "a";
    for (int i = 0; i < 20; i++, name[0]++) {
        strand_actor to = strand_actor_spawn(world.system, STRAND_ACTOR_ATTR(.name = name), &reader, NULL, 0);
        strand_must(send(to, true));
    }
    FAULT_CHECK(strand_actor_find(world.system, "/user/b").bits[1]);
}

static void put_aside(void)
{
    strand_actor to = strand_actor_spawn(world.system, NULL, &stasher, NULL, 0);
    for (int i = 0; i < EACH; i++)
        strand_must(send(to, false)); /* what it puts aside is lost if it fails */
    strand_must(give(to));
}

static void ask_one(void)
{
    answer got = {0};
    strand_actor to = strand_actor_spawn(world.system, NULL, &reader, NULL, 0);
    STRAND_DEADLINE(strand_in(STRAND_S));
    int error = strand_ask(to, STRAND_MSG(order, to), STRAND_INTO(answer, &got));
    FAULT_CHECK(error || got.n == 1);
    strand_must(error);
}

static void begin(void)
{
    memset(&world, 0, sizeof world);
}

static void *send_all(void *arg)
{
    strand_actors none __attribute__((cleanup(check_all_dropped))) = {{0, 0}};
    (void)arg;
    begin();
    STRAND_ACTORS(system, NULL);
    world.system = system;
    send_to_many();
    send_from_strands(&reader);
    send_from_strands(&large);
    send_from_strands(&narrow);
    send_from_strands(&choosy);
    send_from_strands(&parent);
    send_to_one_that_refuses(&refusing);
    send_to_one_that_refuses(&forgetful);
    put_aside();
    ask_one();
    strand_actors_join(system);
    check_all_handled();
    return FAULT_DONE;
}

FAULT_WORKLOAD(actors, RUN_ANY, send_all, )

/* ---- those that end
 * -------------------------------------------------------------------------------------------------- */

static void be_watcher(void *state, strand_message *message)
{
    (void)state;
    MAY_FAIL;
    const order *o = STRAND_IS(message, order);
    if (STRAND_IS(message, strand_terminated)) {
        world.notices++;
    } else if (o) {
        strand_must(strand_actor_watch(o->whom));
        world.watched++;
    }
    HAS_NOT_FAILED;
}

static const strand_actor_class watcher = {.size = sizeof watcher, .name = "watcher", .receive = be_watcher};

/* A system that is left because of something else stops who watches, too. */
static void watch_some(void)
{
    enum { MANY = 8 };
    strand_actor who = strand_actor_spawn(world.system, NULL, &watcher, NULL, 0), whom[MANY];
    world.watched = world.notices = 0;
    for (int i = 0; i < MANY; i++) {
        whom[i] = strand_actor_spawn(world.system, NULL, &reader, NULL, 0);
        strand_must(strand_tell(who, STRAND_MSG(order, whom[i])));
    }
    strand_actors_join(world.system);
    for (int i = 0; i < MANY; i++)
        strand_must(strand_actor_stop(whom[i], i % 2 ? STRAND_STOP_LAST : STRAND_STOP_NEXT));
    for (int i = 0; i < MANY; i++)
        strand_must(strand_actor_wait(whom[i]));
    strand_actors_join(world.system);
    FAULT_CHECK(world.failed || world.notices == world.watched);
}

/* Fails, by letters, and in its start by chance of memory. */
static void *start_it(void *arg)
{
    return arg;
}

static void start(void *state, const void *args)
{
    (void)args;
    MAY_FAIL;
    *(void **)state = strand_join(strand_spawn(strand_actor_scope(), start_it, state));
    HAS_NOT_FAILED;
}

static void stop(void *state)
{
    FAULT_CHECK(*(void **)state == state);
}

static void be_weak(void *state, strand_message *message)
{
    FAULT_CHECK(*(void **)state == state);
    read_letter(message);
    if (STRAND_IS(message, order))
        strand_throw(&on_purpose, "as told");
}

static enum strand_directive pass_up(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child;
    return strand_exception_is(why, &on_purpose) ? STRAND_RESTART : STRAND_ESCALATE;
}

static const strand_actor_class weak = {.size = sizeof weak,
                                        .name = "weak",
                                        .state_size = sizeof(void *),
                                        .receive = be_weak,
                                        .start = start,
                                        .stop = stop};

static void be_supervisor(void *state, strand_message *message)
{
    strand_actor *child = state;
    MAY_FAIL;
    if (!child->bits[1])
        *child = strand_actor_spawn_child(NULL, &weak, NULL, 0);
    strand_must(strand_message_forward(message, *child));
    HAS_NOT_FAILED;
}

static const strand_actor_class supervisor = {.size = sizeof supervisor,
                                              .name = "supervisor",
                                              .state_size = sizeof(strand_actor),
                                              .receive = be_supervisor,
                                              .decide = pass_up,
                                              .max_restarts = 4,
                                              .backoff_ns = 10 * STRAND_US},
                                united = {.size = sizeof united,
                                          .name = "united",
                                          .state_size = sizeof(strand_actor),
                                          .receive = be_supervisor,
                                          .all_for_one = true};

/* One that can't report its failure, because there is no memory for that, is stopped. */
static void fail_and_go_on(const strand_actor_class *class)
{
    strand_actor to = strand_actor_spawn(world.system, NULL, class, NULL, 0);
    for (int i = 0; i < 3; i++) {
        strand_must(send(to, false));
        strand_must(strand_tell(to, STRAND_MSG(order, to)));
    }
    strand_must(send(to, false));
    strand_actors_join(world.system);
}

static void count_events(void *state, strand_message *message)
{
    (void)state;
    FAULT_CHECK(STRAND_IS(message, strand_published));
    world.ticks++;
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = count_events};

static void listen(void)
{
    strand_actor l = strand_actor_spawn(world.system, NULL, &listener, NULL, 0);
    strand_must(strand_actors_subscribe(world.system, l, 63));
    strand_actor to = strand_actor_spawn(world.system, NULL, &reader, NULL, 0);
    strand_must(strand_actor_stop(to, STRAND_STOP_NOW));
    strand_must(strand_actor_wait(to));
    strand_must(send(to, false));
    strand_actors_join(world.system);
}

static void *end_all(void *arg)
{
    strand_actors none __attribute__((cleanup(check_all_dropped))) = {{0, 0}};
    (void)arg;
    begin();
    STRAND_ACTORS(system, NULL);
    world.system = system;
    watch_some();
    fail_and_go_on(&supervisor);
    fail_and_go_on(&united);
    listen();
    check_all_handled();
    return FAULT_DONE;
}

static void keep_silent(const char *message, void *arg)
{
    (void)message, (void)arg;
}

FAULT_WORKLOAD(actor_ends, RUN_ANY, end_all, .options.on_log = keep_silent)

/* ---- told by others
 * ---------------------------------------------------------------------------------------------------- */

enum { TICKS = 3 };

/* An actor that can't report that it has failed, or be restarted, has ended. */
static void must_tell(int error)
{
    strand_must(error == -EPIPE ? 0 : error);
}

/* At an order it sets its clocks, and counts what they send. */
static void be_timed(void *state, strand_message *message)
{
    static const char once, again;
    (void)state;
    MAY_FAIL;
    if (STRAND_IS(message, order)) {
        strand_must(strand_actor_timer(&once, 50 * STRAND_US, 0, STRAND_MSG(answer, 1)));
        world.ticks--;
        strand_must(strand_actor_timer(&again, 10 * STRAND_US, 20 * STRAND_US, STRAND_MSG(letter_free, 1)));
        world.idle--;
    } else if (STRAND_IS(message, answer)) {
        if (++world.ticks == 0)
            strand_must(strand_actor_receive_timeout(10 * STRAND_US));
    } else if (STRAND_IS(message, letter_free)) {
        if (++world.idle == TICKS)
            strand_actor_timer_stop(&again);
    } else if (STRAND_IS(message, strand_receive_timeout)) {
        strand_must(strand_actor_receive_timeout(0));
    }
    HAS_NOT_FAILED;
}

static const strand_actor_class timed = {.size = sizeof timed, .name = "timed", .receive = be_timed};

static void wait_for_clocks(void)
{
    world.ticks = world.idle = 0;
    strand_actor to = strand_actor_spawn(world.system, NULL, &timed, NULL, 0);
    must_tell(strand_tell(to, STRAND_MSG(order, to)));
    strand_actors_join(world.system); /* the clock keeps it from being quiet */
    FAULT_CHECK(world.failed || (world.ticks == 0 && world.idle >= TICKS - 1));
}

static uint64_t by_letter(const strand_message *message)
{
    return (uint64_t)((const letter *)message->body)->n;
}

static void route(enum strand_route how)
{
    long args[4] = {1, 2, 3, 4};
    strand_actor to = strand_router_spawn(world.system, STRAND_ACTOR_ATTR(.name = "router"),
                                          STRAND_ROUTER(.route = how, .count = 3, .class_ = &reader, .args = args,
                                                        .size_of_args = sizeof args, .hash = by_letter));
    for (int i = 0; i < EACH; i++)
        must_tell(how == STRAND_ROUTE_ALL ? strand_tell(to, STRAND_MSG(letter_free, i)) : send(to, false));
    strand_actors_join(world.system);
    strand_must(strand_actor_restart(to));
    must_tell(strand_tell(to, STRAND_MSG(letter_free, 1)));
    strand_actors_join(world.system);
    strand_must(strand_actor_stop(to, STRAND_STOP_NEXT));
    strand_must(strand_actor_wait(to));
}

static void *return_arg(void *arg)
{
    return arg;
}

static void dispatch(const char *name)
{
    strand_actor to = strand_actor_spawn(world.system, STRAND_ACTOR_ATTR(.dispatcher = name), &reader, NULL, 0);
    for (int i = 0; i < EACH; i++)
        strand_must(send(to, true));
    strand_must(strand_actors_run(world.system, name, return_arg, NULL));
}

static void *tell_from_outside(void *actor)
{
    for (int i = 0; i < EACH; i++) {
        (void)send(*(strand_actor *)actor, false);
        (void)give(*(strand_actor *)actor);
    }
    return NULL;
}

static void be_told_from_outside(void)
{
    pthread_t thread;
    strand_actor to = strand_actor_spawn(world.system, NULL, &reader, NULL, 0);
    FAULT_CHECK(pthread_create(&thread, NULL, tell_from_outside, &to) == 0);
    pthread_join(thread, NULL);
}

static void *tell_all(void *arg)
{
    strand_actors none __attribute__((cleanup(check_all_dropped))) = {{0, 0}};
    static const strand_dispatcher own[] = {
        {.size = sizeof *own, .name = "own", .executor = "fork-join-executor", .threads = 1, .max_batch = 2},
        {.size = sizeof *own, .name = "tasks", .executor = "task-executor", .threads = 2}};
    (void)arg;
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.name = "told", .dispatchers = own, .dispatchers_count = 2));
    world.system = system;
    wait_for_clocks();
    for (int how = STRAND_ROUTE_IN_TURN; how <= STRAND_ROUTE_HASH; how++)
        route((enum strand_route)how);
    dispatch("own");
    dispatch("tasks");
    dispatch("fork-join-executor");
    dispatch("current-context-executor");
    be_told_from_outside();
    strand_actors_join(system);
    check_all_handled();
    return FAULT_DONE;
}

FAULT_WORKLOAD(actor_places, RUN_ANY, tell_all, .options.on_log = keep_silent)
