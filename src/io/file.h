/*
 * Calls on files: strands that wait for a disk or a server, and the threads that make the calls.
 *
 * PARTIES   the caller, a strand; the kernel, or the thread of the crew of files that makes the call (offload.h);
 *           closers of the descriptors.
 * STATE     a file_op, in memory of its own: what to call, with what, and the result. It has the paths, and the bytes
 *           of a read that the caller may leave.
 * PROTOCOL  the caller enters its descriptors (descriptor.h), makes the op, and waits for its end. A read tries first,
 *           on its own thread, what the system has in memory. If the kernel makes such calls, the op goes to the ring
 *           of the strand's pool (sched/pool_uring.h). If it does not, or can't without waiting, a thread runs the op.
 *           If no thread is available, the caller runs the op itself.
 * OWNERSHIP the op belongs to the caller; an op that was left belongs to the crew or the ring, which undoes it (closes
 *           what it opened) and frees it. The caller's memory is used by others only in ops that are never left, and
 *           never if it lies on a shared stack, which other strands use meanwhile. On the ring, the result, `over` and
 *           the epoch of the node are under the ring's lock.
 * INVARIANTS [FI1] an op that changes something is never left: it happens and returns its result, or it is interrupted
 *           and never begins. [FI2] while an op that is not left runs, its descriptors are entered: their numbers are
 *           not given to others. An op that was left to the kernel has begun, so the kernel has its file. One that was
 *           left to a thread and begins late may use a number that has been reused; it changes nothing, and nobody sees
 *           what it finds.
 * NOT DONE  reads on the calling thread that may block: all strands of the pool would wait for the disk. Leaving a
 *           write: nobody would know whether it happened. The caller's buffer in a read that is left: the system would
 *           write to memory that is another object's by then.
 * TESTED BY tests/spec/file.c, tests/spec/file_uring.c, tests/spec/file_send.c, tests/spec/file_path.c,
 *           tests/spec/file_tree.c, tests/fault/files.c.
 */
#ifndef IO_FILE_H
#define IO_FILE_H

#include "../../include/strand/file.h"
#include "../sched/pool_uring.h"
#include "../strand/wait.h"
#include "descriptor.h"

/* How an op ends for its strand. */
enum file_fate { FILE_RAN, FILE_INTERRUPTED, FILE_LEFT, FILE_NOT_RUN };

struct file_op {
    int64_t (*run)(struct file_op *op);
    void (*undo)(struct file_op *op); /* what it has made, if it was left; NULL: nothing */
    struct uring_entry entry;         /* file_uring.c */
    struct wait_node node;
    bool over;
    int8_t kind; /* enum arch_uring_kind, or FILE_BY_THREAD: only a thread of the crew can make the call */
    int64_t result;
    int fd, to, flags, count;
    unsigned mode;
    int64_t offset, size;
    uint64_t chance; /* decides new names */
    int64_t *from_offset, *to_offset;
    const char *path, *to_path;
    void *out;
    struct iovec *parts;
    _Alignas(16) char room[];
};

#define FILE_BY_THREAD (-1)

/* A call: one on the strand's stack. */
struct file_call {
    struct operation at[2]; /* the descriptors that are entered, if their `d` is not NULL */
    uint64_t progress;
};

/* Begin a call on a file. Returns 0, or a negated errno code. Throws if the strand is interrupted. */
int file_enter(struct file_call *call, int fd, const char *function);
/* Likewise, on the name of a file: the directory may be ARCH_FILE_CWD. */
int file_enter_directory(struct file_call *call, int dir, const char *function);
/* Enter a second directory, or a second file. Ends the call if that fails. */
int file_enter_also(struct file_call *call, int fd, bool file);
void file_leave(struct file_call *call);

/* Have the kernel run the op, by the ring of the strand's pool. FILE_NOT_RUN: it does not, and a thread has to. */
enum file_fate file_uring_run(struct thread **thread, struct cb *me, struct file_op *op, bool leaves);

/* Make an op with `room` bytes. NULL: no memory. */
struct file_op *file_op_make(struct file_call *call, int64_t (*run)(struct file_op *), size_t room);
/* Likewise, with copies of the paths, of which the second may be NULL, and `room` further bytes at op->out. */
struct file_op *file_op_make_named(struct file_call *call, int64_t (*run)(struct file_op *), const char *path,
                                   const char *to_path, size_t room);
/* Begin a call on one name, and make its op, as file_op_make_named does. Returns 0, or a negated errno code: the call
 * has ended. */
int file_begin_named(struct file_call *call, struct file_op **op, int dir, const char *path,
                     int64_t (*run)(struct file_op *), size_t room, const char *function);
/* Run the op elsewhere, and return its result; the op is the caller's still. leaves: it changes nothing, and may be
 * left. If the strand is interrupted, the op is freed or left, the call ends, and this throws. */
int64_t file_run(struct file_call *call, struct file_op *op, bool leaves);
/* As file_run, but returns how the op ended instead of throwing. FILE_LEFT: the op is the caller's no more. */
enum file_fate file_attempt(struct file_call *call, struct file_op *op, bool leaves);
/* As file_run; then free the op, and end the call. */
int64_t file_run_last(struct file_call *call, struct file_op *op, bool leaves);
/* Run an op that changes one name: a whole call. */
int file_run_named(int dir, const char *path, int64_t (*run)(struct file_op *), int flags, unsigned mode,
                   const char *function);
/* Send the bytes of the file `fd` from its position on, which moves with them, until the call has moved `size` bytes,
 * call->progress of which have gone already. It has entered both descriptors, and ends here. Adds to *moved. Returns
 * how many have gone, those before included, or a negated errno code. */
int64_t file_send_on(const struct file_call *call, int fd, uint64_t size, uint64_t *moved);
/* A number for new names. In a seeded run the seed decides it, so that the names are the same each time. */
uint64_t file_chance(const struct file_call *call);
/* Free an op that does not run, end the call, and throw for what interrupts the strand. */
__attribute__((noreturn)) void file_interrupt(struct file_call *call, struct file_op *op);
/* Between two parts of a call, while no op is made: yields if others wait. If the strand is interrupted, the call ends,
 * and this throws. */
void file_go_on(struct file_call *call);
/* Between two parts of a call: yields if others wait. Returns whether the strand is interrupted. */
bool file_yield(struct file_call *call);
/* Sleep between two tries of an op. Returns 0, -EBADF if the descriptor was closed meanwhile, or -ENOMEM. If the strand
 * is interrupted, the op is freed, the call ends, and this throws. */
int file_pause(struct file_call *call, struct file_op *op, int64_t ns);
/* End the call, and return its result. Yields if others wait: calls that never had to wait may follow each other. */
int64_t file_end(struct file_call *call, int64_t result);

#endif
