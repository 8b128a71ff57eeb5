/*
 * file_read4k: 64 strands read blocks of a file, which the system has in memory, at random. file_direct4k: the same
 * past that memory (O_DIRECT), from the disk.
 */
#define _GNU_SOURCE
#include "file.h"

#include <strand.h>
#include <strand/file.h>
#include <strand/io.h>

static int fd;
static long next_read;
static struct file_row row;

static void *reader(void *block)
{
    for (long n; (n = next_read++) < row.reads;) {
        long number = file_block(n);
        bench_check(strand_file_read(fd, block, FILE_BLOCK, number * FILE_BLOCK) == FILE_BLOCK, "a read has failed");
        file_check(block, number);
    }
    return NULL;
}

static double measure(char *blocks)
{
    int64_t begun = bench_now();
    next_read = 0;
    STRAND_SCOPE(scope);
    for (int i = 0; i < FILE_READERS; i++)
        strand_spawn(scope, reader, blocks + i * FILE_BLOCK);
    strand_scope_join(scope);
    return (double)row.reads * 1e9 / (double)(bench_now() - begun);
}

/* The library's own descriptors need no look before each call at what is behind their number. */
static void open_again(int made)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", made);
    fd = strand_file_open(AT_FDCWD, path, O_RDONLY | row.flags, 0);
    bench_check(fd >= 0, "the file can't be opened");
}

static void *root(void *arg)
{
    char *blocks = aligned_alloc(FILE_BLOCK, FILE_READERS * FILE_BLOCK);
    open_again(*(int *)arg);
    measure(blocks);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row.name, "strand", 1, "reads/s", measure(blocks));
    strand_close(fd);
    free(blocks);
    return NULL;
}

int main(int argc, char **argv)
{
    row = file_row_of(argc, argv);
    int made = file_make(&row);
    strand_run(NULL, root, &made);
    close(made);
    return 0;
}
