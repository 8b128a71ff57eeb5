/*
 * What an exception says: kind, message, code, payload, cause, suppressed ones, trace; and how long it lives.
 */
#define SUITE exception
#define ONE_SEED_IN 10 /* seeds decide little in what an exception says, and long traces take the time */
#include "test.h"

#include "printed_lines.h"

#include <errno.h>
#include <pthread.h>

static const strand_kind FRUIT = STRAND_KIND("fruit", &STRAND_ERROR);
static const strand_kind APPLE = STRAND_KIND("apple", &FRUIT);
static const strand_kind STONE = STRAND_KIND("stone", &STRAND_ERROR);

#define KEEP_FRAME __asm__ volatile("") /* after a call: keeps it from becoming a jump */

static NOINLINE void *throw_apple(void *arg)
{
    (void)arg;
    strand_throw(&APPLE, "worm %d of %s", 7, "ten");
}

static NOINLINE void *throw_stone(void *arg)
{
    (void)arg;
    strand_throw(&STONE, "hard");
}

/* What strand_exception_print writes. The caller frees it. */
static char *printed(const strand_exception *e)
{
    char *text = calloc(1, 65536);
    FILE *file = tmpfile();
    CHECK(text != NULL && file != NULL);
    strand_exception_print(e, fileno(file));
    rewind(file);
    CHECK(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static void check_printed(const strand_exception *e, const char *const *needles)
{
    char *text = printed(e);
    for (; *needles; needles++)
        CHECK_CONTAINS(text, *needles);
    free(text);
}
#define CHECK_PRINTED(e, ...) check_printed((e), (const char *const[]){__VA_ARGS__, NULL})

/* ---- kinds ---------------------------------------------------------------------------------- */

/* contract 4.57 */
TEST(a_kind_is_itself_and_all_above_it)
{
    strand_exception *e = test_run_catching(throw_apple, NULL, NULL);
    CHECK(strand_exception_is(e, &APPLE));
    CHECK(strand_exception_is(e, &FRUIT));
    CHECK(strand_exception_is(e, &STRAND_ERROR));
    CHECK(strand_exception_is(e, &STRAND_ANY));
    strand_exception_release(e);
}

/* contract 4.57 */
TEST(a_kind_is_neither_beside_nor_below_itself)
{
    static const strand_kind PIPPIN = STRAND_KIND("pippin", &APPLE);
    strand_exception *e = test_run_catching(throw_apple, NULL, NULL);
    CHECK(!strand_exception_is(e, &STONE));
    CHECK(!strand_exception_is(e, &PIPPIN));
    CHECK(!strand_exception_is(e, &STRAND_INTERRUPTED));
    CHECK(!strand_exception_is(e, &STRAND_SYSTEM));
    strand_exception_release(e);
}

/* contract 4.57 */
TEST(the_kinds_of_the_library_form_the_tree_of_the_header)
{
    CHECK_PTR(STRAND_ANY.parent, NULL);
    CHECK_PTR(STRAND_INTERRUPTED.parent, &STRAND_ANY);
    CHECK_PTR(STRAND_ERROR.parent, &STRAND_ANY);
    CHECK_PTR(STRAND_TIMED_OUT.parent, &STRAND_ERROR);
    CHECK_PTR(STRAND_CHILD_CANCELLED.parent, &STRAND_ERROR);
    CHECK_PTR(STRAND_LIVE_STRANDS.parent, &STRAND_ERROR);
    CHECK_PTR(STRAND_SYSTEM.parent, &STRAND_ERROR);
}

/* contract 1.1 */
TEST(the_kinds_of_the_library_have_the_names_of_the_contract)
{
    CHECK_STR(STRAND_INTERRUPTED.name, "interrupted");
    CHECK_STR(STRAND_ERROR.name, "error");
    CHECK_STR(STRAND_TIMED_OUT.name, "timed-out");
    CHECK_STR(STRAND_CHILD_CANCELLED.name, "child-cancelled");
    CHECK_STR(STRAND_LIVE_STRANDS.name, "live-strands");
    CHECK_STR(STRAND_SYSTEM.name, "system");
}

TEST(a_kind_with_the_name_of_another_is_another_kind)
{
    static const strand_kind OTHER_APPLE = STRAND_KIND("apple", &FRUIT);
    strand_exception *e = test_run_catching(throw_apple, NULL, NULL);
    CHECK(!strand_exception_is(e, &OTHER_APPLE));
    strand_exception_release(e);
}

/* ---- by whatever call ----------------------------------------------------------------------- */

static NOINLINE void *throw_by_a_pointer(void *arg)
{
    void (*volatile thrower)(const strand_kind *kind, const char *format, ...) = strand_throw;
    TEST_LEAVING("left");
    thrower(&APPLE, "worm %d of %s, %.2f long", 7, "ten", 2.5);
    return arg;
}

static NOINLINE void *throw_by_a_call(void *arg)
{
    TEST_LEAVING("left");
    strand_throw(&APPLE, "worm %d of %s, %.2f long", 7, "ten", 2.5);
    return arg;
}

static void check_thrown_by(strand_fn *thrower, const char *name)
{
    strand_exception *e = test_run_catching(thrower, NULL, NULL);
    CHECK_KIND(e, &APPLE);
    CHECK_STR(strand_exception_text(e), "worm 7 of ten, 2.50 long");
    CHECK_LOG("left");
    char *text = printed(e), *first = strstr(text, " at ");
    CHECK(first != NULL);
    CHECK_EQ(strncmp(first + 4, name, strlen(name)), 0);
    free(text);
    strand_exception_release(e);
}

/* The call is inline where the compiler can do that; a pointer is to the function in the library. */
/* contract 4.58 */
TEST(strand_throw_throws_the_same_by_a_call)
{
    check_thrown_by(throw_by_a_call, "throw_by_a_call");
}

/* contract 4.58 */
TEST(strand_throw_throws_the_same_through_a_pointer)
{
    check_thrown_by(throw_by_a_pointer, "throw_by_a_pointer");
}

/* ---- message and code ----------------------------------------------------------------------- */

/* contract 4.58 */
TEST(the_message_is_formatted_as_by_printf)
{
    strand_exception *e = test_run_catching(throw_apple, NULL, NULL);
    CHECK_STR(strand_exception_text(e), "worm 7 of ten");
    strand_exception_release(e);
}

static void *throw_many_xs(void *count)
{
    char xs[1001];
    memset(xs, 'x', sizeof xs);
    xs[*(int *)count] = 0;
    strand_throw(&STONE, "%s", xs);
}

TEST(a_message_of_200_bytes_is_kept_whole)
{
    int count = 200;
    strand_exception *e = test_run_catching(throw_many_xs, &count, NULL);
    CHECK_EQ(strlen(strand_exception_text(e)), 200);
    strand_exception_release(e);
}

TEST(a_longer_message_is_cut_to_200_bytes)
{
    int count = 1000;
    strand_exception *e = test_run_catching(throw_many_xs, &count, NULL);
    const char *text = strand_exception_text(e);
    CHECK_EQ(strlen(text), 200);
    CHECK_EQ(strspn(text, "x."), 200);
    strand_exception_release(e);
}

TEST(a_message_may_be_empty)
{
    int count = 0;
    strand_exception *e = test_run_catching(throw_many_xs, &count, NULL);
    CHECK_STR(strand_exception_text(e), "");
    strand_exception_release(e);
}

TEST(the_members_that_a_plain_throw_does_not_set_are_empty)
{
    strand_exception *e = test_run_catching(throw_stone, NULL, NULL);
    CHECK_EQ(strand_exception_code(e), 0);
    CHECK_PTR(strand_exception_payload(e), NULL);
    CHECK_PTR(strand_exception_cause(e), NULL);
    CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    CHECK_STR(strand_exception_who(e), "");
    CHECK_STR(strand_exception_why(e), "");
    CHECK_EQ(strand_exception_progress(e), 0);
    strand_exception_release(e);
}

static NOINLINE void *throw_with_info(void *info)
{
    strand_throw_with(&STONE, info, "with %s", "info");
}

/* contract 4.58 */
TEST(throw_with_keeps_code_and_message)
{
    strand_throw_info info = {.size = sizeof info, .code = -EPIPE};
    strand_exception *e = test_run_catching(throw_with_info, &info, NULL);
    CHECK_EQ(strand_exception_code(e), -EPIPE);
    CHECK_STR(strand_exception_text(e), "with info");
    CHECK_KIND(e, &STONE);
    strand_exception_release(e);
}

/* contract 4.65 */
TEST_INSIDE(strand_must_returns_what_is_not_negative)
{
    CHECK_EQ(strand_must(0), 0);
    CHECK_EQ(strand_must(17), 17);
    CHECK_EQ(strand_must(INT64_MAX), INT64_MAX);
}

static int64_t refuse(const char *who, int64_t result)
{
    return *who ? result : 0;
}

static void *must_name_the_call(void *arg)
{
    strand_must(refuse("a client, for one", -ECONNREFUSED));
    return arg;
}

static void *must_cut_the_call(void *arg)
{
    strand_must(refuse("whose argument is so long that the message has only its beginning", -ECONNREFUSED));
    return arg;
}

static void *must_name_a_number(void *arg)
{
    strand_must(-ECONNREFUSED);
    return arg;
}

static void *must_as_a_function(void *arg)
{
    int64_t (*must)(int64_t result) = strand_must;
    must(-ECONNREFUSED);
    return arg;
}

TEST_INSIDE(strand_must_names_the_call_whose_result_it_throws)
{
    static const struct {
        strand_fn *fn;
        const char *text;
    } cases[] = {
        {must_name_the_call, "refuse(\"a client, for one\", -ECONNREFUSED): Connection refused"},
        {must_cut_the_call, "refuse(\"whose argument is so long that the message has only its beginning\", -ECO...: "
                            "Connection refused"},
        {must_name_a_number, "Connection refused"},
        {must_as_a_function, "Connection refused"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strand_exception *e = strand_try(cases[i].fn, NULL, NULL);
        CHECK_STR(strand_exception_text(e), cases[i].text);
        strand_exception_release(e);
    }
}

/* contract 3.7, 4.65 */
TEST_INSIDE(strand_must_throws_a_negated_errno_code_as_a_system_exception)
{
    STRAND_TRY {
        strand_must(-ECONNREFUSED);
        CHECK_FAIL("strand_must returned");
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        CHECK_EQ(strand_exception_code(e), -ECONNREFUSED);
        CHECK_CONTAINS(strand_exception_text(e), "refused");
        test_log("system");
    }
    STRAND_END
    CHECK_LOG("system");
}

/* ---- payload, cause ------------------------------------------------------------------------- */

static _Atomic int freed;

static void count_free(void *payload)
{
    (void)payload;
    freed++;
}

/* contract 4.58 */
TEST_INSIDE(the_catcher_sees_the_payload_and_it_is_freed_at_the_end_of_the_catch_block)
{
    freed = 0;
    int payload = 0;
    strand_throw_info info = {.size = sizeof info, .payload = &payload, .payload_free = count_free};
    STRAND_TRY {
        throw_with_info(&info);
    }
    STRAND_CATCH(&STONE, e) {
        CHECK_PTR(strand_exception_payload(e), &payload);
        CHECK_EQ(freed, 0);
    }
    STRAND_END
    CHECK_EQ(freed, 1);
}

TEST_INSIDE(a_payload_without_a_free_function_is_left_alone)
{
    int payload = 5;
    strand_throw_info info = {.size = sizeof info, .payload = &payload};
    strand_exception *e = strand_try(throw_with_info, &info, NULL);
    CHECK_PTR(strand_exception_payload(e), &payload);
    strand_exception_release(e);
    CHECK_EQ(payload, 5);
}

TEST_INSIDE(a_catch_block_that_is_left_by_break_frees_its_exception)
{
    freed = 0;
    strand_throw_info info = {.size = sizeof info, .payload = &info, .payload_free = count_free};
    for (volatile int i = 0; i < 3; i++) {
        STRAND_TRY {
            throw_with_info(&info);
        }
        STRAND_CATCH(&STONE, e) {
            break;
        }
        STRAND_END
    }
    CHECK_EQ(freed, 1);
}

/* contract 4.59 */
TEST_INSIDE(an_exception_that_is_kept_outlives_its_catch_block_until_the_last_release)
{
    freed = 0;
    strand_exception *volatile kept = NULL;
    strand_throw_info info = {.size = sizeof info, .payload = &info, .payload_free = count_free};
    STRAND_TRY {
        throw_with_info(&info);
    }
    STRAND_CATCH(&STONE, e) {
        kept = strand_exception_keep(strand_exception_keep(e));
    }
    STRAND_END
    CHECK_STR(strand_exception_text(kept), "with info");
    strand_exception_release(kept);
    CHECK_EQ(freed, 0);
    strand_exception_release(kept);
    CHECK_EQ(freed, 1);
}

/* contract 4.59 */
TEST_INSIDE(a_rethrown_exception_is_freed_once_by_its_last_catcher)
{
    freed = 0;
    strand_throw_info info = {.size = sizeof info, .payload = &info, .payload_free = count_free};
    STRAND_TRY {
        STRAND_TRY {
            throw_with_info(&info);
        }
        STRAND_CATCH(&STONE, e) {
            strand_rethrow(strand_exception_keep(e));
        }
        STRAND_END
    }
    STRAND_CATCH(&STONE, e) {
        CHECK_EQ(freed, 0);
    }
    STRAND_END
    CHECK_EQ(freed, 1);
}

TEST(releasing_no_exception_is_allowed)
{
    strand_exception_release(NULL);
}

static void *throw_with_cause(void *unused)
{
    strand_throw_info first = {.size = sizeof first, .payload = &freed, .payload_free = count_free};
    strand_throw_info second = {
        .size = sizeof second, .code = -EIO, .cause = strand_try(throw_with_info, &first, NULL)};
    strand_throw_with(&APPLE, &second, "because of it");
    return unused;
}

/* contract 4.58 */
TEST(a_cause_belongs_to_its_exception_and_goes_with_it)
{
    freed = 0;
    strand_exception *e = test_run_catching(throw_with_cause, NULL, NULL);
    const strand_exception *cause = strand_exception_cause(e);
    CHECK(cause != NULL);
    CHECK_STR(strand_exception_text(cause), "with info");
    CHECK_PTR(strand_exception_cause(cause), NULL);
    CHECK_EQ(freed, 0);
    strand_exception_release(e);
    CHECK_EQ(freed, 1);
}

static void *fail_by_a_code_of_no_system(void *arg)
{
    strand_must(-9999);
    return arg;
}

TEST_INSIDE(a_code_that_no_system_has_is_an_exception_all_the_same)
{
    strand_exception *e = strand_try(fail_by_a_code_of_no_system, NULL, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -9999);
    CHECK(strlen(strand_exception_text(e)) > 0);
    strand_exception_release(e);
}

/* ---- suppressed ----------------------------------------------------------------------------- */

static void suppress_an_apple(int *unused)
{
    (void)unused;
    strand_suppress(strand_try(throw_apple, NULL, NULL));
}

static void *throw_past_two_suppressors(void *unused)
{
    int outer __attribute__((cleanup(suppress_an_apple), unused)) = 0;
    int inner __attribute__((cleanup(suppress_an_apple), unused)) = 0;
    throw_stone(unused);
    return unused;
}

/* contract 4.49 */
TEST(strand_suppress_attaches_errors_of_clean_ups_to_the_exception_in_flight)
{
    strand_exception *e = test_run_catching(throw_past_two_suppressors, NULL, NULL);
    CHECK_KIND(e, &STONE);
    for (size_t i = 0; i < 2; i++)
        CHECK_PTR(strand_exception_kind(strand_exception_suppressed(e, i)), &APPLE);
    CHECK_PTR(strand_exception_suppressed(e, 2), NULL);
    strand_exception_release(e);
}

static void suppress_what_flies(strand_exception **e)
{
    strand_suppress(*e);
}

TEST_INSIDE(an_exception_is_not_suppressed_in_itself_nor_twice)
{
    strand_exception *e = strand_try(throw_apple, NULL, NULL);
    STRAND_TRY {
        strand_exception *again __attribute__((cleanup(suppress_what_flies), unused)) = strand_exception_keep(e);
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_CATCH(&APPLE, caught) {
        CHECK_PTR(caught, e);
        CHECK_PTR(strand_exception_suppressed(caught, 0), NULL);
    }
    STRAND_END
    strand_exception *first = NULL;
    for (int i = 0; i < 3; i++) {
        STRAND_TRY {
            strand_exception *apple __attribute__((cleanup(suppress_what_flies), unused)) = strand_exception_keep(e);
            throw_stone(NULL);
        }
        STRAND_CATCH(&STONE, stone) {
            CHECK_EQ(test_count_kind(stone, &APPLE), i != 1); /* while the first has it, the second does not get it */
            if (i == 0)
                first = strand_exception_keep(stone);
        }
        STRAND_END
        if (i == 1)
            strand_exception_release(first);
    }
    strand_exception_release(e);
}

/* contract 4.58 */
TEST_INSIDE(suppressed_exceptions_are_freed_with_the_one_that_carries_them)
{
    freed = 0;
    strand_throw_info info = {.size = sizeof info, .payload = &info, .payload_free = count_free};
    STRAND_TRY {
        STRAND_TRY {
            throw_with_info(&info);
        }
        STRAND_CATCH(&STONE, e) {
            throw_apple(NULL);
        }
        STRAND_END
    }
    STRAND_CATCH(&APPLE, e) {
        CHECK_EQ(freed, 0);
    }
    STRAND_END
    CHECK_EQ(freed, 1);
}

static void keep_message(const char *message, void *arg)
{
    snprintf(arg, 4096, "%s", message);
}

static void *suppress_with_none_in_flight(void *unused)
{
    strand_suppress(strand_try(throw_apple, NULL, NULL));
    return unused;
}

/* contract 4.49 */
TEST(strand_suppress_with_no_exception_in_flight_goes_to_the_log_hook)
{
    static char message[4096];
    strand_options options = test_options();
    message[0] = 0;
    options.on_log = keep_message;
    options.hook_arg = message;
    strand_run(&options, suppress_with_none_in_flight, NULL);
    CHECK_CONTAINS(message, "worm 7 of ten");
}

/* ---- in flight ------------------------------------------------------------------------------ */

static void log_whether_unwinding(int *unused)
{
    (void)unused;
    test_log(strand_unwinding() ? "unwinding" : "normal");
}

TEST_INSIDE(a_clean_up_can_distinguish_an_exception_from_a_normal_way_out)
{
    STRAND_TRY {
        {
            int first __attribute__((cleanup(log_whether_unwinding), unused)) = 0;
        }
        int second __attribute__((cleanup(log_whether_unwinding), unused)) = 0;
        throw_stone(NULL);
    }
    STRAND_CATCH(&STONE, e) {
        int third __attribute__((cleanup(log_whether_unwinding), unused)) = 0;
    }
    STRAND_END
    CHECK_LOG("normal unwinding normal");
}

static _Atomic int stage;

static void wait_in_clean_up(int *unused)
{
    (void)unused;
    stage = 1;
    test_yield_until(&stage, 2);
    CHECK(strand_unwinding());
}

static void *unwind_slowly(void *arg)
{
    int slow __attribute__((cleanup(wait_in_clean_up), unused)) = 0;
    return throw_stone(arg);
}

TEST_INSIDE(one_strand_unwinding_does_not_make_another_look_so)
{
    STRAND_SCOPE(scope);
    stage = 0;
    strand child = strand_spawn(scope, unwind_slowly, NULL);
    test_yield_until(&stage, 1);
    CHECK(!strand_unwinding());
    stage = 2;
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STONE, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

/* ---- print and trace ------------------------------------------------------------------------ */

TEST(print_shows_kind_and_message)
{
    strand_exception *e = test_run_catching(throw_apple, NULL, NULL);
    CHECK_PRINTED(e, "apple", "worm 7 of ten");
    strand_exception_release(e);
}

static NOINLINE void innermost_thrower(void)
{
    throw_stone(NULL);
    KEEP_FRAME;
}

static NOINLINE void middle_caller(void)
{
    innermost_thrower();
    KEEP_FRAME;
}

static NOINLINE void *spawned_function(void *arg)
{
    middle_caller();
    KEEP_FRAME;
    return arg;
}

/* contract 4.58 */
TEST(print_shows_the_functions_between_throw_and_entry)
{
    strand_exception *e = test_run_catching(spawned_function, NULL, NULL);
    CHECK_PRINTED(e, "throw_stone", "innermost_thrower", "middle_caller", "spawned_function");
    strand_exception_release(e);
}

/* contract 4.58 */
TEST(the_trace_goes_from_the_throw_outwards)
{
    strand_exception *e = test_run_catching(spawned_function, NULL, NULL);
    char *text = printed(e);
    char *inner = strstr(text, "innermost_thrower"), *outer = strstr(text, "middle_caller");
    CHECK(inner != NULL && outer != NULL && inner < outer);
    free(text);
    strand_exception_release(e);
}

static NOINLINE strand the_spawner(strand_scope scope)
{
    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = "grocer"), spawned_function, NULL, 0);
    KEEP_FRAME;
    return child;
}

static NOINLINE void the_joiner(strand child)
{
    strand_join(child);
    KEEP_FRAME;
}

static void *spawn_and_join(void *arg)
{
    STRAND_SCOPE(scope);
    the_joiner(the_spawner(scope));
    return arg;
}

/* contract 4.7 */
TEST(the_trace_of_a_joined_exception_names_where_it_was_thrown_spawned_and_joined)
{
    strand_exception *e = test_run_catching(spawn_and_join, NULL, NULL);
    CHECK_PRINTED(e, "innermost_thrower", "the_spawner", "the_joiner");
    strand_exception_release(e);
}

TEST(the_trace_of_a_joined_exception_names_the_strand)
{
    strand_exception *e = test_run_catching(spawn_and_join, NULL, NULL);
    CHECK_PRINTED(e, "grocer");
    strand_exception_release(e);
}

static void *spawn_a_spawner(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, spawn_and_join, NULL));
    return arg;
}

/* contract 4.7 */
TEST(the_trace_goes_on_across_every_join_on_the_way)
{
    strand_exception *e = test_run_catching(spawn_a_spawner, NULL, NULL);
    CHECK_PRINTED(e, "innermost_thrower", "the_joiner", "spawn_a_spawner");
    strand_exception_release(e);
}

static NOINLINE void *rethrow_elsewhere(void *arg)
{
    strand_exception *e = strand_try(spawned_function, NULL, NULL);
    strand_rethrow(e);
    return arg;
}

/* contract 4.59 */
TEST(a_rethrown_exception_keeps_the_trace_of_its_throw)
{
    strand_exception *e = test_run_catching(rethrow_elsewhere, NULL, NULL);
    CHECK_PRINTED(e, "innermost_thrower");
    strand_exception_release(e);
}

/* Prints what interrupts it, and ends by it. */
static void *print_an_interruption(void *text)
{
    strand_exception *e = strand_try(test_sleep, NULL, NULL);
    *(char **)text = printed(e);
    strand_rethrow(e);
}

struct cancelling {
    strand victim;
    const char *why;
    char line[128]; /* the expected line of the print */
};

static void *cancel_it(void *arg)
{
    struct cancelling *cancelling = arg;
    snprintf(cancelling->line, sizeof cancelling->line, "cancelled by strand 'gardener' #%llu%s%s\n",
             (unsigned long long)strand_id(strand_self()), cancelling->why ? ": " : "",
             cancelling->why ? cancelling->why : "");
    strand_cancel(cancelling->victim, cancelling->why);
    return arg;
}

static void *keep_what_interrupts(void *kept)
{
    strand_exception *e = strand_try(test_sleep, NULL, NULL);
    *(strand_exception **)kept = strand_exception_keep(e);
    strand_rethrow(e);
}

TEST_INSIDE(an_interruption_that_somebody_keeps_stays_one_when_its_strand_ends_by_it)
{
    strand_exception *kept = NULL;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, keep_what_interrupts, &kept);
    strand_cancel(child, "enough");
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "enough");
    CHECK_KIND(kept, &STRAND_INTERRUPTED);
    CHECK_PTR(strand_exception_cause(e), kept);
    strand_exception_release(e);
    strand_exception_release(kept);
}

