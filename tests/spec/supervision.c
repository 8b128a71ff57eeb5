/*
 * What becomes of actors that fail.
 */
#define SUITE supervision
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(say, { char c; });
STRAND_MESSAGE(fail, { int left; });

static strand_event done;

static void begin(void)
{
    done = (strand_event){{0}};
}

struct child {
    char name, count;
};

static void log_start(void *state, const void *args)
{
    struct child *me = state;
    me->name = *(const char *)args;
    test_log("%c+", me->name);
}

static void log_stop(void *state)
{
    test_log("%c-", ((struct child *)state)->name);
}

static void be_child(void *state, strand_message *message)
{
    struct child *me = state;
    const say *s = STRAND_IS(message, say);
    if (!s)
        strand_throw(&TEST_ERROR, "%c failed", me->name);
    test_log("%c%c%d", me->name, s->c, ++me->count);
    if (s->c == '.')
        strand_event_set(&done);
}

static const strand_actor_class child_class = {.size = sizeof child_class,
                                               .name = "child",
                                               .state_size = sizeof(struct child),
                                               .receive = be_child,
                                               .start = log_start,
                                               .stop = log_stop};

static enum strand_directive directive;

static enum strand_directive decide(void *state, strand_actor child, const strand_exception *why)
{
    (void)state;
    CHECK_KIND(why, &TEST_ERROR);
    CHECK_CONTAINS(strand_exception_text(why), "failed");
    CHECK(child.bits[1] != 0);
    test_log("!");
    return directive;
}

static strand_actor child;

static void be_parent(void *state, strand_message *message)
{
    (void)state;
    if (!child.bits[1])
        child = strand_actor_spawn_child(NULL, &child_class, "c", 1);
    strand_message_forward(message, child);
}

static const strand_actor_class parent_class = {
    .size = sizeof parent_class, .name = "parent", .receive = be_parent, .decide = decide};

/* Say 1, fail, say 2. */
static void run_with(enum strand_directive what)
{
    begin();
    child = (strand_actor){{0, 0}};
    directive = what;
    STRAND_ACTORS(system, NULL);
    strand_actor parent = strand_actor_spawn(system, NULL, &parent_class, NULL, 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(say, 'x')), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(say, '.')), 0);
    if (what == STRAND_STOP)
        strand_actors_join(system);
    else
        strand_event_wait(&done);
}

/* */
TEST_INSIDE(a_restarted_actor_has_a_fresh_state_and_keeps_its_messages)
{
    run_with(STRAND_RESTART);
    CHECK_LOG("c+ cx1 ! c- c+ c.1 c-");
}

/* */
TEST_INSIDE(an_actor_that_is_resumed_goes_on_with_its_state)
{
    run_with(STRAND_RESUME);
    CHECK_LOG("c+ cx1 ! c.2 c-");
}

/* */
TEST_INSIDE(an_actor_that_is_stopped_handles_no_more)
{
    run_with(STRAND_STOP);
    CHECK_LOG("c+ cx1 ! c-");
}

static int lives;

static void count_life(void *state, const void *args)
{
    (void)state, (void)args;
    lives++;
}

static void put_aside_in_the_first_life(void *state, strand_message *message)
{
    (void)state;
    const say *s = STRAND_IS(message, say);
    if (!s)
        strand_throw(&TEST_ERROR, "failed");
    if (lives == 1 && s->c == 'x')
        strand_message_stash(message);
    else
        test_log("%c", s->c);
    if (s->c == '.')
        strand_event_set(&done);
}

static const strand_actor_class hoarder = {
    .size = sizeof hoarder, .name = "hoarder", .receive = put_aside_in_the_first_life, .start = count_life};

/* */
TEST_INSIDE(stashed_messages_come_first_after_a_restart)
{
    begin();
    lives = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &hoarder, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, 'x')), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '1')), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '2')), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '.')), 0);
    strand_event_wait(&done);
    CHECK_LOG("1 x 2 .");
}

/* ---- escalation -------------------------------------------------------------------------------------------- */

static enum strand_directive give_up(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    return STRAND_ESCALATE;
}

static void fail_at_once(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_throw(&TEST_ERROR, "deep down");
}

static const strand_actor_class hopeless = {.size = sizeof hopeless, .name = "hopeless", .receive = fail_at_once};

