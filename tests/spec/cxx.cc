/*
 * C++ frames: destructors are clean-ups, C++ exceptions stay within their strand, catch (...) is a catch.
 */
#define SUITE cxx

#include <cerrno>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "cxx.h"

#include "strand/chan.h"
#include "strand/io.h"

namespace {

const strand_kind STONE = STRAND_KIND("stone", &STRAND_ERROR);

struct Blocking {
    Blocking() {}
    Blocking(const Blocking &) = delete;
    Blocking &operator=(const Blocking &) = delete;
    ~Blocking()
    {
        strand_yield();
        strand_sleep(STRAND_US);
        test_log("blocked");
    }
};

void *throw_stone(void *arg)
{
    Leaving inner("inner");
    if (arg == nullptr)
        strand_throw(&STONE, "hard");
    return arg;
}

void *throw_std(void *arg)
{
    Leaving inner("inner");
    throw std::runtime_error(arg ? static_cast<const char *>(arg) : "foreign");
}

void *throw_numbered(void *number)
{
    strand_throw(&STONE, "failure %d", static_cast<int>(reinterpret_cast<intptr_t>(number)));
}

void check_stone(strand_exception *e)
{
    CHECK(e != nullptr);
    CHECK_KIND(e, &STONE);
    strand_exception_release(e);
}

/* ---- ours through C++ frames ---------------------------------------------------------------- */

void *throw_through_objects(void *arg)
{
    Leaving outer("outer");
    std::string text(100, 'x');
    Leaving middle("middle");
    throw_stone(arg);
    return arg;
}

/* contract 4.43 */
TEST_INSIDE(an_exception_runs_the_destructors_of_all_frames_innermost_first)
{
    check_stone(strand_try(throw_through_objects, nullptr, nullptr));
    CHECK_LOG("inner middle outer");
}

/* contract 4.51 */
TEST_INSIDE(strand_try_takes_a_lambda)
{
    int x = 0;
    void *result = nullptr;
    CHECK_PTR(strand_try([](void *arg) { return arg; }, &x, &result), nullptr);
    CHECK_PTR(result, &x);
}

void *block_with_objects(void *arg)
{
    Leaving outer("outer");
    Leaving inner("inner");
    return test_sleep(arg);
}

/* V-38 */
TEST_INSIDE(cancelling_a_strand_runs_its_destructors)
{
    test_run_cancelled(block_with_objects, nullptr);
    CHECK_LOG("inner outer");
}

void *block_in_a_destructor(void *arg)
{
    Blocking object;
    return test_sleep(arg);
}

TEST_INSIDE(a_destructor_of_a_cancelled_strand_may_block)
{
    test_run_cancelled(block_in_a_destructor, nullptr);
    CHECK_LOG("blocked");
}

void *catch_std_only(void *arg)
{
    try {
        throw_stone(arg);
    } catch (const std::exception &) {
        test_log("wrong");
    }
    return arg;
}

TEST_INSIDE(a_catch_of_a_type_does_not_take_an_exception_of_a_strand)
{
    check_stone(strand_try(catch_std_only, nullptr, nullptr));
    CHECK_LOG("inner");
}

void *swallow_everything(void *arg)
{
    try {
        throw_stone(arg);
    } catch (...) {
        test_log("swallowed");
    }
    CHECK(!strand_unwinding());
    return arg;
}

/* contract 4.61 */
TEST_INSIDE(catch_all_without_rethrow_counts_as_a_catch)
{
    CHECK_PTR(strand_try(swallow_everything, nullptr, nullptr), nullptr);
    strand_yield();
    CHECK_LOG("inner swallowed");
}

TEST_INSIDE(a_strand_can_throw_and_catch_on_after_a_catch_all)
{
    for (int i = 0; i < 10; i++) {
        swallow_everything(nullptr);
        check_stone(strand_try(throw_stone, nullptr, nullptr));
        strand_yield();
    }
}

int freed;

void *throw_a_payload(void *arg)
{
    strand_throw_info info = {};
    info.size = sizeof info;
    info.payload = arg;
    info.payload_free = [](void *) { freed++; };
    strand_throw_with(&STONE, &info, "loaded");
}

/* contract 4.61 */
TEST_INSIDE(catch_all_releases_what_it_swallowed)
{
    freed = 0;
    try {
        throw_a_payload(nullptr);
    } catch (...) {
        test_log("swallowed");
    }
    CHECK_EQ(freed, 1);
    CHECK_LOG("swallowed");
}

void *pass_everything_on(void *arg)
{
    try {
        throw_stone(arg);
    } catch (...) {
        test_log("passing");
        throw;
    }
    return arg;
}

/* contract 4.61 */
TEST_INSIDE(catch_all_with_rethrow_passes_the_exception_on)
{
    check_stone(strand_try(pass_everything_on, nullptr, nullptr));
    CHECK_LOG("inner passing");
}

void *swallow_an_interruption(void *arg)
{
    for (int i = 0; i < 2; i++) {
        try {
            test_sleep(nullptr);
        } catch (...) {
            test_log("swallowed");
        }
    }
    strand_checkpoint();
    test_log("never");
    return arg;
}

/* V-31 */
TEST_INSIDE(catch_all_does_not_end_an_interruption)
{
    test_run_cancelled(swallow_an_interruption, nullptr);
    CHECK_LOG("swallowed swallowed");
}

/* ---- C++ exceptions inside a strand --------------------------------------------------------- */

TEST_INSIDE(a_strand_can_throw_and_catch_cxx_exceptions)
{
    try {
        Leaving outer("outer");
        throw_std(nullptr);
    } catch (const std::runtime_error &e) {
        test_log("%s", e.what());
    }
    CHECK_LOG("inner outer foreign");
}

/* Throws its own number, lets others run inside the catch block, and rethrows. */
void *rethrow_own_number(void *arg)
{
    int own = *static_cast<int *>(arg);
    for (int i = 0; i < 10; i++) {
        try {
            try {
                throw own;
            } catch (int) {
                strand_yield();
                throw;
            }
        } catch (int again) {
            strand_yield();
            CHECK_EQ(again, own);
            CHECK(std::current_exception() != nullptr);
        }
    }
    CHECK(std::current_exception() == nullptr);
    return arg;
}

/* contract 4.60 */
TEST_INSIDE(strands_that_take_turns_inside_catch_blocks_rethrow_their_own)
{
    int numbers[4] = {1, 2, 3, 4};
    STRAND_SCOPE(scope);
    for (int &number : numbers)
        strand_spawn(scope, rethrow_own_number, &number);
    strand_scope_join(scope);
}

struct YieldsWhileUnwinding {
    YieldsWhileUnwinding() {}
    YieldsWhileUnwinding(const YieldsWhileUnwinding &) = delete;
    YieldsWhileUnwinding &operator=(const YieldsWhileUnwinding &) = delete;
    ~YieldsWhileUnwinding()
    {
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(std::uncaught_exceptions(), 1);
            strand_yield();
        }
    }
};

