/*
 * Threads use a function's static object before the first run of the process. ThreadSanitizer in the program alone has
 * to see that the constructor comes before its uses: tools/check-link.sh.
 */
#include "strand.h"

#include <atomic>
#include <cstdio>
#include <thread>

namespace {

std::atomic<int> there{0};

/* Both threads have arrived before one constructs, so the other waits. */
struct Table {
    int size;
    Table()
    {
        while (there < 2)
            std::this_thread::yield();
        size = 3;
    }
};

int look_up()
{
    there++;
    static Table table;
    return table.size;
}

} // namespace

int main()
{
    int first = 0, second = 0;
    std::thread one([&] { first = look_up(); }), two([&] { second = look_up(); });
    one.join();
    two.join();
    std::printf("%d\n", first + second);
    return 0;
}
