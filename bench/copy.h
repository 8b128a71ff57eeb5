/*
 * The copy rows: their arguments (bytes of live stack, strands, fibres, bytes that it is deeper every second time),
 * their names, how long they are measured.
 */
#ifndef BENCH_COPY_H
#define BENCH_COPY_H

#include "bench.h"

struct copy_size {
    long bytes, strands, fibres, varies;
};

BENCH_API struct copy_size copy_arguments(int argc, char **argv)
{
    struct copy_size size = {bench_argument(argc, argv, 256), 2, 1, 0};
    if (argc > 3) {
        size.strands = bench_argument(argc - 1, argv + 1, 2);
        size.strands = size.strands > 2 ? BENCH_MANY(size.strands) : size.strands;
        size.fibres = bench_argument(argc - 2, argv + 2, 1);
    }
    if (argc > 4)
        size.varies = bench_argument(argc - 3, argv + 3, 0);
    bench_check(size.bytes % 16 == 0, "%ld bytes are no size of a frame", size.bytes);
    return size;
}

/* How often all strands have their turn for one sample: so that a GiB is copied, or with very many strands, once. */
BENCH_API long copy_rounds(const struct copy_size *size)
{
    long cycles = (1L << 30) / size->bytes;
    cycles = cycles < BENCH_MANY(1000000) ? cycles : BENCH_MANY(1000000);
    return cycles > size->strands ? cycles / size->strands : 1;
}

/* A round of a million strands is a sample that comes after another one: the first has been the warm-up. */
BENCH_API int copy_samples(const struct copy_size *size)
{
    return size->strands > 2 ? BENCH_LONG(3) : BENCH_SAMPLES;
}

BENCH_API const char *copy_row(const struct copy_size *size)
{
    static char row[32];
    if (size->strands > 2)
        return "copy_many";
    if (size->varies)
        return "copy_varying";
    snprintf(row, sizeof row, size->bytes < 1024 ? "copy%ld" : "copy%ldk",
             size->bytes < 1024 ? size->bytes : size->bytes / 1024);
    return row;
}

#endif
