/*
 * What handlers and destructors of C++ do with an exception of a strand: catch it, rethrow it, throw another one, keep
 * it, and block while they have it.
 */
#define SUITE cxx_handlers

#include <exception>
#include <future>
#include <ostream>
#include <stdexcept>
#include <streambuf>

#include "cxx.h"

namespace {

const strand_kind STONE = STRAND_KIND("stone", &STRAND_ERROR);

[[noreturn]] void throw_stone(const char *text)
{
    strand_throw(&STONE, "%s", text);
}

void check_stone(strand_exception *e, const char *text)
{
    CHECK(e != nullptr);
    CHECK_KIND(e, &STONE);
    CHECK_STR(strand_exception_text(e), text);
    strand_exception_release(e);
    CHECK_EQ(std::uncaught_exceptions(), 0);
    CHECK(!strand_unwinding());
}

void *fail(void *)
{
    throw_stone("the child has failed");
}

/* ---- counting -------------------------------------------------------------------------------- */

void rethrow_and_swallow()
{
    try {
        try {
            throw_stone("inner");
        } catch (...) {
            throw;
        }
    } catch (...) {
        CHECK_EQ(std::uncaught_exceptions(), 0);
    }
}

TEST_INSIDE(a_rethrown_exception_of_a_strand_that_an_outer_handler_swallows_is_counted_no_more)
{
    for (int i = 0; i < 3; i++)
        rethrow_and_swallow();
    CHECK_EQ(std::uncaught_exceptions(), 0);
    CHECK(!strand_unwinding());
}

/* What a function that is called in a handler does to find out what the handler has. */
const char *describe()
{
    try {
        throw;
    } catch (const std::exception &e) {
        return "C++'s";
    } catch (...) {
        return "unknown";
    }
}

TEST_INSIDE(a_try_block_in_a_handler_is_left_by_nothing_that_an_inner_handler_has_caught)
{
    try {
        throw_stone("outer");
    } catch (...) {
        STRAND_TRY {
            test_log("%s", describe());
        }
        STRAND_CATCH(&STRAND_ANY, e) {
            test_log("caught %s", strand_exception_text(e));
        }
        STRAND_END
    }
    CHECK_LOG("unknown");
}

TEST_INSIDE(a_try_block_in_a_handler_lets_the_number_pass_that_an_inner_handler_throws)
{
    int number = 0;
    try {
        try {
            throw_stone("outer");
        } catch (...) {
            STRAND_TRY {
                try {
                    throw;
                } catch (...) {
                    throw 9;
                }
            }
            STRAND_CATCH(&STRAND_ANY, e) {
                test_log("caught %s", strand_exception_text(e));
            }
            STRAND_END
        }
    } catch (int n) {
        number = n;
    }
    CHECK_EQ(number, 9);
    CHECK_LOG("");
}

void *describe_beside_a_failed_child(void *)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fail, nullptr);
    {
        STRAND_SHIELD;
        strand_wait(child);
    }
    describe();
    return nullptr;
}

void *describe_beside_a_live_child(void *)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, test_return, nullptr);
    describe();
    return nullptr;
}

TEST_INSIDE(a_scope_in_a_handler_throws_what_its_children_left_though_a_handler_inside_has_ended)
{
    try {
        throw_stone("outer");
    } catch (...) {
        strand_exception *e = strand_try(describe_beside_a_failed_child, nullptr, nullptr);
        CHECK_KIND(e, &STONE);
        strand_exception_release(e);
        e = strand_try(describe_beside_a_live_child, nullptr, nullptr);
        CHECK_KIND(e, &STRAND_LIVE_STRANDS);
        strand_exception_release(e);
    }
    CHECK_EQ(std::uncaught_exceptions(), 0);
}

void *leave_with_a_failed_child(void *)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fail, nullptr);
    {
        STRAND_SHIELD;
        strand_wait(child);
    }
    rethrow_and_swallow();
    return nullptr;
}

void *leave_with_a_live_child(void *)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, test_return, nullptr);
    rethrow_and_swallow();
    return nullptr;
}

TEST_INSIDE(after_a_rethrow_a_scope_still_throws_what_its_children_left)
{
    check_stone(strand_try(leave_with_a_failed_child, nullptr, nullptr), "the child has failed");
    strand_exception *e = strand_try(leave_with_a_live_child, nullptr, nullptr);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    strand_exception_release(e);
}

struct Transaction {
    int before = std::uncaught_exceptions();
    ~Transaction()
    {
        test_log(std::uncaught_exceptions() > before ? "rolled-back" : "committed");
    }
};

void *throw_in_a_transaction(void *)
{
    Transaction transaction;
    throw_stone("in the middle");
}

