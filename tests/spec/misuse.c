/*
 * Misuse is reported with the function, what was done and where the object was made, after the hook; then the program
 * aborts. Each case is a run of tests/programs/misuse.c.
 */
#define SUITE misuse
#include "test.h"

#include <signal.h>

static struct test_output o;

/* Runs the case; it has to abort with a report that names function. */
static void misuse(const char *name, const char *function)
{
    test_program(&o, "misuse", name);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, function);
}

/* The same inside a run: its hook was told too, and the object was made by `maker` or in the file of the cases. */
static void misuse_of_object(const char *name, const char *function, const char *maker)
{
    misuse(name, function);
    CHECK_CONTAINS(o.out, "hook told: function=");
    CHECK_CONTAINS(o.out, function);
    const char *made = strstr(o.out, "made=");
    CHECK(made != NULL);
    if (!strstr(made, "misuse.c:"))
        CHECK_CONTAINS(made, maker);
}

/* ---- the report ----------------------------------------------------------------------------- */

/* contract 4.66 */
TEST_PROGRAM(the_hook_is_told_function_what_and_where_made)
{
    misuse("join_twice", "strand_join");
    CHECK_CONTAINS(o.out, "function=strand_join;");
    CHECK(strstr(o.out, "what=;") == NULL);
    CHECK_CONTAINS(o.out, "made=");
}

/* contract 4.66 */
TEST_PROGRAM(the_report_says_the_same_as_the_hook)
{
    misuse("join_twice", "strand_join");
    char *what = strstr(o.out, "what="), *end = strstr(o.out, "; made=");
    CHECK(what != NULL && end != NULL && end > what);
    *end = 0;
    CHECK_CONTAINS(o.err, what + strlen("what="));
}

/* ---- handles -------------------------------------------------------------------------------- */

/* contract 4.5, 4.67 */
TEST_PROGRAM(joining_twice_is_misuse)
{
    misuse_of_object("join_twice", "strand_join", "spawn_it_here");
}

/* contract 4.5 */
TEST_PROGRAM(joining_no_strand_is_misuse)
{
    misuse("join_nobody", "strand_join");
    misuse("join_an_invented_strand", "strand_join");
}

TEST_PROGRAM(waiting_for_no_strand_is_misuse)
{
    misuse("wait_for_nobody", "strand_wait");
}

TEST_PROGRAM(cancelling_a_scope_that_was_left_or_never_was_is_misuse)
{
    misuse("cancel_a_stale_scope", "strand_scope_cancel");
    misuse("cancel_an_invented_scope", "strand_scope_cancel");
}

TEST_PROGRAM(asking_a_scope_for_what_its_policy_does_not_keep_is_misuse)
{
    misuse_of_object("fetch_a_failure_without_a_policy", "strand_scope_failure", "misuse.c");
    CHECK_CONTAINS(o.err, "STRAND_COLLECT");
    misuse_of_object("take_the_next_without_a_policy", "strand_scope_wait_next", "misuse.c");
    misuse_of_object("take_the_first_without_a_policy", "strand_scope_join_first", "misuse.c");
    CHECK_CONTAINS(o.err, "STRAND_FIRST_WINS");
}

TEST_PROGRAM(joining_or_handing_off_a_strand_of_a_service_is_misuse)
{
    misuse("join_one_of_a_service", "strand_join");
    CHECK_CONTAINS(o.err, "STRAND_SERVICE");
    misuse("hand_off_one_of_a_service", "strand_hand_off");
    CHECK_CONTAINS(o.err, "STRAND_SERVICE");
    misuse("want_the_first_of_a_service", "STRAND_SCOPE_WITH");
}

/* contract 4.3, 4.67 */
TEST_PROGRAM(spawning_into_a_scope_that_was_left_is_misuse)
{
    misuse("spawn_into_a_stale_scope", "strand_spawn");
}

/* contract 4.3 */
TEST_PROGRAM(joining_a_scope_that_was_left_is_misuse)
{
    misuse("join_a_stale_scope", "strand_scope_join");
}

/* contract 4.67 */
TEST_PROGRAM(joining_a_strand_of_a_run_that_has_ended_is_misuse)
{
    misuse("join_a_strand_of_an_ended_run", "strand_join");
}

TEST_PROGRAM(a_handle_of_another_run_is_misuse)
{
    misuse("cancel_a_strand_of_another_run", "another run");
    misuse("wait_for_a_strand_of_another_run", "another run");
    misuse("spawn_into_a_scope_of_another_run", "another run");
}