void *unwind_slowly(void *arg)
{
    try {
        YieldsWhileUnwinding slow;
        throw std::runtime_error("slow");
    } catch (const std::exception &) {
        return arg;
    }
}

void *look_for_exceptions(void *arg)
{
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(std::uncaught_exceptions(), 0);
        strand_yield();
    }
    return arg;
}

/* contract 4.60 */
TEST_INSIDE(the_number_of_uncaught_exceptions_is_each_strands_own)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, unwind_slowly, nullptr);
    strand_spawn(scope, look_for_exceptions, nullptr);
    strand_spawn(scope, unwind_slowly, nullptr);
    strand_scope_join(scope);
}

/* ---- C++ exceptions through blocks of ours -------------------------------------------------- */

void *log_end(void *arg)
{
    STRAND_SHIELD;
    strand_yield();
    test_log("child-ended");
    return arg;
}

void leave_a_scope_by_a_std_exception()
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, log_end, nullptr);
    throw std::runtime_error("foreign");
}

/* contract 4.62 */
TEST_INSIDE(a_scope_that_is_left_by_a_cxx_exception_waits_and_does_not_throw)
{
    try {
        leave_a_scope_by_a_std_exception();
    } catch (const std::runtime_error &e) {
        test_log("%s", e.what());
    }
    CHECK_LOG("child-ended foreign");
}

