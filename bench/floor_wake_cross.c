/*
 * The floor of the wake_cross rows: one plain thread wakes another one that sleeps on a futex.
 */
#include "wake_cross.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct wakes wakes;
static _Atomic uint32_t word;
static _Atomic int64_t began;

static void *be_woken(void *arg)
{
    for (uint32_t i = 0; i < WAKES; i++) {
        while (atomic_load(&word) == i)
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, i, NULL, NULL, 0);
        wakes_record(&wakes, atomic_load(&began));
    }
    return arg;
}

static double measure(void)
{
    pthread_t thread;
    wakes.done = 0;
    atomic_store(&word, 0);
    bench_check(pthread_create(&thread, NULL, be_woken, NULL) == 0, "no thread");
    for (int i = 0; i < WAKES; i++) {
        wakes_rest(&wakes, i);
        atomic_store(&began, bench_now());
        atomic_store(&word, (uint32_t)i + 1);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    pthread_join(thread, NULL);
    return wakes_median(&wakes);
}

int main(int argc, char **argv)
{
    const char *row = argc > 1 ? argv[1] : "wake_cross";
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "floor", 2, "us", measure());
    return 0;
}
