/*
 * The floor of the copy rows: what is left of a cycle without a scheduler. The bytes of a stack are saved, another
 * saved stack is copied in, at the same place, and two contexts jump to each other and back. The saved stacks of a
 * million strands lie side by side and are taken in that order.
 */
#include "bench.h"
#include "copy.h"
#include "floor.h"

#include <sys/mman.h>

enum { STACK = 16384 };

static void entry(struct floor_transfer t)
{
    for (;;)
        t = jump_fcontext(t.from, NULL);
}

static char *pages(size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench_check(at != MAP_FAILED, "no memory");
    memset(at, 1, size);
    return at;
}

struct stage {
    struct copy_size size;
    char *stacks, *saved;
    void *context;
};

/* One cycle of each strand, on the fibres in turn. */
static void round_robin(struct stage *stage)
{
    size_t bytes = (size_t)stage->size.bytes;
    long strands = stage->size.strands, fibres = stage->size.fibres;
    for (long i = 0; i < strands; i++) {
        char *stack = stage->stacks + (size_t)(i % fibres) * bytes;
        long active = i < fibres ? strands - fibres + i : i - fibres;
        memcpy(stage->saved + (size_t)active * bytes, stack, bytes);
        memcpy(stack, stage->saved + (size_t)i * bytes, bytes);
        stage->context = jump_fcontext(stage->context, NULL).from;
    }
}

int main(int argc, char **argv)
{
    struct stage stage = {.size = copy_arguments(argc, argv)};
    stage.stacks = pages((size_t)(stage.size.bytes * stage.size.fibres));
    stage.saved = pages((size_t)(stage.size.bytes * stage.size.strands));
    stage.context = make_fcontext(pages(STACK) + STACK, STACK, entry);
    long rounds = copy_rounds(&stage.size);
    int64_t taken[BENCH_SAMPLES + 1];
    for (int i = 0; i <= copy_samples(&stage.size); i++) {
        int64_t start = bench_now();
        for (long j = 0; j < rounds; j++)
            round_robin(&stage);
        taken[i] = bench_now() - start;
    }
    for (int i = 1; i <= copy_samples(&stage.size); i++)
        bench_sample(copy_row(&stage.size), "floor", 1, "ns", (double)taken[i] / (double)(rounds * stage.size.strands));
    return 0;
}
