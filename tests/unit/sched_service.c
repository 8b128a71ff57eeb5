/*
 * How many strands one thread takes over from another: never so many that those would have cause to be taken back.
 */
#include "arch_check.h"

#include "sched/service.h"

enum { MS = 1000000 };

static uint64_t excess(uint64_t length, uint64_t turn, uint64_t own_length, uint64_t own_turn)
{
    struct round theirs = {.length = length, .turn = turn}, mine = {.length = own_length, .turn = own_turn};
    return service_excess(&theirs, &mine, MS);
}

static void of_equal_strands_half_the_difference_is_taken(void)
{
    CHECK_EQUAL(excess(998, 1000, 0, 1000), 499);
    CHECK_EQUAL(excess(700, 1000, 300, 1000), 200);
    CHECK_EQUAL(excess(3, 100000, 0, 100000), 1);
}

static void a_thread_that_was_not_measured_counts_as_the_other(void)
{
    CHECK_EQUAL(excess(998, 0, 0, 0), 499);
    CHECK_EQUAL(excess(998, 1000, 0, 0), 499);
    CHECK_EQUAL(excess(998, 0, 0, 1000), 499);
}

/* Ten that compute for a millisecond each, and five hundred that compute for a microsecond. */
static void strands_that_take_long_count_for_more(void)
{
    CHECK_EQUAL(excess(10, MS, 500, 1000), 4);
    CHECK_EQUAL(excess(500, 1000, 10, MS), 0);
}

static void small_differences_are_left(void)
{
    CHECK_EQUAL(excess(1, MS, 0, 1000), 0);
    CHECK_EQUAL(excess(500, 1000, 500, 1000), 0);
    CHECK_EQUAL(excess(500, 1000, 440, 1000), 0);
    CHECK_EQUAL(excess(8, 500, 0, 500), 0);
}

static void what_was_taken_is_not_taken_back_from(uint64_t length, uint64_t turn, uint64_t own, uint64_t own_turn)
{
    uint64_t moved = excess(length, turn, own, own_turn), slowest = turn > own_turn ? turn : own_turn;
    if (!moved)
        return;
    CHECK(moved <= length);
    CHECK(own * own_turn + moved * slowest <= (length - moved) * turn);
    CHECK_EQUAL(excess(own + moved, own_turn, length - moved, turn), 0);
}

static void what_was_taken_is_not_taken_back(void)
{
    for (uint64_t length = 0; length < 40; length++)
        for (uint64_t own = 0; own < 40; own++)
            for (uint64_t turn = 1000; turn < UINT64_C(100) * MS; turn *= 7)
                for (uint64_t own_turn = 1000; own_turn < UINT64_C(100) * MS; own_turn *= 5)
                    what_was_taken_is_not_taken_back_from(length, turn, own, own_turn);
}

static void of_a_thread_that_is_held_the_last_can_be_had(void)
{
    struct round theirs = {.length = 1, .turn = UINT64_C(100) * MS, .held = true}, mine = {.length = 10, .turn = MS};
    CHECK_EQUAL(service_excess(&theirs, &mine, MS), 1);
    theirs.length = 0;
    CHECK_EQUAL(service_excess(&theirs, &mine, MS), 0);
}

int main(void)
{
    of_equal_strands_half_the_difference_is_taken();
    a_thread_that_was_not_measured_counts_as_the_other();
    strands_that_take_long_count_for_more();
    small_differences_are_left();
    what_was_taken_is_not_taken_back();
    of_a_thread_that_is_held_the_last_can_be_had();
    return failures != 0;
}
