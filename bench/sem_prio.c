/*
 * sem_prio, sem_prio_1k: 100 000 strands, or 1000, wait at a priority semaphore, behind a few that pass its one permit
 * to each other: time per acquire and release, including the switch. So this is the cost of the semaphore with such a
 * queue. sem_prio_turns, sem_prio_turns_1k: all of them take turns; each holder releases the permit, and waits again
 * behind a random part of the others. That adds the cache misses of so many stacks and keys.
 */
#include "bench.h"

#include <strand.h>
#include <strand/limit.h>
#include <strand/pool.h>

enum { MOST = BENCH_MANY(100000), OPERATIONS = BENCH_MANY(1000000), FRONT = 4 };

struct crowd {
    strand_prio_semaphore sem;
    long waiters, left, strays;
    uint64_t now, chance; /* now: the key of the last one that went */
    strand_limit done;    /* has a permit when no operation is left */
    bool over, behind;
};

static struct crowd crowd;

static int by_time(const void *a, const void *b, void *arg)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    (void)arg;
    return (x > y) - (x < y);
}

/* On one thread, in turn: the strand that runs has the permit. */
static void *come_again(void *arg)
{
    uint64_t *key = arg;
    for (;;) {
        strand_prio_acquire(&crowd.sem, key);
        bench_check(strand_prio_in_flight(&crowd.sem) == 1, "%zu are in flight", strand_prio_in_flight(&crowd.sem));
        crowd.now = *key;
        if (!crowd.over && --crowd.left == 0) {
            strand_limit_release(&crowd.done);
            return NULL; /* with the permit, so that nobody else goes on */
        }
        strand_prio_release(&crowd.sem);
        if (crowd.over)
            return NULL;
        *key = crowd.now + 1 + (crowd.behind ? 0 : bench_random(&crowd.chance) % (2 * (uint64_t)crowd.waiters));
    }
}

/* Its turn comes sometimes, when none in front of it is queued yet; it lets them pass again. */
static void *wait_behind(void *key)
{
    while (!crowd.over) {
        strand_prio_acquire(&crowd.sem, key);
        crowd.strays += !crowd.over;
        strand_prio_release(&crowd.sem);
    }
    return NULL;
}

static double measure(long waiters, bool behind)
{
    static uint64_t keys[MOST + FRONT];
    crowd = (struct crowd){.waiters = waiters, .left = OPERATIONS, .behind = behind};
    strand_prio_options options = {.size = sizeof options, .permits = 1, .compare = by_time};
    strand_prio_init(&crowd.sem, &options);
    strand_prio_acquire(&crowd.sem, &crowd.now);
    strand_limit_init(&crowd.done, 1, NULL);
    strand_limit_acquire(&crowd.done);
    STRAND_SCOPE(scope);
    for (long i = 0; i < waiters; i++) {
        keys[i] = bench_random(&crowd.chance) % (2 * (uint64_t)waiters) + (behind ? UINT64_C(1) << 62 : 0);
        strand_spawn(scope, behind ? wait_behind : come_again, &keys[i]);
    }
    for (long i = waiters; behind && i < waiters + FRONT; i++)
        strand_spawn(scope, come_again, &keys[i]);
    while (strand_prio_waiting(&crowd.sem) < (size_t)waiters + (behind ? FRONT : 0))
        strand_yield();
    int64_t start = bench_now();
    strand_prio_release(&crowd.sem);
    strand_limit_acquire(&crowd.done);
    int64_t taken = bench_now() - start;
    crowd.over = true;
    bench_check(crowd.strays < OPERATIONS / 20, "%ld strays", crowd.strays);
    strand_prio_release(&crowd.sem);
    strand_scope_join(scope);
    return (double)taken / OPERATIONS;
}

static void *root(void *arg)
{
    const char *row = arg;
    long waiters = strstr(row, "_1k") ? 1000 : bench_strands_that_fit(row, MOST, BENCH_BYTES_PARKED);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "strand", 1, "ns", measure(waiters, !strstr(row, "_turns")));
    return NULL;
}

int main(int argc, char **argv)
{
    strand_run(STRAND_OPTIONS(.threads = 1), root, argc > 1 ? argv[1] : "sem_prio");
    return 0;
}
