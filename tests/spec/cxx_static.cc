/*
 * Static objects of functions in C++: a strand may suspend in their constructors, and others wait for the object.
 */
#define SUITE cxx_static

#include <atomic>
#include <cstdint>
#include <cxxabi.h>
#include <initializer_list>
#include <string>
#include <thread>
#include <unistd.h>

#include "cxx.h"

namespace {

/* An object as the compiler makes it, but for each run of a test a new one. */
struct Object {
    abi::__guard guard = 0;
    std::atomic<int> begun{0};
    int constructed = 0;           /* not atomic: the guard orders it */
    std::atomic<bool> held{false}; /* its constructor does not return meanwhile */
    int failures = 0;              /* the first ones of its constructors throw */

    void construct()
    {
        begun++;
        for (int i = 0; i < 3; i++)
            strand_yield();
        do
            strand_sleep(STRAND_MS);
        while (held);
        if (begun <= failures)
            throw begun.load();
        constructed++;
    }

    void *use()
    {
        if (abi::__cxa_guard_acquire(&guard)) {
            try {
                construct();
            } catch (...) {
                abi::__cxa_guard_abort(&guard);
                throw;
            }
            abi::__cxa_guard_release(&guard);
        }
        CHECK_EQ(constructed, 1);
        return this;
    }
};

void *use(void *object)
{
    return static_cast<Object *>(object)->use();
}

void *use_again_after_a_failure(void *object)
{
    try {
        return use(object);
    } catch (int) {
        return use_again_after_a_failure(object);
    }
}

TEST_RACE(a_strand_waits_while_another_is_suspended_in_the_constructor)
{
    Object object;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++)
        strand_spawn(scope, use, &object);
    strand_scope_join(scope);
    CHECK_EQ(object.begun.load(), 1);
}

TEST_RACE(when_a_constructor_throws_another_strand_constructs)
{
    Object object;
    object.failures = 3;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++)
        strand_spawn(scope, use_again_after_a_failure, &object);
    strand_scope_join(scope);
    CHECK_EQ(object.begun.load(), 4);
}

void *use_and_sleep(void *object)
{
    use(object);
    test_log("used");
    strand_sleep(FOREVER);
    return object;
}

TEST_INSIDE(a_cancelled_strand_gets_the_object_before_it_is_interrupted)
{
    Object object;
    object.held = true;
    STRAND_SCOPE(scope);
    strand constructing = strand_spawn(scope, use, &object);
    while (!object.begun)
        strand_yield();
    strand waiting = strand_spawn(scope, use_and_sleep, &object);
    test_await_blocked("waits for a static object", 1);
    strand_cancel(waiting, nullptr);
    object.held = false;
    CHECK(test_join_interrupted(waiting));
    CHECK_PTR(strand_join(constructing), &object);
    CHECK_LOG("used");
}

/* ---- as the compiler calls it ------------------------------------------------------------------------------------ */

std::atomic<int> callers_of_slow{0};
int slow_ones = 0;

/* Others come to the object meanwhile. */
struct Slow {
    Slow()
    {
        while (callers_of_slow < 4)
            strand_sleep(STRAND_MS);
        strand_sleep(20 * STRAND_MS);
        slow_ones++;
    }
};

void *use_slow(void *arg)
{
    callers_of_slow++;
    static Slow slow;
    CHECK_EQ(slow_ones, 1);
    return arg;
}

/* On one thread libstdc++ would end the program. */
void *use_slow_four_times(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, use_slow, arg);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(the_compiler_s_code_for_a_static_object_waits_in_this_way)
{
    test_run(use_slow_four_times, nullptr);
}

/* ---- the constructor waits for the strand that waits for the object ---------------------------------------------- */

class Stuck {
    Object object;
    std::atomic<int> reports{0};

    static void on_log(const char *line, void *stuck)
    {
        CHECK_CONTAINS(line, "has waited for a second for a function's static object");
        CHECK_CONTAINS(line, "construct the object before the strands that use it");
        CHECK_CONTAINS(line, "spawned");
        static_cast<Stuck *>(stuck)->reports++;
    }

    static void *construct(void *arg)
    {
        auto *stuck = static_cast<Stuck *>(arg);
        CHECK_EQ(abi::__cxa_guard_acquire(&stuck->object.guard), 1);
        stuck->object.begun++;
        while (!stuck->reports)
            strand_sleep(STRAND_MS);
        strand_sleep(2 * STRAND_S);
        stuck->object.constructed = 1;
        abi::__cxa_guard_release(&stuck->object.guard);
        return nullptr;
    }

