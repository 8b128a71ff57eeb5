/*
 * A supervisor that waits for an actor that has failed and awaits the supervisor's decision: the supervisor's call
 * returns -EDEADLK. The supervisor is the failed actor's parent, or an actor above it to which the failure was
 * escalated.
 */
#define SUITE actor_deadlock
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(work, { int n; });
STRAND_MESSAGE(crash, { char none; });
STRAND_MESSAGE(hold, { char none; });
STRAND_MESSAGE(question, { char none; });
STRAND_MESSAGE(act, { int how; });
STRAND_MESSAGE(answer, { int error; });
STRAND_MESSAGE(make, { int depth, how; });
STRAND_MESSAGE(made, { strand_actor child; });

static strand_event go;
static _Atomic int handled, waits, failed;

static void begin(void)
{
    go = (strand_event){{0}};
    handled = waits = failed = 0;
}

/* ---- the child --------------------------------------------------------------------------------------------- */

static strand_actor kept;

static void be_child(void *state, strand_message *message)
{
    (void)state;
    const work *w = STRAND_IS(message, work);
    if (w && w->n == 1)
        kept = message->sender;
    if (STRAND_IS(message, crash) || (w && w->n == 0))
        strand_throw(&TEST_ERROR, "on request");
    if (STRAND_IS(message, hold)) {
        strand_event_wait(&go);
        strand_throw(&TEST_ERROR, "late");
    }
    handled++;
    if (STRAND_IS(message, question))
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, 0)));
}

static const strand_actor_class child = {.size = sizeof child, .name = "child", .receive = be_child, .max_mailbox = 1};

static const strand_actor_class roomy = {.size = sizeof roomy, .name = "child", .receive = be_child};

static unsigned level_of(const strand_message *message)
{
    return message->type == &question_message ? 5 : 3;
}

static const strand_actor_class sorted = {
    .size = sizeof sorted, .name = "child", .receive = be_child, .priority = level_of};

/* ---- actors between, which escalate ------------------------------------------------------------------------- */

enum { TELL, GIVE, FORWARD, ASK_FULL, ASK, ASK_SORTED, ASK_KEPT, WAIT, WAYS };

static strand_actor make_child(int how)
{
    return strand_actor_spawn_child(NULL, how == ASK_SORTED ? &sorted : how <= ASK_FULL ? &child : &roomy, NULL, 0);
}

static const strand_actor_class between;

static strand_actor make_below(int depth, int how, strand_actor *first)
{
    made got = {{{0, 0}}};
    if (!depth)
        return make_child(how);
    *first = strand_actor_spawn_child(NULL, &between, NULL, 0);
    CHECK_EQ(strand_ask(*first, STRAND_MSG(make, depth - 1, how), STRAND_INTO(made, &got)), 0);
    return got.child;
}

static void be_between(void *state, strand_message *message)
{
    (void)state;
    strand_actor first;
    const make *m = STRAND_IS(message, make);
    if (!m)
        strand_throw(&TEST_ERROR, "by itself");
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(made, make_below(m->depth, m->how, &first))));
}

static bool decides_itself;

static enum strand_directive escalate(void *state, strand_actor actor, const strand_exception *why)
{
    (void)state, (void)actor, (void)why;
    return decides_itself ? STRAND_RESUME : STRAND_ESCALATE;
}

static const strand_actor_class between = {
    .size = sizeof between, .name = "between", .receive = be_between, .decide = escalate};

/* ---- the parent -------------------------------------------------------------------------------------------- */

static strand_actor the_child;

static int wait_for(int how, strand_actor to, strand_message *message)
{
    static work given = {2};
    answer got = {0};
    int error;
    switch (how) {
    case TELL:
    case GIVE:
        do
            error = how == TELL ? strand_tell(to, STRAND_MSG(work, 2)) : strand_actor_give(to, &work_message, &given);
        while (!error);
        return error;
    case FORWARD:
        return strand_message_forward(message, to);
    case ASK_KEPT:
        return strand_ask(to, STRAND_MSG(work, 1), STRAND_INTO(answer, &got));
    case WAIT:
        return strand_actor_wait(to);
    default:
        return strand_ask(to, STRAND_MSG(question), STRAND_INTO(answer, &got));
    }
}

static bool early;
static int depth;          /* how many actors are between */
static bool fails_already; /* the first of them has failed by itself */