static void spawn_the_hopeless(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, say))
        strand_event_set(&done);
    else
        strand_tell(strand_actor_spawn_child(NULL, &hopeless, NULL, 0), STRAND_MSG(fail));
}

static void log_parent(void *state)
{
    (void)state;
    test_log("p-");
}

static const strand_actor_class weak = {
    .size = sizeof weak, .name = "weak", .receive = spawn_the_hopeless, .decide = give_up, .stop = log_parent};

/* contract 6.4 */
TEST_INSIDE(an_escalated_failure_is_the_supervisors_own)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &weak, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    while (!test_log_is("p-")) /* the guardian restarts it */
        strand_yield();
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '.')), 0);
    strand_event_wait(&done);
}

TEST_INSIDE(the_children_of_an_actor_that_is_restarted_are_stopped_first)
{
    begin();
    child = (strand_actor){{0, 0}};
    directive = STRAND_ESCALATE;
    STRAND_ACTORS(system, NULL);
    strand_actor parent = strand_actor_spawn(system, NULL, &parent_class, NULL, 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(say, 'x')), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(fail)), 0);
    while (!test_log_is("c+ cx1 ! c-"))
        strand_yield();
    CHECK(strand_actor_ended(child) || !strand_actor_ended(parent));
    child = (strand_actor){{0, 0}};
    CHECK_EQ(strand_tell(parent, STRAND_MSG(say, '.')), 0);
    strand_event_wait(&done);
}

enum { CHILDREN = 100 };

static strand_actor children[CHILDREN];
static _Atomic int born;

static void end_at_once(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

static const strand_actor_class brief = {.size = sizeof brief, .name = "brief", .receive = end_at_once};

static void have_children(void *state, strand_message *message)
{
    (void)state, (void)message;
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = strand_actor_spawn_child(NULL, &brief, NULL, 0);
        born++;
    }
}

static const strand_actor_class fertile = {.size = sizeof fertile, .name = "fertile", .receive = have_children};

/* Its walk through them meets some that have just left, whose memory others get. */
/* contract 6.4 */
TEST_RACE(an_actor_is_stopped_while_its_children_end)
{
    strand_actor others[CHILDREN / 2];
    STRAND_ACTORS(system, NULL);
    for (int round = 0; round < test_scale(10); round++) {
        born = 0;
        strand_actor parent = strand_actor_spawn(system, NULL, &fertile, NULL, 0);
        CHECK_EQ(strand_tell(parent, STRAND_MSG(fail)), 0);
        test_yield_until(&born, CHILDREN);
        CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
        for (int i = 0; i < CHILDREN; i++) {
            (void)strand_tell(children[i], STRAND_MSG(fail));
            if (i % 2)
                others[i / 2] = strand_actor_spawn(system, NULL, &fertile, NULL, 0);
            if (i % 8 == 7)
                strand_yield();
        }
        CHECK_EQ(strand_actor_wait(parent), 0);
        for (int i = 0; i < CHILDREN; i++)
            CHECK(strand_actor_ended(children[i]));
        for (int i = 0; i < CHILDREN / 2; i++) {
            CHECK(!strand_actor_ended(others[i]));
            CHECK_EQ(strand_actor_stop(others[i], STRAND_STOP_NEXT), 0);
        }
    }
}

/* ---- how often, and siblings ------------------------------------------------------------------------------- */

static const strand_actor_class limited = {.size = sizeof limited,
                                           .name = "limited",
                                           .receive = be_parent,
                                           .decide = decide,
                                           .max_restarts = 2,
                                           .restarts_within_ns = STRAND_S};

/* */
TEST_INSIDE(a_child_that_is_restarted_too_often_is_stopped)
{
    begin();
    child = (strand_actor){{0, 0}};
    directive = STRAND_RESTART;
    STRAND_ACTORS(system, NULL);
    strand_actor parent = strand_actor_spawn(system, NULL, &limited, NULL, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(parent, STRAND_MSG(fail)), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(child));
    CHECK_LOG("c+ ! c- c+ ! c- c+ ! c-");
}

static const strand_actor_class slow = {.size = sizeof slow,
                                        .name = "slow",
                                        .receive = be_parent,
                                        .backoff_ns = 20 * STRAND_MS,
                                        .max_backoff_ns = 40 * STRAND_MS};

