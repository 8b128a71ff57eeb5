/*
 * Timers of actors.
 */
#define SUITE actor_time
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

STRAND_MESSAGE(tick, { int n; });
STRAND_MESSAGE(set, {
    int64_t ns, every;
    int n;
});
STRAND_MESSAGE(wait_for, { int64_t ns; });

static strand_event done;
static _Atomic int64_t handled_at, idle_for;

enum { TICKS = 4, TIMERS = 10 };
static int ticked[TICKS];
static struct {
    int64_t earliest, latest;
} due[TIMERS];

static void be_timed(void *state, strand_message *message)
{
    int *count = state;
    int64_t before = strand_now().ns;
    const tick *t = STRAND_IS(message, tick);
    const set *s = STRAND_IS(message, set);
    const wait_for *w = STRAND_IS(message, wait_for);
    if (t && *count < TICKS)
        ticked[*count] = t->n;
    if (t)
        test_log("%d", t->n);
    else if (w)
        CHECK_EQ(strand_actor_receive_timeout(w->ns), 0);
    else if (s && s->n) {
        CHECK_EQ(strand_actor_timer(TEST_PTR(s->n), s->ns, s->every, STRAND_MSG(tick, s->n)), 0);
        due[s->n].earliest = before + s->ns;
        due[s->n].latest = strand_now().ns + s->ns;
    } else if (s)
        strand_actor_timer_stop(TEST_PTR(s->ns));
    else
        test_log("idle");
    if (t && ++*count == TICKS)
        strand_event_set(&done);
    if (STRAND_IS(message, strand_receive_timeout)) {
        idle_for = strand_now().ns - handled_at;
        strand_event_set(&done);
    }
    handled_at = strand_now().ns;
}

static const strand_actor_class timed = {
    .size = sizeof timed, .name = "timed", .state_size = sizeof(int), .receive = be_timed};

TEST_INSIDE(an_actor_tells_itself_later)
{
    done = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &timed, NULL, 0);
    int64_t begun = strand_now().ns;
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 30 * STRAND_MS, 0, 3)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 10 * STRAND_MS, 0, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 60 * STRAND_MS, 0, 6)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 20 * STRAND_MS, 0, 2)), 0);
    strand_event_wait(&done);
    CHECK(strand_now().ns - begun >= 60 * STRAND_MS);
    CHECK_EQ(ticked[0] + ticked[1] + ticked[2] + ticked[3], 1 + 2 + 3 + 6);
    for (int i = 1; i < TICKS; i++) /* the actor may not have set them all at once */
        CHECK(due[ticked[i - 1]].earliest <= due[ticked[i]].latest);
}

TEST_INSIDE(a_timer_may_come_again_and_again_until_it_is_stopped)
{
    done = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &timed, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, STRAND_MS, 5 * STRAND_MS, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, FOREVER, 0, 2)), 0);
    strand_event_wait(&done);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 1, 0, 0)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 2, 0, 0)), 0);
    strand_actors_join(system); /* nothing is left to come */
    CHECK(!strand_actor_ended(a));
}

TEST_INSIDE(a_timer_of_the_same_key_is_replaced)
{
    done = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &timed, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, FOREVER, 0, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, STRAND_MS, STRAND_MS, 1)), 0);
    strand_event_wait(&done);
}

TEST_INSIDE(timers_end_with_their_actor)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &timed, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, FOREVER, 0, 1)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(a));
}

/* */
TEST_INSIDE(timers_end_with_a_restart)
{
    done = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &timed, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 100 * STRAND_MS, 0, 2)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 0, 0, 1)), 0);
    while (!test_log_is("1"))
        strand_sleep(STRAND_MS);
    CHECK_EQ(strand_actor_restart(a), 0);
    strand_actors_join(system);
    CHECK_LOG("1");
}

TEST_INSIDE(an_actor_gets_a_receive_timeout_after_so_long_without_a_message)
{
    done = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &timed, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(wait_for, 20 * STRAND_MS)), 0);
    for (int i = 0; i < 3; i++) {
        strand_sleep(5 * STRAND_MS);
        CHECK_EQ(strand_tell(a, STRAND_MSG(set, i, 0, 0)), 0);
    }
    strand_event_wait(&done);
    CHECK(idle_for >= 20 * STRAND_MS);
    CHECK_EQ(strand_tell(a, STRAND_MSG(wait_for, 0)), 0);
    strand_actors_join(system);
}

/* ---- an actor that is slower than its timer ------------------------------------------------------------------- */

STRAND_MESSAGE(behind, { char none; });
enum { LATE_BY = 100 };

/* Handles three ticks: in the first one LATE_BY others are due. What it tells itself comes behind those that are
 * queued by then. */
