/*
 * switch, yield1000: N threads in a ring on one processor; each waits for its semaphore and posts the next one's. A
 * switch, one way. sched_yield is not used: the system may return from it without a switch.
 *
 * Unfair: each switch enters the system.
 */
#include "one_cpu.h"

#include <pthread.h>
#include <semaphore.h>

enum { SWITCHES = 100000, STACK = 64 * 1024 };

struct member {
    sem_t turn;
    struct member *next;
    long turns, taken;
    pthread_t thread;
};

static void *take_turns(void *arg)
{
    struct member *self = arg;
    for (; self->taken < self->turns; self->taken++) {
        while (sem_wait(&self->turn) != 0)
            ;
        sem_post(&self->next->turn);
    }
    return NULL;
}

static double measure(struct member *ring, long threads)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    for (long i = 0; i < threads; i++) {
        ring[i] = (struct member){.next = &ring[(i + 1) % threads], .turns = SWITCHES / threads};
        sem_init(&ring[i].turn, 0, 0);
    }
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ring[i].thread, &attr, take_turns, &ring[i]) != 0)
            bench_leave_out("this machine allows fewer than %ld threads", threads);
    int64_t start = bench_now();
    sem_post(&ring[0].turn);
    long total = 0;
    for (long i = 0; i < threads; i++) {
        pthread_join(ring[i].thread, NULL);
        total += ring[i].taken;
    }
    int64_t taken = bench_now() - start;
    bench_check(total == SWITCHES / threads * threads, "%ld turns", total);
    return (double)taken / (double)total;
}

int main(int argc, char **argv)
{
    long threads = bench_argument(argc, argv, 2);
    struct member *ring = calloc((size_t)threads, sizeof *ring);
    bench_check(ring != NULL, "no memory");
    one_cpu();
    measure(ring, threads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(threads == 2 ? "switch" : "yield1000", "threads", 1, "ns", measure(ring, threads));
    return 0;
}
