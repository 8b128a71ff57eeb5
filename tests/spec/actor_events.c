/*
 * Events of a system of actors, and their subscribers.
 */
#define _GNU_SOURCE
#define SUITE actor_events
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

STRAND_MESSAGE(say, { char what; });
STRAND_MESSAGE(more, { char what; });
STRAND_MESSAGE(fail, { char none; });

static strand_event done;
static strand_actor about, someone;
static const char *about_class;

static void hear_nothing(void *state, strand_message *message)
{
    (void)state, (void)message;
}

static const strand_actor_class deaf = {.size = sizeof deaf, .name = "deaf", .receive = hear_nothing};

static void note_event(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    CHECK_EQ(p->actor.bits[1], about.bits[1]);
    CHECK_STR(p->class_name, p->path[0] ? about_class : "");
    CHECK(p->kind == STRAND_ACTOR_DEAD_LETTER || strcmp(p->path, "/user/picky") == 0);
    CHECK((p->why != NULL) == (p->kind == STRAND_ACTOR_FAILURE));
    CHECK_EQ(p->sender.bits[1], p->type ? someone.bits[1] : 0);
    switch (p->kind) {
    case STRAND_ACTOR_DEAD_LETTER:
        test_log("dead-%s", p->type->name);
        break;
    case STRAND_ACTOR_UNHANDLED:
        test_log("unhandled-%s", p->type->name);
        break;
    case STRAND_ACTOR_FAILURE:
        test_log("failed-%s", strand_exception_text(p->why));
        break;
    case STRAND_ACTOR_RESTART:
        test_log("restart");
        break;
    case STRAND_ACTOR_END:
        test_log("end");
        break;
    case STRAND_ACTOR_RECEIVE:
        test_log("%s-%s", p->unhandled ? "refused" : "received", p->type->name);
        break;
    }
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = note_event};

static void be_picky(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, fail))
        strand_throw(&TEST_ERROR, "again");
    if (STRAND_IS(message, more))
        strand_message_unhandled(message);
}

static const strand_actor_class picky = {
    .size = sizeof picky, .name = "picky", .receive = be_picky, .log_receives = true};

static void subscribe_and_tell(unsigned kinds, const char *words)
{
    STRAND_ACTORS(system, NULL);
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0),
                 a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "picky"), &picky, NULL, 0);
    about = a;
    about_class = "picky";
    someone = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "deaf"), &deaf, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, kinds), 0);
    CHECK_EQ(strand_tell_as(a, someone, STRAND_MSG(say, 'x')), 0);
    CHECK_EQ(strand_tell_as(a, someone, STRAND_MSG(more, 'x')), 0);
    CHECK_EQ(strand_tell_as(a, someone, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(someone, STRAND_MSG(say, 'x')), 0); /* its class does not have that told */
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_EQ(strand_tell_as(a, someone, STRAND_MSG(say, 'x')), -EPIPE);
    strand_actors_join(system);
    CHECK_EQ(strand_actors_subscribe(system, l, 0), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, 'x')), -EPIPE);
    strand_actors_join(system);
    CHECK_LOG(words);
    test_log_clear();
}

/* A-26 */
TEST_INSIDE(a_subscriber_gets_dead_letters)
{
    subscribe_and_tell(STRAND_ACTOR_DEAD_LETTER, "dead-say");
}

static void wait_and_quit(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_event_wait(&done);
    CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

static const strand_actor_class quitter = {.size = sizeof quitter, .name = "quitter", .receive = wait_and_quit};

/* Some were taken out of the mailbox together with the one in hand, some are in it still. */
/* A-26 */
TEST_INSIDE(a_subscriber_gets_the_messages_that_an_actor_leaves_unread)
{
    STRAND_ACTORS(system, NULL);
    done = (strand_event){{0}};
    someone = (strand_actor){{0, 0}};
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0),
                 a = about = strand_actor_spawn(system, NULL, &quitter, NULL, 0);
    about_class = "quitter";
    CHECK_EQ(strand_actors_subscribe(system, l, STRAND_ACTOR_DEAD_LETTER), 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '1')), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '2')), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    test_await_blocked("waits for event", 1);
    CHECK_EQ(strand_tell(a, STRAND_MSG(more, '3')), 0);
    strand_event_set(&done);
    strand_actors_join(system);
    CHECK_LOG("dead-say dead-more");
}

TEST_INSIDE(a_subscriber_gets_failures)
{
    subscribe_and_tell(STRAND_ACTOR_FAILURE | STRAND_ACTOR_RESTART | STRAND_ACTOR_END, "failed-again restart end");
}

/* A-24, A-25 */
TEST_INSIDE(a_subscriber_gets_received_messages)
{
    subscribe_and_tell(STRAND_ACTOR_RECEIVE | STRAND_ACTOR_UNHANDLED, "received-say unhandled-more refused-more");
}

/* ---- failures ------------------------------------------------------------------------------------------------ */

static _Atomic int failures;
static char logged[8192];

static void keep_log(const char *message, void *arg)
{
    (void)arg;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
}

