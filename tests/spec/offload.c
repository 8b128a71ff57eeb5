/*
 * Calls that block their thread run on a bounded crew, while other strands go on.
 */
#define _GNU_SOURCE
#define SUITE offload
#include "blocker.h"

#include <unistd.h>

static void *add_one(void *number)
{
    ++*(int *)number;
    return number;
}

TEST_INSIDE(offload_gives_what_the_function_returned)
{
    int number = 41;
    CHECK_PTR(strand_offload(add_one, &number), &number);
    CHECK_EQ(number, 42);
}

static void *note_self(void *id)
{
    *(uint64_t *)id = strand_id(strand_self());
    return NULL;
}

/* contract 3.6 */
TEST_INSIDE(an_offloaded_function_runs_outside_of_strands)
{
    uint64_t id = 1;
    CHECK_PTR(strand_offload(note_self, &id), NULL);
    CHECK_EQ(id, 0);
}

static void *offload_add_one(void *number)
{
    return strand_offload(add_one, number);
}

/* */
TEST_INSIDE(many_strands_can_offload_at_once)
{
    int numbers[100] = {0};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 100; i++)
        strand_spawn(scope, offload_add_one, &numbers[i]);
    strand_scope_join(scope);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(numbers[i], 1);
}

/* */
TEST_INSIDE(one_strand_can_offload_again_and_again)
{
    int number = 0;
    for (int i = 0; i < 200; i++)
        strand_offload(add_one, &number);
    CHECK_EQ(number, 200);
}

/* ---- beside the strands --------------------------------------------------------------------- */

static _Atomic int flag;

static void *wait_for_the_flag(void *arg)
{
    wait_on_thread(&flag, 1);
    return arg;
}

static void *raise_the_flag(void *arg)
{
    strand_yield();
    flag = 1;
    return arg;
}

static void *offload_beside_a_strand(void *arg)
{
    STRAND_SCOPE(scope);
    strand other = strand_spawn(scope, raise_the_flag, arg);
    strand_offload(wait_for_the_flag, arg);
    strand_join(other);
    return arg;
}

/* S-27 */
TEST(a_call_that_blocks_its_thread_does_not_stop_the_other_strands_of_a_one_thread_run)
{
    flag = 0;
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, offload_beside_a_strand, NULL);
    CHECK_EQ(flag, 1);
}

static void *meet(void *arrived)
{
    ++*(_Atomic int *)arrived;
    wait_on_thread(arrived, 3);
    return NULL;
}

static void *offload_meet(void *arrived)
{
    return strand_offload(meet, arrived);
}

/* S-27 */
TEST_INSIDE(calls_of_several_strands_block_at_the_same_time)
{
    _Atomic int arrived = 0;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, offload_meet, &arrived);
    strand_scope_join(scope);
    CHECK_EQ(arrived, 3);
}

static _Atomic int inside, most_inside;

static void *count_inside(void *arg)
{
    int now = ++inside, most = most_inside;
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
        continue;
    strand_sim_sleep(STRAND_MS);
    inside--;
    return arg;
}

static void *offload_count_inside(void *arg)
{
    return strand_offload(count_inside, arg);
}

static void *offload_from_twenty_strands(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 20; i++)
        strand_spawn(scope, offload_count_inside, arg);
    strand_scope_join(scope);
    return arg;
}

/* S-27 */
TEST(the_crew_has_no_more_threads_than_the_options_allow)
{
    strand_options options = test_options();
    options.max_offload_threads = 2;
    most_inside = 0;
    strand_run(&options, offload_from_twenty_strands, NULL);
    CHECK(most_inside >= 1 && most_inside <= 2);
}

/* S-27 */
TEST(the_crew_has_at_most_8_threads_by_default)
{
    most_inside = 0;
    test_run(offload_from_twenty_strands, NULL);
    CHECK(most_inside >= 1 && most_inside <= 8);
}

static void *note_thread(void *id)
{
    *(pid_t *)id = gettid();
    return NULL;
}

TEST_REAL_INSIDE(an_offloaded_function_is_not_on_the_thread_of_its_strand)
{
    pid_t id = 0;
    strand_offload(note_thread, &id);
    CHECK(id != 0 && id != gettid());
}