/* The line stands in what the victim sees, and in what its joiner sees. */
static void check_who_and_why(const char *why)
{
    char *of_victim = NULL;
    STRAND_SCOPE(scope);
    struct cancelling cancelling = {.victim = strand_spawn(scope, print_an_interruption, &of_victim), .why = why};
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "gardener"), cancel_it, &cancelling, 0));
    strand_exception *e = strand_try(test_join, &cancelling.victim, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_PRINTED(e, cancelling.line);
    CHECK_CONTAINS(of_victim, cancelling.line);
    free(of_victim);
    strand_exception_release(e);
}

/* contract 4.15 */
TEST_INSIDE(print_shows_the_strand_and_reason_of_a_cancel)
{
    check_who_and_why("too many weeds");
}

/* contract 4.15 */
TEST_INSIDE(print_shows_the_strand_of_a_cancel_without_a_reason)
{
    check_who_and_why(NULL);
}

TEST(print_shows_causes)
{
    strand_exception *e = test_run_catching(throw_with_cause, NULL, NULL);
    CHECK_PRINTED(e, "because of it", "with info");
    strand_exception_release(e);
}

static const strand_kind NAMESAKE = STRAND_KIND("apple", &FRUIT);

static void *meet_a_namesake(void *arg)
{
    STRAND_TRY {
        throw_apple(arg);
    }
    STRAND_CATCH(&NAMESAKE, e) {
    }
    STRAND_END
    return arg;
}