void leave_a_failed_scope_by_a_std_exception()
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, throw_stone, nullptr);
    STRAND_SHIELD;
    strand_wait(child);
    throw std::runtime_error("foreign");
}

void *catch_what_left_a_failed_scope(void *arg)
{
    try {
        leave_a_failed_scope_by_a_std_exception();
    } catch (const std::runtime_error &e) {
        test_log("%s", e.what());
    }
    return arg;
}

/* contract 4.62 */
TEST(a_scope_with_a_failed_child_that_is_left_by_a_cxx_exception_logs_the_failure_and_does_not_throw)
{
    Logged logged(catch_what_left_a_failed_scope);
    CHECK_LOG("inner foreign");
    CHECK_CONTAINS(logged.text.c_str(), "hard");
}

void *fail_when_cancelled(void *number)
{
    strand_exception_release(strand_try(test_sleep, nullptr, nullptr));
    return throw_numbered(number);
}

void leave_a_scope_with_four_by_a_std_exception()
{
    STRAND_SCOPE(scope);
    for (intptr_t i = 1; i <= 2; i++) {
        strand child = strand_spawn(scope, throw_numbered, reinterpret_cast<void *>(i));
        STRAND_SHIELD;
        strand_wait(child);
    }
    for (intptr_t i = 3; i <= 4; i++)
        strand_spawn(scope, fail_when_cancelled, reinterpret_cast<void *>(i));
    throw std::runtime_error("foreign");
}

void *catch_what_left_a_scope_with_four(void *arg)
{
    try {
        leave_a_scope_with_four_by_a_std_exception();
    } catch (const std::runtime_error &) {
    }
    return arg;
}

TEST(a_scope_that_is_left_by_a_cxx_exception_logs_each_failure)
{
    Logged logged(catch_what_left_a_scope_with_four);
    for (const char *text : {"failure 1", "failure 2", "failure 3", "failure 4"})
        CHECK_CONTAINS(logged.text.c_str(), text);
}

void leave_blocks_by_a_std_exception()
{
    STRAND_DEADLINE(strand_time{1});
    STRAND_SHIELD;
    strand_yield();
    throw std::runtime_error("foreign");
}

TEST_INSIDE(a_deadline_and_a_shield_that_are_left_by_a_cxx_exception_are_gone)
{
    try {
        leave_blocks_by_a_std_exception();
    } catch (const std::runtime_error &) {
        test_log("caught");
    }
    strand_checkpoint();
    strand_yield();
    CHECK_LOG("caught");
}

void *pass_std_through_try(void *arg)
{
    STRAND_IGNORE(strand_try(throw_std, arg, nullptr));
    test_log("never");
    return arg;
}

TEST_INSIDE(a_cxx_exception_passes_strand_try_and_is_caught_further_out)
{
    try {
        pass_std_through_try(nullptr);
    } catch (const std::runtime_error &) {
        test_log("caught");
    }
    check_stone(strand_try(throw_stone, nullptr, nullptr));
    CHECK_LOG("inner caught inner");
}

/* ---- the caller of strand_run --------------------------------------------------------------- */

void run_within(int threads)
{
    strand_options options = test_options();
    options.threads = threads;
    options.scheduler = nullptr;
    CHECK_PTR(strand_run(&options, test_yield, &options), &options);
}

struct Running {
    int threads;
    explicit Running(int n) : threads(n) {}
    ~Running()
    {
        run_within(threads);
        test_log("%d in flight", std::uncaught_exceptions());
    }
};

