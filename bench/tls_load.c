/*
 * usage: tls_load STREAM PORT RUNTIME [PAGE]
 *        tls_load write FILE
 *
 * The load of tls_handshake and tls_stream: OpenSSL on sockets, one thread.
 *
 * STREAM 0: new connections without a session, eight at a time; each makes a handshake, has a byte sent back, and ends.
 * How many end in a second.
 *
 * STREAM 1: one connection. What the server sends is decrypted and looked at for a while. From then on the load takes
 * the encrypted bytes and drops them, since decrypting them takes as long as encrypting: how many MB arrive in a
 * second.
 *
 * A server that speaks HTTP is asked for a page instead of a byte: for /one, whose last byte it is, or again and again
 * for PAGE, which the second form writes.
 */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define WARM_UP_NS BENCH_MANY(INT64_C(300000000))
#define SAMPLE_NS BENCH_MANY(INT64_C(500000000))
#define CHECKED_BYTES BENCH_MANY(INT64_C(64) << 20)
enum { PAGES = 200 }; /* more bytes than arrive until the end */

struct connection {
    SSL *ssl;
    int fd;
    bool asked;
};

static SSL_CTX *context;
static const char *page; /* NULL: the server does not speak HTTP */
static int epoll, port;
static long trips;

static void open_connection(struct connection *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct linger reset = {.l_onoff = 1}; /* so that no address stays taken for a minute */
    struct timeval limit = {.tv_sec = 5};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->asked = false;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bench_check(c->fd >= 0 && connect(c->fd, (struct sockaddr *)&address, sizeof address) == 0, "connection: %s",
                strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    c->ssl = SSL_new(context);
    bench_check(c->ssl && SSL_set_fd(c->ssl, c->fd), "no memory");
    SSL_set_connect_state(c->ssl);
}

static void close_connection(struct connection *c)
{
    SSL_free(c->ssl);
    close(c->fd);
}

static void check_waits(const struct connection *c, int result)
{
    int kind = SSL_get_error(c->ssl, result), code = errno;
    bench_check(kind == SSL_ERROR_WANT_READ, "the connection has failed: %d, %s", kind, strerror(code));
}

static void ask(struct connection *c, char what)
{
    bench_check(SSL_write(c->ssl, &what, 1) == 1, "a byte was not sent");
    c->asked = true;
}

static void ask_for_pages(struct connection *c, const char *name, int count)
{
    static char requests[PAGES * 64];
    int length = 0;
    for (int i = 0; i < count; i++)
        length += snprintf(requests + length, sizeof requests - (size_t)length,
                           "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", name);
    bench_check(SSL_write(c->ssl, requests, length) == length, "a request was not sent");
    c->asked = true;
}

/* ---- handshakes -------------------------------------------------------------------------------------------------- */

static void begin(struct connection *c)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    open_connection(c);
    bench_check(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) == 0,
                "no poller");
}

static void ask_for_one(struct connection *c)
{
    if (page)
        ask_for_pages(c, "/one", 1);
    else
        ask(c, TLS_ONE);
}

/* Returns whether the connection has ended. */
static bool ends(struct connection *c)
{
    char bytes[1024];
    int result = 1;
    if (!c->asked && (result = SSL_do_handshake(c->ssl)) == 1)
        ask_for_one(c);
    if (result == 1)
        result = SSL_read(c->ssl, bytes, page ? sizeof bytes : 1);
    if (result <= 0) {
        check_waits(c, result);
        return false;
    }
    bench_check(bytes[result - 1] == TLS_ONE && !SSL_session_reused(c->ssl),
                "another byte came back, or an earlier session");
    trips++;
    close_connection(c);
    return true;
}

static void go_on(struct connection *c)
{
    while (ends(c))
        begin(c);
}