/* ---- ownership ------------------------------------------------------------------------------ */

/* contract 4.2, 4.67 */
TEST_PROGRAM(spawning_into_the_plain_scope_of_another_strand_is_misuse)
{
    misuse_of_object("spawn_into_a_foreign_scope", "strand_spawn", "spawn_into_a_foreign_scope");
}

/* contract 4.67 */
TEST_PROGRAM(cancelling_the_plain_scope_of_another_strand_is_misuse)
{
    misuse_of_object("cancel_a_foreign_scope", "strand_scope_cancel", "cancel_a_foreign_scope");
}

/* contract 4.5 */
TEST_PROGRAM(joining_the_child_of_another_strand_is_misuse)
{
    misuse_of_object("join_a_strand_of_another_owner", "strand_join", "spawn_it_here");
}

/* contract 4.55 */
TEST_PROGRAM(handing_a_strand_off_to_a_scope_of_its_own_is_misuse)
{
    misuse_of_object("hand_off_below_itself", "strand_hand_off", "spawn_it_here");
}

/* contract 4.55 */
TEST_PROGRAM(of_two_strands_that_are_handed_off_to_scopes_of_each_other_the_second_is_refused_as_misuse)
{
    misuse_of_object("hand_off_in_a_circle", "strand_hand_off", "spawn_it_here");
    CHECK_CONTAINS(o.out, "the first was handed off");
}

/* One of the two hand-offs comes first, and it is done: so the report is of one misuse only. */
static void hand_off_in_a_circle_at_once(void)
{
    misuse_of_object("hand_off_in_a_circle_at_once", "strand_hand_off", "spawn_it_here");
    CHECK(strstr(strstr(o.out, "hook told") + 1, "hook told") == NULL);
}

/* contract 4.55 */
TEST_PROGRAM(of_two_strands_that_are_handed_off_at_once_to_scopes_of_each_other_one_is_refused_as_misuse)
{
    for (long i = 0; i < test_scale(20); i++)
        hand_off_in_a_circle_at_once();
}

/* contract 4.55 */
TEST_PROGRAM(of_two_strands_that_are_handed_off_at_once_one_is_refused_as_misuse_under_any_seed)
{
    for (long seed = 1; seed <= test_scale(20); seed++) {
        char text[32];
        snprintf(text, sizeof text, "%ld", seed);
        setenv("STRAND_SEED", text, 1);
        hand_off_in_a_circle_at_once();
    }
}

TEST_PROGRAM(joining_a_child_that_was_handed_off_to_another_strand_is_misuse)
{
    misuse_of_object("join_after_hand_off", "strand_join", "spawn_it_here");
}

/* contract 4.55 */
TEST_PROGRAM(handing_off_the_child_of_another_strand_is_misuse)
{
    misuse_of_object("hand_off_a_strand_of_another_owner", "strand_hand_off", "spawn_it_here");
}

/* ---- the end of a thread ---------------------------------------------------------------------- */

#if !TEST_TSAN /* its own pthread_exit expects a thread on its own stack */
TEST_PROGRAM(pthread_exit_in_a_strand_is_misuse_whose_report_says_what_to_do_instead)
{
    static const char *const cases[] = {"exit_thread", "exit_thread_in_a_child", "exit_thread_on_a_shared_stack"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        misuse(cases[i], "pthread_exit");
        CHECK_CONTAINS(o.err, "return from its function or throw");
        CHECK_CONTAINS(o.err, "at exit_thread");
    }
}

TEST_PROGRAM(the_end_of_a_thread_is_noticed_before_any_clean_up_and_in_programs_that_link_libunwind)
{
    static const char *const threads[] = {"caller",           "pool",           "plain",
                                          "caller-cancelled", "pool-cancelled", "plain-cancelled"};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        test_program(&o, "exits", threads[i]);
        CHECK_CONTAINS(o.err, "misuse of pthread_exit: it would end the thread that runs the pool's strands");
        CHECK_CONTAINS(o.err, "at exit_here");
        CHECK(o.signalled && o.status == SIGABRT);
        CHECK_STR(o.out, "");
    }
}
#endif

/* ---- blocking ------------------------------------------------------------------------------- */

/* N-02, N-04, contract 4.68, 5.8 */
TEST_PROGRAM(blocking_in_a_no_suspend_section_is_misuse_reported_with_both_places)
{
    misuse("block_in_no_suspend", "strand_sleep");
    CHECK_CONTAINS(o.err, "block_in_the_section");
    CHECK_CONTAINS(o.err, "misuse.c:");
}

