/*
 * Moving bytes from a descriptor to another one. Waiting for descriptors is in descriptor.h, and calls on files in
 * file.h. A file as the source is file_send.c's.
 *
 * PARTIES   the caller; the thread of the crew that writes to a file for it.
 * STATE     where a byte is: in `from`; in the middle, a pipe of the call's own (`held`); in memory of its own
 *           (`buffered`); in `to` (`progress`).
 * PROTOCOL  if one of the descriptors is a pipe, the system moves bytes from `from` to `to`. If none is, it moves them
 *           from `from` to the middle, and on to `to`. What it can't move is read to the memory and written from there.
 *           The call waits on the poller, before it takes bytes: until `from` has some and `to` has room for some.
 * OWNERSHIP the memory is on no stack. The call owns it, and the caller's spliced->rest, until it ends.
 * INVARIANTS [SP1] a byte that has left `from` is in exactly one of the middle, the memory and `to`, and the next one
 *           is taken only when the middle and the memory are empty. [SP2] at the end of the call, however it ends, what
 *           is in the middle or in the memory is the caller's: its memory was allocated before the bytes were taken.
 *           [SP3] a strand never waits for one side while it has the baton of the other: two strands that move bytes
 *           between the same descriptors would wait for each other.
 * NOT DONE  a pool of pipes: descriptors that are open while nothing moves. Giving bytes back to `from`: readers
 *           outside of the run would miss them. Taking no more than `to` has room for: no system call says how much
 *           that is. Peeking at `from`: what is peeked at is copied. A larger middle from the beginning: the system
 *           limits what the pipes of a user may hold, and most relays have little to move.
 * TESTED BY tests/spec/splice.c, tests/fault/stream.c, tests/fault/files.c.
 */
#include "../../include/strand/io.h"

#include "file.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Sizes at a time: what the middle may hold, what a thread moves to a file, and what is read to the memory. */
#define MIDDLE_MOST ((size_t)1 << 20)
#define FILE_MOST (UINT64_C(16) << 20)
#define READ_MOST ((size_t)64 << 10)
#define INTERRUPTED INT64_MIN /* beside the results of the calls */

enum way { DIRECTLY, BY_MIDDLE, BY_HAND };

struct splicing {
    struct file_call call; /* at[0] is `from`, at[1] is `to`; progress: what `to` has got */
    struct file_op *op;    /* of calls of another thread; NULL: none was needed yet */
    uint64_t size;
    strand_spliced *spliced; /* the caller's, or NULL */
    enum way way;
    bool asked;        /* both sides are ready, and yet nothing could move */
    int middle[2];     /* -1: there is none yet */
    size_t room, held; /* of the middle */
    char *bytes;       /* the memory, or NULL */
    bool is_rest;      /* the memory is what the caller has brought */
    size_t at, buffered;
};

enum { FROM, TO };

static struct operation *side_of(struct splicing *s, int which)
{
    return &s->call.at[which];
}

static bool is_file(struct splicing *s, int which)
{
    return descriptor_is_file(side_of(s, which)->d->type);
}

static size_t part_of(const struct splicing *s, uint64_t most)
{
    uint64_t left = s->size - s->call.progress;
    return (size_t)(left < most ? left : most);
}

static int64_t has_gone(struct splicing *s, int64_t size)
{
    s->asked = false;
    s->call.progress += (uint64_t)size;
    if (s->spliced)
        s->spliced->moved += (uint64_t)size;
    return size;
}

/* ---- waiting -------------------------------------------------------------------------------------------------- */

/* A look at one side may have moved the strand to another thread. */
static void go_on_here(struct splicing *s)
{
    side_of(s, FROM)->thread = side_of(s, TO)->thread = thread_self();
}

/* Wait until a side may be ready. Returns 0, INTERRUPTED or a negated errno code. */
static int64_t await(struct splicing *s, int which)
{
    go_on_here(s);
    operation_step_aside(side_of(s, !which)); /* [SP3] */
    int error = operation_await(side_of(s, which));
    go_on_here(s);
    return error == OPERATION_INTERRUPTED ? INTERRUPTED : error;
}

/* A call has found nothing on this side. */
static int64_t nothing_on(struct splicing *s, int which)
{
    operation_drained(side_of(s, which));
    return -EAGAIN;
}

