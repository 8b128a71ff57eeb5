/*
 * How many strands one thread takes over from another: never so many that those would have cause to be taken back.
 */
#include "arch_check.h"

#include "sched/balance.h"

enum { MS = 1000000 };

static uint64_t excess(uint64_t length, uint64_t interval, uint64_t own_length, uint64_t own_interval)
{
    struct balance_sample theirs = {.length = length, .interval = interval},
                          mine = {.length = own_length, .interval = own_interval};
    return balance_excess(&theirs, &mine, MS);
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

static void what_was_taken_is_not_taken_back_from(uint64_t length, uint64_t interval, uint64_t own,
                                                  uint64_t own_interval)
{
    uint64_t moved = excess(length, interval, own, own_interval),
             slowest = interval > own_interval ? interval : own_interval;
    if (!moved)
        return;
    CHECK(moved <= length);
    CHECK(own * own_interval + moved * slowest <= (length - moved) * interval);
    CHECK_EQUAL(excess(own + moved, own_interval, length - moved, interval), 0);
}

static void what_was_taken_is_not_taken_back(void)
{
    for (uint64_t length = 0; length < 40; length++)
        for (uint64_t own = 0; own < 40; own++)
            for (uint64_t interval = 1000; interval < UINT64_C(100) * MS; interval *= 7)
                for (uint64_t own_interval = 1000; own_interval < UINT64_C(100) * MS; own_interval *= 5)
                    what_was_taken_is_not_taken_back_from(length, interval, own, own_interval);
}

static void of_a_thread_that_is_held_the_last_can_be_had(void)
{
    struct balance_sample theirs = {.length = 1, .interval = UINT64_C(100) * MS, .occupied = true},
                          mine = {.length = 10, .interval = MS};
    CHECK_EQUAL(balance_excess(&theirs, &mine, MS), 1);
    theirs.length = 0;
    CHECK_EQUAL(balance_excess(&theirs, &mine, MS), 0);
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