/* N-04 */
TEST_PROGRAM(a_yield_in_a_no_suspend_section_is_misuse)
{
    misuse("yield_in_no_suspend", "strand_yield");
}

/* N-04, contract 5.8 */
TEST_PROGRAM(a_join_in_a_no_suspend_section_is_misuse_even_if_it_would_not_wait)
{
    misuse("join_in_no_suspend", "strand_join");
}

/* N-04 */
TEST_PROGRAM(the_end_of_an_inner_no_suspend_section_leaves_the_outer_one)
{
    misuse("block_after_an_inner_section", "strand_yield");
}

static void *block_after_a_section(void *arg)
{
    {
        STRAND_NO_SUSPEND;
        test_log("inside");
    }
    strand_yield();
    test_log("after");
    return arg;
}

/* N-02 */
TEST(after_a_no_suspend_section_blocking_is_allowed_again)
{
    test_run(block_after_a_section, NULL);
    CHECK_LOG("inside after");
}

static void *spawn_in_a_section(void *arg)
{
    STRAND_SCOPE(scope);
    strand child;
    {
        STRAND_NO_SUSPEND;
        child = strand_spawn(scope, block_after_a_section, arg);
        CHECK(!strand_ended(strand_self()));
    }
    strand_join(child);
    return arg;
}

/* N-02 */
TEST(what_does_not_block_is_allowed_in_a_no_suspend_section_and_children_are_free)
{
    test_run(spawn_in_a_section, NULL);
    CHECK_LOG("inside after");
}

static void *throw_out_of_a_section(void *arg)
{
    STRAND_NO_SUSPEND;
    strand_throw(&STRAND_ERROR, "out");
    return arg;
}

static void *yield_after_a_throw(void *arg)
{
    strand_exception *e = strand_try(throw_out_of_a_section, arg, NULL);
    CHECK(e != NULL);
    strand_exception_release(e);
    strand_yield();
    return arg;
}

/* contract 5.8 */
TEST(an_exception_ends_the_no_suspend_sections_that_it_leaves)
{
    test_run(yield_after_a_throw, NULL);
}

TEST_PROGRAM(waiting_for_itself_is_misuse)
{
    misuse("wait_for_itself", "strand_wait");
    CHECK_CONTAINS(o.err, "is the root strand");
}

/* contract 4.68 */
TEST_PROGRAM(a_run_inside_a_strand_without_threads_of_its_own_is_misuse)
{
    misuse("run_inside_a_strand", "strand_run");
    CHECK_CONTAINS(o.err, "own_threads");
}

/* contract 4.68 */
TEST_PROGRAM(a_blocking_call_on_a_plain_thread_is_misuse)
{
    misuse("yield_on_a_plain_thread", "strand_yield");
    misuse("offload_on_a_plain_thread", "strand_offload");
}

/* ---- throwing, policies, sizes -------------------------------------------------------------- */

/* contract 4.68 */
TEST_PROGRAM(throwing_on_a_plain_thread_is_misuse)
{
    misuse("throw_on_a_plain_thread", "strand_throw");
}

TEST_PROGRAM(throwing_interrupted_or_a_kind_below_it_by_hand_is_misuse)
{
    misuse("throw_interrupted_by_hand", "strand_throw");
    misuse("throw_below_interrupted_by_hand", "strand_throw");
}

TEST_PROGRAM(taking_the_first_of_no_children_is_misuse)
{
    misuse("take_the_first_of_no_children", "strand_scope_join_first");
}

/* contract 9.14 */
TEST_PROGRAM(options_without_their_size_are_misuse)
{
    misuse("run_with_options_of_no_size", "strand_run");
    CHECK_CONTAINS(o.err, "size");
}

TEST_PROGRAM(spawning_into_a_pool_of_another_run_is_misuse)
{
    misuse("spawn_into_a_foreign_pool", "strand_spawn_with");
    CHECK_CONTAINS(o.err, "not a pool's");
}

