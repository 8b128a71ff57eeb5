/*
 * usage: echo_load CONNECTIONS PORT RUNTIME
 *
 * The load of the echo rows: on each connection a message of 64 bytes, then its echo, then the next one. How many of
 * such round trips all connections make together in a second. One thread, a bare epoll loop. Every byte that comes back
 * is looked at: messages differ by connection and by turn.
 */
#include "echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define WARM_UP_NS BENCH_MANY(INT64_C(300000000))
#define SAMPLE_NS BENCH_MANY(INT64_C(300000000))
enum { BATCH = 1024 };

struct connection {
    int fd;
    int missing; /* of the echo */
    uint64_t number, turn;
};

static long trips;

static void fill(const struct connection *c, uint64_t message[ECHO_MESSAGE / 8])
{
    uint64_t first = c->number << 40 ^ c->turn;
    for (int i = 0; i < ECHO_MESSAGE / 8; i++)
        message[i] = first + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
}

static void ask(struct connection *c)
{
    uint64_t message[ECHO_MESSAGE / 8];
    c->turn++;
    c->missing = ECHO_MESSAGE;
    fill(c, message);
    ssize_t sent = send(c->fd, message, sizeof message, MSG_NOSIGNAL);
    bench_check(sent == sizeof message, "connection %" PRIu64 " took %zd bytes (%s)", c->number, sent, strerror(errno));
}

/* Some of the echo. An epoll event comes for each arrival, so nothing but the end is asked for more than once. */
static void receive(struct connection *c)
{
    char echo[ECHO_BUFFER];
    uint64_t message[ECHO_MESSAGE / 8];
    ssize_t got = recv(c->fd, echo, sizeof echo, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    bench_check(got > 0 && got <= c->missing, "connection %" PRIu64 " got %zd bytes, %d were due", c->number, got,
                c->missing);
    fill(c, message);
    bench_check(memcmp(echo, (char *)message + ECHO_MESSAGE - c->missing, (size_t)got) == 0,
                "connection %" PRIu64 " got other bytes than it had sent in turn %" PRIu64, c->number, c->turn);
    c->missing -= (int)got;
    if (c->missing)
        return;
    trips++;
    ask(c);
}

static void open_connection(struct connection *c, int epoll, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct linger reset = {.l_onoff = 1}; /* so that no address stays taken for a minute */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = c};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bench_check(c->fd >= 0, "connection %" PRIu64 ": %s", c->number, strerror(errno));
    bench_check(connect(c->fd, (struct sockaddr *)&address, sizeof address) == 0, "connection %" PRIu64 ": %s",
                c->number, strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    bench_check(epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) == 0, "no poller");
}

/* Round trips per second, over a time of so many ns. */
static double measure(int epoll, int64_t time)
{
    struct epoll_event events[BATCH];
    long before = trips;
    int64_t start = bench_now(), now;
    do {
        int count = epoll_wait(epoll, events, BATCH, 5000);
        bench_check(count > 0, "no echo for five seconds");
        for (int i = 0; i < count; i++)
            receive(events[i].data.ptr);
        now = bench_now();
    } while (now - start < time);
    return (double)(trips - before) * 1e9 / (double)(now - start);
}

int main(int argc, char **argv)
{
    bench_check(argc == 4, "usage: echo_load CONNECTIONS PORT RUNTIME");
    long count = echo_connections(argc, argv);
    int epoll = epoll_create1(EPOLL_CLOEXEC), port = atoi(argv[2]);
    char row[32];
    struct connection *connections = calloc((size_t)count, sizeof *connections);
    bench_check(epoll >= 0 && connections, "no memory");
    snprintf(row, sizeof row, "echo%ld", count);
    for (long i = 0; i < count; i++) {
        connections[i].number = (uint64_t)i;
        open_connection(&connections[i], epoll, port);
    }
    for (long i = 0; i < count; i++)
        ask(&connections[i]);
    measure(epoll, WARM_UP_NS);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, argv[3], 1, "trips/s", measure(epoll, SAMPLE_NS));
    for (long i = 0; i < count; i++) {
        long most = trips + 100 * count; /* the others' turns, not a time: the machine may be slow */
        while (connections[i].turn <= 1 && trips < most)
            measure(epoll, SAMPLE_NS);
        bench_check(connections[i].turn > 1, "connection %ld was never served", i);
    }
    return 0; /* which closes the connections */
}
