/*
 * Clients that are slow, silent, gone or many. None of them holds up the others, and nothing of them stays.
 */
#define SUITE httpd
#include "client.h"

#include <signal.h>
#include <sys/resource.h>

static void check_that_others_are_served(void)
{
    CHECK_EQ(ask_once(GET("/hello")), 200);
}

/* The number of the server's descriptors, once it has noticed that earlier clients are gone. */
static int descriptors_at_rest(void)
{
    int before;
    check_that_others_are_served();
    do {
        before = server_descriptors();
        rest_ms(50);
    } while (server_descriptors() != before);
    return before;
}

/* ---- slow, and silent -------------------------------------------------------------------------- */

/* contract 5.2 */
TEST_REAL(a_request_that_comes_too_slowly_gets_status_408)
{
    static const char begin[] = "GET /hello HTTP/1.1\r\nHost: test\r\nUser-Agent: as slow as can be";
    long begun = now_ms();
    SERVER("--timeout=0.4");
    int fd = dial(), body = dial();
    say(body, REQUEST("GET", "/hello", "Content-Length: 5\r\n") "a");
    for (size_t i = 0; recv(fd, got.head, 1, MSG_PEEK | MSG_DONTWAIT) < 0; i++) {
        CHECK_EQ(errno, EAGAIN);
        (void)try_say(fd, i < sizeof begin - 1 ? begin + i : "e", 1);
        check_that_others_are_served();
        rest_ms(20);
    }
    CHECK(now_ms() - begun >= 400);
    CHECK_EQ(receive(fd), 408);
    CHECK_STR(header("Connection"), "close");
    CHECK_EQ(receive(body), 408);
    check_end(body);
    close(fd);
    close(body);
    server_stop(SIGTERM);
}

TEST_REAL(a_connection_without_requests_ends_in_silence)
{
    SERVER("--keep-alive=2");
    int fresh = dial(), fd = dial();
    CHECK_EQ(ask(fd, GET("/hello")), 200);
    check_end(fd);
    check_end(fresh);
    close(fd);
    close(fresh);
    CHECK_EQ(server_stop(SIGTERM).served, 1);
}

/* contract 5.2 */
TEST_REAL(a_request_that_takes_too_long_to_work_on_is_given_up)
{
    SERVER("--timeout=0.2");
    int fd = dial();
    CHECK_EQ(ask(fd, GET("/slow?ms=60000&strands=3")), 503);
    check_end(fd);
    close(fd);
    CHECK_EQ(strands_named("strand 'nap'"), 0);
    CHECK_EQ(server_stop(SIGTERM).cut, 1);
}

TEST_REAL(a_client_that_closes_its_half_gets_its_answers)
{
    enum { SIZE = 3 << 20 };
    make_big("root/large", SIZE);
    SERVER(NULL);
    int fd = dial();
    say(fd, GET("/hello") GET("/large") GET("/hello"));
    shutdown(fd, SHUT_WR);
    CHECK_EQ(receive(fd), 200);
    CHECK_EQ(receive(fd), 200);
    check_body(bytes_of(SIZE), SIZE);
    CHECK_EQ(receive(fd), 200);
    check_end(fd);
    close(fd);
    fd = dial();
    say(fd, "GET /hello HTT"); /* that is all there will be of it */
    shutdown(fd, SHUT_WR);
    check_end(fd);
    close(fd);
    struct account a = server_stop(SIGTERM);
    CHECK_EQ(a.served, 3);
    CHECK_EQ(a.cut, 0);
}

/* contract 5.2 */
TEST_REAL(a_client_that_does_not_read_is_cut_off)
{
    enum { REQUESTS = 1000 };
    static const char request[] = GET("/hello");
    static char requests[REQUESTS * sizeof request];
    make_file("root/large", "");
    CHECK_EQ(truncate(path_of("root/large"), 256 << 20), 0);
    SERVER("--timeout=0.5");
    int before = descriptors_at_rest(), fd = dial_small(4096), many = dial_small(4096);
    struct timeval soon = {0, 100 * 1000};
    long begun = now_ms();
    say(fd, GET("/large"));
    setsockopt(many, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    for (int i = 0; i < REQUESTS; i++)
        strcat(requests + i * (sizeof request - 1), request);
    while (try_say(many, requests, strlen(requests))) /* until nobody listens any more */
        continue;
    for (int i = 0; i < 10; i++)
        check_that_others_are_served();
    UNTIL(server_descriptors() <= before);
    CHECK(now_ms() - begun >= 400);
    close(fd);
    close(many);
    CHECK(server_stop(SIGTERM).cut >= 2);
}

/* It takes so little at a time that the socket never becomes writable. */
TEST_REAL(a_download_may_take_longer_than_the_time_out)
{
    enum { SIZE = 16 << 20, LITTLE = 1024 };
    static char bytes[SIZE];
    make_big("root/large", SIZE);
    SERVER("--timeout=2", "--rate=1");
    int fd = dial_small(4096);
    long begun = now_ms();
    size_t used = 0;
    CHECK_EQ((say(fd, GET("/large")), receive_head(fd)), 200);
    while (now_ms() - begun < 5000) {
        CHECK_EQ(recv(fd, bytes + used, LITTLE, MSG_WAITALL), LITTLE);
        used += LITTLE;
        rest_ms(50);
    }
    CHECK_EQ(recv(fd, bytes + used, SIZE - used, MSG_WAITALL), SIZE - used);
    CHECK(memcmp(bytes, bytes_of(SIZE), SIZE) == 0);
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).cut, 0);
}

