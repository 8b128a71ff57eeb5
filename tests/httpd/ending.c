/*
 * Draining, the access log, and the command line.
 */
#define SUITE httpd
#include "client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- draining --------------------------------------------------------------------------------- */

static bool refuses_connections(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)server_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* None of the tests waits for as long as this: the end comes earlier, or by a second signal. */
#define LONG_DRAIN "--drain=1000", "--timeout=1000"

TEST_REAL(a_server_without_requests_ends_at_once)
{
    SERVER(LONG_DRAIN);
    int fresh = dial(), fd = dial();
    CHECK_EQ(ask(fd, GET("/hello")), 200);
    CHECK_EQ(server_stop(SIGINT).served, 1);
    check_end(fd);
    check_end(fresh);
    close(fd);
    close(fresh);
}

enum { LARGE = 32 << 20 };

/* Asks for a large file, and reads nothing of it as yet. */
static void ask_for_large(int fd)
{
    say(fd, GET("/large"));
    CHECK_EQ(recv(fd, got.head, 1, MSG_PEEK), 1);
}

/* P-03 */
TEST_REAL(requests_under_way_are_finished_while_there_is_time_to_drain)
{
    make_big("root/large", LARGE);
    SERVER(LONG_DRAIN);
    int idle = dial(), half = dial(), soon = dial(), never = dial(), large = dial();
    CHECK_EQ(ask(idle, GET("/hello")), 200);
    say(never, GET("/slow?ms=60000"));
    say(soon, GET("/slow?ms=5000"));
    say(half, "GET /hello HTTP/1.1\r\n");
    ask_for_large(large);
    UNTIL(strands_named("strand 'nap'") == 2);
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    check_end(idle);
    UNTIL(refuses_connections());
    say(half, "Host: test\r\n\r\n");
    CHECK_EQ(receive(half), 200);
    CHECK_STR(header("Connection"), "close");
    check_end(half);
    CHECK_EQ(receive(large), 200);
    check_body(bytes_of(LARGE), LARGE);
    check_end(large);
    CHECK_EQ(receive(soon), 200);
    CHECK_STR(header("Connection"), "close");
    check_end(soon);
    CHECK_EQ(server_stop(SIGTERM).cut, 1);
    check_end(never);
    for (int i = 0; i < 5; i++)
        close((int[]){idle, half, soon, never, large}[i]);
}

TEST_REAL(requests_that_need_longer_than_the_time_to_drain_are_cut)
{
    make_big("root/large", LARGE);
    SERVER("--drain=1", "--timeout=1000");
    int never = dial(), silent = dial_small(4096);
    say(never, GET("/slow?ms=60000"));
    ask_for_large(silent);
    UNTIL(strands_named("strand 'nap'") == 1);
    long begun = now_ms();
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    check_end(never);
    CHECK(now_ms() - begun >= 900);
    CHECK_EQ(server_wait().cut, 2);
    close(never);
    close(silent);
}

/* An answer of a server that ends says that it is the last. All are answered if the signal comes late. */
TEST_REAL(requests_that_came_together_are_answered_up_to_the_last_answer)
{
    SERVER(NULL);
    int fd = dial();
    say(fd, GET("/slow?ms=2000") GET("/hello") GET("/hello"));
    UNTIL(strands_named("strand 'nap'") == 1);
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    int answers = 0;
    do
        CHECK_EQ(receive(fd), 200);
    while (++answers < 3 && !*header("Connection"));
    check_end(fd);
    close(fd);
    CHECK_EQ(server_wait().cut, 0);
}

static void signal_while_stopped(int signal)
{
    int status;
    CHECK_EQ(kill(server_pid, signal), 0);
    CHECK_EQ(kill(server_pid, SIGCONT), 0);
    CHECK_EQ(waitpid(server_pid, &status, WCONTINUED), server_pid);
}