/* contract 6.4 */
TEST_INSIDE(restarts_may_be_put_off_longer_each_time)
{
    begin();
    child = (strand_actor){{0, 0}};
    STRAND_ACTORS(system, NULL);
    strand_actor parent = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    int64_t begun = strand_now().ns;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(parent, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(say, '.')), 0);
    strand_event_wait(&done);
    CHECK(strand_now().ns - begun >= (20 + 40 + 40) * STRAND_MS);
    CHECK_LOG("c+ c- c+ c- c+ c- c+ c.1");
}

STRAND_MESSAGE(more, { char name; });

static void be_one_for_all(void *state, strand_message *message)
{
    strand_actor *last = state;
    const more *m = STRAND_IS(message, more);
    if (m)
        *last = strand_actor_spawn_child(NULL, &child_class, &m->name, 1);
    else
        strand_message_forward(message, *last);
}

static const strand_actor_class united = {.size = sizeof united,
                                          .name = "united",
                                          .state_size = sizeof(strand_actor),
                                          .receive = be_one_for_all,
                                          .all_for_one = true};

/* The two restart beside each other, so only the order of each one's words is certain. */
/* */
TEST_INSIDE(a_directive_for_one_child_may_apply_to_all)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor parent = strand_actor_spawn(system, NULL, &united, NULL, 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(more, 'a')), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(more, 'b')), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(fail)), 0);
    strand_actors_join(system);
    CHECK_LOG_OF('a', "a+ a- a+");
    CHECK_LOG_OF('b', "b+ b- b+");
}

static const enum strand_directive *directives;
static _Atomic int decisions;

static enum strand_directive decide_in_turn(void *state, strand_actor failed, const strand_exception *why)
{
    (void)state, (void)failed, (void)why;
    return directives[decisions++];
}

static strand_actor pair[2];

/* The parent decides after this function: about both failures together, or one after the other. */
static void fail_both(void *state, strand_message *message)
{
    (void)state, (void)message;
    for (int i = 0; i < 2; i++) {
        pair[i] = strand_actor_spawn_child(NULL, &child_class, i ? "b" : "a", 1);
        CHECK_EQ(strand_tell(pair[i], STRAND_MSG(fail)), 0);
    }
}

TEST_INSIDE(a_stop_of_all_outweighs_a_restart_of_all)
{
    static const strand_actor_class class = {
        .size = sizeof class, .name = "torn", .receive = fail_both, .decide = decide_in_turn, .all_for_one = true};
    static const enum strand_directive orders[][2] = {{STRAND_RESTART, STRAND_STOP}, {STRAND_STOP, STRAND_RESTART}};
    for (int i = 0; i < 2; i++) {
        begin();
        directives = orders[i];
        decisions = 0;
        STRAND_ACTORS(system, NULL);
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &class, NULL, 0), STRAND_MSG(fail)), 0);
        strand_actors_join(system);
        CHECK(strand_actor_ended(pair[0]) && strand_actor_ended(pair[1]));
    }
}

static void *run_a_failing_system(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &hopeless, NULL, 0);
    for (;;) {
        (void)strand_tell(a, STRAND_MSG(fail));
        strand_sleep(STRAND_MS);
    }
    return arg;
}

/* It fails more often than the guardian restarts it. */
/* contract 6.4 */
TEST_INSIDE(an_unhandled_failure_is_the_owners_failure)
{
    strand_exception *e = strand_try(run_a_failing_system, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "deep down");
    strand_exception_release(e);
}

static void start_badly(void *state, const void *args)
{
    (void)state, (void)args;
    test_log("start");
    strand_throw(&TEST_ERROR, "at the start");
}

static const strand_actor_class stillborn = {
    .size = sizeof stillborn, .name = "stillborn", .receive = fail_at_once, .start = start_badly};

static void spawn_stillborn(void *state, strand_message *message)
{
    (void)state, (void)message;
    child = strand_actor_spawn_child(NULL, &stillborn, NULL, 0);
}

static const strand_actor_class mother = {
    .size = sizeof mother, .name = "mother", .receive = spawn_stillborn, .max_restarts = 2};

/* contract 6.4 */
TEST_INSIDE(an_actor_that_fails_while_it_is_restarted_has_failed_again)
{
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &mother, NULL, 0), STRAND_MSG(fail)), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(child));
    CHECK_LOG("start start start");
}
