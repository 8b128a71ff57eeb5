/*
 * Descriptors and credentials over Unix sockets. How an operation waits is in descriptor.h.
 *
 * INVARIANTS [PA1] every descriptor that the system hands over is in the caller's list, or is closed. So the call that
 *           takes it is the last step of the operation: no interruption and no error comes after it.
 */
#include "../../include/strand/socket.h"

#include "descriptor.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { PASSED_LEAST = offsetof(strand_passed, gid) + sizeof(unsigned) };

int64_t strand_receive_passed(int fd, void *buffer, size_t size, strand_passed *passed)
{
    static const char *const function = "strand_receive_passed";
    struct operation op;
    must_be_there(passed, "place for what is passed", function);
    must_have_size(passed->size, PASSED_LEAST, "strand_passed", function);
    if (size)
        must_be_there(buffer, "buffer", function);
    if (passed->max_fds)
        must_be_there(passed->fds, "list of descriptors", function);
    int most = passed->max_fds < ARCH_PASSED_MOST ? (int)passed->max_fds : ARCH_PASSED_MOST;
    struct arch_passed got = {.fds = passed->fds, .max_fds = most};
    int64_t result = operation_enter(&op, fd, SIDE_IN, function);
    if (result < 0)
        return result;
    while ((result = operation_ready(&op)) == 0) {
        result = op.d->type == ARCH_FD_TCP ? -EOPNOTSUPP : fd_receive_passed(op.thread, op.d->call, buffer, size, &got);
        if (UNLIKELY(result == -ENOTSOCK || result == -EOPNOTSUPP) && !operation_mistaken(&op, (int)result))
            continue;
        if (result != -EAGAIN)
            break; /* [PA1] */
        operation_drained(&op);
    }
    operation_leave(&op);
    if (result < 0)
        return result;
    for (int i = 0; i < got.fd_count; i++)
        descriptor_made(got.fds[i]);
    passed->fd_count = (size_t)got.fd_count;
    passed->cut = got.cut;
    passed->has_credentials = got.has_credentials;
    passed->pid = got.pid;
    passed->uid = got.uid;
    passed->gid = got.gid;
    return result;
}

int64_t strand_send_passed(int fd, const void *bytes, size_t size, const strand_passed *passed)
{
    static const char *const function = "strand_send_passed";
    struct operation op;
    must_be_there(passed, "what is passed", function);
    must_have_size(passed->size, PASSED_LEAST, "strand_passed", function);
    if (size)
        must_be_there(bytes, "bytes", function);
    if (passed->fd_count)
        must_be_there(passed->fds, "list of descriptors", function);
    int64_t put = operation_enter(&op, fd, SIDE_OUT, function);
    if (put < 0)
        return put;
    const struct arch_passed what = {
        .fds = passed->fds, .fd_count = (int)passed->fd_count, .has_credentials = passed->has_credentials};
    bool too_many = passed->fd_count > ARCH_PASSED_MOST;
    while ((put = operation_ready(&op)) == 0) {
        put = too_many                    ? -EINVAL
              : op.d->type == ARCH_FD_TCP ? -EOPNOTSUPP
                                          : fd_send_passed(op.thread, op.d->call, bytes, size, &what);
        if (UNLIKELY(put == -ENOTSOCK || put == -EOPNOTSUPP) && !operation_mistaken(&op, (int)put))
            continue;
        if (put != -EAGAIN)
            break;
        operation_drained(&op);
    }
    operation_leave(&op);
    return put;
}