/* The memory of the one before is used again. */
TEST_INSIDE(print_mentions_a_kind_of_the_same_name_only_where_a_catch_block_has_named_one)
{
    for (int i = 0; i < 2; i++) {
        strand_exception *e = strand_try(i ? throw_apple : meet_a_namesake, NULL, NULL);
        CHECK_EQ(printed_lines(e, "another kind"), !i);
        strand_exception_release(e);
    }
}

TEST(print_shows_suppressed_exceptions)
{
    strand_exception *e = test_run_catching(throw_past_two_suppressors, NULL, NULL);
    CHECK_PRINTED(e, "hard", "worm 7 of ten");
    strand_exception_release(e);
}

static void *throw_a_link(void *cause)
{
    strand_throw_info info = {.size = sizeof info, .cause = cause};
    strand_throw_with(&APPLE, &info, "a link");
}

static void *throw_a_chain(void *length)
{
    strand_exception *last = NULL;
    for (intptr_t i = 1; i < (intptr_t)length; i++)
        last = strand_try(throw_a_link, last, NULL);
    return throw_a_link(last);
}

TEST_REAL(print_shows_so_many_causes_and_says_that_there_are_more)
{
    strand_exception *e = test_run_catching(throw_a_chain, (void *)100, NULL);
    CHECK_EQ(printed_lines(e, ": a link"), 64);
    CHECK_EQ(printed_lines(e, "... and 36 more that those carry"), 1);
    strand_exception_release(e);
}