/* A call on a record that is out of date, or an error. */
static int64_t refused(struct splicing *s, int which, int64_t result)
{
    if (result == -EAGAIN)
        return nothing_on(s, which);
    if (result != -ENOTSOCK)
        return result;
    int error = operation_mistaken(side_of(s, which), -ENOTSOCK);
    go_on_here(s);
    return error ? error : -EAGAIN;
}

/* The system can't: what is an error of a descriptor comes again by reading or writing. EPERM comes from a sandbox. */
static bool has_to_be_by_hand(int64_t result)
{
    return result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP || result == -EPERM;
}

/* ---- by another thread ---------------------------------------------------------------------------------------- */

/* Moves what is there, of which a writer may make more meanwhile. */
static int64_t run_splice(struct file_op *op)
{
    int64_t all = 0, moved = 1;
    while (moved > 0 && all < op->size) {
        moved = arch_fd_splice_into(op->fd, op->to, (size_t)(op->size - all));
        all += moved > 0 ? moved : 0;
    }
    return all ? all : moved;
}

static int64_t run_write(struct file_op *op)
{
    return arch_file_write(op->to, op->parts, 1, -1);
}

/* Have `run` write to the file. The strand is never interrupted while it runs [FI1]. */
static int64_t run_elsewhere(struct splicing *s, int64_t (*run)(struct file_op *), int fd, size_t size)
{
    if (!s->op)
        s->op = file_op_make(&s->call, run, sizeof(struct iovec));
    if (!s->op)
        return -ENOMEM;
    s->op->run = run;
    s->op->fd = fd;
    s->op->to = side_of(s, TO)->d->call;
    s->op->size = (int64_t)size;
    s->op->parts = (struct iovec *)(void *)s->op->room;
    s->op->parts[0] = (struct iovec){s->bytes + s->at, size};
    return file_attempt(&s->call, s->op, false) == FILE_RAN ? s->op->result : INTERRUPTED;
}

/* ---- by hand -------------------------------------------------------------------------------------------------- */

/* Have memory for all that may be taken. */
static bool has_memory(struct splicing *s)
{
    if (!s->bytes)
        s->bytes = platform_malloc(side_of(s, FROM)->thread, MIDDLE_MOST);
    return s->bytes != NULL;
}

static int64_t read_some(struct splicing *s)
{
    struct operation *from = side_of(s, FROM);
    if (!has_memory(s))
        return -ENOMEM;
    int64_t got = fd_read(from->thread, from->d->call, from->d->type, s->bytes, part_of(s, READ_MOST));
    s->at = 0;
    s->buffered = got > 0 ? (size_t)got : 0;
    return got < 0 ? refused(s, FROM, got) : got;
}

static int64_t write_some(struct splicing *s)
{
    struct operation *to = side_of(s, TO);
    size_t size = part_of(s, s->buffered);
    int64_t put = is_file(s, TO) ? run_elsewhere(s, run_write, -1, size)
                                 : fd_write(to->thread, to->d->call, to->d->type, s->bytes + s->at, size);
    if (put <= 0)
        return put ? refused(s, TO, put) : -EIO;
    s->at += (size_t)put;
    s->buffered -= (size_t)put;
    if (!s->buffered && s->is_rest) {
        free(s->bytes);
        s->bytes = NULL;
        s->is_rest = false;
    }
    return has_gone(s, put);
}

/* ---- by the middle -------------------------------------------------------------------------------------------- */

/* Without a descriptor for it, the call reads and writes. */
static int64_t have_middle(struct splicing *s)
{
    if (s->middle[0] >= 0)
        return 0;
    if (s->spliced && !has_memory(s)) /* [SP2] */
        return -ENOMEM;
    if (arch_fd_pipe(s->middle) < 0) {
        s->middle[0] = -1;
        s->way = BY_HAND;
        return -EAGAIN;
    }
    s->room = arch_fd_pipe_room(s->middle[1], 0);
    return 0;
}

/* splice(2) stops at an urgent byte of TCP, for ever, as at the end or as if nothing were there. A read goes on. */
static bool may_be_urgent(struct splicing *s, int64_t result)
{
    return (result == 0 || result == -EAGAIN) && side_of(s, FROM)->d->type == ARCH_FD_TCP;
}

