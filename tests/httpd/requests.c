/*
 * Requests that are in order: connections that stay, many requests at once, and the generated pages.
 */
#define SUITE httpd
#include "client.h"

#include <signal.h>

TEST_REAL(a_connection_takes_one_request_after_the_other)
{
    SERVER(NULL);
    int fd = dial();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(ask(fd, GET("/hello")), 200);
        CHECK_STR(got.body, "Hello, world!\n");
        CHECK_STR(header("Connection"), "");
        CHECK_EQ(ask(fd, GET("/nothing")), 404);
    }
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).served, 6);
}

TEST_REAL(the_client_says_whether_the_connection_stays)
{
    SERVER(NULL);
    int fd = dial();
    CHECK_EQ(ask(fd, REQUEST("GET", "/hello", "Connection: close\r\n")), 200);
    CHECK_STR(header("Connection"), "close");
    check_end(fd);
    close(fd);
    fd = dial();
    CHECK_EQ(ask(fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 200);
    CHECK_STR(header("Connection"), "keep-alive");
    CHECK_EQ(ask(fd, "GET /hello HTTP/1.0\r\n\r\n"), 200);
    CHECK_STR(header("Connection"), "close");
    check_end(fd);
    close(fd);
    server_stop(SIGTERM);
}

TEST_REAL(a_thousand_requests_in_one_write_are_answered_in_their_order)
{
    enum { MANY = 1000 };
    static char requests[MANY * 100];
    size_t length = 0;
    make_big("root/file", MANY);
    SERVER(NULL);
    for (int i = 0; i < MANY; i++)
        length +=
            (size_t)sprintf(requests + length, "GET /file HTTP/1.1\r\nHost: test\r\nRange: bytes=%d-%d\r\n\r\n", i, i);
    int fd = dial();
    say_bytes(fd, requests, length);
    for (int i = 0; i < MANY; i++) {
        char range[64];
        sprintf(range, "bytes %d-%d/%d", i, i, MANY);
        CHECK_EQ(receive(fd), 206);
        CHECK_STR(header("Content-Range"), range);
        check_body(bytes_of(MANY) + i, 1);
    }
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).served, MANY);
}

TEST_REAL(a_request_may_come_in_any_pieces)
{
    const char *request =
        "GET /file?a=b HTTP/1.1\r\nRange: bytes=1-2\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\n12345\r\n0\r\nTrailer: 1\r\nUser-Agent: 2\r\n\r\n";
    make_file("root/file", "0123");
    SERVER(NULL);
    int fd = dial();
    for (int again = 0; again < 2; again++) {
        for (const char *at = request; *at; at++) {
            say_bytes(fd, at, 1);
            if (again)
                rest_ms(1);
        }
        CHECK_EQ(receive(fd), 206);
        check_body("12", 2);
    }
    say(fd, GET("/hello"));
    CHECK_EQ(receive(fd), 200);
    close(fd);
    server_stop(SIGTERM);
}

#define CHUNKED(path) REQUEST("GET", path, "Transfer-Encoding: chunked\r\n")

TEST_REAL(a_trailer_is_no_header)
{
    make_file("root/file", "0123");
    SERVER(NULL);
    int fd = dial();
    CHECK_EQ(ask(fd, CHUNKED("/file") "0\r\nRange: bytes=1-2\r\n\r\n"), 200);
    CHECK_EQ(ask(fd, CHUNKED("/file") "1\r\na\r\n0\r\nIf-None-Match: *\r\nHost: other\r\nExpect: more\r\n\r\n"), 200);
    CHECK_EQ(ask(fd, CHUNKED("/hello") "0\r\nUser-Agent: trailer\r\nContent-Length: 5\r\n\r\n"), 200);
    CHECK_EQ(ask(fd, GET("/hello")), 200);
    close(fd);
    server_stop(SIGTERM);
}

/* The server has discarded the start of the trailer before its end comes. */
TEST_REAL(a_trailer_of_any_length_leaves_the_memory_of_other_connections_alone)
{
    enum { CLIENTS = 8, STEP = 12000, STEPS = 3 };
    static char filler[STEP];
    int fd[CLIENTS];
    memset(filler, 'A', sizeof filler);
    make_file("root/file", "0123");
    SERVER(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial();
        CHECK_EQ(ask(fd[i], GET("/hello")), 200);
    }
    for (int i = 0; i < CLIENTS; i += 2) {
        say(fd[i], CHUNKED("/file") "1\r\na\r\n");
        rest_ms(20);
        say(fd[i], "0\r\nRange: A");
        for (int step = 0; step < STEPS; step++) {
            rest_ms(20);
            (void)try_say(fd[i], filler, sizeof filler);
        }
        (void)try_say(fd[i], "\r\n\r\n", 4);
        CHECK_EQ(receive(fd[i]), 431);
    }
    for (int i = 1; i < CLIENTS; i += 2)
        CHECK_EQ(ask(fd[i], GET("/hello")), 200);
    for (int i = 0; i < CLIENTS; i++)
        close(fd[i]);
    server_stop(SIGTERM);
}

