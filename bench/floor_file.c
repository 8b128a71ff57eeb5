/*
 * What file_read4k and file_direct4k are compared with: a loop of one thread on io_uring, which keeps 64 reads in
 * flight and submits all that it can with each system call.
 */
#define _GNU_SOURCE
#include "file.h"

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static struct ring {
    int fd;
    uint32_t *sq_tail, *sq_array, *cq_head, *cq_tail, sq_mask, cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *results;
} ring;

static void *map(size_t size, uint64_t offset)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, (off_t)offset);
    bench_check(at != MAP_FAILED, "the ring is not mapped");
    return at;
}

static void open_ring(void)
{
    struct io_uring_params p = {0};
    ring.fd = (int)syscall(SYS_io_uring_setup, FILE_READERS, &p);
    if (ring.fd < 0)
        bench_leave_out("the system has no io_uring");
    char *sq = map(p.sq_off.array + p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    char *cq = map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.entries = map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.sq_tail = (uint32_t *)(void *)(sq + p.sq_off.tail);
    ring.sq_array = (uint32_t *)(void *)(sq + p.sq_off.array);
    ring.sq_mask = *(uint32_t *)(void *)(sq + p.sq_off.ring_mask);
    ring.cq_head = (uint32_t *)(void *)(cq + p.cq_off.head);
    ring.cq_tail = (uint32_t *)(void *)(cq + p.cq_off.tail);
    ring.cq_mask = *(uint32_t *)(void *)(cq + p.cq_off.ring_mask);
    ring.results = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

static long blocks_of[FILE_READERS]; /* the block that each slot reads */

static void prepare(int fd, char *blocks, uint32_t slot, long n)
{
    uint32_t tail = *ring.sq_tail, at = tail & ring.sq_mask;
    blocks_of[slot] = file_block(n);
    ring.entries[at] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                             .fd = fd,
                                             .off = (uint64_t)blocks_of[slot] * FILE_BLOCK,
                                             .addr = (uint64_t)(uintptr_t)(blocks + slot * FILE_BLOCK),
                                             .len = FILE_BLOCK,
                                             .user_data = slot};
    ring.sq_array[at] = at;
    atomic_store_explicit((_Atomic uint32_t *)ring.sq_tail, tail + 1, memory_order_release);
}

static double measure(int fd, char *blocks, long reads)
{
    int64_t begun = bench_now();
    long next = 0, done = 0;
    uint32_t fresh = 0;
    for (; fresh < FILE_READERS; fresh++)
        prepare(fd, blocks, fresh, next++);
    while (done < reads) {
        long result = syscall(SYS_io_uring_enter, ring.fd, fresh, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        bench_check(result >= 0, "the ring is refused");
        fresh = 0;
        uint32_t head = *ring.cq_head;
        uint32_t tail = atomic_load_explicit((_Atomic uint32_t *)ring.cq_tail, memory_order_acquire);
        for (; head != tail; head++, done++) {
            const struct io_uring_cqe *got = &ring.results[head & ring.cq_mask];
            uint32_t slot = (uint32_t)got->user_data;
            bench_check(got->res == FILE_BLOCK, "a read has failed: %d", got->res);
            file_check(blocks + slot * FILE_BLOCK, blocks_of[slot]);
            if (next < reads) {
                prepare(fd, blocks, slot, next++);
                fresh++;
            }
        }
        atomic_store_explicit((_Atomic uint32_t *)ring.cq_head, head, memory_order_release);
    }
    return (double)reads * 1e9 / (double)(bench_now() - begun);
}

int main(int argc, char **argv)
{
    struct file_row row = file_row_of(argc, argv);
    int fd = file_make(&row);
    char *blocks = aligned_alloc(FILE_BLOCK, FILE_READERS * FILE_BLOCK);
    open_ring();
    measure(fd, blocks, row.reads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row.name, "floor", 1, "reads/s", measure(fd, blocks, row.reads));
    free(blocks);
    return 0;
}
