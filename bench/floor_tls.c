/*
 * The floor of tls_handshake and tls_stream: OpenSSL on sockets, in an epoll loop. OpenSSL makes a system call for each
 * record that it sends, and two for each that it receives unless it reads ahead, which it is asked to do here.
 */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BATCH = 64 };

struct connection {
    SSL *ssl;
    int fd;
    char byte; /* what the client wants, or 0 */
    bool answered;
};

static SSL_CTX *context;
static unsigned char chunk[TLS_CHUNK];

static void open_context(void)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    context = SSL_CTX_new(TLS_server_method());
    bench_check(context && SSL_CTX_use_certificate(context, tls_make_certificate(key)) == 1 &&
                    SSL_CTX_use_PrivateKey(context, key) == 1,
                "no context");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"bench", 5);
}

static int listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bench_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 4096) == 0 &&
                    getsockname(fd, (struct sockaddr *)&address, &length) == 0,
                "listen: %s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

static void accept_all(int epoll, int listener)
{
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *c = calloc(1, sizeof *c);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
        bench_check(c && (c->ssl = SSL_new(context)) && SSL_set_fd(c->ssl, fd), "no memory");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        SSL_set_accept_state(c->ssl);
        c->fd = fd;
        bench_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl: %s", strerror(errno));
    }
    bench_check(errno == EAGAIN, "accept: %s", strerror(errno));
}

static bool waits(const struct connection *c, int result)
{
    int kind = SSL_get_error(c->ssl, result);
    return kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;
}

static void write_much(struct connection *c)
{
    static size_t at;
    int put;
    while ((put = SSL_write(c->ssl, chunk + at, (int)(TLS_CHUNK - at))) > 0)
        at = (at + (size_t)put) % TLS_CHUNK;
    if (!waits(c, put))
        _exit(0);
}

/* Returns whether the connection goes on. */
static bool serve(struct connection *c)
{
    char byte;
    int result = 1;
    ERR_clear_error();
    if (!c->byte && (result = SSL_read(c->ssl, &c->byte, 1)) != 1)
        return waits(c, result);
    if (c->byte == TLS_OVER)
        _exit(0);
    if (c->byte == TLS_MUCH) {
        write_much(c);
        return true;
    }
    if (!c->answered && (result = SSL_write(c->ssl, &c->byte, 1)) != 1)
        return waits(c, result);
    c->answered = true;
    while ((result = SSL_read(c->ssl, &byte, 1)) > 0) {
    }
    return waits(c, result);
}

int main(int argc, char **argv)
{
    struct epoll_event events[BATCH];
    long stream = tls_is_stream(argc, argv);
    int port, listener = listen_somewhere(&port), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    bench_check(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "no poller");
    signal(SIGPIPE, SIG_IGN);
    tls_fill(chunk);
    open_context();
    tls_start_load("floor", stream, port);
    for (;;) {
        int count = epoll_wait(epoll, events, BATCH, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) {
                accept_all(epoll, listener);
            } else if (!serve(c)) {
                SSL_free(c->ssl);
                close(c->fd);
                free(c);
            }
        }
    }
}