void *sleep_in_a_transaction(void *)
{
    Transaction transaction;
    strand_sleep(FOREVER);
    return nullptr;
}

TEST_INSIDE(a_scope_guard_rolls_back_when_a_strand_throws_or_is_interrupted)
{
    check_stone(strand_try(throw_in_a_transaction, nullptr, nullptr), "in the middle");
    {
        Transaction transaction;
    }
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, sleep_in_a_transaction, nullptr);
    strand_yield();
    strand_cancel(child, nullptr);
    strand_wait(child);
    CHECK_LOG("rolled-back committed rolled-back");
}

struct Broken : std::streambuf {
    int overflow(int) override
    {
        throw_stone("the peer has gone");
    }
};

TEST_INSIDE(an_exception_of_a_strand_passes_a_stream)
{
    Broken buffer;
    std::ostream stream(&buffer);
    for (int i = 0; i < 3; i++) {
        try {
            stream.clear();
            stream << "text";
            test_log("nothing");
        } catch (...) {
            test_log("caught");
        }
        CHECK_EQ(std::uncaught_exceptions(), 0);
    }
    CHECK_LOG("caught caught caught");
}

/* ---- throwing in a handler or a destructor ---------------------------------------------------- */

void *translate(void *)
{
    try {
        throw_stone("one");
    } catch (...) {
        throw_stone("two");
    }
}

void *translate_to_std(void *)
{
    try {
        throw_stone("one");
    } catch (...) {
        throw std::runtime_error("two");
    }
}

TEST_INSIDE(a_handler_that_has_an_exception_of_a_strand_may_throw_another)
{
    check_stone(strand_try(translate, nullptr, nullptr), "two");
    try {
        translate_to_std(nullptr);
    } catch (const std::runtime_error &e) {
        CHECK_STR(e.what(), "two");
    }
    CHECK_EQ(std::uncaught_exceptions(), 0);
}

struct Flushes {
    ~Flushes()
    {
        for (int i = 0; i < 2; i++) {
            try {
                throw_stone("the flush has failed");
            } catch (...) {
                CHECK(std::current_exception() != nullptr);
                test_log("flushed");
            }
            CHECK(strand_unwinding());
        }
        rethrow_and_not_swallow();
    }

    void rethrow_and_not_swallow()
    {
        STRAND_TRY {
            try {
                throw_stone("again");
            } catch (...) {
                throw;
            }
        }
        STRAND_CATCH(&STONE, e) {
            test_log("%s", strand_exception_text(e));
        }
        STRAND_END
    }
};

void *throw_past_a_flush(void *)
{
    Flushes flushes;
    throw_stone("the cause");
}

void *throw_std_past_a_flush(void *)
{
    try {
        Flushes flushes;
        throw std::runtime_error("theirs");
    } catch (const std::runtime_error &) {
        throw_stone("the cause");
    }
}

TEST_INSIDE(a_destructor_that_runs_because_of_an_exception_may_throw_and_catch_others)
{
    check_stone(strand_try(throw_past_a_flush, nullptr, nullptr), "the cause");
    check_stone(strand_try(throw_std_past_a_flush, nullptr, nullptr), "the cause");
    CHECK_LOG("flushed flushed again flushed flushed again");
}

void *rethrow_in_a_try_block(void *)
{
    try {
        throw_stone("one");
    } catch (...) {
        STRAND_TRY {
            throw;
        }
        STRAND_CATCH(&STONE, e) {
            test_log("%s", strand_exception_text(e));
        }
        STRAND_END
        CHECK_EQ(std::uncaught_exceptions(), 0);
        CHECK(!strand_unwinding());
        throw;
    }
}

TEST_INSIDE(a_try_block_in_a_handler_catches_what_the_handler_rethrows)
{
    check_stone(strand_try(rethrow_in_a_try_block, nullptr, nullptr), "one");
    CHECK_LOG("one");
}

/* ---- noexcept --------------------------------------------------------------------------------- */

void try_in_noexcept() noexcept
{
    STRAND_TRY {
        throw_stone("one");
    }
    STRAND_CATCH(&STONE, e) {
        test_log("function");
    }
    STRAND_END
}

void try_a_scope_in_noexcept() noexcept
{
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, fail, nullptr));
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("wrong");
    }
    STRAND_CATCH(&STONE, e) {
        test_log("scope");
    }
    STRAND_END
}

int try_in_a_loop() noexcept
{
    for (volatile int i = 0;; i = i + 1) {
        STRAND_TRY {
            if (i == 0)
                continue;
            throw_stone("one");
        }
        STRAND_CATCH(&STONE, e) {
            if (i == 1)
                continue;
            if (i == 2)
                break;
        }
        STRAND_END
    }
    STRAND_TRY {
        return 3;
    }
    STRAND_CATCH(&STONE, e) {
    }
    STRAND_END
    return 0;
}

