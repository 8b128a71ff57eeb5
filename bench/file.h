/*
 * file_read4k, file_direct4k: what their programs share: the file, and which blocks of it are read, in which order.
 */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BLOCK = 4096, FILE_BLOCKS = BENCH_MANY(16384), FILE_READERS = 64 };

struct file_row {
    const char *name;
    int flags; /* of open */
    long reads;
};

/* The row that the program's argument asks for: "direct", or none. */
BENCH_API struct file_row file_row_of(int argc, char **argv)
{
    bool direct = argc > 1 && strcmp(argv[1], "direct") == 0;
    return direct ? (struct file_row){"file_direct4k", O_DIRECT, BENCH_MANY(6400)}
                  : (struct file_row){"file_read4k", 0, BENCH_MANY(640000)};
}

/* Makes a file without a name. Block n begins with n. The system has all of it in memory, and so has the disk. */
BENCH_API int file_make(const struct file_row *row)
{
    char path[] = "bench-file-XXXXXX", again[64];
    static _Alignas(FILE_BLOCK) char block[FILE_BLOCK];
    int fd = mkstemp(path);
    bench_check(fd >= 0, "no file here");
    for (long i = 0; i < FILE_BLOCKS; i++) {
        memcpy(block, &i, sizeof i);
        bench_check(write(fd, block, FILE_BLOCK) == FILE_BLOCK, "no room for the file");
    }
    bench_check(fsync(fd) == 0, "the disk has not got the file");
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    int used = open(again, O_RDONLY | O_CLOEXEC | row->flags);
    unlink(path);
    close(fd);
    if (used < 0)
        bench_leave_out("the file system has no O_DIRECT");
    return used;
}

/* The block of the n-th read. */
BENCH_API long file_block(long n)
{
    return (long)(((uint64_t)n * UINT64_C(0x9E3779B97F4A7C15)) >> 40) % FILE_BLOCKS;
}

BENCH_API void file_check(const void *block, long number)
{
    bench_check(memcmp(block, &number, sizeof number) == 0, "another block than %ld was read", number);
}

#endif
