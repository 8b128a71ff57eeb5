/*
 * A terminate handler that the program installs while a run lasts, and that calls the one before it, as a crash
 * reporter does. A later run puts its own handler in front of it. Both together must come to an end.
 */
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "strand.h"

namespace {

std::terminate_handler before;
int calls;

void report()
{
    std::fprintf(stderr, "reported %d\n", ++calls);
    if (calls > 3)
        std::_Exit(3);
    if (before)
        before();
    std::abort();
}

void *install(void *arg)
{
    before = std::set_terminate(report);
    return arg;
}

void *terminate(void *)
{
    std::terminate();
}

} // namespace

int main()
{
    strand_run(nullptr, install, nullptr);
    strand_run(nullptr, terminate, nullptr);
    return 0;
}
