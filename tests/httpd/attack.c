/*
 * An attack over the network: requests that were changed at random, sent in random pieces over several connections at a
 * time, which end in random ways. The server outlives it, accounts for every request, and serves the next client. Which
 * bytes are sent follows from the seed; make test MODE=asan sees what they do to the server's memory.
 */
#define SUITE httpd
#include "client.h"

#include <signal.h>

enum { SEEDS = 8, ROUNDS = 40, CLIENTS = 8, MOST = 64 * 1024 };

static const char *const requests[] = {
    GET("/hello"),
    GET("/file") GET("/file?a=b#c") GET("/"),
    REQUEST("HEAD", "/large", "Range: bytes=5-1000\r\nIf-Range: \"a\"\r\nUser-Agent: x\r\n"),
    REQUEST("GET", "/large", "Range: bytes=-70000\r\nIf-None-Match: \"a\", W/\"b\", *\r\nReferer: \t\\\"\r\n"),
    REQUEST("GET", "/file", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 10\r\n") "0123456789",
    REQUEST("GET", "/../a/%2e%2e/./%41%", "If-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"),
    REQUEST("GET", "http://test/hello",
            "Transfer-Encoding: chunked\r\n") "5;a=b\r\nabcde\r\nA\r\n0123456789\r\n0\r\nRange: "
                                              "bytes=1-\r\nUser-Agent: trailer\r\n\r\n" GET("/hello"),
    REQUEST("GET", "/slow?ms=1&strands=3", "Connection: close, keep-alive\r\n"),
    "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /strands HTTP/1.0\r\n\r\n",
};

static uint32_t state;

static uint32_t below(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)state * n >> 32);
}

/* One change; returns the new length. */
static size_t change(char *bytes, size_t length)
{
    static const char marks[] = "\r\n\0 \t:;,0f/%?#\"\177\377";
    size_t at = length ? below((uint32_t)length) : 0, some = below(40);
    some = some < length - at ? some : length - at;
    switch (length ? below(6) : 0) {
    case 0: /* another byte */
        bytes[at] = (char)below(256);
        return length ? length : 1;
    case 1: /* a byte that means something */
        bytes[at] = marks[below(sizeof marks)];
        return length;
    case 2: /* a part is missing */
        memmove(bytes + at, bytes + at + some, length - at - some);
        return length - some;
    case 3: /* a part comes twice */
        memmove(bytes + at + some, bytes + at, length - at);
        return length + some;
    case 4: { /* a part becomes very long */
        size_t more = below(3) ? below(200) : below(30000);
        memmove(bytes + at + more, bytes + at, length - at);
        memset(bytes + at, "A0 \r"[below(4)], more);
        return length + more;
    }
    default: /* the end is missing */
        return at;
    }
}

/* Two or three requests, with some changes. */
static size_t make_up(char *bytes)
{
    size_t length = 0;
    for (uint32_t n = 1 + below(3); n; n--) {
        const char *request = requests[below(sizeof requests / sizeof *requests)];
        memcpy(bytes + length, request, strlen(request));
        length += strlen(request);
    }
    for (uint32_t n = below(5); n && length < MOST / 4; n--)
        length = change(bytes, length);
    return length;
}

struct attacker {
    int fd;
    size_t sent, length;
    char bytes[2 * MOST];
};

/* A piece of what is left; false: that was all, or the server takes no more. */
static bool go_on(struct attacker *a)
{
    char answer[4096];
    size_t left = a->length - a->sent, piece = 1 + below(below(4) ? 50 : 20000);
    piece = piece < left ? piece : left;
    ssize_t sent = send(a->fd, a->bytes + a->sent, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        return false;
    a->sent += sent > 0 ? (size_t)sent : 0;
    if (below(2))
        (void)recv(a->fd, answer, sizeof answer, MSG_DONTWAIT);
    return a->sent < a->length;
}

static void end(struct attacker *a)
{
    switch (below(3)) {
    case 0:
        reset(a->fd);
        break;
    case 1:
        shutdown(a->fd, SHUT_WR);
        /* fall through */
    default:
        close(a->fd);
    }
}

static void attack(void)
{
    static struct attacker attackers[CLIENTS];
    int left = CLIENTS;
    for (int i = 0; i < CLIENTS; i++) {
        attackers[i].fd = dial();
        attackers[i].sent = 0;
        attackers[i].length = make_up(attackers[i].bytes);
    }
    while (left) {
        struct attacker *a = &attackers[below((uint32_t)left)];
        if (go_on(a))
            continue;
        end(a);
        *a = attackers[--left];
    }
}

TEST_REAL(the_server_outlives_an_attack)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        state = seed * 2654435761U;
        make_file("root/file", "0123");
        make_big("root/large", 100 * 1000);
        SERVER("--log=/dev/null");
        for (long round = 0; round < test_scale(ROUNDS); round++)
            attack();
        if (ask_once(GET("/hello")) != 200)
            CHECK_FAIL("after seed %u the server answers by %d", seed, got.status);
        server_stop(SIGTERM);
    }
}
