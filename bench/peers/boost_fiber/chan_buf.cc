/*
 * chan_buf: one fiber sends, one receives, over a channel with room for 127; per item. Boost's channel has one place
 * less than its capacity, which is a power of two.
 */
#include "fibers.h"

enum { ITEMS = 3000000, ROOM = 128 };

using numbers = fibers::buffered_channel<uint64_t>;

static double measure()
{
    numbers channel(ROOM);
    uint64_t sum = 0;
    fibers::fiber receiver = fibers_spawn(fibers::launch::post, [&] {
        uint64_t n;
        while (channel.pop(n) == fibers::channel_op_status::success)
            sum += n;
    });
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ITEMS; i++)
        channel.push(i);
    channel.close();
    receiver.join();
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ITEMS * (ITEMS - 1) / 2, "the sum of the items is %" PRIu64, sum);
    return (double)taken / ITEMS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    fibers_run(threads, FIBERS_ROUND_ROBIN, [threads] {
        measure();
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample("chan_buf", "boost_fiber", threads, "ns", measure());
    });
    return 0;
}
