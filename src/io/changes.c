/*
 * Changes of files and directories. Their descriptor is one of the system; how an operation waits is in descriptor.h,
 * and how a case of a select does in select_io.c.
 *
 * A case takes a change only when no other case of the select can happen any more: the wait was retracted or won, or
 * there is none. It is inside the descriptor meanwhile, so that the number is not given to another one [D1].
 */
#include "../../include/strand/changes.h"

#include "file.h"
#include "select_io.h"

#include "../sched/thread.h"
#include "../strand/escape.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>

_Static_assert(sizeof(struct arch_change) == sizeof(strand_change) &&
                   offsetof(struct arch_change, cookie) == offsetof(strand_change, cookie) &&
                   offsetof(struct arch_change, name) == offsetof(strand_change, name),
               "a change of the interface is one of the system");

int strand_changes_open(void)
{
    int fd = arch_changes_open();
    if (fd >= 0)
        descriptor_made(fd);
    return fd;
}

/* ---- what is observed --------------------------------------------------------------------------------------- */

static int64_t run_add(struct file_op *op)
{
    return arch_changes_add(op->to, op->fd, op->path, op->mode);
}

int strand_changes_add(int changes, int dir, const char *path, uint32_t what)
{
    struct file_call call;
    must_be_there(path, "path", "strand_changes_add");
    int error = file_enter_directory(&call, dir, "strand_changes_add");
    if (!error)
        error = file_enter_also(&call, changes, false);
    if (error)
        return error;
    struct file_op *op = file_op_make_named(&call, run_add, path, NULL, 0);
    if (op) {
        op->fd = dir;
        op->to = changes;
        op->mode = what;
    }
    return (int)file_run_last(&call, op, false); /* [FI1] */
}

int strand_changes_remove(int changes, int number)
{
    struct thread *thread = must_be_strand("strand_changes_remove");
    struct descriptor *d;
    int error = descriptor_enter_at_once(thread, changes, &d);
    if (error)
        return error == -EAGAIN ? -EBADF : error; /* [D5]: it was closed just now */
    error = d->type == ARCH_FD_PLAYED ? -EINVAL : arch_changes_remove(d->call, number);
    (void)descriptor_leave(thread, d);
    return error;
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/* Inside of the descriptor. Returns how many changes there were, at least one; -EAGAIN, or another negated errno code.
 * One thread at a time reads: while it looks for the room that the first event needs, that event stays the first. */
static int take(struct thread *thread, struct descriptor *d, strand_change *list, size_t count)
{
    if (d->type == ARCH_FD_PLAYED)
        return -EINVAL;
    descriptor_lock(thread, d);
    int got = arch_changes_read(d->call, (struct arch_change *)(void *)list, count < INT_MAX ? (int)count : INT_MAX);
    descriptor_unlock(thread, d);
    return got;
}

int strand_changes_receive(int changes, strand_change *list, size_t count)
{
    struct operation op;
    if (count)
        must_be_there(list, "list of changes", "strand_changes_receive");
    int got = operation_enter(&op, changes, SIDE_IN, "strand_changes_receive");
    if (got < 0)
        return got;
    while (count && (got = operation_ready(&op)) == 0) {
        got = take(op.thread, op.d, list, count);
        if (UNLIKELY(got == -EINVAL) && !operation_mistaken(&op, got))
            continue;
        if (got != -EAGAIN)
            break;
        operation_drained(&op);
    }
    operation_leave(&op);
    return got;
}

/* ---- a case of a select -------------------------------------------------------------------------------------- */

static struct target target_of(const strand_case *c)
{
    return select_io_target((int)c->object[0], STRAND_READABLE);
}

/* Returns whether the case has happened; its result then says how. */
static bool settle(struct thread *thread, struct descriptor *d, strand_case *c)
{
    int got = take(thread, d, c->value, 1);
    c->result = got < 0 ? got : 0;
    return got != -EAGAIN;
}

/* Take a change if there is one and no earlier waiter. Returns 1 if the case has happened; 0; or a negated errno code.
 */
static int take_now(struct thread *thread, strand_case *c)
{
    struct descriptor *d;
    int result = descriptor_enter_at_once(thread, target_of(c).fd, &d);
    if (result)
        return result;
    if (!select_io_waits_for_others(thread, d, SIDE_IN) && settle(thread, d, c))
        result = c->result ? c->result : 1;
    (void)descriptor_leave(thread, d);
    return result;
}

static enum answer change_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    if (!node)
        return select_io_answer(thread, me, c, NULL, take_now(thread, c));
    int result = select_io_stand(thread, c, node, target_of(c));
    enum answer answer = select_io_answer(thread, me, c, node, result);
    if (answer != SOURCE_DONE || result < 0)
        return answer;
    result = take_now(thread, c);
    c->result = result < 0 ? result : 0;
    return result && result != -EAGAIN ? SOURCE_DONE : SOURCE_AGAIN;
}

static enum answer change_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    if (!select_io_standing(c))
        return SOURCE_DONE;
    bool happened = won && settle(thread, select_io_standing(c), c);
    int taken = c->result, result = select_io_leave(thread, c, node, target_of(c), won);
    c->result = happened ? taken : result < 0 ? result : 0;
    return happened || !won || result < 0 ? SOURCE_DONE : SOURCE_AGAIN;
}

static const struct strand_source_ source_change = {.stand = change_stand,
                                                    .over = change_over,
                                                    .next_probe = select_io_next_probe,
                                                    .outside = true,
                                                    .blocked = BLOCKED_DESCRIPTOR};

strand_case strand_on_change(int changes, strand_change *change)
{
    must_be_there(change, "place for the change", "strand_on_change");
    return (strand_case){.source = &source_change, .value = change, .object = {(uint64_t)(unsigned)changes, 0}};
}
