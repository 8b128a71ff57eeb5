/*
 * fair: a thousand equal strands on two threads, for 5 s, each of which works for a microsecond and yields; the turns
 * of the one that had most, divided by those of the one that had fewest. fair_pairs: each hands a value to its partner
 * and back after each turn, over unbuffered channels, so there are five hundred groups that know nothing of each other
 * (S-66). fair_sleep: each sleeps for 5 ms after each turn.
 */
/* S-66 */
#include "work.h"

#include <stdatomic.h>
#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { STRANDS = 1000, SECONDS = BENCH_LONG(5), TURN_NS = 1000, SLEEP_MS = 5 };

typedef STRAND_CHAN(uint64_t) numbers;

struct one {
    _Alignas(64) uint64_t turns;
    numbers in, out;
    bool serves;
};

static struct one all[STRANDS];
static uint64_t steps;
static _Atomic bool begun, over; /* nothing counts before all are there */

static void count(struct one *one)
{
    one->turns += atomic_load_explicit(&begun, memory_order_relaxed);
}

static void *yields(void *arg)
{
    struct one *one = arg;
    for (; !atomic_load_explicit(&over, memory_order_relaxed); count(one)) {
        bench_work(steps);
        strand_yield();
    }
    return NULL;
}

static void *talks(void *arg)
{
    struct one *one = arg;
    uint64_t value = 0;
    if (one->serves)
        STRAND_IGNORE(STRAND_SEND(one->out, &value));
    while (STRAND_RECEIVE(one->in, &value) == 0) {
        bench_work(steps);
        count(one);
        if (atomic_load_explicit(&over, memory_order_relaxed) || STRAND_SEND(one->out, &value) < 0)
            break;
    }
    STRAND_CHAN_CLOSE(one->out);
    return NULL;
}

static void *sleeps(void *arg)
{
    struct one *one = arg;
    for (; !atomic_load_explicit(&over, memory_order_relaxed); count(one)) {
        bench_work(steps);
        strand_sleep(SLEEP_MS * STRAND_MS);
    }
    return NULL;
}

static const struct kind {
    const char *row;
    strand_fn *live;
} kinds[] = {{"fair", yields}, {"fair_pairs", talks}, {"fair_sleep", sleeps}};

static double most_by_least(void)
{
    uint64_t most = 0, least = UINT64_MAX;
    for (int i = 0; i < STRANDS; i++) {
        most = all[i].turns > most ? all[i].turns : most;
        least = all[i].turns < least ? all[i].turns : least;
    }
    bench_check(most > 0, "nobody had a turn");
    return (double)most / (double)(least ? least : 1);
}

static void *root(void *arg)
{
    const struct kind *kind = arg;
    steps = bench_steps(TURN_NS);
    STRAND_SCOPE(scope);
    for (int i = 0; i < STRANDS; i += 2) {
        all[i].in = all[i + 1].out = STRAND_CHAN_OPEN(numbers, scope, 0);
        all[i].out = all[i + 1].in = STRAND_CHAN_OPEN(numbers, scope, 0);
        all[i].serves = true;
    }
    for (int i = 0; i < STRANDS; i++)
        strand_spawn(scope, kind->live, &all[i]);
    atomic_store(&begun, true);
    strand_sleep(SECONDS * STRAND_S);
    atomic_store(&over, true);
    strand_scope_join(scope);
    bench_sample(kind->row, "strand", 2, "x", most_by_least());
    return NULL;
}

int main(int argc, char **argv)
{
    const struct kind *kind = kinds;
    for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].row, argv[1]) == 0)
            kind = &kinds[i];
    strand_run(STRAND_OPTIONS(.threads = 2), root, (void *)kind);
    return 0;
}