/* Nobody accepts, nor reads, before the signal is there: some wait in the queue, and some with what they have sent. */
TEST_REAL(requests_that_came_before_the_end_are_answered)
{
    enum { CLIENTS = 20 };
    int fd[CLIENTS], status;
    SERVER(NULL);
    for (int i = 0; i < CLIENTS / 2; i++)
        fd[i] = dial();
    CHECK_EQ(ask_once(GET("/hello")), 200);
    CHECK_EQ(kill(server_pid, SIGSTOP), 0);
    CHECK_EQ(waitpid(server_pid, &status, WUNTRACED), server_pid);
    for (int i = 0; i < CLIENTS; i++) {
        if (i >= CLIENTS / 2)
            fd[i] = dial();
        say(fd[i], GET("/hello"));
    }
    signal_while_stopped(SIGTERM);
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQ(receive(fd[i]), 200);
        check_end(fd[i]);
        close(fd[i]);
    }
    CHECK_EQ(server_wait().served, CLIENTS + 1);
}

TEST_REAL(a_second_signal_ends_what_is_under_way)
{
    SERVER(LONG_DRAIN);
    int fd = dial();
    say(fd, GET("/slow?ms=60000"));
    UNTIL(strands_named("strand 'nap'") == 1);
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    UNTIL(refuses_connections());
    CHECK(server_stop(SIGINT).cut >= 1); /* the server may have taken one of those dials */
    check_end(fd);
    close(fd);
}

/* ---- the access log ----------------------------------------------------------------------------- */

static char *text_of(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static const char *log_option(void)
{
    static char option[128];
    snprintf(option, sizeof option, "--log=%s", path_of("log"));
    return option;
}

TEST_REAL(every_request_has_a_line_in_the_log)
{
    SERVER(log_option(), "--timeout=1");
    int fd = dial();
    CHECK_EQ(ask(fd, REQUEST("GET", "/hello?a", "User-Agent: test/1\r\nReferer: here\r\n")), 200);
    CHECK_EQ(ask(fd, GET("/nothing")), 404);
    CHECK_EQ(ask(fd, REQUEST("HEAD", "/hello", "")), 200);
    CHECK_EQ(ask(fd, "garbage\r\n\r\n"), 400);
    close(fd);
    CHECK_EQ(ask_once(GET("/slow?ms=5000")), 503);
    fd = dial();
    say(fd, "GET /late");
    CHECK_EQ(receive(fd), 408);
    close(fd);
    UNTIL(lines_of(text_of(path_of("log"))) == 6);
    char *log = text_of(path_of("log"));
    CHECK(strncmp(log, "127.0.0.1 - - [", 15) == 0);
    CHECK_CONTAINS(log, "] \"GET /hello?a HTTP/1.1\" 200 14 \"here\" \"test/1\"\n");
    CHECK_CONTAINS(log, "] \"GET /nothing HTTP/1.1\" 404 14 \"-\" \"-\"\n");
    CHECK_CONTAINS(log, "] \"HEAD /hello HTTP/1.1\" 200 0 ");
    CHECK_CONTAINS(log, " 400 ");
    CHECK_CONTAINS(log, "\"GET /slow?ms=5000 HTTP/1.1\" 503 ");
    CHECK_CONTAINS(log, " 408 ");
    server_stop(SIGTERM);
}

/* 499, as nginx has it: there is no status for a client that went away. */
TEST_REAL(a_request_that_is_cut_has_its_line_too)
{
    make_file("root/large", "");
    CHECK_EQ(truncate(path_of("root/large"), 64 << 20), 0);
    SERVER(log_option(), "--drain=0.1", "--timeout=100");
    int fd = dial(), slow = dial(), end = dial();
    say(fd, GET("/large"));
    CHECK_EQ(receive_head(fd), 200);
    reset(fd);
    say(slow, GET("/slow?ms=50000"));
    say(end, GET("/slow?ms=60000"));
    UNTIL(strands_named("strand 'nap'") == 2);
    close(slow);
    UNTIL(strstr(text_of(path_of("log")), "\"GET /large HTTP/1.1\" 499 0 "));
    UNTIL(strstr(text_of(path_of("log")), "\"GET /slow?ms=50000 HTTP/1.1\" 499 0 "));
    kill(server_pid, SIGTERM);
    check_end(end);
    UNTIL(strstr(text_of(path_of("log")), "\"GET /slow?ms=60000 HTTP/1.1\" 499 0 "));
    close(end);
    struct account a = server_wait();
    CHECK_EQ(a.cut, 3);
}

TEST_REAL(nobody_forges_a_line_of_the_log)
{
    SERVER(log_option());
    CHECK_EQ(ask_once(REQUEST("GET", "/a\"b\\c", "User-Agent: x\" 200 1 \"\t\377\\\r\n")), 404);
    UNTIL(lines_of(text_of(path_of("log"))) == 1);
    char *log = text_of(path_of("log"));
    CHECK_CONTAINS(log, "\"GET /a\\x22b\\x5cc HTTP/1.1\" 404 ");
    CHECK_CONTAINS(log, "\"x\\x22 200 1 \\x22\\x09\\xff\\x5c\"\n");
    server_stop(SIGTERM);
}

/* Two megabytes fit into the server; the rest waits, and so do the requests. */
TEST_REAL(a_log_that_is_slow_loses_no_line)
{
    enum { REQUESTS = 3000, LONG = 1500 };
    char request[LONG + 200];
    int length =
        sprintf(request, "GET /hello HTTP/1.1\r\nHost: test\r\nUser-Agent: forged-served=%0*d\r\n\r\n", LONG, 0);
    SERVER("--log=-");
    int fd = dial(), n = 0;
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    do {
        say_bytes(fd, request, (size_t)length);
        n++;
    } while (poll(&answer, 1, 300) == 1 && receive(fd) == 200 && n < REQUESTS);
    CHECK(n < REQUESTS); /* or nothing has waited */
    static char text[8 << 20];
    size_t used = 0;
    int lines = 0;
    while (lines < n) {
        ssize_t got_some = read(server_output, text + used, sizeof text - 1 - used);
        CHECK(got_some > 0);
        text[used + (size_t)got_some] = '\0';
        lines += lines_of(text + used);
        used += (size_t)got_some;
    }
    CHECK_EQ(lines, n);
    CHECK_EQ(receive(fd), 200);
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).served, n);
}