static void be_parent(void *state, strand_message *message)
{
    (void)state;
    const act *a = STRAND_IS(message, act);
    strand_actor first;
    the_child = make_below(depth, a->how, &first);
    if (fails_already) {
        CHECK_EQ(strand_tell(first, STRAND_MSG(crash)), 0);
        test_yield_until(&failed, 1);
    }
    if (a->how != ASK_KEPT)
        CHECK_EQ(strand_tell(the_child, STRAND_MSG(hold)), 0);
    if (early) {
        strand_event_set(&go);
        test_yield_until(&failed, 1 + depth + fails_already);
    }
    strand_actor asker = message->sender;
    waits = 1;
    int error = wait_for(a->how, the_child, message);
    strand_tell(asker, STRAND_MSG(answer, error));
}

static enum strand_directive resume_those_between(void *state, strand_actor actor, const strand_exception *why)
{
    (void)state, (void)actor, (void)why;
    return depth ? STRAND_RESUME : STRAND_RESTART;
}

static const strand_actor_class parent = {
    .size = sizeof parent, .name = "parent", .receive = be_parent, .decide = resume_those_between};

static void see_failures(void *state, strand_message *message)
{
    (void)state, (void)message;
    failed++;
}

static const strand_actor_class observer = {.size = sizeof observer, .name = "observer", .receive = see_failures};

static void observe_failures(strand_actors system)
{
    strand_actor eyes = strand_actor_spawn(system, NULL, &observer, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, eyes, STRAND_ACTOR_FAILURE), 0);
}

/* The child fails when its parent waits. */
static void *let_fail(void *arg)
{
    int how = (int)(intptr_t)arg;
    test_yield_until(&waits, 1);
    if (how == WAIT)
        test_await_blocked("waits for the end of actor", 1);
    else if (how <= ASK_FULL)
        test_await_blocked("waits for room in the mailbox of actor", 1);
    else
        test_await_blocked("waits for the answer of actor", 2); /* the test's own, too */
    if (how == ASK_KEPT)
        strand_tell(the_child, STRAND_MSG(crash));
    strand_event_set(&go);
    return NULL;
}

static void check_ways(void)
{
    for (int how = 0; how < WAYS; how++) {
        if (early && (how == ASK_KEPT || how == FORWARD || how == ASK_FULL)) /* there would be an answer, or room */
            continue;
        if (depth && how == FORWARD) /* the child has room before its parent has escalated */
            continue;
        begin();
        answer got = {0};
        STRAND_ACTORS(system, NULL);
        strand_actor a = strand_actor_spawn(system, NULL, &parent, NULL, 0);
        observe_failures(system);
        STRAND_SCOPE(scope);
        if (!early)
            strand_spawn(scope, let_fail, TEST_PTR(how));
        CHECK_EQ(strand_ask(a, STRAND_MSG(act, how), STRAND_INTO(answer, &got)), 0);
        CHECK_EQ(got.error, -EDEADLK);
        strand_scope_join(scope);
        /* The parent decides after that, and the child has restarted. */
        if (how != WAIT)
            CHECK_EQ(strand_ask(the_child, STRAND_MSG(question), STRAND_INTO(answer, &got)), 0);
    }
}

static void check_below(bool is_early)
{
    early = is_early;
    for (depth = 1; depth <= 3; depth++)
        for (int already = 0; already < 2; already++) {
            fails_already = already;
            check_ways();
        }
    depth = 0;
    fails_already = false;
}

/* contract 6.4 */
TEST_INSIDE(a_parent_that_waits_for_its_child_gets_an_error_when_the_child_fails)
{
    early = false;
    check_ways();
}

TEST_INSIDE(a_parent_does_not_wait_for_a_child_that_has_failed)
{
    early = true;
    check_ways();
}

/* contract 6.4 */
TEST_INSIDE(an_actor_that_waits_for_one_below_gets_an_error_when_the_failure_of_that_one_is_escalated_to_it)
{
    check_below(false);
}

TEST_INSIDE(an_actor_does_not_wait_for_one_below_whose_failure_has_been_escalated_to_it)
{
    check_below(true);
}

/* ---- no deadlock ------------------------------------------------------------------------------------------- */

