/*
 * Calls on files: the way of an op to a thread and back. The protocol block is in file.h.
 */
#include "file.h"

#include "offload.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdlib.h>

/* ---- descriptors ---------------------------------------------------------------------------------------------- */

/* Refuses what is no file. */
static int must_be_file(struct operation *op)
{
    int error = 0;
    while (!error && !descriptor_is_file(op->d->type) && !(error = operation_mistaken(op, -ESPIPE)))
        ;
    return error;
}

int file_enter(struct file_call *call, int fd, const char *function)
{
    *call = (struct file_call){0};
    struct operation *op = &call->at[0];
    int error = operation_enter(op, fd, SIDE_IN, function); /* [FI2] */
    if (!error)
        error = must_be_file(op);
    if (error)
        file_leave(call);
    return error;
}

int file_enter_directory(struct file_call *call, int dir, const char *function)
{
    struct operation *op = &call->at[0];
    *call = (struct file_call){0};
    if (dir != ARCH_FILE_CWD)
        return operation_enter(op, dir, SIDE_IN, function);
    op->thread = must_be_strand(function);
    op->me = current_of(op->thread);
    op->function = function;
    may_block(op->thread, op->me, function);
    return 0;
}

int file_enter_also(struct file_call *call, int fd, bool file)
{
    struct operation *op = &call->at[1];
    *op = (struct operation){.thread = call->at[0].thread, .me = call->at[0].me, .function = call->at[0].function};
    int error = !file && fd == ARCH_FILE_CWD ? 0 : operation_enter_also(op, fd, SIDE_OUT);
    if (!error && file)
        error = must_be_file(op);
    call->at[0].thread = op->thread;
    if (error)
        file_leave(call);
    return error;
}

void file_leave(struct file_call *call)
{
    operation_leave(&call->at[1]);
    operation_leave(&call->at[0]);
}

/* ---- ops ------------------------------------------------------------------------------------------------------ */

struct file_op *file_op_make(struct file_call *call, int64_t (*run)(struct file_op *), size_t room)
{
    struct file_op *op =
        room < PTRDIFF_MAX - sizeof *op ? platform_malloc(call->at[0].thread, sizeof *op + room) : NULL;
    if (op)
        *op = (struct file_op){.run = run, .kind = FILE_BY_THREAD};
    return op;
}

uint64_t file_chance(const struct file_call *call)
{
    struct thread *thread = call->at[0].thread;
    return thread->platform ? platform_chance(thread, UINT32_MAX) : arch_entropy();
}

static void *run_op(void *arg)
{
    struct file_op *op = arg;
    do
        op->result = op->run(op);
    while (op->result == -EINTR);
    return NULL;
}

/* The strand has left the op, which has run. */
static void left(void *arg)
{
    struct file_op *op = arg;
    if (op->undo)
        op->undo(op);
    free(op);
}

void file_interrupt(struct file_call *call, struct file_op *op)
{
    struct operation *at = &call->at[0];
    free(op);
    file_leave(call);
    interrupt_throw(at->thread, at->me, call->progress);
}

static enum file_fate run_by_thread(struct thread **thread, struct file_op *op, bool leaves, const char *function)
{
    int fate = offload_own(thread, CREW_FILES, BLOCKED_FILE, run_op, op, leaves ? left : NULL, function);
    if (fate < 0)
        run_op(op); /* there is no thread, or no memory for it: better late than not at all */
    if (fate > 0)
        return fate == OFFLOAD_LEFT ? FILE_LEFT : FILE_INTERRUPTED;
    return FILE_RAN;
}

enum file_fate file_attempt(struct file_call *call, struct file_op *op, bool leaves)
{
    struct operation *at = &call->at[0];
    if (call->progress && interrupted_here(at->me)) /* between two parts */
        return FILE_INTERRUPTED;
    enum file_fate fate = file_uring_run(&at->thread, at->me, op, leaves);
    if (fate == FILE_NOT_RUN)
        fate = run_by_thread(&at->thread, op, leaves, at->function);
    call->at[1].thread = at->thread;
    return fate;
}

int64_t file_run(struct file_call *call, struct file_op *op, bool leaves)
{
    enum file_fate fate = file_attempt(call, op, leaves);
    if (fate != FILE_RAN)
        file_interrupt(call, fate == FILE_LEFT ? NULL : op);
    return op->result;
}

int64_t file_run_last(struct file_call *call, struct file_op *op, bool leaves)
{
    int64_t result = op ? file_run(call, op, leaves) : -ENOMEM;
    free(op);
    return file_end(call, result);
}

bool file_yield(struct file_call *call)
{
    struct operation *at = &call->at[0];
    thread_tick(at->thread);
    yield_if_asked(at->thread);
    at->thread = thread_self();
    return interrupted_here(at->me);
}

void file_go_on(struct file_call *call)
{
    if (file_yield(call))
        file_interrupt(call, NULL);
}

int file_pause(struct file_call *call, struct file_op *op, int64_t ns)
{
    struct operation *at = &call->at[0];
    int64_t when = platform_now(at->thread->sub) + ns;
    int how;
    do {
        wait_because(at->thread, at->me, BLOCKED_FILE, 0);
        how = wait_until(at->thread, at->me, when, own_of(at->me)->floor);
        at->thread = thread_self();
        if (how == WAIT_INTERRUPTED && interrupted_here(at->me))
            file_interrupt(call, op);
    } while (how == WAIT_INTERRUPTED);
    if (how < 0)
        return how;
    return atomic_load_explicit(&at->d->users, memory_order_acquire) & CLOSING ? -EBADF : 0; /* [D6] */
}

int64_t file_end(struct file_call *call, int64_t result)
{
    file_leave(call);
    yield_if_asked(thread_self());
    return result;
}
