/*
 * The same as outside.c, in C++: destructors take the place of clean-ups, and C++ has exceptions of its own.
 */
#include <iostream>
#include <stdexcept>
#include <strand.h>
#include <strand/debug.h>
#include <strand/io.h>
#include <strand/pool.h>
#include <string>

namespace {

int cleaned;

struct counted {
    int value;
    explicit counted(int worth) : value(worth) {}
    ~counted()
    {
        cleaned += value;
    }
};

void *twice(void *n)
{
    return reinterpret_cast<void *>(2 * reinterpret_cast<intptr_t>(n));
}

int number(void *result)
{
    return static_cast<int>(reinterpret_cast<intptr_t>(result));
}

void *fails(void *)
{
    counted local(1);
    strand_throw(&STRAND_ERROR, "on purpose");
}

void *sleeps(void *started)
{
    counted local(10);
    *static_cast<bool *>(started) = true;
    strand_sleep(3600 * STRAND_S);
    return nullptr;
}

void *joins(void *child)
{
    return strand_join(*static_cast<strand *>(child));
}

void *root(void *arg)
{
    bool started = false;
    STRAND_DEADLINE(strand_in(60 * STRAND_S));
    STRAND_SCOPE(scope);
    std::cout << "joined " << number(strand_join(strand_spawn(scope, twice, reinterpret_cast<void *>(21)))) << "\n";
    std::cout << "offloaded " << number(strand_offload(twice, reinterpret_cast<void *>(4))) << "\n";

    strand_exception *e = strand_try(fails, nullptr, nullptr);
    std::cout << "caught: " << strand_exception_text(e) << ", cleaned " << cleaned << "\n";
    strand_exception_release(e);

    strand child = strand_spawn(scope, sleeps, &started);
    while (!started)
        strand_yield();
    strand_cancel(child, "enough");
    e = strand_try(joins, &child, nullptr);
    bool cancelled = e != nullptr && strand_exception_is(e, &STRAND_CHILD_CANCELLED);
    std::cout << "cancelled: " << (cancelled ? strand_exception_why(e) : "no") << ", cleaned " << cleaned << "\n";
    strand_exception_release(e);

    strand_stats stats = {};
    stats.size = sizeof stats;
    strand_stats_get(&stats);
    std::cout << "spawned " << stats.spawned << "\n";

    try {
        counted local(100);
        throw std::runtime_error("of C++");
    } catch (const std::exception &own) {
        std::cout << "caught: " << own.what() << ", cleaned " << cleaned << "\n";
    }
    return arg;
}

} // namespace

int main()
{
    std::string headers = std::to_string(STRAND_VERSION_MAJOR) + "." + std::to_string(STRAND_VERSION_MINOR) + "." +
                          std::to_string(STRAND_VERSION_PATCH);
    std::cout << "version " << (headers == strand_version() ? "as in the headers" : strand_version()) << "\n";
    void *result = strand_run(nullptr, root, &cleaned);
    return result == &cleaned && cleaned == 111 ? 0 : 1;
}