static void run_and_keep_log(strand_fn *root)
{
    strand_options options = test_options();
    options.on_log = keep_log;
    logged[0] = '\0';
    strand_run(&options, root, NULL);
}

static void choke(void *state, strand_message *message)
{
    (void)state;
    failures++;
    strand_throw(&TEST_ERROR, STRAND_IS(message, strand_published) ? "by the news" : "by itself");
}

static const strand_actor_class choking = {.size = sizeof choking, .name = "choking", .receive = choke};

static void *subscribe_and_choke(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "a"), &choking, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, a, STRAND_ACTOR_FAILURE), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    strand_actors_join(system);
    return arg;
}

TEST(a_subscriber_does_not_get_its_own_failure_which_the_log_has)
{
    failures = 0;
    run_and_keep_log(subscribe_and_choke);
    CHECK_EQ(failures, 1);
    CHECK_CONTAINS(logged, "actor /user/a of class 'choking' has failed: test-error: by itself\n");
}

static void *choke_often(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "a"), &choking, NULL, 0);
    for (int i = 0; i < 20; i++)
        (void)strand_tell(a, STRAND_MSG(fail));
    strand_actors_join(system);
    return arg;
}

static void *fail_with_the_system(void *arg)
{
    CHECK_THROWS(choke_often, arg, &TEST_ERROR);
    return arg;
}

TEST(the_log_names_the_limit_of_restarts_that_ends_a_system)
{
    run_and_keep_log(fail_with_the_system);
    CHECK_CONTAINS(logged,
                   "actor /user of class 'guardian' has restarted /user/a 10 times in 60 s, its limit, and so the "
                   "system fails: give actors that fail often a parent whose class sets .max_restarts or "
                   ".decide: test-error: by itself\n");
}

static strand_actor weak;
static strand_actor_class strict = {.size = sizeof strict, .name = "strict", .max_restarts = 1};

static void spawn_a_choking_one(void *state, strand_message *message)
{
    (void)state;
    if (!weak.bits[1])
        weak = strand_actor_spawn_child(STRAND_ACTOR_ATTR(.name = "b"), &choking, NULL, 0);
    strand_message_forward(message, weak);
}

static void *choke_below_a_strict_one(void *arg)
{
    strict.receive = spawn_a_choking_one;
    weak = (strand_actor){{0, 0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "a"), &strict, NULL, 0);
    for (int i = 0; i < 3; i++)
        (void)strand_tell(a, STRAND_MSG(fail));
    strand_actors_join(system);
    return arg;
}

TEST(the_log_names_the_limit_of_restarts_that_stops_a_child)
{
    run_and_keep_log(choke_below_a_strict_one);
    CHECK_CONTAINS(logged, "actor /user/a of class 'strict' has restarted /user/a/b 1 time, its limit, and stops it: "
                           ".max_restarts and .restarts_within_ns of its class set the limit: test-error: by itself\n");
}

static void forget_a_child(void *state, strand_message *message)
{
    (void)message;
    strand_spawn(strand_actor_scope(), test_yield, state);
}

static const strand_actor_class forgetful = {
    .size = sizeof forgetful, .name = "forgetful", .receive = forget_a_child, .max_restarts = 1};

static void *forget_once(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "a"), &forgetful, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    strand_actors_join(system);
    return arg;
}

TEST(a_child_that_a_message_leaves_is_one_of_the_message_and_of_no_file_of_the_library)
{
    run_and_keep_log(forget_once);
    CHECK_CONTAINS(logged,
                   "class 'forgetful' has failed: live-strands: the scope of an actor's message was left with 1 "
                   "strand neither joined nor cancelled");
}

static void print_trace(void *state, strand_message *message)
{
    (void)state;
    int fd = memfd_create("trace", MFD_CLOEXEC);
    memset(logged, 0, sizeof logged);
    strand_exception_print(STRAND_IS(message, strand_published)->why, fd);
    CHECK(pread(fd, logged, sizeof logged - 1, 0) > 0);
    close(fd);
}

static const strand_actor_class printer = {.size = sizeof printer, .name = "printer", .receive = print_trace};

TEST_INSIDE(a_subscriber_gets_the_trace_of_a_failure)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &choking, NULL, 0),
                 p = strand_actor_spawn(system, NULL, &printer, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, p, STRAND_ACTOR_FAILURE), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    strand_actors_join(system);
    CHECK_CONTAINS(logged, "test-error: by itself\n");
    CHECK_CONTAINS(logged, "thrown in strand 'choking' #");
    CHECK_CONTAINS(logged, "at choke+0x");
}

static void fail_at_the_end(void *state)
{
    (void)state;
    strand_throw(&TEST_ERROR, "at the end");
}

static const strand_actor_class sore = {
    .size = sizeof sore, .name = "sore", .receive = hear_nothing, .stop = fail_at_the_end};

TEST_INSIDE(a_failure_while_an_actor_stops_is_published_too)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &sore, NULL, 0),
                 p = strand_actor_spawn(system, NULL, &printer, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, p, STRAND_ACTOR_FAILURE), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    strand_actors_join(system);
    CHECK_CONTAINS(logged, "test-error: at the end\n");
}