TEST_PROGRAM(null_where_a_function_a_kind_or_an_exception_is_needed_is_misuse)
{
    static const char *const cases[][2] = {
        {"spawn_nothing", "strand_spawn"}, {"spawn_nothing_with", "strand_spawn_with"},
        {"try_nothing", "strand_try"},     {"offload_nothing", "strand_offload"},
        {"throw_no_kind", "strand_throw"}, {"rethrow_nothing", "strand_rethrow"},
        {"run_nothing", "strand_run"},     {"print_nothing", "strand_exception_print"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        misuse(cases[i][0], cases[i][1]);
        CHECK_CONTAINS(o.err, "is NULL");
    }
}

/* contract 4.67 */
TEST_PROGRAM(waiting_for_signals_of_a_block_that_was_left_or_for_those_of_faults_is_misuse)
{
    misuse("wait_for_signals_of_a_block_that_was_left", "strand_wait_signal");
    misuse("wait_for_a_fault", "STRAND_SIGNALS");
}

TEST_PROGRAM(a_scope_with_unknown_flags_or_with_two_policies_is_misuse)
{
    misuse("open_a_scope_with_unknown_flags", "STRAND_SCOPE_WITH");
    CHECK_CONTAINS(o.err, "0x7f0");
    misuse("open_a_scope_with_two_policies", "STRAND_SCOPE_WITH");
}

/* contract 9.14 */
TEST_PROGRAM(attributes_without_their_size_are_misuse)
{
    misuse("spawn_with_attributes_of_no_size", "strand_spawn");
    CHECK_CONTAINS(o.err, "size");
    misuse("spawn_with_attributes_of_an_absurd_size", "strand_spawn");
    CHECK_CONTAINS(o.err, "5000");
    misuse("run_with_options_of_an_absurd_size", "strand_run");
    CHECK_CONTAINS(o.err, "5000");
}

/* contract 9.14 */
TEST_PROGRAM(options_of_a_dump_without_their_size_are_misuse)
{
    misuse("dump_with_options_of_no_size", "strand_dump");
    CHECK_CONTAINS(o.err, "size");
}

TEST_PROGRAM(an_unknown_grouping_of_a_dump_is_misuse)
{
    misuse("dump_grouped_as_nobody_knows", "strand_dump");
    CHECK_CONTAINS(o.err, "grouping");
}

TEST_PROGRAM(a_place_or_an_argument_that_is_null_is_misuse)
{
    misuse("ask_for_statistics_nowhere", "strand_stats_get");
    CHECK_CONTAINS(o.err, "NULL");
    misuse("copy_arguments_from_nowhere", "strand_spawn_with");
    CHECK_CONTAINS(o.err, "NULL");
}

/* ---- channels and selects -------------------------------------------------------------------- */

TEST_PROGRAM(using_a_channel_that_is_gone_or_none_is_misuse)
{
    misuse("send_to_no_channel", "strand_chan_send");
    misuse("send_to_a_channel_that_is_gone", "strand_chan_send");
    misuse("receive_from_a_channel_that_is_gone", "strand_chan_receive");
    misuse("try_a_channel_that_is_gone", "strand_chan_try_send");
    misuse("close_a_channel_that_is_gone", "strand_chan_close");
    misuse("measure_a_channel_that_is_gone", "strand_chan_length");
    misuse("select_on_a_channel_that_is_gone", "strand_select");
    misuse("send_to_a_channel_of_another_run", "strand_chan_send");
}

TEST_PROGRAM(a_channel_is_used_by_strands_and_made_by_the_owner_of_its_scope)
{
    misuse("send_on_a_plain_thread", "strand_chan_send");
    misuse("make_a_channel_in_a_scope_of_another_strand", "strand_chan_open");
    misuse("make_a_channel_with_attributes_of_no_size", "strand_chan_open");
}

TEST_PROGRAM(sending_from_nowhere_and_receiving_to_nowhere_is_misuse)
{
    misuse("send_nothing", "strand_chan_send");
    misuse("receive_into_nothing", "strand_chan_receive");
}

TEST_PROGRAM(selecting_on_the_own_end_or_on_nobodys_or_with_unknown_flags_is_misuse)
{
    misuse("select_on_its_own_end", "strand_select");
    misuse("select_on_the_end_of_nobody", "strand_on_end");
    misuse("select_with_unknown_flags", "strand_select");
    CHECK_CONTAINS(o.err, "0x4");
    misuse("select_of_nothing", "strand_select");
    CHECK_CONTAINS(o.err, "NULL");
}

TEST_PROGRAM(receiving_and_selecting_in_a_no_suspend_section_is_misuse_even_if_it_would_not_wait)
{
    misuse("receive_in_no_suspend", "strand_chan_receive");
    misuse("select_in_no_suspend", "strand_select");
}

TEST_PROGRAM(a_ticker_has_to_be_made_with_a_period)
{
    misuse("tick_without_a_period", "strand_ticker_every");
    misuse("tick_with_no_ticker", "strand_wait_tick");
    misuse("select_on_no_ticker", "strand_on_tick");
}