TEST_REAL(a_client_that_takes_less_than_the_least_rate_is_cut_off)
{
    char byte;
    make_file("root/large", "");
    CHECK_EQ(truncate(path_of("root/large"), 64 << 20), 0);
    SERVER("--timeout=0.3", "--rate=1000000");
    int before = descriptors_at_rest(), fd = dial_small(4096);
    CHECK_EQ((say(fd, GET("/large")), receive_head(fd)), 200);
    for (long until = now_ms() + LIMIT_S * 1000L; server_descriptors() > before; rest_ms(20)) {
        CHECK(now_ms() < until);
        CHECK_EQ(recv(fd, &byte, 1, 0), 1);
    }
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).cut, 1);
}

/* ---- gone ------------------------------------------------------------------------------------- */

/* V-35 */
TEST_REAL(what_works_for_a_client_ends_when_it_goes_away)
{
    SERVER("--timeout=100");
    for (int way = 0; way < 4; way++) {
        int fd = dial();
        say(fd, GET("/slow?ms=60000&strands=7"));
        UNTIL(strands_named("strand 'nap'") == 7);
        CHECK_EQ(strands_named("strand 'watch client'"), 1);
        if (way & 2)
            say(fd, GET("/hello")); /* the next request does not hide it */
        if (way & 1)
            reset(fd);
        else
            close(fd);
        UNTIL(strands_named("strand 'nap'") == 0);
        CHECK_EQ(strands_named("strand 'watch client'"), 0);
    }
    CHECK(server_stop(SIGTERM).cut >= 4);
}

/* The server can't distinguish it from a client that went away. */
TEST_REAL(a_client_that_closes_its_half_while_it_is_worked_for_counts_as_gone)
{
    SERVER("--timeout=100");
    int fd = dial();
    say(fd, GET("/slow?ms=60000"));
    UNTIL(strands_named("strand 'nap'") == 1);
    shutdown(fd, SHUT_WR);
    check_end(fd);
    close(fd);
    CHECK_EQ(strands_named("strand 'nap'"), 0);
    CHECK_EQ(server_stop(SIGTERM).cut, 1);
}

/* V-36, contract 4.22, 7.5 */
TEST_REAL(connections_that_are_reset_leave_nothing)
{
    enum { SIZE = 64 << 20, CLIENTS = 20 };
    make_file("root/large", "");
    CHECK_EQ(truncate(path_of("root/large"), SIZE), 0);
    SERVER(NULL);
    int before = descriptors_at_rest();
    for (int i = 0; i < CLIENTS; i++) {
        int fd[5];
        for (int k = 0; k < 5; k++)
            fd[k] = dial_small(4096);
        say(fd[1], "GET /hello HT");
        say(fd[2], GET("/large"));
        say(fd[3], GET("/slow?ms=60000"));
        say(fd[4], GET("/large") GET("/hello") GET("/slow?ms=0"));
        CHECK_EQ(receive_head(fd[2]), 200);
        if (i % 2)
            CHECK_EQ(receive_head(fd[4]), 200);
        for (int k = 0; k < 5; k++)
            reset(fd[k]);
    }
    UNTIL(server_descriptors() <= before);
    UNTIL(strands_named("strand 'nap'") == 0);
    check_that_others_are_served();
    CHECK(server_stop(SIGTERM).cut >= CLIENTS);
}

/* ---- many ------------------------------------------------------------------------------------- */

