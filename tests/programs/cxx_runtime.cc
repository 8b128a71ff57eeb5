/*
 * What strands need a C++ runtime for, in one function: linked in the ways in which a program or a plug-in gets its
 * runtime by tools/check-link.sh. It prints one line, the same in all of them.
 */
#include "strand.h"

#include <cstdio>
#include <exception>
#include <stdexcept>

extern "C" void *use_cxx(void *arg);

namespace {

int wrong;

void *rethrow_what_it_has_caught(void *number)
{
    try {
        throw number;
    } catch (void *caught) {
        wrong += caught != number;
        strand_yield();
        try {
            throw;
        } catch (void *again) {
            wrong += again != number;
        }
    }
    return nullptr;
}

void *fail(void *)
{
    throw std::runtime_error("typed");
}

struct Counter {
    int *uncaught;
    ~Counter()
    {
        *uncaught = std::uncaught_exceptions();
    }
};

void join_failed(strand_scope scope)
{
    strand child = strand_spawn(scope, fail, nullptr);
    try {
        strand_join(child);
    } catch (const std::exception &e) {
        std::printf("%s, ", e.what());
    }
}

void catch_ours()
{
    int uncaught = 0;
    bool kept = false;
    STRAND_TRY {
        try {
            Counter counter{&uncaught};
            strand_throw(&STRAND_ERROR, "ours");
        } catch (...) {
            kept = std::current_exception() != nullptr;
            throw;
        }
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        std::printf("%d uncaught, %s, %s\n", uncaught, kept ? "kept" : "not kept", strand_exception_text(e));
    }
    STRAND_END
}

} // namespace

void *use_cxx(void *arg)
{
    char numbers[2];
    STRAND_SCOPE(scope);
    for (char &number : numbers)
        strand_spawn(scope, rethrow_what_it_has_caught, &number);
    strand_scope_join(scope);
    std::printf("%d wrong, ", wrong);
    join_failed(scope);
    catch_ours();
    std::fflush(stdout);
    return arg;
}

#if !defined(PLUGIN)
int main()
{
    strand_run(nullptr, use_cxx, nullptr);
    return 0;
}
#endif
