/*
 * chan_buf: one thread sends, one receives, over a queue with room for 128; per item. With the argument 1 both share a
 * processor.
 *
 * Unfair: a wait enters the system.
 */
#include "one_cpu.h"
#include "queue.h"

enum { ITEMS = 1000000 };

struct line {
    struct queue queue;
    uint64_t sum;
};

static void *add_up(void *arg)
{
    struct line *line = arg;
    uint64_t n;
    while (queue_receive(&line->queue, &n))
        line->sum += n;
    return NULL;
}

static double measure(void)
{
    static struct line line;
    pthread_t other;
    line.sum = 0;
    queue_open(&line.queue, QUEUE_MOST);
    bench_check(pthread_create(&other, NULL, add_up, &line) == 0, "no thread");
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ITEMS; i++)
        queue_send(&line.queue, i);
    queue_close(&line.queue);
    pthread_join(other, NULL);
    int64_t taken = bench_now() - start;
    bench_check(line.sum == (uint64_t)ITEMS * (ITEMS - 1) / 2, "the sum of the items is %" PRIu64, line.sum);
    return (double)taken / ITEMS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    if (threads == 1)
        one_cpu();
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("chan_buf", "threads", threads, "ns", measure());
    return 0;
}
