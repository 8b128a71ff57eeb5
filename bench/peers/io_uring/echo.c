/*
 * echo1 to echo10000: a loop on io_uring, by liburing. One call accepts all connections, and one call for each
 * connection receives all its messages, into buffers that the kernel takes from a common ring. A system call begins all
 * echoes of a turn, and waits for what comes next.
 *
 * Unfair: the program is one loop that knows what each connection does next; no strand, no scope and no cancellation.
 */
#include "../../echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { CALLS = 4096, BUFFERS = 4096, GROUP = 0 };
enum what { ACCEPT, RECEIVE, SEND };

static struct io_uring ring;
static struct io_uring_buf_ring *free_buffers;
static char *buffers;
static long accepted, ended;

/* ---- what a completion belongs to: the operation, the buffer and the connection ------------------------------------
 */

static uint64_t tag(enum what what, int buffer, int fd)
{
    return (uint64_t)what << 48 | (uint64_t)buffer << 32 | (uint32_t)fd;
}

static struct io_uring_sqe *next_call(uint64_t data)
{
    struct io_uring_sqe *call = io_uring_get_sqe(&ring);
    if (!call) {
        io_uring_submit(&ring);
        call = io_uring_get_sqe(&ring);
    }
    bench_check(call != NULL, "the ring is full");
    call->user_data = data;
    return call;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------
 */

static void give_back(int buffer)
{
    io_uring_buf_ring_add(free_buffers, buffers + (size_t)buffer * ECHO_BUFFER, ECHO_BUFFER, (unsigned short)buffer,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(free_buffers, 1);
}

static void make_buffers(void)
{
    size_t size = BUFFERS * sizeof(struct io_uring_buf);
    free_buffers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    buffers = malloc((size_t)BUFFERS * ECHO_BUFFER);
    bench_check(free_buffers != MAP_FAILED && buffers, "no memory");
    struct io_uring_buf_reg reg = {
        .ring_addr = (uint64_t)(uintptr_t)free_buffers, .ring_entries = BUFFERS, .bgid = GROUP};
    if (io_uring_register_buf_ring(&ring, &reg, 0) < 0)
        bench_leave_out("the kernel is too old for buffers in a ring");
    io_uring_buf_ring_init(free_buffers);
    for (int i = 0; i < BUFFERS; i++)
        give_back(i);
}

/* ---- calls --------------------------------------------------------------------------------------------------------
 */

static void receive(int fd)
{
    struct io_uring_sqe *call = next_call(0);
    io_uring_prep_recv_multishot(call, fd, NULL, 0, 0);
    call->flags |= IOSQE_BUFFER_SELECT;
    call->buf_group = GROUP;
    call->user_data = tag(RECEIVE, 0, fd);
}

static void send_back(int fd, int buffer, int length)
{
    struct io_uring_sqe *call = next_call(0);
    io_uring_prep_send(call, fd, buffers + (size_t)buffer * ECHO_BUFFER, (size_t)length, MSG_NOSIGNAL | MSG_WAITALL);
    call->user_data = tag(SEND, buffer, fd);
}

static void received(int fd, const struct io_uring_cqe *end)
{
    if (end->flags & IORING_CQE_F_BUFFER)
        send_back(fd, (int)(end->flags >> IORING_CQE_BUFFER_SHIFT), end->res);
    if (end->flags & IORING_CQE_F_MORE)
        return;
    if (end->res > 0 || end->res == -ENOBUFS) {
        receive(fd);
        return;
    }
    bench_check(end->res == 0 || end->res == -ECONNRESET, "receive: %s", strerror(-end->res));
    close(fd);
    ended++;
}

static void over(const struct io_uring_cqe *end)
{
    int fd = (int)(uint32_t)end->user_data;
    switch ((enum what)(end->user_data >> 48)) {
    case ACCEPT:
        bench_check(end->res >= 0 && end->flags & IORING_CQE_F_MORE, "accept: %s", strerror(-end->res));
        accepted++;
        receive(end->res);
        break;
    case RECEIVE:
        received(fd, end);
        break;
    case SEND:
        give_back((int)(end->user_data >> 32 & 0xffff));
        break;
    }
}

static int listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bench_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 4096) == 0 &&
                    getsockname(fd, (struct sockaddr *)&address, &length) == 0,
                "listen: %s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

static void open_ring(void)
{
    struct io_uring_params params = {.flags =
                                         IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
                                     .cq_entries = 8 * CALLS};
    if (io_uring_queue_init_params(CALLS, &ring, &params) < 0)
        bench_leave_out("the kernel has no io_uring, or an old one");
}

int main(int argc, char **argv)
{
    long connections = echo_connections(argc, argv);
    int port, listener = listen_somewhere(&port);
    open_ring();
    make_buffers();
    struct io_uring_sqe *call = next_call(0);
    io_uring_prep_multishot_accept(call, listener, NULL, NULL, SOCK_CLOEXEC);
    call->user_data = tag(ACCEPT, 0, listener);
    echo_start("/../../echo_load", "io_uring", connections, port); /* beside the other programs */
    while (accepted < connections || ended < accepted) {
        struct io_uring_cqe *end;
        unsigned head, count = 0;
        int error = io_uring_submit_and_wait(&ring, 1);
        bench_check(error >= 0 || error == -EINTR, "the ring: %s", strerror(-error));
        io_uring_for_each_cqe(&ring, head, end)
        {
            over(end);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
    return 0;
}