struct Tries {
    ~Tries()
    {
        try_in_noexcept();
        STRAND_TRY {
            throw_stone("one");
        }
        STRAND_CATCH(&STONE, e) {
            test_log("destructor");
        }
        STRAND_END
    }
};

void *throw_past_tries(void *)
{
    Tries tries;
    throw_stone("the cause");
}

TEST_INSIDE(a_try_block_in_a_noexcept_function_or_a_destructor_catches)
{
    try_in_noexcept();
    try_a_scope_in_noexcept();
    CHECK_EQ(try_in_a_loop(), 3);
    {
        Tries tries;
    }
    check_stone(strand_try(throw_past_tries, nullptr, nullptr), "the cause");
    CHECK_LOG("function scope function destructor function destructor");
}

/* ---- scopes in handlers ----------------------------------------------------------------------- */

void *rethrow_out_of_a_scope(void *)
{
    try {
        throw_stone("one");
    } catch (...) {
        strand_checkpoint();
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, test_return, nullptr));
        strand_spawn(scope, fail, nullptr);
        throw;
    }
}

void *fail_in_a_scope_of_a_handler(void *)
{
    try {
        throw_stone("one");
    } catch (...) {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, fail, nullptr));
    }
    return nullptr;
}

TEST_INSIDE(a_handler_has_scopes_and_rethrows_out_of_them)
{
    check_stone(strand_try(rethrow_out_of_a_scope, nullptr, nullptr), "one");
    check_stone(strand_try(fail_in_a_scope_of_a_handler, nullptr, nullptr), "the child has failed");
}

/* ---- interruption ----------------------------------------------------------------------------- */

void *sleep_again_in_a_handler(void *)
{
    try {
        strand_sleep(FOREVER);
    } catch (...) {
        try {
            strand_sleep(FOREVER);
        } catch (...) {
            test_log("interrupted");
        }
    }
    return nullptr;
}

void *sleep_in_a_handler(void *)
{
    try {
        throw_stone("one");
    } catch (...) {
        test_log("handles");
        strand_sleep(FOREVER);
    }
    return nullptr;
}

void *give_back_in_a_handler(void *)
{
    try {
        throw std::runtime_error("to be reported");
    } catch (const std::exception &) {
        test_log("reports");
        try {
            strand_sleep(FOREVER);
        } catch (...) {
            test_log("gives-back");
            throw;
        }
    }
    return nullptr;
}

void cancel_after_a_while(strand_fn *fn)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fn, nullptr);
    strand_sleep(STRAND_MS);
    strand_cancel(child, "enough");
    strand_wait(child);
}

TEST_INSIDE(a_blocking_operation_in_a_handler_is_interrupted_as_anywhere)
{
    cancel_after_a_while(sleep_again_in_a_handler);
    CHECK_LOG("interrupted");
    test_log_clear();
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, sleep_in_a_handler, nullptr);
    while (!test_log_is("handles"))
        strand_sleep(STRAND_MS);
    strand_cancel(child, nullptr);
    strand_wait(child);
}

TEST_INSIDE(a_handler_of_a_type_may_contain_one_of_everything_that_rethrows_an_interruption)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, give_back_in_a_handler, nullptr);
    while (!test_log_is("reports"))
        strand_sleep(STRAND_MS);
    strand_cancel(child, nullptr);
    strand_wait(child);
    CHECK_LOG("reports gives-back");
}

struct Goodbye {
    ~Goodbye()
    {
        test_log("says");
        strand_sleep(50 * STRAND_MS);
        try {
            STRAND_DEADLINE(strand_in(STRAND_US));
            strand_sleep(FOREVER);
        } catch (...) {
            test_log("goodbye");
        }
    }
};

void *throw_std_past_a_goodbye(void *)
{
    try {
        Goodbye goodbye;
        throw std::runtime_error("theirs");
    } catch (const std::exception &) {
        test_log("caught");
    }
    try {
        strand_sleep(FOREVER);
    } catch (...) {
        test_log("interrupted");
    }
    return nullptr;
}

TEST_INSIDE(a_destructor_that_blocks_because_of_a_cxx_exception_is_shielded_but_for_its_own_deadlines)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, throw_std_past_a_goodbye, nullptr);
    while (!test_log_is("says"))
        strand_sleep(STRAND_MS);
    strand_cancel(child, nullptr);
    strand_wait(child);
    CHECK_LOG("says goodbye caught interrupted");
}

/* ---- keeping ---------------------------------------------------------------------------------- */

int freed;