static void be_slow(void *state, strand_message *message)
{
    int *ticks = state;
    static const char key;
    if (STRAND_IS(message, set))
        CHECK_EQ(strand_actor_timer(&key, 0, STRAND_MS, STRAND_MSG(tick, 1)), 0);
    if (STRAND_IS(message, behind))
        CHECK(*ticks <= 2); /* one was queued, at most */
    if (!STRAND_IS(message, tick))
        return;
    if (++*ticks == 1) {
        strand_sleep(LATE_BY * STRAND_MS);
        CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(behind)), 0);
    } else if (*ticks == 3) {
        strand_actor_timer_stop(&key);
        strand_event_set(&done);
    }
}

static const strand_actor_class slow = {
    .size = sizeof slow, .name = "slow", .state_size = sizeof(int), .receive = be_slow};

TEST_INSIDE(one_tick_at_most_waits_in_the_mailbox_of_an_actor_that_is_slower_than_its_timer)
{
    done = (strand_event){{0}};
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 0, 0, 0)), 0);
    strand_event_wait(&done); /* ticks come again afterwards */
    strand_actors_join(system);
}

/* ---- timers that are due all the time -------------------------------------------------------------------------- */

static _Atomic int ticks;

static void count_ticks(void *state, strand_message *message)
{
    const set *s = STRAND_IS(message, set);
    if (STRAND_IS(message, tick))
        ticks++;
    else if (s->every)
        CHECK_EQ(strand_actor_timer(state, s->ns, s->every, STRAND_MSG(tick, 0)), 0);
    else
        strand_actor_timer_stop(state);
}

static const strand_actor_class counting = {
    .size = sizeof counting, .name = "counting", .state_size = 1, .receive = count_ticks};

TEST_REAL_INSIDE(a_timer_that_is_always_due_lets_others_go_on)
{
    ticks = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 1, 1, 0)), 0);
    for (int i = 0; i < 10 || ticks == 0; i++) /* the actor may start the timer late: its thread may */
        strand_sleep(STRAND_MS);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 0, 0, 0)), 0);
    strand_actors_join(system); /* the ticks of the nanoseconds that have passed do not all come after the stop */
}

static void *be_busy_for_a_while(void *arg)
{
    ticks = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    int64_t begun = strand_now().ns;
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, STRAND_MS, STRAND_MS, 0)), 0);
    strand_sleep(2 * STRAND_MS);
    int64_t busy = strand_now().ns;
    while (strand_now().ns - busy < 50 * STRAND_MS) /* it is the only thread */
        continue;
    busy = strand_now().ns - busy;
    strand_sleep(5 * STRAND_MS);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 0, 0, 0)), 0);
    strand_actors_join(system);
    int64_t idle = strand_now().ns - begun - busy;
    CHECK(ticks > 0);
    CHECK(ticks <= idle / STRAND_MS + 2);
    return arg;
}

TEST_REAL(ticks_that_were_missed_are_not_made_up_for)
{
    strand_run(STRAND_OPTIONS(.threads = 1), be_busy_for_a_while, NULL);
}

/* ---- what their messages own ------------------------------------------------------------------------------------- */

STRAND_MESSAGE(command, {
    enum { SET, REPLACE, TAKE_BACK, FAIL } what;
    int64_t ns;
});

static _Atomic int drops;

static void note_drop(void *body)
{
    (void)body;
    drops++;
}

STRAND_MESSAGE_WITH(owned, note_drop, { int n; });

static void set_owned(void *state, strand_message *message)
{
    const command *c = STRAND_IS(message, command);
    if (STRAND_IS(message, owned))
        CHECK_EQ(drops, 0);
    if (!c)
        return;
    if (c->what == FAIL) {
        strand_event_set(&done);
        strand_throw(&TEST_ERROR, "on purpose");
    }
    if (c->what == SET)
        CHECK_EQ(strand_actor_timer(state, c->ns, 0, STRAND_MSG(owned, 1)), 0);
    else if (c->what == REPLACE)
        CHECK_EQ(strand_actor_timer(state, c->ns, 0, STRAND_MSG(tick, 1)), 0);
    else
        strand_actor_timer_stop(state);
    strand_event_set(&done);
}

static const strand_actor_class owning = {
    .size = sizeof owning, .name = "owning", .state_size = 1, .receive = set_owned};

static void command_it(strand_actor a, int what, int64_t ns)
{
    done = (strand_event){{0}};
    CHECK_EQ(strand_tell(a, STRAND_MSG(command, what, ns)), 0);
    strand_event_wait(&done);
}

static strand_actor spawn_one_that_sets(strand_actors system, int64_t ns)
{
    drops = 0;
    strand_actor a = strand_actor_spawn(system, NULL, &owning, NULL, 0);
    command_it(a, SET, ns);
    return a;
}

TEST_INSIDE(the_message_of_a_timer_is_dropped_when_it_has_been_handled)
{
    STRAND_ACTORS(system, NULL);
    (void)spawn_one_that_sets(system, STRAND_MS);
    strand_actors_join(system);
    CHECK_EQ(drops, 1);
}