TEST(a_run_leaves_the_exceptions_of_its_callers_thread_alone)
{
    for (int threads = 1; threads <= 2; threads++) {
        try {
            try {
                Running running(threads);
                throw std::runtime_error("caller's");
            } catch (...) {
                run_within(threads);
                CHECK(std::current_exception() != nullptr);
                throw;
            }
        } catch (const std::runtime_error &e) {
            test_log("%s", e.what());
        }
        CHECK_EQ(std::uncaught_exceptions(), 0);
    }
    CHECK_LOG("1 in flight caller's 1 in flight caller's");
}

/* ---- frames that a throw leaves ------------------------------------------------------------- */

/* Arrays around which AddressSanitizer marks the stack; what throws in the innermost frame may return, for a compiler.
 */
NOINLINE void must_below(int frames)
{
    volatile char low[64], high[64];
    low[0] = high[0] = static_cast<char>(frames);
    if (frames == 0)
        strand_must(-EIO);
    else
        must_below(frames - 1);
    low[1] = high[1] = low[0];
}

void *must_somewhere(void *frames)
{
    must_below(static_cast<int>(reinterpret_cast<intptr_t>(frames)));
    return nullptr;
}

TEST_REAL_INSIDE(the_stack_of_frames_that_a_throw_has_left_may_be_used_again)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (intptr_t frames = 1; frames < 20; frames++) {
        strand_exception *e = strand_try(must_somewhere, TEST_PTR(frames), nullptr);
        CHECK_KIND(e, &STRAND_SYSTEM);
        strand_exception_print(e, null);
        strand_exception_release(e);
    }
    close(null);
}

/* ---- what ends the program ------------------------------------------------------------------ */

struct test_output o;

void die_of(const char *what)
{
    test_program(&o, "cxx_faults", what);
    CHECK(o.signalled || o.status != 0);
    CHECK(std::string(o.out).find("still alive") == std::string::npos);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wc++20-extensions"
void *spawn_with_a_name(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(
        scope, STRAND_ATTR(.name = "named", .stack_size = 256 * 1024),
        [](void *) -> void * {
            test_log("%s", strand_name());
            return nullptr;
        },
        arg, 0);
    strand_join(child);
    return arg;
}

struct Question {
    int a, b, sum;
};

void *answer(void *arg)
{
    Question *question = static_cast<Question *>(arg);
    question->sum = question->a + question->b;
    return nullptr;
}

void *ask_a_crew(void *arg)
{
    STRAND_SCOPE(scope);
    strand_crew crew = strand_crew_open(scope, STRAND_CREW_ATTR(.name = "oracle", .max_threads = 1));
    Question question = {2, 3, 0};
    strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = crew, .answer = &question), answer, &question, sizeof question);
    CHECK_EQ(question.sum, 5);
    return arg;
}

TEST_REAL(options_and_attributes_can_be_written_in_the_place_of_an_argument_in_cxx_too)
{
    strand_run(STRAND_OPTIONS(.threads = 2), spawn_with_a_name, nullptr);
    CHECK_LOG("named");
    test_run(ask_a_crew, nullptr);
}
#pragma GCC diagnostic pop

/* contract 4.63 */
TEST_REAL(a_cxx_exception_that_leaves_the_root_strand_ends_the_program_as_any_other)
{
    die_of("foreign");
    CHECK_EQ(o.status, 1);
    CHECK_CONTAINS(o.err, "foreign: parcel lost");
}

TEST_REAL(a_cxx_exception_that_leaves_an_offloaded_function_ends_the_program)
{
    die_of("offloaded");
    CHECK_CONTAINS(o.err, "parcel lost");
}

