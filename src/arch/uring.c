/*
 * A ring of io_uring: two queues in memory that the kernel shares. Calls go in by the first, their ends come out by the
 * second. By raw system calls, since the C library has none for this.
 */
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 256, ENDS = 4096 };
/* What the kernel makes -EINTR of in system calls, and not in all calls here. */
enum { RESTART_FIRST = -512, RESTART_LAST = -516 };

static const uint8_t opcodes[ARCH_URING_KINDS] = {
    [ARCH_URING_READ] = IORING_OP_READ,           [ARCH_URING_WRITE] = IORING_OP_WRITEV,
    [ARCH_URING_SYNC] = IORING_OP_FSYNC,          [ARCH_URING_ALLOCATE] = IORING_OP_FALLOCATE,
    [ARCH_URING_CANCEL] = IORING_OP_ASYNC_CANCEL,
};
_Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "the kernel's words are atomics");

/* ---- opening -------------------------------------------------------------------------------------------------- */

static int setup(struct io_uring_params *params)
{
    *params = (struct io_uring_params){.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP, .cq_entries = ENDS};
    return arch_fd_own((int)syscall(SYS_io_uring_setup, ENTRIES, params));
}

/* Finds out which calls this kernel has. They came one by one. */
static int probe(struct arch_uring *ring)
{
    enum { OPS = 64 };
    _Alignas(
        struct io_uring_probe) char room[sizeof(struct io_uring_probe) + OPS * sizeof(struct io_uring_probe_op)] = {0};
    struct io_uring_probe *probe = (struct io_uring_probe *)(void *)room;
    if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_PROBE, probe, OPS) < 0)
        return -errno;
    for (int i = 0; i < ARCH_URING_KINDS; i++)
        if (opcodes[i] <= probe->last_op && probe->ops[opcodes[i]].flags & IO_URING_OP_SUPPORTED)
            ring->able |= UINT64_C(1) << i;
    return ring->able >> ARCH_URING_CANCEL & 1 ? 0 : -ENOSYS;
}

static void *map(const struct arch_uring *ring, size_t size, off_t what)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, what);
    return at == MAP_FAILED ? NULL : at;
}

static int map_queues(struct arch_uring *ring, const struct io_uring_params *params)
{
    size_t calls = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t ends = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    ring->rings_size = calls > ends ? calls : ends;
    ring->calls_size = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->rings = map(ring, ring->rings_size, IORING_OFF_SQ_RING);
    ring->calls = map(ring, ring->calls_size, IORING_OFF_SQES);
    if (!ring->rings || !ring->calls)
        return -ENOMEM;
    char *at = ring->rings;
    uint32_t *order = (uint32_t *)(void *)(at + params->sq_off.array);
    ring->sq_head = (void *)(at + params->sq_off.head);
    ring->sq_tail = (void *)(at + params->sq_off.tail);
    ring->cq_head = (void *)(at + params->cq_off.head);
    ring->cq_tail = (void *)(at + params->cq_off.tail);
    ring->sq_mask = params->sq_entries - 1;
    ring->cq_mask = params->cq_entries - 1;
    ring->ends = (void *)(at + params->cq_off.cqes);
    ring->entries = params->sq_entries;
    ring->room = params->cq_entries;
    for (uint32_t i = 0; i < params->sq_entries; i++)
        order[i] = i;
    return 0;
}

int arch_uring_open(struct arch_uring *ring)
{
    const uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;
    struct io_uring_params params;
    *ring = (struct arch_uring){.fd = -1};
    if (arch_tool == ARCH_TOOL_VALGRIND) /* it does not see what the kernel writes */
        return -ENOSYS;
    ring->fd = setup(&params);
    if (ring->fd < 0)
        return ring->fd;
    int error = (params.features & needed) == needed ? probe(ring) : -ENOSYS;
    if (!error)
        error = map_queues(ring, &params);
    if (error)
        arch_uring_close(ring);
    else
        atomic_store_explicit(&arch_state.rings, true, memory_order_relaxed);
    return error;
}

void arch_uring_close(struct arch_uring *ring)
{
    int fd = ring->fd;
    ring->fd = -1;
    if (ring->rings)
        (void)munmap(ring->rings, ring->rings_size);
    if (ring->calls)
        (void)munmap(ring->calls, ring->calls_size);
    if (fd >= 0)
        (void)close(fd);
    *ring = (struct arch_uring){.fd = -1};
}