[[noreturn]] void throw_loaded()
{
    strand_throw_info info = {};
    info.size = sizeof info;
    info.payload = &freed;
    info.payload_free = [](void *) { freed++; };
    strand_throw_with(&STONE, &info, "loaded");
}

TEST_INSIDE(an_exception_pointer_keeps_an_exception_of_a_strand_and_throws_it_again)
{
    freed = 0;
    std::exception_ptr kept;
    try {
        throw_loaded();
    } catch (...) {
        kept = std::current_exception();
    }
    CHECK(kept != nullptr);
    strand_yield();
    for (int i = 0; i < 2; i++) {
        try {
            std::rethrow_exception(kept);
        } catch (...) {
            CHECK(std::current_exception() == kept);
            test_log("caught");
        }
    }
    CHECK_EQ(freed, 0);
    kept = nullptr;
    CHECK_EQ(freed, 1);
    CHECK_EQ(std::uncaught_exceptions(), 0);
    CHECK_LOG("caught caught");
}

TEST_INSIDE(an_exception_that_was_kept_in_a_handler_goes_on_to_a_try_block)
{
    freed = 0;
    std::exception_ptr kept;
    STRAND_TRY {
        try {
            throw_loaded();
        } catch (...) {
            kept = std::current_exception();
            throw;
        }
    }
    STRAND_CATCH(&STONE, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_EQ(freed, 0);
    kept = nullptr;
    CHECK_EQ(freed, 1);
    CHECK_LOG("loaded");
}

/* ---- exceptions of C++ that leave a strand's function ------------------------------------------- */

void *throw_std(void *)
{
    Transaction transaction;
    throw std::out_of_range("too far");
}

void *throw_a_number(void *)
{
    throw 42;
}

void *throw_the_kept(void *arg)
{
    std::rethrow_exception(*static_cast<std::exception_ptr *>(arg));
}

/* contract 4.63 */
TEST_INSIDE(a_join_in_cxx_throws_the_exception_of_cxx_that_the_child_has_ended_by)
{
    STRAND_SCOPE(scope);
    try {
        strand_join(strand_spawn(scope, throw_std, nullptr));
    } catch (const std::out_of_range &e) {
        test_log("%s", e.what());
    }
    try {
        strand_join(strand_spawn(scope, throw_a_number, nullptr));
    } catch (int number) {
        CHECK_EQ(number, 42);
        test_log("caught");
    }
    CHECK_EQ(std::uncaught_exceptions(), 0);
    CHECK_LOG("rolled-back too far caught");
}

void *leave_a_scope_with(void *fn)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, reinterpret_cast<strand_fn *>(fn), nullptr);
    STRAND_SHIELD;
    strand_wait(child);
    return nullptr;
}

/* contract 4.63 */
TEST_INSIDE(a_scope_throws_the_exception_of_cxx_of_a_child_as_a_foreign_one)
{
    strand_exception *e = strand_try(leave_a_scope_with, reinterpret_cast<void *>(throw_std), nullptr);
    CHECK_KIND(e, &STRAND_FOREIGN);
    CHECK_STR(strand_exception_text(e), "too far");
    strand_exception_release(e);
    e = strand_try(leave_a_scope_with, reinterpret_cast<void *>(throw_a_number), nullptr);
    CHECK_KIND(e, &STRAND_FOREIGN);
    CHECK_STR(strand_exception_text(e), "a C++ exception of type i");
    strand_exception_release(e);
}

void *fail_by_two(void *arg)
{
    STRAND_SCOPE(scope);
    for (strand_fn *fn : {throw_std, fail}) {
        strand child = strand_spawn(scope, fn, nullptr);
        STRAND_SHIELD;
        strand_wait(child);
    }
    return arg;
}

void *join_what_fails_by_two(void *arg)
{
    STRAND_SCOPE(scope);
    try {
        strand_join(strand_spawn(scope, fail_by_two, nullptr));
    } catch (const std::out_of_range &e) {
        test_log("%s", e.what());
    }
    return arg;
}

/* An exception of C++ can't carry it. */
TEST(suppressed_exceptions_of_a_cxx_exception_that_a_join_throws_are_logged)
{
    Logged logged(join_what_fails_by_two);
    CHECK_LOG("rolled-back too far");
    CHECK_CONTAINS(logged.text.c_str(), "the child has failed");
}

TEST_INSIDE(an_exception_of_a_strand_that_was_kept_leaves_another_strand_as_what_it_is)
{
    freed = 0;
    std::exception_ptr kept;
    try {
        throw_loaded();
    } catch (...) {
        kept = std::current_exception();
    }
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, throw_the_kept, &kept));
    }
    STRAND_CATCH(&STONE, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    kept = nullptr;
    CHECK_EQ(freed, 1);
    CHECK_LOG("loaded");
}

} // namespace