static void suppress_twenty(int *unused)
{
    for (int i = 0; i < 20; i++)
        suppress_an_apple(unused);
}

static void *throw_past_twenty(void *unused)
{
    int many __attribute__((cleanup(suppress_twenty), unused)) = 0;
    throw_stone(unused);
    return unused;
}

TEST(print_shows_so_many_suppressed_exceptions_and_says_that_there_are_more)
{
    strand_exception *e = test_run_catching(throw_past_twenty, NULL, NULL);
    CHECK_EQ(test_count_kind(e, &APPLE), 20);
    CHECK_PRINTED(e, "hard", "worm 7 of ten", "... and 12 more suppressed");
    strand_exception_release(e);
}

/* Each strand adds to the trace; there is an end to that, and none to how far the exception goes. */
static void *hand_over(void *e)
{
    strand_rethrow(e);
}

TEST_REAL_INSIDE(an_exception_that_has_come_a_long_way_goes_on_with_the_trace_of_its_beginning)
{
    strand_exception *e = strand_try(throw_apple, NULL, NULL), *first = e;
    for (int i = 0; i < 520; i++) {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, hand_over, e);
        e = strand_try(test_join, &child, NULL);
        CHECK_PTR(e, first);
    }
    CHECK_PRINTED(e, "worm 7 of ten", "throw_apple", "left strand", "rethrown in");
    int strands = printed_lines(e, "left strand");
    CHECK(strands > 100 && strands < 520);
    strand_exception_release(e);
}

static void *read_and_release(void *e)
{
    CHECK_STR(strand_exception_text(e), "with info");
    CHECK_PRINTED(e, "throw_with_info");
    strand_exception_release(e);
    return NULL;
}

/* contract 4.59 */
TEST_REAL(a_plain_thread_may_print_and_release_an_exception_after_the_run)
{
    pthread_t reader;
    strand_throw_info info = {.size = sizeof info, .payload = &info, .payload_free = count_free};
    strand_exception *e = test_run_catching(throw_with_info, &info, NULL);
    CHECK_EQ(pthread_create(&reader, NULL, read_and_release, e), 0);
    pthread_join(reader, NULL);
    CHECK_EQ(freed, 1);
}
