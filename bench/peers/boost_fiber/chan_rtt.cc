/*
 * chan_rtt: two fibers send one value back and forth over two unbuffered channels; a round trip.
 */
#include "fibers.h"

enum { ROUND_TRIPS = 300000 };

using numbers = fibers::unbuffered_channel<uint64_t>;

static double measure()
{
    numbers there, back;
    fibers::fiber echo = fibers_spawn(fibers::launch::post, [&] {
        uint64_t n;
        while (there.pop(n) == fibers::channel_op_status::success)
            back.push(n);
    });
    uint64_t sum = 0, answer = 0;
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        there.push(i);
        back.pop(answer);
        sum += answer;
    }
    int64_t taken = bench_now() - start;
    there.close();
    echo.join();
    bench_check(sum == (uint64_t)ROUND_TRIPS * (ROUND_TRIPS - 1) / 2, "the sum of the answers is %" PRIu64, sum);
    return (double)taken / ROUND_TRIPS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    if (argc > 2)
        bench_leave_out("Boost.Fiber has no such row");
    fibers_run(threads, FIBERS_ROUND_ROBIN, [threads] {
        measure();
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample("chan_rtt", "boost_fiber", threads, "ns", measure());
    });
    return 0;
}
