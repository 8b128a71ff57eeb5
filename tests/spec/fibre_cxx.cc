/*
 * C++ on shared fibres: what a strand has caught, and what its destructors do, is its own, though its stack is not.
 */
#define SUITE fibre_cxx

#include <exception>
#include <stdexcept>
#include <string>

#include "cxx.h"

namespace {

const int STRANDS = 5;

strand spawn_on(strand_scope scope, strand_fibre fibre, strand_fn *fn, void *arg)
{
    strand_attr attr = {};
    attr.size = sizeof attr;
    attr.fibre = fibre;
    return strand_spawn_with(scope, &attr, fn, arg, 0);
}

struct Slow {
    int number;
    explicit Slow(int n) : number(n) {}
    Slow(const Slow &) = delete;
    Slow &operator=(const Slow &) = delete;
    ~Slow()
    {
        int before = number;
        strand_yield();
        CHECK_EQ(number, before);
        CHECK_EQ(std::uncaught_exceptions(), 1);
    }
};

NOINLINE void throw_slowly(int number)
{
    Slow slow(number);
    throw std::runtime_error(std::to_string(number));
}

void *throw_and_catch(void *arg)
{
    int number = static_cast<int>(reinterpret_cast<intptr_t>(arg));
    for (int i = 0; i < 4; i++) {
        try {
            strand_yield();
            throw_slowly(number);
        } catch (const std::runtime_error &e) {
            strand_yield();
            CHECK_STR(e.what(), std::to_string(number).c_str());
            CHECK(std::current_exception() != nullptr);
            try {
                strand_sleep(STRAND_US);
                throw;
            } catch (const std::exception &again) {
                strand_yield();
                CHECK_PTR(&again, &e);
            }
            CHECK_EQ(std::uncaught_exceptions(), 0);
        }
        CHECK(std::current_exception() == nullptr);
    }
    return arg;
}

/* V-15 */
TEST_INSIDE(strands_of_a_fibre_throw_and_catch_in_cxx_across_suspensions)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, nullptr);
    strand strands[STRANDS];
    for (intptr_t i = 0; i < STRANDS; i++)
        strands[i] = spawn_on(scope, fibre, throw_and_catch, TEST_PTR(i));
    for (intptr_t i = 0; i < STRANDS; i++)
        CHECK_PTR(strand_join(strands[i]), TEST_PTR(i));
}

void *throw_slowly_once(void *arg)
{
    try {
        throw_slowly(1);
    } catch (const std::runtime_error &) {
        CHECK_EQ(std::uncaught_exceptions(), 0);
    }
    return arg;
}

TEST_INSIDE(a_strand_keeps_its_exceptions_while_another_one_lives_on_the_fibre_without_a_suspension)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, nullptr);
    spawn_on(scope, fibre, throw_slowly_once, nullptr);
    for (int i = 0; i < 2; i++)
        spawn_on(
            scope, fibre, [](void *arg) { return arg; }, nullptr);
    strand_scope_join(scope);
}

struct YieldsAtTheEnd {
    YieldsAtTheEnd() {}
    YieldsAtTheEnd(const YieldsAtTheEnd &) = delete;
    YieldsAtTheEnd &operator=(const YieldsAtTheEnd &) = delete;
    ~YieldsAtTheEnd()
    {
        strand_yield(); /* shielded: an interruption is in flight */
        test_log("left");
    }
};

void *sleep_until_cancelled(void *arg)
{
    YieldsAtTheEnd yields;
    strand_sleep(FOREVER);
    return arg;
}

TEST_INSIDE(destructors_of_a_cancelled_strand_run_on_the_shared_stack)
{
    {
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, nullptr);
        for (int i = 0; i < 3; i++)
            spawn_on(scope, fibre, sleep_until_cancelled, nullptr);
        strand_sleep(STRAND_MS);
        strand_scope_cancel(scope, nullptr);
    }
    CHECK_LOG("left left left");
}

} // namespace
