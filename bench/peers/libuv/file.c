/*
 * file_read4k: 64 requests of libuv read blocks of a file, which the system has in memory, at random. file_direct4k:
 * the same past that memory (O_DIRECT), from the disk. The callbacks run on one thread. The reads are made by the
 * threads of libuv's pool, of which there are as many as were fastest; a disk wants many reads at a time.
 */
#include "../../file.h"

#include <uv.h>

#define CACHED_THREADS "4"
#define DIRECT_THREADS "32"

static uv_loop_t loop;
static uv_file file;
static struct file_row row;
static long next_read, done;

static struct reader {
    uv_fs_t request;
    uv_buf_t buffer;
    long number; /* of the block that it reads */
} readers[FILE_READERS];

static void on_read(uv_fs_t *request);

static void read_next(struct reader *reader)
{
    reader->number = file_block(next_read++);
    int error = uv_fs_read(&loop, &reader->request, file, &reader->buffer, 1, reader->number * FILE_BLOCK, on_read);
    bench_check(error == 0, "a read has not begun");
}

static void on_read(uv_fs_t *request)
{
    struct reader *reader = (struct reader *)request->data;
    bench_check(request->result == FILE_BLOCK, "a read has failed");
    file_check(reader->buffer.base, reader->number);
    uv_fs_req_cleanup(request);
    done++;
    if (next_read < row.reads)
        read_next(reader);
}

static double measure(void)
{
    int64_t begun = bench_now();
    next_read = done = 0;
    for (int i = 0; i < FILE_READERS; i++)
        read_next(&readers[i]);
    uv_run(&loop, UV_RUN_DEFAULT);
    bench_check(done == row.reads, "%ld reads instead of %ld", done, row.reads);
    return (double)row.reads * 1e9 / (double)(bench_now() - begun);
}

int main(int argc, char **argv)
{
    row = file_row_of(argc, argv);
    file = file_make(&row);
    setenv("UV_THREADPOOL_SIZE", row.flags & O_DIRECT ? DIRECT_THREADS : CACHED_THREADS, 1);
    char *blocks = (char *)aligned_alloc(FILE_BLOCK, FILE_READERS * FILE_BLOCK);
    bench_check(uv_loop_init(&loop) == 0, "there is no loop");
    for (int i = 0; i < FILE_READERS; i++) {
        readers[i].buffer = uv_buf_init(blocks + i * FILE_BLOCK, FILE_BLOCK);
        readers[i].request.data = &readers[i];
    }
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row.name, "libuv", 1, "reads/s", measure());
    bench_check(uv_loop_close(&loop) == 0, "the loop is not at its end");
    free(blocks);
    close(file);
    return 0;
}