/* Take bytes into the middle, which is empty. */
static int64_t take_some(struct splicing *s)
{
    int64_t error = have_middle(s);
    if (error)
        return error;
    size_t size = part_of(s, s->room < MIDDLE_MOST ? s->room : MIDDLE_MOST);
    int64_t got = size ? arch_fd_splice_into(side_of(s, FROM)->d->call, s->middle[1], size) : -EINVAL;
    if (has_to_be_by_hand(got)) {
        s->way = BY_HAND;
        return -EAGAIN;
    }
    if (may_be_urgent(s, got))
        return read_some(s);
    s->held = got > 0 ? (size_t)got : 0;
    return got < 0 ? refused(s, FROM, got) : got;
}

/* Read the middle to the memory, which is empty. */
static int64_t spill(struct splicing *s)
{
    s->at = 0;
    while (has_memory(s) && s->held) {
        int64_t got = arch_fd_read(s->middle[0], ARCH_FD_FILE, s->bytes + s->buffered, s->held);
        if (got <= 0)
            return got ? got : -EIO;
        s->buffered += (size_t)got;
        s->held -= (size_t)got;
    }
    return s->held ? -ENOMEM : 0;
}

/* There is more than the middle takes: let it take more. */
static void grow_middle(struct splicing *s)
{
    if (s->room < MIDDLE_MOST)
        s->room = arch_fd_pipe_room(s->middle[1], MIDDLE_MOST);
}

static int64_t give_some(struct splicing *s)
{
    size_t size = part_of(s, s->held);
    bool much = s->held >= s->room / 2; /* of pages that are not full it holds less */
    int64_t put = is_file(s, TO) ? run_elsewhere(s, run_splice, s->middle[0], size)
                                 : arch_fd_splice(s->middle[0], side_of(s, TO)->d->call, size);
    if (put == 0 || has_to_be_by_hand(put)) {
        s->way = BY_HAND;
        int64_t error = spill(s);
        return error ? error : -EAGAIN;
    }
    if (put < 0)
        return refused(s, TO, put);
    s->held -= (size_t)put;
    if (much)
        grow_middle(s);
    return has_gone(s, put);
}

/* ---- directly ------------------------------------------------------------------------------------------------- */

/* The system does not say which side was not ready. If both seem to be, the next try is made by hand, so that the call
 * never spins. */
static int64_t ask_sides(struct splicing *s)
{
    static const int wanted[] = {[FROM] = ARCH_IN, [TO] = ARCH_OUT};
    bool missing = false;
    for (int i = FROM; i <= TO; i++) {
        struct operation *op = side_of(s, i);
        int ready = i == TO && is_file(s, TO) ? ARCH_OUT : fd_ready(op->thread, op->d->call);
        if (ready < 0)
            return ready;
        if (ready & wanted[i])
            continue;
        missing = true;
        operation_drained(op);
    }
    bool by_hand = !missing && s->asked;
    s->asked = !missing && !by_hand;
    return by_hand ? read_some(s) : -EAGAIN;
}