/* ---- the command line --------------------------------------------------------------------------- */

static void check_name(const char *host)
{
    char wanted[100];
    sprintf(wanted, "%s:%d", host, server_port);
    CHECK_STR(server_name, wanted);
}

TEST_REAL(the_server_says_where_it_listens)
{
    SERVER(NULL);
    check_name("127.0.0.1");
    server_stop(SIGTERM);
    SERVER("--host=");
    check_name("*");
    CHECK_EQ(ask_once(GET("/hello")), 200);
    server_stop(SIGTERM);
    if (access("/proc/net/if_inet6", F_OK) != 0)
        return;
    SERVER("--host=::1");
    check_name("[::1]");
    server_stop(SIGTERM);
}

TEST_REAL(what_keeps_the_server_from_beginning_is_said)
{
    const char *said;
    char port[32], text[128];
    CHECK_EQ(server_says("--root=/nowhere", &said), 1);
    CHECK_STR(said, "httpd: /nowhere: No such file or directory\n");
    CHECK_EQ(server_says("--log=/nowhere/log", &said), 1);
    CHECK_STR(said, "httpd: /nowhere/log: No such file or directory\n");
    CHECK_EQ(server_says("--host=192.0.2.1", &said), 1);
    CHECK_STR(said, "httpd: listen on 192.0.2.1:0: Cannot assign requested address\n");
    CHECK_EQ(server_says("--host=no..host", &said), 1);
    CHECK_STR(said, "httpd: listen on no..host:0: there is no such host\n");
    CHECK_EQ(server_says("--host=2001:db8::1", &said), 1);
    CHECK_CONTAINS(said, "httpd: listen on [2001:db8::1]:0: ");
    SERVER(NULL);
    pid_t pid = server_pid;
    int output = server_output;
    snprintf(port, sizeof port, "--port=%d", server_port);
    CHECK_EQ(server_says(port, &said), 1);
    sprintf(text, "httpd: listen on 127.0.0.1:%d: Address already in use\n", server_port);
    CHECK_STR(said, text);
    server_pid = pid;
    server_output = output;
    server_stop(SIGTERM);
}