static void *run_inside(void *arg)
{
    strand_options options = test_options();
    return strand_run(&options, add_one, arg);
}

/* contract 1.2 */
TEST_REAL_INSIDE(an_offloaded_function_may_run_a_sub_process_of_its_own)
{
    int number = 1;
    CHECK_PTR(strand_offload(run_inside, &number), &number);
    CHECK_EQ(number, 2);
}

/* ---- interruption --------------------------------------------------------------------------- */

static _Atomic int taken_up, release_crew, queued_ran;

static void occupy_anew(void)
{
    taken_up = release_crew = queued_ran = 0;
}

static void *occupy_the_crew(void *arg)
{
    taken_up = 1;
    wait_on_thread(&release_crew, 1);
    return arg;
}

static void *offload_occupy(void *arg)
{
    return strand_offload(occupy_the_crew, arg);
}

static void *run_at_once(void *arg)
{
    queued_ran = 1;
    return arg;
}

static void *offload_queued(void *arg)
{
    return strand_offload(run_at_once, arg);
}

static void *cancel_what_is_queued(void *arg)
{
    STRAND_SCOPE(scope);
    strand busy = strand_spawn(scope, offload_occupy, arg);
    test_yield_until(&taken_up, 1);
    strand queued = strand_spawn(scope, offload_queued, arg);
    for (int i = 0; i < 10; i++)
        strand_yield();
    strand_cancel(queued, NULL);
    strand_wait(queued);
    CHECK_EQ(release_crew, 0);
    release_crew = 1;
    CHECK_PTR(strand_join(busy), arg);
    return arg;
}

/* contract 4.20, 5.1, 5.4 */
TEST(a_call_that_no_thread_has_taken_up_is_interrupted_and_never_runs)
{
    occupy_anew();
    strand_options options = test_options();
    options.max_offload_threads = 1;
    strand_run(&options, cancel_what_is_queued, NULL);
    CHECK_EQ(queued_ran, 0);
}

/* V-37, contract 4.20 */
TEST_INSIDE(a_call_that_was_taken_up_is_waited_for_and_gives_its_result)
{
    occupy_anew();
    int x = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, offload_occupy, &x);
    test_yield_until(&taken_up, 1);
    strand_cancel(child, NULL);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK(!strand_ended(child));
    release_crew = 1;
    CHECK_PTR(strand_join(child), &x);
}

static void *offload_then_yield(void *arg)
{
    offload_occupy(arg);
    test_log("returned");
    strand_yield();
    test_log("never");
    return arg;
}

/* V-37 */
TEST_INSIDE(a_cancel_during_a_call_strikes_at_the_next_operation)
{
    occupy_anew();
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, offload_then_yield, NULL);
    test_yield_until(&taken_up, 1);
    strand_cancel(child, NULL);
    release_crew = 1;
    strand_wait(child);
    CHECK_LOG("returned");
}

static void *time_out_in_a_call(void *arg)
{
    STRAND_DEADLINE(strand_in(200 * STRAND_MS));
    offload_occupy(arg);
    test_log("returned");
    return arg;
}

static void *release_later(void *arg)
{
    strand_sleep(250 * STRAND_MS);
    release_crew = 1;
    return arg;
}

/* contract 5.2 */
TEST_INSIDE(a_deadline_during_a_call_waits_for_its_end)
{
    occupy_anew();
    STRAND_SCOPE(scope);
    strand helper = strand_spawn(scope, release_later, NULL);
    CHECK_PTR(strand_try(time_out_in_a_call, NULL, NULL), NULL);
    strand_join(helper);
    CHECK_LOG("returned");
}

static void *count_to_three(void *number)
{
    for (int i = 0; i < 3; i++)
        ++*(int *)number;
    return NULL;
}

/* contract 8.1 */
TEST_INSIDE(an_offloaded_function_sees_what_was_done_before_and_its_caller_what_it_did)
{
    int number = 0;
    for (int i = 0; i < 50; i++) {
        number++;
        strand_offload(count_to_three, &number);
    }
    CHECK_EQ(number, 200);
}