#if !TEST_TSAN /* which has a thread of its own: the second strand blocks its thread for ever */
TEST_PROGRAM(a_static_object_whose_construction_blocks_is_reported_with_what_to_do_instead)
{
    /* libstdc++ ends the program, or the exception leaves the strand's function: how depends on the compiler's tables.
     */
    die_of("static");
    CHECK_CONTAINS(o.err, "static object");
    CHECK_CONTAINS(o.err, "strand_once_run");
    CHECK_CONTAINS(o.err, "enter_"); /* the constructor's function, or where its strand was spawned */
}
#endif

/* contract 4.63 */
TEST_REAL(an_exception_of_a_strand_that_meets_noexcept_ends_the_program)
{
    die_of("noexcept");
    CHECK_CONTAINS(o.err, "parcel lost");
}

TEST_PROGRAM(a_terminate_handler_that_calls_the_one_before_it_is_called_once)
{
    test_program(&o, "terminate_chain", "");
    CHECK(o.signalled);
    CHECK_CONTAINS(o.err, "reported 1");
    CHECK(std::string(o.err).find("reported 2") == std::string::npos);
}

/* Sanitizers bring a whole runtime along. */
#if !TEST_ASAN && !TEST_TSAN
TEST_PROGRAM(with_a_runtime_that_lacks_a_function_cancelled_strands_end_as_in_c)
{
    test_program(&o, "part_runtime", "clean-up");
    CHECK_STR(o.out, "cleaned up; done\n");
    test_program(&o, "part_runtime", "cancel");
    CHECK_STR(o.out, "done\n");
}
#endif

/* contract 9.8 */
TEST_PROGRAM(a_cxx_program_catches_its_own_exceptions_outside_of_strands_as_ever)
{
    test_program(&o, "cxx_faults", "none");
    CHECK(!o.signalled);
    CHECK_EQ(o.status, 0);
    CHECK_CONTAINS(o.out, "caught outside; caught inside; caught outside");
}

/* ---- channels -------------------------------------------------------------------------------- */

struct Line {
    int number;
    char text[28];
};
struct LongLine : Line {
    char more[32];
};
typedef STRAND_CHAN(Line) lines;

void *send_lines(void *arg)
{
    lines chan = *static_cast<lines *>(arg);
    for (int i = 0; i < 3; i++) {
        const Line line = {i, "from C++"};
        CHECK_EQ(STRAND_SEND(chan, &line), 0);
    }
    strand_chan_close(chan.untyped);
    return nullptr;
}

TEST_INSIDE(channels_of_a_type_can_be_used_in_cxx_too)
{
    STRAND_SCOPE(scope);
    lines chan = STRAND_CHAN_OPEN(lines, scope, 1);
    CHECK_EQ(STRAND_CHAN_CAPACITY(chan), 1);
    strand child = strand_spawn(scope, send_lines, &chan);
    Line line = {-1, ""};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(STRAND_RECEIVE(chan, &line), 0);
        CHECK_EQ(line.number, i);
        CHECK_STR(line.text, "from C++");
    }
    strand_case cases[] = {strand_case(), STRAND_ON_RECEIVE(chan, &line)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(line.number, 2);
    CHECK_EQ(STRAND_RECEIVE(chan, &line), -EPIPE);
    CHECK_EQ(STRAND_TRY_SEND(chan, &line), -EPIPE);
    strand_join(child);
}

