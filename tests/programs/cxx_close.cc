/*
 * A cancelled strand whose destructor blocks, beside an object of its own. tools/check-link.sh compiles it with options
 * that change how a noexcept function looks.
 */
#include "strand.h"

#include <cstdio>

namespace {

int steps;

struct Guard {
    ~Guard();
};
__attribute__((noinline)) Guard::~Guard()
{
    steps++;
}

/* g++ gives the sleep a landing pad where it puts this function, but not where a destructor has the same text. */
inline void flush()
{
    Guard guard;
    strand_sleep(STRAND_MS);
    steps += 10;
}

struct Connection {
    ~Connection()
    {
        flush();
    }
};

void *close_connection(void *arg)
{
    {
        Connection connection;
    }
    steps += 100;
    strand_checkpoint();
    steps += 1000;
    return arg;
}

void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_cancel(strand_spawn(scope, close_connection, nullptr), nullptr);
    return arg;
}

} // namespace

int main()
{
    strand_run(nullptr, root, nullptr);
    std::printf("%d\n", steps);
    return 0;
}
