/*
 * Cancelled strands whose destructors block: beside an object of its own, beside a text, and in try blocks.
 * tools/check-link.sh compiles it with options that change how a noexcept function looks.
 */
#include "strand.h"

#include <cstddef>
#include <cstdio>
#include <exception>
#include <initializer_list>

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

int closed;

/* Short ones lie in the object, as those of std::string do. */
struct Text {
    char own[16];
    char *text;
    explicit Text(std::size_t size) : text(size < sizeof own ? own : new char[size]) {}
    Text(const Text &) = delete;
    ~Text()
    {
        if (text != own)
            delete[] text;
    }
};

struct Name {
    Text text{100};
    ~Name()
    {
        Text copy{200};
        strand_sleep(STRAND_MS);
        closed += 1;
    }
};

struct Tries {
    ~Tries()
    {
        try {
            strand_sleep(STRAND_MS);
            closed += 10;
        } catch (std::exception &) {
        }
    }
};

struct Timed {
    ~Timed()
    {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(STRAND_MS));
            strand_sleep(3600 * STRAND_S);
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
            closed += 100;
        }
        STRAND_END
    }
};

/* The strand cancels itself: the interruption holds while the object is destroyed. */
template <class type> void *close_one(void *arg)
{
    type object;
    strand_cancel(strand_self(), nullptr);
    return arg;
}

void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_cancel(strand_spawn(scope, close_connection, nullptr), nullptr);
    for (strand_fn *close : {close_one<Name>, close_one<Tries>, close_one<Timed>}) {
        strand one = strand_spawn(scope, close, nullptr);
        strand_wait(one);
        strand_cancel(one, nullptr);
    }
    return arg;
}

} // namespace

int main()
{
    strand_run(nullptr, root, nullptr);
    std::printf("%d %d\n", steps, closed);
    return 0;
}
