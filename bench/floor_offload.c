/*
 * What offload is compared with: a thread wakes another one by a futex, and that wakes it by another one.
 */
#define _GNU_SOURCE
#include "offload.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct pair {
    _Atomic uint32_t there, back; /* how often it went each way */
    _Atomic bool over;
};

static void await(_Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t now; (now = *word) != value;)
        syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, now, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    ++*word;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

static void *answer(void *arg)
{
    struct pair *pair = arg;
    offload_bind(offload_far);
    for (uint32_t i = 1; await(&pair->there, i), !pair->over; i++)
        wake(&pair->back);
    return NULL;
}

static void trip(void *arg)
{
    struct pair *pair = arg;
    wake(&pair->there);
    await(&pair->back, pair->there);
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    struct pair pair = {0};
    pthread_t other;
    offload_find_processors();
    offload_bind(offload_near);
    bench_check(pthread_create(&other, NULL, answer, &pair) == 0, "no thread");
    offload_measure(trip, &pair);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("offload", "floor", threads, "us", offload_measure(trip, &pair));
    pair.over = true;
    wake(&pair.there);
    pthread_join(other, NULL);
    return 0;
}