    static void *root(void *arg)
    {
        auto *stuck = static_cast<Stuck *>(arg);
        STRAND_SCOPE(scope);
        strand_spawn(scope, construct, stuck);
        while (!stuck->object.begun)
            strand_yield();
        strand_spawn(scope, use, &stuck->object);
        strand_scope_join(scope);
        return arg;
    }

  public:
    void run()
    {
        strand_options options = test_options();
        options.on_log = on_log;
        options.hook_arg = this;
        strand_run(&options, root, this);
        CHECK_EQ(reports.load(), 1);
    }
};

TEST(a_long_wait_is_logged_once_with_what_to_do)
{
    Stuck().run();
}

/* ---- callers that cannot suspend --------------------------------------------------------------------------------- */

/* Nothing here suspends, so every caller may be a plain thread, or a strand in a section. */
void construct_on_a_thread(Object *object, const std::atomic<int> *callers)
{
    if (abi::__cxa_guard_acquire(&object->guard)) {
        object->begun++;
        while (*callers < 4)
            std::this_thread::yield();
        object->constructed++;
        abi::__cxa_guard_release(&object->guard);
    }
    CHECK_EQ(object->constructed, 1);
}

TEST_REAL(plain_threads_wait_as_without_the_library)
{
    for (int round = 0; round < 20; round++) {
        Object object;
        std::atomic<int> callers{0};
        std::thread threads[4];
        for (std::thread &thread : threads)
            thread = std::thread([&] {
                callers++;
                construct_on_a_thread(&object, &callers);
            });
        for (std::thread &thread : threads)
            thread.join();
    }
}

struct Entering {
    Object object;
    std::atomic<int> callers{0};
};

void *enter_in_a_section(void *arg)
{
    auto *entering = static_cast<Entering *>(arg);
    while (!entering->object.begun)
        strand_yield();
    STRAND_NO_SUSPEND;
    entering->callers = 4;
    CHECK_EQ(abi::__cxa_guard_acquire(&entering->object.guard), 0);
    CHECK_EQ(entering->object.constructed, 1);
    return arg;
}

TEST_REAL(a_strand_in_a_no_suspend_section_waits_with_its_thread)
{
    for (int round = 0; round < 20; round++) {
        Entering entering;
        std::thread thread(construct_on_a_thread, &entering.object, &entering.callers);
        test_run(enter_in_a_section, &entering);
        thread.join();
    }
}

/* ---- waits that do not end by themselves --------------------------------------------------------------------------
 */

/* On one thread: the strand in a section occupies the thread that the constructor needs. The report lets it go on. */
struct Held {
    Object object;
    std::atomic<bool> reported{false};
};

void let_go(const char *line, void *arg)
{
    auto *held = static_cast<Held *>(arg);
    CHECK_CONTAINS(line, "or needs its thread, which it holds in a no-suspend section");
    held->object.constructed = 1;
    held->reported = true;
    abi::__cxa_guard_release(&held->object.guard);
}

void *enter_what_is_begun(void *arg)
{
    auto *held = static_cast<Held *>(arg);
    CHECK_EQ(abi::__cxa_guard_acquire(&held->object.guard), 1);
    STRAND_NO_SUSPEND;
    CHECK_EQ(abi::__cxa_guard_acquire(&held->object.guard), 0);
    return arg;
}

TEST(a_strand_that_waits_with_its_thread_is_logged)
{
    Held held;
    strand_options options = test_options();
    options.on_log = let_go;
    options.hook_arg = &held;
    strand_run(&options, enter_what_is_begun, &held);
    CHECK(held.reported.load());
}

/* What a thread without a strand writes, while this one constructs the object. */
std::string written_by_a_waiter(Object *object)
{
    char text[600] = "";
    int ends[2], usual = dup(2);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(abi::__cxa_guard_acquire(&object->guard), 1);
    dup2(ends[1], 2);
    std::thread waiter([&] { CHECK_EQ(abi::__cxa_guard_acquire(&object->guard), 0); });
    CHECK(read(ends[0], text, sizeof text - 1) > 0);
    dup2(usual, 2);
    abi::__cxa_guard_release(&object->guard);
    waiter.join();
    for (int fd : {ends[0], ends[1], usual})
        close(fd);
    return text;
}

TEST_REAL(a_thread_that_waits_for_long_writes_so)
{
    Object object;
    CHECK_CONTAINS(written_by_a_waiter(&object).c_str(), "libstrand: a thread has waited for a second");
}

} // namespace
