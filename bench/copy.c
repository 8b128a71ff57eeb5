/*
 * copy256 to copy64k: two strands of one shared fibre yield to each other, with so many bytes of live stack each, as
 * the fibre's figures have it: one cycle saves one strand's stack and brings the other's back, scheduler included.
 * copy_many: the same round robin over a million strands of eight fibres.
 * copy_varying: two strands, each of which is suspended some KiB deeper every second time.
 */
#include "copy.h"
#include "bench.h"

#include <strand.h>
#include <strand/pool.h>

enum { STACK = 256 * 1024, PROBED = 1024 };

struct ring {
    struct copy_size size;
    long frame;  /* what a strand has to take of its stack, so that all in it comes to size.bytes */
    long rounds; /* of all strands, for a sample */
    int samples;
    strand_fibre fibre;
    int64_t cycles[BENCH_SAMPLES + 2], at[BENCH_SAMPLES + 2]; /* at the beginning of each sample, and at the end */
};

static struct ring ring;

static int64_t stacks_saved(void)
{
    strand_fibre_info info = {.size = sizeof info};
    int64_t sum = 0;
    for (int i = 0; i < strand_fibre_count(ring.fibre); i++) {
        strand_fibre_info_get(ring.fibre, i, &info);
        sum += (int64_t)info.copies;
    }
    return sum;
}

static void mark(int i)
{
    ring.cycles[i] = stacks_saved();
    ring.at[i] = bench_now();
}

static __attribute__((noinline)) void yield_deeper(size_t bytes)
{
    char *frame = __builtin_alloca(bytes);
    memset(frame, 1, bytes);
    __asm__ volatile("" : : "r"(frame) : "memory");
    strand_yield();
    __asm__ volatile("" : : "r"(frame) : "memory");
}

static void yield_once(long turn)
{
    if (ring.size.varies && turn % 2)
        yield_deeper((size_t)ring.size.varies);
    else
        strand_yield();
}

/* A strand of the ring; one with an argument sets the marks. It is the program's only frame, and has no canary, because
 * the library's own frames leave little room in the 256 bytes of copy256. */
static __attribute__((no_stack_protector)) void *take_turns(void *marks)
{
    char *frame = __builtin_alloca((size_t)ring.frame);
    memset(frame, 1, (size_t)ring.frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    for (int i = 0; i <= ring.samples; i++) {
        if (marks)
            mark(i);
        for (long j = 0; j < ring.rounds; j++)
            yield_once(j);
    }
    if (marks)
        mark(ring.samples + 1);
    __asm__ volatile("" : : "r"(frame) : "memory");
    return NULL;
}

/* Returns how deep the strands were. */
static long run(long strands, int fibres)
{
    strand_fibre_info info = {.size = sizeof info};
    size_t stack = ring.size.bytes > STACK / 2 ? 2 * (size_t)ring.size.bytes : STACK;
    STRAND_SCOPE(scope);
    ring.fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = fibres, .stack_size = stack));
    for (long i = 0; i < strands; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = ring.fibre), take_turns, i ? NULL : &ring, 0);
    strand_scope_join(scope);
    strand_fibre_info_get(ring.fibre, 0, &info);
    return (long)info.stack_deepest;
}

static void *root(void *arg)
{
    const struct copy_size *size = &ring.size;
    ring.frame = PROBED;
    ring.rounds = 2;
    ring.frame += size->bytes + size->varies - run(2, 1);
    bench_check(ring.frame >= 0, "a strand without a frame has %ld bytes more", -ring.frame);
    ring.rounds = copy_rounds(size);
    ring.samples = copy_samples(size);
    long deepest = run(size->strands, (int)size->fibres);
    bench_check(deepest == size->bytes + size->varies, "%ld bytes of live stack", deepest);
    for (int i = 1; i <= ring.samples; i++) {
        int64_t cycles = ring.cycles[i + 1] - ring.cycles[i], all = size->strands * ring.rounds;
        bench_check(cycles * 100 >= all * 99 && cycles * 100 <= all * 101 + 100, "%" PRId64 " stacks were saved",
                    cycles);
        bench_sample(copy_row(size), "strand", 1, "ns", (double)(ring.at[i + 1] - ring.at[i]) / (double)cycles);
    }
    return arg;
}

int main(int argc, char **argv)
{
    ring.size = copy_arguments(argc, argv);
    strand_run(NULL, root, NULL);
    return 0;
}