/* Stops or restarts the failed child, without a directive, and then waits for it. */
static void decide_by_hand(void *state, strand_message *message)
{
    (void)state;
    int how = STRAND_IS(message, act)->how;
    the_child = strand_actor_spawn_child(NULL, &roomy, NULL, 0);
    CHECK_EQ(strand_tell(the_child, STRAND_MSG(hold)), 0);
    strand_event_set(&go);
    test_yield_until(&failed, 1);
    if (how == WAIT)
        CHECK_EQ(strand_actor_stop(the_child, STRAND_STOP_NEXT), 0);
    else if (how == ASK)
        CHECK_EQ(strand_actor_restart(the_child), 0);
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, wait_for(how, the_child, message))));
}

static const strand_actor_class by_hand = {.size = sizeof by_hand, .name = "by hand", .receive = decide_by_hand};

TEST_INSIDE(a_parent_waits_for_a_failed_child_that_it_has_stopped_or_restarted)
{
    static const int ways[] = {WAIT, ASK};
    for (int i = 0; i < 2; i++) {
        begin();
        answer got = {0};
        STRAND_ACTORS(system, NULL);
        strand_actor a = strand_actor_spawn(system, NULL, &by_hand, NULL, 0);
        observe_failures(system);
        CHECK_EQ(strand_ask(a, STRAND_MSG(act, ways[i]), STRAND_INTO(answer, &got)), 0);
        CHECK_EQ(got.error, 0);
    }
}

/* The first of the actors between has failed, and awaits a decision; it decides itself about the actor below. */
static void ask_one_decided_about(void *state, strand_message *message)
{
    (void)state;
    strand_actor first;
    answer got = {1};
    the_child = make_below(1, ASK, &first);
    CHECK_EQ(strand_tell(first, STRAND_MSG(crash)), 0);
    CHECK_EQ(strand_tell(the_child, STRAND_MSG(crash)), 0);
    test_yield_until(&failed, 2);
    STRAND_IGNORE(strand_reply(
        message, STRAND_MSG(answer, strand_ask(the_child, STRAND_MSG(question), STRAND_INTO(answer, &got)))));
}

static const strand_actor_class patient = {.size = sizeof patient, .name = "patient", .receive = ask_one_decided_about};

TEST_INSIDE(an_actor_waits_for_one_below_about_which_another_decides)
{
    begin();
    answer got = {1};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &patient, NULL, 0);
    observe_failures(system);
    decides_itself = true;
    CHECK_EQ(strand_ask(a, STRAND_MSG(act, 0), STRAND_INTO(answer, &got)), 0);
    decides_itself = false;
    CHECK_EQ(got.error, 0);
}

/* The child fails, and its parent is long in deciding. */
static void linger(void *state, strand_message *message)
{
    (void)state, (void)message;
    the_child = strand_actor_spawn_child(NULL, &child, NULL, 0);
    CHECK_EQ(strand_tell(the_child, STRAND_MSG(crash)), 0);
    test_yield_until(&failed, 1);
    waits = 1;
    test_await_blocked("waits for the answer of actor", 1);
}

static const strand_actor_class lingering = {.size = sizeof lingering, .name = "lingering", .receive = linger};

TEST_INSIDE(others_than_its_parent_wait_until_a_failed_child_is_decided_about)
{
    begin();
    answer got = {1};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &lingering, NULL, 0);
    observe_failures(system);
    CHECK_EQ(strand_tell(a, STRAND_MSG(act, 0)), 0);
    test_yield_until(&waits, 1);
    CHECK_EQ(strand_ask(the_child, STRAND_MSG(question), STRAND_INTO(answer, &got)), 0);
    CHECK_EQ(got.error, 0);
}

/* ---- routers ----------------------------------------------------------------------------------------------- */

static void route_to_child(enum strand_route route)
{
    begin();
    strand_event_set(&go);
    STRAND_ACTORS(system, NULL);
    strand_actor router =
        strand_router_spawn(system, NULL, STRAND_ROUTER(.route = route, .count = 2, .class_ = &child));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(strand_tell(router, STRAND_MSG(work, i % 5)), 0);
    strand_actors_join(system);
    CHECK_EQ(handled, route == STRAND_ROUTE_ALL ? 32 : 16);
}

TEST_INSIDE(a_router_decides_about_a_failed_actor_before_it_waits_for_room_there)
{
    route_to_child(STRAND_ROUTE_IN_TURN);
    route_to_child(STRAND_ROUTE_ALL);
}
