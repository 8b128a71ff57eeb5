/*
 * What is refused on shared fibres, and how an overflow of their stacks is reported. Each case is a run of
 * tests/programs/fibre_misuse.c or overflow.c.
 */
#define SUITE fibre_misuse
#include "test.h"

#include <signal.h>

static struct test_output o;

/* ---- misuse ---------------------------------------------------------------------------------------------- */

static void misuse(const char *name, const char *function, const char *what)
{
    test_program(&o, "fibre_misuse", name);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.out, "hook told: function=");
    CHECK_CONTAINS(o.out, function);
    CHECK_CONTAINS(o.err, what);
}

TEST_PROGRAM(opening_with_bad_attributes_is_misuse)
{
    misuse("open_with_no_size", "strand_fibre_open", "size is 0");
    misuse("open_with_an_absurd_size", "strand_fibre_open", "size is 5000");
    misuse("open_fewer_than_none", "strand_fibre_open", "count is -1");
    misuse("open_too_many", "strand_fibre_open", "count is 65537");
}

TEST_PROGRAM(opening_in_the_plain_scope_of_another_strand_is_misuse)
{
    misuse("open_in_a_foreign_scope", "strand_fibre_open", "scope");
}

TEST_PROGRAM(a_fibre_is_gone_when_its_scope_has_been_left)
{
    misuse("spawn_on_a_stale_fibre", "strand_spawn_with", "its scope has been left");
    CHECK_CONTAINS(o.err, "the fibre 'fibre' was opened in ");
    misuse("ask_a_stale_fibre", "strand_fibre_info", "its scope has been left");
    misuse("trim_a_stale_fibre", "strand_fibre_trim", "its scope has been left");
    misuse("count_a_stale_fibre", "strand_fibre_count", "its scope has been left");
    misuse("spawn_on_an_invented_fibre", "strand_spawn_with", "fibre");
}

TEST_PROGRAM(the_handle_of_something_else_is_none_of_a_fibre)
{
    misuse("ask_the_handle_of_a_channel", "strand_fibre_count", "the handle is not a fibre's");
    misuse("ask_the_handle_of_a_strand", "strand_fibre_count", "the handle is not a fibre's");
    misuse("send_to_a_fibre", "strand_chan_send", "channel");
}

TEST_PROGRAM(a_fibre_of_another_run_is_misuse)
{
    misuse("spawn_on_a_fibre_of_another_run", "strand_spawn_with", "another run");
}

TEST_PROGRAM(asking_for_figures_that_are_not_there_is_misuse)
{
    misuse("ask_with_no_size", "strand_fibre_info", "size is 0");
    misuse("ask_for_nothing", "strand_fibre_info",
           "misuse of strand_fibre_info_get: the buffer for the figures is NULL");
    misuse("ask_for_one_that_is_not_there", "strand_fibre_info", "no fibre 2");
}

TEST_PROGRAM(a_strand_on_a_fibre_chooses_neither_its_stack_nor_its_pool)
{
    misuse("choose_a_stack_size", "strand_spawn_with", "attr.stack_size");
    misuse("wipe_a_stack_of_its_own", "strand_spawn_with", "attr.wipe");
    misuse("choose_a_pool", "strand_spawn_with", "attr.pool");
}

/* From the first strand on, with its name, and where it is. */
static void escape(const char *name, const char *function)
{
    misuse(name, function, "below");
    CHECK_CONTAINS(o.err, "lodger");
    CHECK_CONTAINS(o.err, "bytes");
    CHECK(strstr(o.out, "still alive") == NULL);
}

/* V-18, contract 3.12 */
TEST_PROGRAM(an_argument_on_the_shared_stack_is_misuse)
{
    escape("give_local", "strand_spawn");
    escape("give_local_with_attributes", "strand_spawn_with");
    escape("give_local_to_a_guest", "strand_spawn_with");
    escape("offload_local", "strand_offload");
    escape("offload_local_on", "strand_offload_on");
    escape("offload_local_with", "strand_offload_with");
    escape("start_a_thread_with_local", "strand_sim_thread");
    escape("give_local_to_an_actor", "strand_actor_give");
    escape("run_a_local_among_actors", "strand_actors_run");
}

