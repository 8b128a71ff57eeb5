/*
 * chan_rtt: two threads send one value back and forth over two queues with room for one; a round trip. With the
 * argument 1 both share a processor.
 *
 * Unfair: a wait enters the system. A queue with room for one takes the place of an unbuffered channel.
 */
#include "one_cpu.h"
#include "queue.h"

enum { ROUND_TRIPS = 50000 };

struct pair {
    struct queue there, back;
};

static void *echo(void *arg)
{
    struct pair *pair = arg;
    uint64_t n;
    while (queue_receive(&pair->there, &n))
        queue_send(&pair->back, n);
    return NULL;
}

static double measure(void)
{
    static struct pair pair;
    pthread_t other;
    uint64_t sum = 0, answer = 0;
    queue_open(&pair.there, 1);
    queue_open(&pair.back, 1);
    bench_check(pthread_create(&other, NULL, echo, &pair) == 0, "no thread");
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        queue_send(&pair.there, i);
        bench_check(queue_receive(&pair.back, &answer), "no answer");
        sum += answer;
    }
    int64_t taken = bench_now() - start;
    queue_close(&pair.there);
    pthread_join(other, NULL);
    bench_check(sum == (uint64_t)ROUND_TRIPS * (ROUND_TRIPS - 1) / 2, "the sum of the answers is %" PRIu64, sum);
    return (double)taken / ROUND_TRIPS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    if (argc > 2)
        bench_leave_out("threads have no such row");
    if (threads == 1)
        one_cpu();
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("chan_rtt", "threads", threads, "ns", measure());
    return 0;
}
