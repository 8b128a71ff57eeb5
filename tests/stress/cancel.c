/*
 * A cancel races with completion, with join, with another cancel and with the owner's leaving. Each time exactly one of
 * the outcomes that the contract allows is seen.
 */
#define SUITE stress_cancel
#include "test.h"

static const strand_kind PLANTED = STRAND_KIND("planted", &STRAND_ERROR);

static void keep_quiet(const char *message, void *arg)
{
    (void)message;
    (void)arg;
}

static void run(strand_fn *fn)
{
    strand_options options = test_options();
    options.on_log = keep_quiet;
    strand_run(&options, fn, NULL);
}

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

static void spin(int turns)
{
    for (volatile int i = 0; i < turns; i++)
        continue;
}

/* What a child has to say about its end. */
struct witness {
    int turns;
    _Atomic int returned, cleaned;
};

static void note_clean(struct witness **witness)
{
    (*witness)->cleaned++;
}

static void *yield_a_few_times(void *arg)
{
    struct witness *witness __attribute__((cleanup(note_clean))) = arg;
    for (int i = 0; i < 3; i++) {
        spin(witness->turns);
        strand_yield();
    }
    witness->returned = 1;
    return arg;
}

static void *join_one(void *child)
{
    return strand_join(*(strand *)child);
}

/* Joins; the outcome has to be the one that the witness saw. Returns whether it was the value. */
static bool check_join(strand child, struct witness *witness)
{
    void *value = NULL;
    strand_exception *e = strand_try(join_one, &child, &value);
    CHECK_EQ(witness->cleaned, 1);
    if (e == NULL) {
        CHECK_PTR(value, witness);
        CHECK_EQ(witness->returned, 1);
        return true;
    }
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_EQ(witness->returned, 0);
    strand_exception_release(e);
    return false;
}

/* ---- against completion --------------------------------------------------------------------- */

static void *cancel_against_completion(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int round = 0; time_is_left(until); round++) {
        struct witness witness = {.turns = round % 50};
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, yield_a_few_times, &witness);
        for (int i = 0; i < round % 5; i++)
            strand_yield();
        spin(round % 997);
        strand_cancel(child, "race");
        check_join(child, &witness);
    }
    return arg;
}

/* contract 4.17 */
TEST_REAL(a_cancel_against_completion_gives_the_value_or_child_cancelled)
{
    run(cancel_against_completion);
}

/* ---- against another cancel, against join ------------------------------------------------------ */

static void *cancel_it(void *target)
{
    strand_cancel(*(strand *)target, strand_name());
    return NULL;
}

/* Several strands cancel the child while its owner joins it. A third party's cancel needs no hand of the owner's. */
static void *cancels_against_join(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int round = 0; time_is_left(until); round++) {
        struct witness witness = {.turns = round % 50};
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, yield_a_few_times, &witness);
        for (int i = 0; i < 4; i++)
            strand_spawn(scope, cancel_it, &child);
        check_join(child, &witness);
        strand_scope_join(scope);
    }
    return arg;
}

/* contract 4.17 */
TEST_REAL(cancels_against_each_other_and_a_join_give_the_value_or_child_cancelled)
{
    run(cancels_against_join);
}

/* ---- against leaving ---------------------------------------------------------------------------- */

static _Atomic int targets_known;
static strand targets[8];

static void *cancel_all_targets(void *arg)
{
    test_yield_until(&targets_known, 1);
    for (int i = 0; i < 8; i++)
        strand_cancel(targets[i], "from aside");
    return arg;
}

struct crowd {
    struct witness witnesses[8];
    int round;
};

/* Leaves by an exception every other time. */
static void *leave_with_targets(void *arg)
{
    struct crowd *crowd = arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++) {
        crowd->witnesses[i] = (struct witness){.turns = crowd->round % 50};
        targets[i] = strand_spawn(scope, yield_a_few_times, &crowd->witnesses[i]);
    }
    targets_known = 1;
    spin(crowd->round % 997);
    if (crowd->round % 2)
        strand_throw(&PLANTED, "leave");
    strand_scope_cancel(scope, "leave");
    return arg;
}

static void *cancels_against_leaving(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int round = 0; time_is_left(until); round++) {
        struct crowd crowd = {.round = round};
        STRAND_SCOPE(scope);
        targets_known = 0;
        strand aside = strand_spawn(scope, cancel_all_targets, arg);
        strand_exception *e = strand_try(leave_with_targets, &crowd, NULL);
        CHECK_EQ(e != NULL, round % 2);
        strand_exception_release(e);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(crowd.witnesses[i].cleaned, 1);
        strand_join(aside);
    }
    return arg;
}

/* V-28, contract 4.17 */
TEST_REAL(cancels_from_aside_against_the_owners_leaving_leave_every_child_ended_once)
{
    run(cancels_against_leaving);
}

/* ---- stale handles ------------------------------------------------------------------------------ */

#define KEPT 64

static struct {
    _Atomic uint64_t bits[KEPT][2];
    _Atomic int over;
} stale;

/* Cancels handles of strands that have ended, for as long as others live in their places. */
static void *cancel_stale_handles(void *arg)
{
    while (!stale.over) {
        for (int i = 0; i < KEPT; i++) {
            strand old = {{stale.bits[i][0], stale.bits[i][1]}};
            bool whole = old.bits[0] != 0 && old.bits[0] == stale.bits[i][0];
            if (whole && strand_ended(old))
                strand_cancel(old, "stale");
        }
        strand_yield();
    }
    return arg;
}

static void *spawn_in_old_places(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    STRAND_SCOPE(scope);
    stale.over = 0;
    for (int i = 0; i < KEPT; i++)
        stale.bits[i][0] = stale.bits[i][1] = 0;
    strand canceller = strand_spawn(scope, cancel_stale_handles, arg);
    for (int round = 0; time_is_left(until); round++) {
        struct witness witness = {.turns = 1};
        strand child = strand_spawn(scope, yield_a_few_times, &witness);
        CHECK(check_join(child, &witness));
        stale.bits[round % KEPT][0] = 0;
        stale.bits[round % KEPT][1] = child.bits[1];
        stale.bits[round % KEPT][0] = child.bits[0];
    }
    stale.over = 1;
    strand_join(canceller);
    return arg;
}

/* contract 9.5, 9.6 */
TEST_REAL(a_cancel_by_a_stale_handle_never_hits_the_strand_that_has_its_place)
{
    run(spawn_in_old_places);
}

/* ---- against hand-off ------------------------------------------------------------------------------ */

static void *hand_off_against_cancel(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int round = 0; time_is_left(until); round++) {
        struct witness witness = {.turns = round % 50};
        STRAND_SCOPE_WITH(open, STRAND_OPEN | STRAND_COLLECT);
        {
            STRAND_SCOPE(scope);
            strand child = strand_spawn(scope, yield_a_few_times, &witness);
            strand canceller = strand_spawn(scope, cancel_it, &child);
            spin(round % 997);
            CHECK_EQ(strand_hand_off(child, open), 0);
            strand_join(canceller);
            CHECK_EQ(strand_scope_count(scope), 0);
            check_join(child, &witness);
        }
        CHECK_EQ(strand_scope_count(open), 0);
    }
    return arg;
}

/* contract 4.17 */
TEST_REAL(a_cancel_against_a_hand_off_gives_the_value_or_child_cancelled)
{
    run(hand_off_against_cancel);
}
