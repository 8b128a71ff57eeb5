/*
 * C++ exceptions where they must not go. The argument says which.
 */
#include "strand/check.h" /* before the headers of C++, as -include has it */

#include "strand.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <stdexcept>

namespace {

void *lose_std(void *)
{
    throw std::runtime_error("parcel lost");
}

void *lose_ours(void *arg)
{
    if (arg == nullptr)
        strand_throw(&STRAND_ERROR, "parcel lost");
    return arg;
}

void carry() noexcept
{
    lose_ours(nullptr);
}

void *carry_noexcept(void *arg)
{
    carry();
    return arg;
}

/* A static object whose construction blocks, in a file without strand.h: its code calls the C++ runtime. */
void *enter_warehouse(void *arg)
{
    static std::uint64_t guard;
    void *acquire = dlsym(RTLD_DEFAULT, "__cxa_guard_acquire");
    if (reinterpret_cast<int (*)(std::uint64_t *)>(acquire)(&guard))
        strand_sleep(20 * STRAND_MS);
    return arg;
}

void *enter_twice(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, enter_warehouse, arg);
    strand_spawn(scope, enter_warehouse, arg);
    strand_scope_join(scope);
    return arg;
}

/* An exception whose destructor blocks. It is destroyed where the catch block ends. */
struct Receipt {
    ~Receipt()
    {
        strand_yield();
    }
};

void *throw_receipt(void *)
{
    throw Receipt();
}

void *catch_receipt(void *arg)
{
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand_spawn(scope, throw_receipt, nullptr);
        strand_scope_join(scope);
    }
    STRAND_CATCH(&STRAND_FOREIGN, e) {
        std::printf("caught; ");
    }
    STRAND_END
    return arg;
}

void *offload(void *fn)
{
    return strand_offload(reinterpret_cast<strand_fn *>(fn), nullptr);
}

void *spawn_courier(void *fn)
{
    strand_attr attr = {};
    attr.size = sizeof attr;
    attr.name = "courier";
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn_with(scope, &attr, reinterpret_cast<strand_fn *>(fn), nullptr, 0));
}

/* A clean-up that lets no interruption out. */
extern "C" __attribute__((noinline)) void drain_for_a_while() noexcept
{
    for (int i = 0; i < 30000; i++)
        strand_yield();
}

void *drain(void *arg)
{
    drain_for_a_while();
    return arg;
}

void *cancel_drain(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, drain, arg);
    strand_yield();
    strand_cancel(child, "enough");
    return strand_join(child);
}

void catch_std(const char *where)
{
    try {
        lose_std(nullptr);
    } catch (const std::runtime_error &) {
        std::printf("caught %s; ", where);
    }
}

void *catch_inside(void *arg)
{
    catch_std("inside");
    return arg;
}

void *sleep_in_call_once(void *arg)
{
    static std::once_flag once;
    std::call_once(once, [] { strand_sleep(STRAND_MS); });
    return arg;
}

} // namespace

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "none";
    if (std::strcmp(what, "none") == 0) {
        catch_std("outside");
        strand_run(nullptr, catch_inside, nullptr);
        catch_std("outside");
        return 0;
    }
    if (std::strcmp(what, "static") == 0) {
        strand_run(nullptr, enter_twice, nullptr);
        return 0;
    }
    if (std::strcmp(what, "exception_blocks") == 0) {
        strand_run(nullptr, catch_receipt, nullptr);
        return 0;
    }
    if (std::strcmp(what, "put_off_an_interruption") == 0) {
        strand_run(nullptr, cancel_drain, nullptr);
        return 0;
    }
    if (std::strcmp(what, "sleep_in_call_once") == 0) {
        strand_run(nullptr, sleep_in_call_once, nullptr);
        return 0;
    }
    strand_fn *fn = std::strcmp(what, "foreign") == 0 ? lose_std : carry_noexcept;
    bool offloaded = std::strcmp(what, "offloaded") == 0;
    strand_run(nullptr, offloaded ? offload : spawn_courier, reinterpret_cast<void *>(offloaded ? lose_std : fn));
    std::puts("still alive");
    return 0;
}