/* V-18, contract 3.12 */
TEST_PROGRAM(a_result_on_the_shared_stack_is_misuse)
{
    escape("result_is_local", "strand_fn");
    escape("run_once_for_a_local", "strand_once_run");
}

/* V-18, contract 3.12 */
TEST_PROGRAM(what_others_look_at_may_not_lie_on_the_shared_stack)
{
    escape("inherit_local", "STRAND_LOCAL");
    escape("wait_with_a_local_key", "strand_prio_acquire");
    escape("lock_is_local", "strand_limit_init");
    escape("inherit_by_a_local_key", "STRAND_LOCAL");
    escape("order_by_local", "strand_prio_init");
    escape("local_name_of_a_limit", "strand_limit_init");
}

/* contract 3.12 */
TEST_PROGRAM(what_an_exception_refers_to_may_not_lie_on_the_shared_stack)
{
    escape("throw_with_a_local_payload", "strand_throw_with");
    escape("throw_a_local_kind_with", "strand_throw_with");
    escape("throw_a_local_kind", "strand_throw");
}

/* Other builds only look at what is handed over by address. */
static void copied(const char *name, const char *function)
{
#ifdef STRAND_DEBUG_BUILD
    escape(name, function);
    CHECK_CONTAINS(o.err, "at byte 8");
#else
    (void)function;
    test_program(&o, "fibre_misuse", name);
    CHECK_EQ(o.status, 0);
    CHECK_STR(o.out, "still alive\n");
#endif
}

/* contract 3.5 */
TEST_PROGRAM(debug_builds_find_addresses_of_the_shared_stack_in_what_is_copied)
{
    copied("copy_to_child", "strand_spawn_with");
    copied("copy_to_crew", "strand_offload_with");
    copied("send_address", "strand_chan_send");
    copied("try_to_send_address", "strand_chan_try_send");
    copied("post_address", "strand_chan_post");
    copied("select_to_send_address", "strand_select");
    copied("tell_address", "strand_tell");
    copied("begin_an_actor_with_address", "strand_actor_spawn");
    test_program(&o, "fibre_misuse", "copy_no_address");
    CHECK_EQ(o.status, 0);
    CHECK_STR(o.out, "still alive\n");
}

/* V-18, contract 3.12 */
TEST_PROGRAM(a_lock_on_the_shared_stack_is_misuse_as_soon_as_somebody_waits_for_it)
{
    escape("mutex_is_local", "strand_mutex_unlock");
    escape("neighbours_mutex", "strand_mutex_lock");
    escape("reader_is_local", "strand_rwlock_read_done");
    escape("writer_is_local", "strand_rwlock_write_done");
}
TEST_OWN_STACKS(a_lock_on_the_shared_stack_is_misuse_as_soon_as_somebody_waits_for_it,
                "who waits would find it overwritten");

/* V-18, contract 3.12 */
TEST_PROGRAM(what_is_waited_at_may_not_lie_on_the_shared_stack)
{
    escape("condition_is_local", "strand_condition_wait");
    escape("semaphore_is_local", "strand_semaphore_acquire");
    escape("semaphore_is_local_and_tried", "strand_semaphore_try_acquire");
    escape("barrier_is_local", "strand_barrier_wait");
    escape("once_is_local", "strand_once_run");
    escape("event_is_local", "strand_event_wait");
    escape("event_is_local_and_set", "strand_event_set");
    escape("group_is_local", "strand_group_wait");
    escape("latch_is_local", "strand_latch_wait");
    escape("select_on_local", "strand_select");
}

/* ---- overflow ----------------------------------------------------------------- */

TEST_PROGRAM(an_overflow_on_a_fibre_is_reported_as_that_strands)
{
    setenv("TSAN_OPTIONS", "report_signal_unsafe=0", 1);
    test_program(&o, "overflow", "fibre");
    CHECK(o.signalled || o.status != 0);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
    CHECK_CONTAINS(o.err, "dive_deeper");
}

TEST_PROGRAM(without_guards_an_overflow_on_a_fibre_is_found_at_the_next_switch)
{
    setenv("STRAND_GUARDS", "none", 1);
    setenv("TSAN_OPTIONS", "report_signal_unsafe=0", 1);
    test_program(&o, "overflow", "fibre-switch");
    CHECK(o.signalled || o.status != 0);
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
}