/* H-02 */
TEST_INSIDE(the_channel_and_the_value_of_a_typed_call_are_evaluated_once_in_cxx_too)
{
    STRAND_SCOPE(scope);
    lines chans[16], *chan = chans;
    Line values[16] = {}, *value = values;
    for (lines &each : chans)
        each = STRAND_CHAN_OPEN(lines, scope, 1);
    CHECK_EQ(STRAND_SEND(*chan++, value++), 0);
    CHECK_EQ(STRAND_SEND((*chan++), value++), 0);
    CHECK_EQ(STRAND_TRY_SEND(*chan++, value++), 0);
    CHECK_EQ(STRAND_POST(*chan++, value++), 0);
    strand_case cases[] = {STRAND_ON_SEND(*chan++, value++), STRAND_ON_RECEIVE(*chan++, value++)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(strand_select(cases + 1, 1, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(chan - chans, 6);
    CHECK_EQ(value - values, 6);
    chan = chans;
    CHECK_EQ(STRAND_RECEIVE(*chan++, value++), 0);
    CHECK_EQ(STRAND_TRY_RECEIVE(*chan++, value++), 0);
    CHECK_EQ(STRAND_CHAN_LENGTH(*chan++), 1);
    CHECK_EQ(chan - chans, 3);
    CHECK_EQ(value - values, 8);
}

typedef STRAND_CHAN(char[8]) words;
typedef STRAND_CHAN(int (*)(int)) functions;

int increment(int n)
{
    return n + 1;
}

/* H-01 */
TEST_INSIDE(arrays_and_addresses_of_functions_are_elements_in_cxx_too)
{
    STRAND_SCOPE(scope);
    words chan = STRAND_CHAN_OPEN(words, scope, 2);
    const char constant[8] = "seven";
    char word[8] = "eight";
    CHECK_EQ(STRAND_SEND(chan, &constant), 0);
    CHECK_EQ(STRAND_SEND(chan, &word), 0);
    CHECK_EQ(STRAND_RECEIVE(chan, &word), 0);
    CHECK_STR(word, "seven");
    functions calls = STRAND_CHAN_OPEN(functions, scope, 1);
    int (*call)(int) = increment;
    CHECK_EQ(STRAND_SEND(calls, &call), 0);
    CHECK_EQ(STRAND_RECEIVE(calls, &call), 0);
    CHECK_EQ(call(1), 2);
}

template <class chan, class value, class = void> struct takes {
    static const bool it = false;
};
template <class chan, class value>
struct takes<chan, value, decltype(void(strand_sent_<decltype(chan::element)>(value())))> {
    static const bool it = true;
};
static_assert(takes<lines, Line *>::it && takes<lines, const Line *>::it, "values of its type can be sent");
static_assert(!takes<lines, int *>::it && !takes<lines, void *>::it, "values of another type cannot");
static_assert(!takes<lines, LongLine *>::it, "nor can parts of larger ones");

void *is_counted(void *arg)
{
    return arg;
}

NOINLINE void throws_for(const std::string &why)
{
    strand_throw(&STONE, "%s", why.c_str());
}

void *throws_in_a_namespace(void *arg)
{
    throws_for("hard");
    return arg;
}

void *spawns_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, is_counted, nullptr));
    return arg;
}

} // namespace

TEST_REAL(the_census_writes_names_as_the_program_does)
{
    char text[4096] = "";
    FILE *caught = tmpfile();
    int before = dup(2);
    strand_options options = test_options();
    options.census = true;
    CHECK(caught && dup2(fileno(caught), 2) == 2);
    strand_run(&options, spawns_one, nullptr);
    CHECK(dup2(before, 2) == 2);
    close(before);
    CHECK(pread(fileno(caught), text, sizeof text - 1, 0) > 0);
    fclose(caught);
    CHECK_CONTAINS(text, "::is_counted(void*), spawned in ");
}

/* Under a tool symbols are printed as they are. */
TEST_REAL(traces_name_functions_as_the_program_does)
{
    char text[4096] = "";
    FILE *caught = tmpfile();
    strand_exception *e = test_run_catching(throws_in_a_namespace, nullptr, nullptr);
    bool watched = TEST_ASAN || TEST_TSAN || test_under_valgrind();
    CHECK(caught && e);
    strand_exception_print(e, fileno(caught));
    strand_exception_release(e);
    CHECK(pread(fileno(caught), text, sizeof text - 1, 0) > 0);
    fclose(caught);
    CHECK_CONTAINS(text, watched ? "throws_for" : "::throws_for(std::");
    CHECK_CONTAINS(text, watched ? "throws_in_a_namespace" : "::throws_in_a_namespace(void*)+0x");
}