TEST_REAL(with_few_descriptors_all_are_served_in_the_end)
{
    enum { CLIENTS = 200, FEW = 64 };
    int fd[CLIENTS];
    SERVER_OF(FEW, "--timeout=200");
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial();
        say(fd[i], REQUEST("GET", "/slow?ms=300", "Connection: close\r\n"));
    }
    UNTIL(server_descriptors() >= FEW - 1);
    long begun = now_ms(), cpu = server_cpu_ms();
    rest_ms(200);
    CHECK(server_cpu_ms() - cpu < (now_ms() - begun) / 2); /* it does not try all the time */
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQ(receive(fd[i]), 200);
        check_end(fd[i]);
        close(fd[i]);
    }
    struct account a = server_stop(SIGTERM);
    CHECK_EQ(a.served, CLIENTS);
    CHECK_EQ(a.connections, CLIENTS);
}

TEST_REAL(connections_that_rest_make_room_for_others_where_descriptors_are_few)
{
    enum { CLIENTS = 200 };
    int fd[CLIENTS];
    SERVER_OF(64, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial();
        CHECK_EQ(ask(fd[i], GET("/hello")), 200);
    }
    for (int i = 0; i < CLIENTS; i++)
        close(fd[i]);
    CHECK_EQ(server_stop(SIGTERM).served, CLIENTS);
}

/* They wait in the queue, so that many descriptors are wanted at once. */
TEST_REAL(the_end_of_a_long_queue_is_soon_reached_where_descriptors_are_few)
{
    enum { CLIENTS = 700 };
    int fd[CLIENTS];
    SERVER_OF(240, "--timeout=1000", "--keep-alive=1000");
    for (int i = 0; i < CLIENTS; i++)
        fd[i] = dial();
    CHECK_EQ(ask_once(GET("/hello")), 200);
    for (int i = 0; i < CLIENTS; i++)
        close(fd[i]);
    server_stop(SIGTERM);
}

/* The sanitizers keep memory that was freed. */
TEST_REAL(the_memory_of_many_connections_goes_back_to_the_system_when_most_have_ended)
{
    enum { CLIENTS = 1300, LEFT = 20 };
    static int fd[CLIENTS];
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    SERVER(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial();
        CHECK_EQ(ask(fd[i], GET("/hello")), 200);
    }
    long most = server_pages();
    for (int i = LEFT; i < CLIENTS; i++)
        close(fd[i]);
    UNTIL(server_pages() < most - most / 4 || TEST_ASAN || TEST_TSAN);
    for (int i = 0; i < LEFT; i++) {
        CHECK_EQ(ask(fd[i], GET("/hello")), 200);
        close(fd[i]);
    }
    CHECK_EQ(server_stop(SIGTERM).connections, CLIENTS);
}

/* They never end their requests, and continue after the server's answer that they are too slow. */
TEST_REAL(clients_that_trickle_make_room_for_others_where_descriptors_are_few)
{
    enum { CLIENTS = 140 };
    int fd[CLIENTS], good = -1;
    SERVER_OF(100, "--timeout=1000");
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial();
        say(fd[i], "GET /hello HTTP/1.1\r\n");
    }
    long begun = now_ms();
    good = dial();
    say(good, GET("/hello"));
    while (recv(good, got.head, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
        CHECK(errno == EAGAIN && now_ms() - begun < LIMIT_S * 1000L);
        for (int i = 0; i < CLIENTS; i++)
            (void)try_say(fd[i], "X: y\r\n", 6);
        rest_ms(100);
    }
    CHECK_EQ(receive(good), 200);
    close(good);
    for (int i = 0; i < CLIENTS; i++)
        close(fd[i]);
    server_stop(SIGTERM);
}

TEST_REAL(a_client_that_goes_on_after_a_refusal_is_not_listened_to_for_long)
{
    long begun = now_ms();
    SERVER(NULL);
    int fd = dial();
    CHECK_EQ(ask(fd, "garbage\r\n\r\n"), 400);
    while (try_say(fd, "X: y\r\n", 6)) {
        CHECK(now_ms() - begun < LIMIT_S * 1000L);
        rest_ms(50);
    }
    CHECK(now_ms() - begun >= 900);
    close(fd);
    server_stop(SIGTERM);
}

#if defined(__SANITIZE_THREAD__)
#define THREADS_POLL
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_POLL /* for signals, which TSan would hold back otherwise */
#endif
#endif
#ifndef THREADS_POLL
/* S-02, S-51, V-19, contract 2.1 */
TEST_REAL(a_server_with_nothing_to_do_sleeps)
{
    enum { CLIENTS = 100 };
    int fd[CLIENTS];
    SERVER("--log=/dev/null");
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = dial();
        CHECK_EQ(ask(fd[i], GET("/hello")), 200);
    }
    long before;
    do { /* a thread that looks for work soon gives up, on a busy machine not so soon */
        before = server_switches();
        rest_ms(1000);
    } while (server_switches() != before);
    for (int i = 0; i < CLIENTS; i++)
        close(fd[i]);
    server_stop(SIGTERM);
}
#endif
