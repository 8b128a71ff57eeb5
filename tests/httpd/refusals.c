/*
 * What is no request, or none that this server takes: each has its status, and the connection ends in order after it.
 */
#define SUITE httpd
#include "client.h"

#include <signal.h>

/* The status that the bytes get; the connection ends after it, and says so. */
static int refused(const char *bytes, size_t length)
{
    int fd = dial();
    say_bytes(fd, bytes, length);
    receive(fd);
    CHECK_STR(header("Connection"), "close");
    check_end(fd);
    close(fd);
    return got.status;
}

#define REFUSED(bytes, wanted)                                                                                         \
    do                                                                                                                 \
        if (refused((bytes), sizeof(bytes) - 1) != (wanted))                                                           \
            CHECK_FAIL("%s: %d", (bytes), got.status);                                                                 \
    while (0)

TEST_REAL(what_is_no_request_is_a_bad_one)
{
    SERVER(NULL);
    REFUSED("garbage\r\n\r\n", 400);
    REFUSED("\0\1\2\3", 400);
    REFUSED("\377\377\377\377", 400);
    REFUSED("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400); /* how TLS begins */
    REFUSED("get /hello HTTP/1.1\r\nHost: test\r\n\r\n", 400);
    REFUSED("GET\r\n\r\n", 400);
    REFUSED("GET  HTTP/1.1\r\nHost: test\r\n\r\n", 400);
    REFUSED("GET hello HTTP/1.1\r\nHost: test\r\n\r\n", 400);
    REFUSED("GET /hello XTTP/1.1\r\nHost: test\r\n\r\n", 400);
    REFUSED("GET /he\0llo HTTP/1.1\r\nHost: test\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost : test\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost: test\r\n: empty\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost: test\r\nX: a\0b\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost: test\r\nno colon\r\n\r\n", 400);
    CHECK_EQ(ask_once(GET("/hello")), 200);
    CHECK_EQ(server_stop(SIGTERM).served, 15);
}

TEST_REAL(a_method_is_unknown_or_not_allowed)
{
    SERVER(NULL);
    REFUSED("BREW /hello HTTP/1.1\r\nHost: test\r\n\r\n", 501);
    REFUSED("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501);
    REFUSED(REQUEST("POST", "/hello", "Content-Length: 0\r\n"), 405);
    CHECK_STR(header("Allow"), "GET, HEAD");
    REFUSED(REQUEST("POST", "/hello", "Content-Length: 5\r\n") "abcde", 405);
    REFUSED(REQUEST("DELETE", "/hello", ""), 405);
    REFUSED("OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n", 405);
    REFUSED("CONNECT test:80 HTTP/1.1\r\nHost: test\r\n\r\n", 405);
    server_stop(SIGTERM);
}

TEST_REAL(other_versions_are_not_spoken)
{
    SERVER(NULL);
    REFUSED("GET /hello HTTP/2.0\r\nHost: test\r\n\r\n", 505);
    REFUSED("GET /hello HTTP/3.0\r\nHost: test\r\n\r\n", 505);
    REFUSED("GET /hello HTTP/0.9\r\nHost: test\r\n\r\n", 505);
    REFUSED("GET /hello HTTP/11.1\r\nHost: test\r\n\r\n", 505);
    server_stop(SIGTERM);
}

TEST_REAL(there_is_one_host)
{
    SERVER(NULL);
    REFUSED("GET /hello HTTP/1.1\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost: a\r\nX: y\r\nHost: a\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n", 400);
    REFUSED("GET /hello HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400);
    CHECK_EQ(ask_once("GET /hello HTTP/1.0\r\n\r\n"), 200);
    server_stop(SIGTERM);
}

TEST_REAL(a_host_is_written_as_one)
{
    static const char *const good[] = {"", " ", " test:80", " [::1]:80 ", " 127.0.0.1", " a_b.c-d", "\ttest"};
    static const char *const bad[] = {"a b", "a/b", "/", "a\tb", "a\001b", "a\\b", "a@b", "a?b", "a\177", "a\r\n b"};
    char request[128];
    SERVER(NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sprintf(request, "GET /hello HTTP/1.1\r\nHost:%s\r\n\r\n", good[i]);
        if (ask_once(request) != 200)
            CHECK_FAIL("%s: %d", good[i], got.status);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int length = sprintf(request, "GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]);
        if (refused(request, (size_t)length) != 400)
            CHECK_FAIL("%s: %d", bad[i], got.status);
    }
    server_stop(SIGTERM);
}

TEST_REAL(the_name_of_a_header_has_no_blanks)
{
    SERVER(NULL);
    REFUSED(REQUEST("GET", "/hello", "X : y\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "X\t: y\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "X Y: z\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "Range : bytes=0-0\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "Connection : close\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "Content-Length : 5\r\n") "abcde", 400);
    REFUSED(REQUEST("GET", "/hello", "Transfer-Encoding : chunked\r\n") "0\r\n\r\n", 400);
    REFUSED(REQUEST("GET", "/hello", "Transfer-Encoding: chunked\r\n") "0\r\nX : y\r\n\r\n", 400);
    server_stop(SIGTERM);
}

/* What two readers may see differently smuggles requests. */
TEST_REAL(there_is_one_length)
{
    SERVER(NULL);
    REFUSED(REQUEST("GET", "/hello", "Content-Length: 1\r\nContent-Length: 2\r\n") "ab", 400);
    REFUSED(REQUEST("GET", "/hello", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n", 400);
    REFUSED(REQUEST("GET", "/hello", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n") "0\r\n\r\n", 400);
    REFUSED(REQUEST("GET", "/hello", "Content-Length: -1\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "Content-Length: 1x\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "Content-Length: 99999999999999999999\r\n"), 400);
    REFUSED(REQUEST("GET", "/hello", "Transfer-Encoding: gzip\r\n") "abc", 501);
    REFUSED(REQUEST("GET", "/hello", "Transfer-Encoding: chunked\r\n") "x\r\n", 400);
    server_stop(SIGTERM);
}

TEST_REAL(a_head_and_a_url_have_their_limits)
{
    enum { LARGE = 20 * 1000 };
    static char text[2 * LARGE];
    int length;
    SERVER(NULL);
    length = sprintf(text, "GET /hello HTTP/1.1\r\nHost: test\r\nX: %0*d\r\n\r\n", LARGE, 0);
    CHECK_EQ(refused(text, (size_t)length), 431);
    length = sprintf(text, "GET /hello HTTP/1.1\r\nHost: test\r\n");
    while (length < LARGE)
        length += sprintf(text + length, "X-%d: y\r\n", length);
    CHECK_EQ(refused(text, (size_t)length), 431);
    length = sprintf(text, "GET /%0*d HTTP/1.1\r\nHost: test\r\n\r\n", LARGE, 0);
    CHECK_EQ(refused(text, (size_t)length), 414);
    sprintf(text, "GET /%0*d HTTP/1.1\r\nHost: test\r\n\r\n", 4096, 0);
    CHECK_EQ(ask_once(text), 414);
    sprintf(text, "GET /%0*d HTTP/1.1\r\nHost: test\r\n\r\n", 4000, 0);
    CHECK_EQ(ask_once(text), 404);
    sprintf(text, "GET /hello HTTP/1.1\r\nHost: test\r\nX: %0*d\r\n\r\n", 15000, 0);
    CHECK_EQ(ask_once(text), 200);
    server_stop(SIGTERM);
}

/* Blocks until all of it is taken. */
static void say_zeros(int fd, size_t length)
{
    static const char zeros[64 * 1024];
    for (; length >= sizeof zeros; length -= sizeof zeros)
        say_bytes(fd, zeros, sizeof zeros);
    say_bytes(fd, zeros, length);
}

TEST_REAL(the_answer_to_a_body_that_is_too_large_can_be_read_by_a_client_that_sends_it_all)
{
    SERVER("--timeout=1000");
    int fd = dial();
    say(fd, REQUEST("GET", "/hello", "Content-Length: 16777216\r\n"));
    say_zeros(fd, 16 << 20);
    CHECK_EQ(receive(fd), 413);
    check_end(fd);
    close(fd);
    fd = dial();
    say(fd, REQUEST("POST", "/hello", "Content-Length: 4194304\r\n"));
    say_zeros(fd, 4 << 20);
    CHECK_EQ(receive(fd), 405);
    check_end(fd);
    close(fd);
    fd = dial();
    say(fd, REQUEST("GET", "/hello", "Transfer-Encoding: chunked\r\n") "400000\r\n");
    say_zeros(fd, 4 << 20);
    CHECK_EQ(receive(fd), 413);
    check_end(fd);
    close(fd);
    server_stop(SIGTERM);
}

TEST_REAL(the_last_answer_can_be_read_by_a_client_that_goes_on_sending)
{
    enum { SOME = 20 };
    static const char request[] = REQUEST("GET", "/hello", "Connection: close\r\n");
    SERVER("--timeout=1000");
    int fd = dial();
    say(fd, request);
    say_zeros(fd, 4 << 20);
    CHECK_EQ(receive(fd), 200);
    check_end(fd);
    close(fd);
    fd = dial();
    for (int i = 0; i < SOME; i++) { /* and what comes later */
        say(fd, request);
        rest_ms(10);
    }
    CHECK_EQ(receive(fd), 200);
    check_end(fd);
    close(fd);
    server_stop(SIGTERM);
}

TEST_REAL(an_expectation_gets_status_417)
{
    SERVER(NULL);
    REFUSED(REQUEST("GET", "/hello", "Expect: 100-continue\r\nContent-Length: 5\r\n"), 417);
    server_stop(SIGTERM);
}

TEST_REAL(requests_before_a_bad_one_are_answered)
{
    SERVER(NULL);
    int fd = dial();
    say(fd, GET("/hello") GET("/hello") "garbage\r\n\r\n" GET("/hello"));
    CHECK_EQ(receive(fd), 200);
    CHECK_EQ(receive(fd), 200);
    CHECK_EQ(receive(fd), 400);
    check_end(fd);
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).served, 3);
}