TEST_REAL(the_body_of_a_get_is_read_and_dropped)
{
    enum { LENGTH = 1000 * 1000 };
    static char body[LENGTH + 2];
    SERVER(NULL);
    int fd = dial();
    CHECK_EQ(ask(fd, REQUEST("GET", "/hello", "Content-Length: 5\r\n") "GET x" GET("/nothing")), 200);
    CHECK_EQ(receive(fd), 404);
    say(fd, REQUEST("GET", "/hello", "Content-Length: 1000000\r\n"));
    say_bytes(fd, body, LENGTH);
    CHECK_EQ(receive(fd), 200);
    CHECK_EQ(ask(fd, GET("/nothing")), 404);
    close(fd);
    server_stop(SIGTERM);
}

/* The head of an answer to a GET, without what differs by time. */
static void head_of(int fd, const char *request, char *head)
{
    ask(fd, request);
    const char *date = strstr(got.head, "Date: ");
    CHECK(date != NULL);
    sprintf(head, "%.*s%s", (int)(date - got.head), got.head, strchr(date, '\n'));
}

TEST_REAL(a_head_has_the_headers_of_a_get_and_no_body)
{
    static const char *const paths[][2] = {
        {GET("/hello"), REQUEST("HEAD", "/hello", "")},
        {GET("/small"), REQUEST("HEAD", "/small", "")},
        {GET("/large"), REQUEST("HEAD", "/large", "")},
        {GET("/none"), REQUEST("HEAD", "/none", "")},
        {GET("/sub"), REQUEST("HEAD", "/sub", "")},
        {GET("/%00"), REQUEST("HEAD", "/%00", "")},
        {GET("/large"), REQUEST("HEAD", "/large", "Range: bytes=1-20000\r\n")}, /* which is for GET */
        {GET("/large"), REQUEST("HEAD", "/large", "Range: bytes=999999-\r\n")},
    };
    static char a[8192], b[8192];
    make_file("root/small", "small");
    make_big("root/large", 100 * 1000);
    make_directory("root/sub");
    SERVER(NULL);
    int fd = dial();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        head_of(fd, paths[i][0], a);
        head_of(fd, paths[i][1], b);
        CHECK_STR(a, b);
    }
    CHECK_EQ(ask(fd, GET("/hello")), 200);
    close(fd);
    server_stop(SIGTERM);
}

/* contract 2.5 */
TEST_REAL(a_slow_page_takes_its_time_and_holds_up_nobody)
{
    SERVER("--timeout=10000");
    int slow = dial();
    say(slow, GET("/slow?ms=1000000&strands=3"));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(ask_once(GET("/hello")), 200);
    CHECK(recv(slow, got.head, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
    close(slow);
    slow = dial();
    long begun = now_ms();
    CHECK_EQ(ask(slow, GET("/slow?ms=300&strands=3")), 200);
    CHECK(now_ms() >= begun + 300);
    CHECK_STR(got.body, "slept for 300 ms\n");
    CHECK_EQ(ask(slow, GET("/slow?ms=-1")), 400);
    CHECK_EQ(ask(slow, GET("/slow?ms=x")), 400);
    CHECK_EQ(ask(slow, GET("/slow?strands=99999999999999999999&ms=0")), 200);
    CHECK_EQ(ask(slow, GET("/slow?ms=0") GET("/hello")), 200);
    CHECK_EQ(receive(slow), 200);
    close(slow);
    server_stop(SIGTERM);
}

TEST_REAL(the_tree_of_strands_shows_the_connections)
{
    SERVER(NULL);
    int fd = dial();
    CHECK_EQ(ask(fd, GET("/strands")), 200);
    CHECK_CONTAINS(got.body, "accept");
    CHECK_CONTAINS(got.body, "connection");
    CHECK_EQ(strands_named("strand 'connection'"), 2);
    close(fd);
    server_stop(SIGINT);
}
