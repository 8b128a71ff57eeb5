/*
 * Actors that fail again and again: when they are restarted, and that others go on meanwhile.
 */
#define SUITE supervision_backoff
#include "test.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/sync.h"

STRAND_MESSAGE(say, { char c; });
STRAND_MESSAGE(fail, { char none; });

static strand_event done;
static strand_actor child;
static enum strand_directive directive;

static void be_child(void *state, strand_message *message)
{
    (void)state;
    if (!STRAND_IS(message, say))
        strand_throw(&TEST_ERROR, "on purpose");
    strand_event_set(&done);
}

static const strand_actor_class child_class = {.size = sizeof child_class, .name = "child", .receive = be_child};

static void be_parent(void *state, strand_message *message)
{
    (void)state;
    if (!child.bits[1])
        child = strand_actor_spawn_child(NULL, &child_class, NULL, 0);
    strand_message_forward(message, child);
}

/* ---- the delay of a restart ------------------------------------------------------------------------------ */

static const strand_actor_class patient = {.size = sizeof patient,
                                           .name = "patient",
                                           .receive = be_parent,
                                           .backoff_ns = 20 * STRAND_MS,
                                           .restarts_within_ns = 100 * STRAND_MS};

/* However busy the machine is, a child is not up for so long. */
static const strand_actor_class very_patient = {.size = sizeof very_patient,
                                                .name = "very patient",
                                                .receive = be_parent,
                                                .backoff_ns = 20 * STRAND_MS,
                                                .restarts_within_ns = FOREVER};

TEST_INSIDE(restarts_are_put_off_longer_as_long_as_the_child_is_not_up_for_long)
{
    done = (strand_event){{0}};
    child = (strand_actor){{0, 0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &very_patient, NULL, 0);
    int64_t begun = strand_now().ns;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '.')), 0);
    strand_event_wait(&done);
    CHECK(strand_now().ns - begun >= (20 + 40 + 80 + 160 + 320) * STRAND_MS);
}

TEST_INSIDE(a_child_that_was_up_for_long_is_restarted_as_for_the_first_time)
{
    done = (strand_event){{0}};
    child = (strand_actor){{0, 0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &patient, NULL, 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(say, '.')), 0);
    strand_event_wait(&done);
    int64_t took = INT64_MAX;
    while (took >= 300 * STRAND_MS) { /* it is 320 at least each time that it was not up; and on a busy machine */
        strand_sleep(150 * STRAND_MS);
        done = (strand_event){{0}};
        int64_t begun = strand_now().ns;
        CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
        CHECK_EQ(strand_tell(a, STRAND_MSG(say, '.')), 0);
        strand_event_wait(&done);
        took = strand_now().ns - begun;
        CHECK(took >= 20 * STRAND_MS);
    }
}

/* ---- one that fails all the time --------------------------------------------------------------------------------- */

static void fail_again(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(fail)), 0);
    strand_throw(&TEST_ERROR, "again");
}

static _Atomic int starts;

static void start_never(void *state, const void *args)
{
    (void)state, (void)args;
    if (++starts == 6)
        strand_event_set(&done);
    strand_throw(&TEST_ERROR, "never");
}

static const strand_actor_class tireless = {.size = sizeof tireless, .name = "tireless", .receive = fail_again},
                                unstarted = {.size = sizeof unstarted,
                                             .name = "unstarted",
                                             .receive = fail_again,
                                             .start = start_never};

static enum strand_directive just_decide(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    return directive;
}

static void spawn_tireless(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK_EQ(strand_tell(strand_actor_spawn_child(NULL, &tireless, NULL, 0), STRAND_MSG(fail)), 0);
}

static void spawn_unstarted(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_actor_spawn_child(NULL, &unstarted, NULL, 0);
}

static const strand_actor_class
    forgiving = {.size = sizeof forgiving, .name = "forgiving", .receive = spawn_tireless, .decide = just_decide},
    insistent = {.size = sizeof insistent, .name = "insistent", .receive = spawn_unstarted, .decide = just_decide};

static void sleep_while_it_fails(const strand_actor_class *class, enum strand_directive what)
{
    directive = what;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, class, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    for (int i = 0; i < 5; i++)
        strand_sleep(STRAND_MS);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
}

static void await_starts(const strand_actor_class *class, enum strand_directive what, int64_t least)
{
    done = (strand_event){{0}};
    starts = 0;
    directive = what;
    STRAND_ACTORS(system, NULL);
    int64_t begun = strand_now().ns;
    CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, class, NULL, 0), STRAND_MSG(fail)), 0);
    strand_event_wait(&done);
    CHECK(strand_now().ns - begun >= least);
}

TEST_INSIDE(an_actor_that_never_starts_is_tried_less_and_less_often)
{
    await_starts(&insistent, STRAND_RESTART, (1 + 2 + 4 + 8 + 16) * STRAND_MS);
    await_starts(&insistent, STRAND_RESUME, (1 + 2 + 4 + 8 + 16) * STRAND_MS);
}

static enum strand_directive decide_nothing(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    return STRAND_ESCALATE;
}

static const strand_actor_class helpless = {
    .size = sizeof helpless, .name = "helpless", .receive = spawn_unstarted, .decide = decide_nothing};

static void spawn_helpless(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK_EQ(strand_tell(strand_actor_spawn_child(NULL, &helpless, NULL, 0), STRAND_MSG(fail)), 0);
}

static const strand_actor_class above = {
    .size = sizeof above, .name = "above", .receive = spawn_helpless, .decide = just_decide};

TEST_INSIDE(an_actor_that_never_starts_stays_suspended_although_its_parent_is_resumed)
{
    await_starts(&above, STRAND_RESUME, 5 * STRAND_MS);
}

static void leave_a_channel(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_chan_open(strand_actor_scope(), sizeof(int), 1, NULL);
    CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(fail)), 0);
}

static const strand_actor_class untidy = {.size = sizeof untidy, .name = "untidy", .receive = leave_a_channel};

TEST_REAL_INSIDE(an_actor_that_fails_never_starts_or_leaves_something_behind_all_the_time_lets_others_go_on)
{
    sleep_while_it_fails(&forgiving, STRAND_RESUME);
    sleep_while_it_fails(&forgiving, STRAND_RESTART);
    sleep_while_it_fails(&insistent, STRAND_RESUME);
    sleep_while_it_fails(&insistent, STRAND_RESTART);
    sleep_while_it_fails(&untidy, STRAND_RESUME);
}