static void make_private(void *at, size_t size)
{
    (void)mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* A handler may have forked while its thread is in one of the functions below: they go on in memory of the child's own,
 * and the kernel refuses a number that is no ring. */
void arch_uring_orphan(struct arch_uring *ring, int other)
{
    if (ring->fd < 0)
        return;
    make_private(ring->rings, ring->rings_size);
    make_private(ring->calls, ring->calls_size);
    (void)dup3(other, ring->fd, O_CLOEXEC);
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

static struct io_uring_sqe *call_at(const struct arch_uring *ring, uint64_t position)
{
    return (struct io_uring_sqe *)ring->calls + (position & ring->sq_mask);
}

static void fill(struct io_uring_sqe *sqe, const struct arch_uring_call *call, void *data)
{
    *sqe = (struct io_uring_sqe){
        .opcode = opcodes[call->kind],
        .fd = call->fd,
        .addr = (uintptr_t)call->pointer,
        .off = (uint64_t)call->offset,
        .len = (uint32_t)call->size,
        .user_data = (uintptr_t)data,
    };
    switch (call->kind) {
    case ARCH_URING_SYNC:
        sqe->fsync_flags = call->flags ? IORING_FSYNC_DATASYNC : 0;
        break;
    case ARCH_URING_ALLOCATE:
        sqe->addr = (uint64_t)call->size;
        sqe->len = (uint32_t)call->flags;
        break;
    default:
        break;
    }
}

uint32_t arch_uring_waiting(const struct arch_uring *ring)
{
    return (uint32_t)ring->added - atomic_load_explicit(ring->sq_head, memory_order_acquire); /* [UR1] */
}

/* Each call has one end, also a cancel, and one that was taken back. Ends that found no room would stay with the
 * kernel. */
int64_t arch_uring_add(struct arch_uring *ring, const struct arch_uring_call *call, void *data)
{
    uint32_t ended = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    if (arch_uring_waiting(ring) >= ring->entries || (uint32_t)ring->added - ended >= ring->room)
        return -EAGAIN;
    fill(call_at(ring, ring->added), call, data);
    atomic_store_explicit(ring->sq_tail, (uint32_t)ring->added + 1, memory_order_release); /* [UR1] */
    return (int64_t)ring->added++;
}

bool arch_uring_take_back(struct arch_uring *ring, int64_t position)
{
    if ((uint64_t)position < ring->added - arch_uring_waiting(ring))
        return false;
    *call_at(ring, (uint64_t)position) = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
    return true;
}

int arch_uring_enter(struct arch_uring *ring, unsigned count, bool waits)
{
    long begun = syscall(SYS_io_uring_enter, ring->fd, count, waits, waits ? IORING_ENTER_GETEVENTS : 0U, NULL, 0);
    return begun < 0 ? -errno : (int)begun;
}

bool arch_uring_has_ends(const struct arch_uring *ring)
{
    return atomic_load_explicit(ring->cq_head, memory_order_relaxed) !=
           atomic_load_explicit(ring->cq_tail, memory_order_acquire); /* [UR1] */
}

int arch_uring_take(struct arch_uring *ring, struct arch_uring_end *out, int most)
{
    uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire); /* [UR1] */
    int count = 0;
    for (; head != tail && count < most; head++) {
        const struct io_uring_cqe *end = &ring->ends[head & ring->cq_mask];
        bool restarts = end->res <= RESTART_FIRST && end->res >= RESTART_LAST;
        if (end->user_data)
            out[count++] = (struct arch_uring_end){(void *)(uintptr_t)end->user_data, restarts ? -EINTR : end->res};
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release); /* [UR1] */
    return count;
}

void *arch_uring_take_refused(struct arch_uring *ring)
{
    void *data = NULL;
    while (!data && arch_uring_waiting(ring))
        data = (void *)(uintptr_t)call_at(ring, --ring->added)->user_data;
    atomic_store_explicit(ring->sq_tail, (uint32_t)ring->added, memory_order_release); /* [UR1] */
    return data;
}

/* ---- threads of the kernel ------------------------------------------------------------------------------------ */

/* Whether the thread is the kernel's: its name says so. */
static bool is_worker(const char *id)
{
    static const char worker[] = "iou-wrk-";
    char path[64], name[sizeof worker - 1];
    snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", id);
    int fd = arch_fd_own(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return false; /* it has ended */
    ssize_t length = read(fd, name, sizeof name);
    (void)close(fd);
    return length == (ssize_t)sizeof name && memcmp(name, worker, sizeof name) == 0;
}

/* They are among the threads of the process, and stay with its rings. */
int arch_uring_workers(void)
{
    _Alignas(struct dirent64) char entries[1024];
    int count = 0;
    if (!atomic_load_explicit(&arch_state.rings, memory_order_relaxed))
        return 0;
    int tasks = arch_fd_own(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (ssize_t size; tasks >= 0 && (size = getdents64(tasks, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            count += entry->d_name[0] != '.' && is_worker(entry->d_name);
            at += entry->d_reclen;
        }
    if (tasks >= 0)
        (void)close(tasks);
    return count;
}
