/*
 * switch, yield1000: N fibers on one thread that do nothing but yield. One switch, through the scheduler, one way.
 */
#include "fibers.h"

enum { SWITCHES = 1000000 };

struct ring {
    long fibers, turns;
    long total;
    long repeats; /* turns that followed a turn of the same fiber */
    long last;    /* the fiber that took the last one */
};

static void take_turns(ring *ring)
{
    for (long i = 0; i < ring->turns; i++)
        boost::this_fiber::yield();
    ring->total += ring->turns;
}

static void take_turns_watched(ring *ring, long self)
{
    for (long i = 0; i < ring->turns; i++) {
        ring->repeats += ring->last == self;
        ring->last = self;
        boost::this_fiber::yield();
    }
    ring->total += ring->turns;
}

static double measure(ring *ring, bool watched)
{
    std::vector<fibers::fiber> members((size_t)ring->fibers);
    ring->total = ring->repeats = 0;
    ring->last = -1;
    int64_t start = bench_now();
    for (long i = 0; i < ring->fibers; i++)
        members[(size_t)i] = fibers_spawn(fibers::launch::post, [ring, i, watched] {
            if (watched)
                take_turns_watched(ring, i);
            else
                take_turns(ring);
        });
    for (fibers::fiber &member : members)
        member.join();
    int64_t taken = bench_now() - start;
    bench_check(ring->total == ring->fibers * ring->turns, "%ld turns", ring->total);
    bench_check(ring->repeats <= ring->fibers, "%ld yields returned without a switch", ring->repeats);
    return (double)taken / (double)ring->total;
}

int main(int argc, char **argv)
{
    ring ring = {};
    ring.fibers = bench_argument(argc, argv, 2);
    ring.turns = SWITCHES / ring.fibers;
    fibers_run(1, FIBERS_ROUND_ROBIN, [&ring] {
        measure(&ring, true);
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample(ring.fibers == 2 ? "switch" : "yield1000", "boost_fiber", 1, "ns", measure(&ring, false));
    });
    return 0;
}