static int64_t splice_some(struct splicing *s)
{
    size_t size = part_of(s, is_file(s, TO) ? FILE_MOST : MIDDLE_MOST);
    int from = side_of(s, FROM)->d->call;
    int64_t moved =
        is_file(s, TO) ? run_elsewhere(s, run_splice, from, size) : arch_fd_splice(from, side_of(s, TO)->d->call, size);
    if (has_to_be_by_hand(moved)) {
        s->way = BY_HAND;
        return -EAGAIN;
    }
    if (moved == 0 && may_be_urgent(s, moved))
        return read_some(s);
    return moved == -EAGAIN ? ask_sides(s) : moved > 0 ? has_gone(s, moved) : moved;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* Returns a positive number if something has moved, 0 at the end of `from`, INTERRUPTED, or a negated errno code:
 * -EAGAIN: try again. */
static int64_t move_some(struct splicing *s)
{
    bool in_between = s->held || s->buffered;
    int64_t error = in_between ? 0 : await(s, FROM);
    if (!error && !in_between && UNLIKELY(atomic_load_explicit(&side_of(s, FROM)->d->late, memory_order_relaxed)))
        error = operation_take_late(side_of(s, FROM));
    if (!error)
        error = await(s, TO);
    if (error)
        return error;
    if (in_between)
        return s->buffered ? write_some(s) : give_some(s);
    operation_overtakes(side_of(s, FROM)); /* [SP3] its baton may be another's by now */
    return s->way == DIRECTLY ? splice_some(s) : s->way == BY_MIDDLE ? take_some(s) : read_some(s); /* [SP1] */
}

static int64_t move_all(struct splicing *s, bool rest_only)
{
    int64_t moved = 1;
    while ((moved > 0 || moved == -EAGAIN) && s->call.progress < s->size && (s->buffered || !rest_only))
        moved = move_some(s);
    return moved;
}

/* What the system moves does not depend on chance: a seeded run does not ask it. */
static enum way best_way(struct splicing *s)
{
    if (UNLIKELY(side_of(s, FROM)->thread->platform != NULL))
        return BY_HAND;
    bool direct = arch_fd_is_pipe(side_of(s, FROM)->d->call) || arch_fd_is_pipe(side_of(s, TO)->d->call);
    return direct ? DIRECTLY : BY_MIDDLE;
}

/* Refuses sockets that keep messages apart, and looks whether the records are those of the objects. */
static int look_at(struct operation *op)
{
    int error = operation_mistaken(op, 0);
    if (!error && op->d->type == ARCH_FD_SOCKET && arch_fd_keeps_messages(op->d->call))
        error = -EPROTOTYPE;
    return error;
}

static int enter(struct splicing *s, int from, int to)
{
    struct operation *first = side_of(s, FROM);
    int error = operation_enter(first, from, SIDE_IN, "strand_splice");
    if (error)
        return error;
    error = to < 0 ? -EBADF : look_at(first);
    if (error) {
        operation_leave(first);
        return error;
    }
    error = file_enter_also(&s->call, to, false);
    if (!error) {
        error = look_at(side_of(s, TO));
        go_on_here(s);
        if (error)
            file_leave(&s->call);
    }
    return error;
}

/* The memory belongs to the call from now on. */
static void take_rest(struct splicing *s)
{
    if (!s->spliced)
        return;
    s->bytes = s->spliced->rest_size ? s->spliced->rest : NULL;
    s->buffered = s->spliced->rest_size;
    s->is_rest = s->bytes != NULL;
    if (!s->is_rest)
        free(s->spliced->rest);
    s->spliced->rest = NULL;
    s->spliced->rest_size = 0;
}

/* Give what is between the two back to the caller [SP2]. */
static void keep_rest(struct splicing *s)
{
    if (s->spliced && s->held)
        (void)spill(s); /* it does not fail: the bytes are there, and the memory is */
    if (!s->spliced || !s->buffered) {
        free(s->bytes);
        return;
    }
    memmove(s->bytes, s->bytes + s->at, s->buffered);
    s->spliced->rest = s->bytes;
    s->spliced->rest_size = s->buffered;
}

/* All but the descriptors. */
static void give_up(struct splicing *s)
{
    keep_rest(s);
    free(s->op);
    for (int i = 0; s->middle[0] >= 0 && i < 2; i++)
        (void)arch_fd_close(s->middle[i]);
    go_on_here(s);
}

int64_t strand_splice(int from, int to, uint64_t size, strand_spliced *spliced)
{
    struct splicing s = {.size = size < INT64_MAX ? size : INT64_MAX, .spliced = spliced, .middle = {-1, -1}};
    if (spliced && spliced->rest_size)
        must_be_there(spliced->rest, "rest", "strand_splice");
    int error = enter(&s, from, to);
    if (error)
        return error;
    bool file = is_file(&s, FROM);
    s.way = best_way(&s);
    take_rest(&s);
    int64_t moved = move_all(&s, file);
    give_up(&s);
    if (file && moved > 0 && s.call.progress < s.size)
        return file_send_on(&s.call, from, s.size, spliced ? &spliced->moved : &(uint64_t){0});
    file_leave(&s.call);
    if (moved == INTERRUPTED)
        interrupt_throw(s.call.at[FROM].thread, s.call.at[FROM].me, s.call.progress);
    yield_if_asked(thread_self());
    return moved < 0 ? moved : (int64_t)s.call.progress;
}