/* Handshakes per second, over a time of so many ns. */
static double shake(int64_t time)
{
    struct epoll_event events[TLS_AT_A_TIME];
    long before = trips;
    int64_t start = bench_now(), now;
    do {
        int count = epoll_wait(epoll, events, TLS_AT_A_TIME, 5000);
        bench_check(count > 0, "nothing for five seconds");
        for (int i = 0; i < count; i++)
            go_on(events[i].data.ptr);
        now = bench_now();
    } while (now - start < time);
    return (double)(trips - before) * 1e9 / (double)(now - start);
}

static void measure_handshakes(const char *runtime)
{
    static struct connection all[TLS_AT_A_TIME], last;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < TLS_AT_A_TIME; i++) {
        begin(&all[i]);
        go_on(&all[i]);
    }
    shake(WARM_UP_NS);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("tls_handshake", runtime, 1, "handshakes/s", shake(SAMPLE_NS));
    if (page) /* the script that started the server ends it */
        return;
    open_connection(&last);
    bench_check(SSL_do_handshake(last.ssl) == 1, "the last handshake has failed");
    ask(&last, TLS_OVER);
    char byte; /* the end of the process would reset the connection, before the server has read */
    bench_check(SSL_read(last.ssl, &byte, 1) <= 0, "the server goes on");
}

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

static void skip_head(struct connection *c)
{
    static const char end[] = "\r\n\r\n";
    char byte;
    for (int at = 0; end[at]; at = byte == end[at] ? at + 1 : byte == '\r')
        bench_check(SSL_read(c->ssl, &byte, 1) == 1, "the stream has ended");
}

static void check_bytes(struct connection *c)
{
    static unsigned char bytes[16 << 10];
    int got;
    for (int64_t count = 0; count < CHECKED_BYTES; count += got) {
        got = SSL_read(c->ssl, bytes, sizeof bytes);
        bench_check(got > 0, "the stream has ended");
        for (int i = 0; i < got; i++)
            bench_check(bytes[i] == tls_byte((size_t)(count + i) % TLS_CHUNK), "byte %" PRId64, count + i);
    }
}

/* MB per second, over a time of so many ns. MSG_TRUNC: the system drops them. */
static double drop(int fd, int64_t time)
{
    int64_t bytes = 0, start = bench_now(), now;
    do {
        ssize_t got = recv(fd, NULL, 1 << 20, MSG_TRUNC);
        bench_check(got > 0, "the stream has ended: %s", strerror(errno));
        bytes += got;
        now = bench_now();
    } while (now - start < time);
    return (double)bytes * 1e3 / (double)(now - start);
}

static void measure_stream(const char *runtime)
{
    struct connection c;
    open_connection(&c);
    bench_check(SSL_do_handshake(c.ssl) == 1, "the handshake has failed");
    if (page) {
        ask_for_pages(&c, page, PAGES);
        skip_head(&c);
    } else {
        ask(&c, TLS_MUCH);
    }
    check_bytes(&c);
    drop(c.fd, WARM_UP_NS);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("tls_stream", runtime, 1, "MB/s", drop(c.fd, SAMPLE_NS));
    close_connection(&c);
}

static int write_page(const char *path)
{
    static unsigned char chunk[TLS_CHUNK];
    FILE *file = fopen(path, "w");
    tls_fill(chunk);
    for (int64_t left = CHECKED_BYTES; file && left > 0; left -= TLS_CHUNK)
        fwrite(chunk, 1, left < TLS_CHUNK ? (size_t)left : TLS_CHUNK, file);
    bench_check(file && !ferror(file) && fclose(file) == 0, "%s can't be written", path);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_page(argv[2]);
    bench_check(argc == 4 || argc == 5, "usage: tls_load STREAM PORT RUNTIME [PAGE], or tls_load write FILE");
    page = argv[4];
    port = atoi(argv[2]);
    context = SSL_CTX_new(TLS_client_method());
    bench_check(context != NULL, "no context");
    if (atoi(argv[1]))
        measure_stream(argv[3]);
    else
        measure_handshakes(argv[3]);
    return 0;
}