TEST_INSIDE(the_message_of_a_timer_is_dropped_when_the_timer_is_stopped_or_replaced)
{
    STRAND_ACTORS(system, NULL);
    command_it(spawn_one_that_sets(system, FOREVER), TAKE_BACK, 0);
    strand_actors_join(system);
    CHECK_EQ(drops, 1);
    command_it(spawn_one_that_sets(system, FOREVER), REPLACE, STRAND_MS);
    strand_actors_join(system);
    CHECK_EQ(drops, 1);
    strand_actor a = spawn_one_that_sets(system, FOREVER);
    command_it(a, SET, STRAND_MS);
    CHECK_EQ(drops, 1);
    drops = 0;
    strand_actors_join(system);
    CHECK_EQ(drops, 1);
}

TEST_INSIDE(the_message_of_a_timer_is_dropped_when_the_actor_ends_or_restarts)
{
    {
        STRAND_ACTORS(system, NULL);
        command_it(spawn_one_that_sets(system, FOREVER), FAIL, 0);
        strand_actors_join(system);
        CHECK_EQ(drops, 1);
        strand_actor a = spawn_one_that_sets(system, FOREVER);
        CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
        CHECK_EQ(strand_actor_wait(a), 0);
        CHECK_EQ(drops, 1);
        (void)spawn_one_that_sets(system, FOREVER);
    }
    CHECK_EQ(drops, 1);
}

/* It switches its timeout off while it handles what has taken longer than that. */
static void take_long(void *state, strand_message *message)
{
    (void)state;
    if (!STRAND_IS(message, set)) {
        test_log("idle");
        return;
    }
    CHECK_EQ(strand_actor_receive_timeout(10 * STRAND_MS), 0);
    strand_sleep(50 * STRAND_MS);
    test_log("handled");
    if (STRAND_IS(message, set)->n)
        CHECK_EQ(strand_actor_receive_timeout(0), 0);
}

static const strand_actor_class long_winded = {.size = sizeof long_winded, .name = "long-winded", .receive = take_long};

TEST_INSIDE(an_actor_that_handles_a_message_is_not_idle)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &long_winded, NULL, 0);
    CHECK_EQ(strand_actor_suspend(a), 0); /* until both are there */
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 0, 0, 0)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(set, 0, 0, 1)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("handled handled");
}

/* ---- on their way ------------------------------------------------------------------------------------------ */

STRAND_MESSAGE(begin_late, { int how; });
STRAND_MESSAGE(sent, { int n; });

enum { STOPPED, REPLACED, BEGUN_ANEW };

static _Atomic int is_sent, sent_drops;

static void count_sent(void *body)
{
    (void)body;
    sent_drops++;
}

STRAND_MESSAGE_WITH(owned_tick, count_sent, { int n; });

/* Its timer fires after the other's, so the other actor has had its message by then. */
static void be_later(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, tick))
        is_sent = 1;
    else
        CHECK_EQ(strand_actor_timer(NULL, 2 * STRAND_MS, 0, STRAND_MSG(tick, 1)), 0);
}

static const strand_actor_class later = {.size = sizeof later, .name = "later", .receive = be_later};

static strand_actor after;

static void change_late(void *state, strand_message *message)
{
    static const char key, other;
    (void)state;
    const begin_late *b = STRAND_IS(message, begin_late);
    const owned_tick *t = STRAND_IS(message, owned_tick);
    if (t)
        test_log("%d", t->n);
    if (!b)
        return;
    CHECK_EQ(strand_actor_timer(&key, 0, 0, STRAND_MSG(owned_tick, 1)), 0);
    CHECK_EQ(strand_actor_timer(&other, 0, 0, STRAND_MSG(owned_tick, 2)), 0);
    CHECK_EQ(strand_tell(after, STRAND_MSG(sent, 0)), 0);
    test_yield_until(&is_sent, 1);
    if (b->how == STOPPED)
        strand_actor_timer_stop(&key);
    else if (b->how == REPLACED)
        CHECK_EQ(strand_actor_timer(&key, 0, 0, STRAND_MSG(owned_tick, 3)), 0);
    else
        CHECK_EQ(strand_actor_restart(strand_actor_self()), 0);
}

static const strand_actor_class changing = {.size = sizeof changing, .name = "changing", .receive = change_late};

TEST_INSIDE(a_timer_that_is_taken_back_or_replaced_is_not_heard_of_though_its_message_waits)
{
    static const struct {
        const char *log;
        int drops;
    } cases[] = {[STOPPED] = {"2", 2}, [REPLACED] = {"2 3", 3}, [BEGUN_ANEW] = {"", 2}};
    for (int how = 0; how <= BEGUN_ANEW; how++) {
        is_sent = sent_drops = 0;
        STRAND_ACTORS(system, NULL);
        after = strand_actor_spawn(system, NULL, &later, NULL, 0);
        strand_actor a = strand_actor_spawn(system, NULL, &changing, NULL, 0);
        CHECK_EQ(strand_tell(a, STRAND_MSG(begin_late, how)), 0);
        strand_actors_join(system);
        CHECK_LOG(cases[how].log);
        CHECK_EQ(sent_drops, cases[how].drops);
        test_log_clear();
    }
}
