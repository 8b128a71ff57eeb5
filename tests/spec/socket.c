/*
 * Sockets: listening, dialling, accepting, and what becomes of a connection.
 */
#define SUITE socket
#include "test.h"

#include "strand/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener, port;

static void listen_here(void)
{
    listener = strand_listen_tcp("127.0.0.1", 0);
    CHECK(listener >= 0);
    port = strand_tcp_port(listener);
    CHECK(port > 0);
}

static void close_fd(const int *fd)
{
    CHECK_EQ(strand_close(*fd), 0);
}
#define CLOSED __attribute__((cleanup(close_fd))) const int

/* ---- connections ---------------------------------------------------------------------------- */

static void *echo_once(void *arg)
{
    char buffer[16];
    CLOSED peer = strand_accept(listener);
    CHECK(peer >= 0);
    CHECK_EQ(strand_read_all(peer, buffer, 5), 5); /* in as many parts as they come */
    CHECK_EQ(strand_write_all(peer, buffer, 5), 5);
    return arg;
}

static void say_hello(int fd)
{
    char buffer[16] = "";
    CHECK(fd >= 0);
    CHECK_EQ(strand_write_all(fd, "hello", 5), 5);
    CHECK_EQ(strand_read_all(fd, buffer, 5), 5);
    CHECK_STR(buffer, "hello");
    CHECK_EQ(strand_read(fd, buffer, 1), 0);
}

TEST_INSIDE(a_connection_carries_bytes_both_ways)
{
    listen_here();
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, echo_once, NULL);
    CLOSED fd = strand_dial_tcp("127.0.0.1", port);
    say_hello(fd);
    strand_join(server);
    CHECK_EQ(strand_close(listener), 0);
}

TEST_INSIDE(version_six_of_the_protocol_works_as_well)
{
    listener = strand_listen_tcp("::1", 0);
    if (listener == -EADDRNOTAVAIL || listener == -EAFNOSUPPORT)
        return; /* a machine without it */
    CHECK(listener >= 0);
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, echo_once, NULL);
    CLOSED fd = strand_dial_tcp("::1", strand_tcp_port(listener));
    say_hello(fd);
    strand_join(server);
    CHECK_EQ(strand_close(listener), 0);
}

TEST_SYSTEM_INSIDE(a_unix_socket_works_as_well)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/strand-test-%d", (int)getpid());
    unlink(path);
    listener = strand_listen_unix(path);
    CHECK(listener >= 0);
    {
        STRAND_SCOPE(scope);
        strand server = strand_spawn(scope, echo_once, NULL);
        CLOSED fd = strand_dial_unix(path);
        say_hello(fd);
        strand_join(server);
    }
    CHECK_EQ(strand_close(listener), 0);
    CHECK_EQ(strand_listen_unix(path), -EADDRINUSE);
    unlink(path);
    CHECK_EQ(strand_dial_unix(path), -ENOENT);
}

/* ---- peers ---------------------------------------------------------------------------------- */

static char peer_name[STRAND_PEER_ROOM];

static const char *peer_of(int fd)
{
    memset(peer_name, 'x', sizeof peer_name);
    int length = strand_peer_address(fd, peer_name, sizeof peer_name);
    CHECK_EQ(length, (int)strlen(peer_name));
    return peer_name;
}

static void check_peers(const char *dial, const char *host)
{
    char expected[STRAND_PEER_ROOM], small[4] = "";
    CLOSED fd = strand_dial_tcp(dial, strand_tcp_port(listener));
    CLOSED peer = strand_accept(listener);
    snprintf(expected, sizeof expected, "%s:%d", host, strand_tcp_port(listener));
    CHECK_STR(peer_of(fd), expected);
    snprintf(expected, sizeof expected, "%s:%d", host, strand_tcp_port(fd));
    CHECK_STR(peer_of(peer), expected);
    CHECK_EQ(strand_peer_address(peer, small, sizeof small), (int)strlen(expected));
    CHECK_EQ(strncmp(small, expected, sizeof small - 1), 0);
    CHECK_EQ(small[sizeof small - 1], '\0');
    CHECK_EQ(strand_peer_address(peer, NULL, 0), (int)strlen(expected));
    CHECK_EQ(strand_peer_address(listener, small, sizeof small), -ENOTCONN);
}

TEST_INSIDE(each_side_of_a_connection_knows_the_address_of_the_other)
{
    listen_here();
    check_peers("127.0.0.1", "127.0.0.1");
    CHECK_EQ(strand_close(listener), 0);
}

TEST_SYSTEM_INSIDE(addresses_of_version_six_have_brackets_and_those_of_version_four_are_plain_at_every_listener)
{
    listener = strand_listen_tcp("::1", 0);
    if (listener == -EADDRNOTAVAIL || listener == -EAFNOSUPPORT)
        return; /* a machine without it */
    check_peers("::1", "[::1]");
    CHECK_EQ(strand_close(listener), 0);
    listener = strand_listen_tcp("", 0);
    check_peers("127.0.0.1", "127.0.0.1");
    CHECK_EQ(strand_close(listener), 0);
}

TEST_INSIDE(the_address_of_a_unix_socket_is_its_path)
{
    char name[64];
    snprintf(name, sizeof name, "@strand-test-%d", (int)getpid());
    listener = strand_listen_unix(name);
    {
        CLOSED fd = strand_dial_unix(name);
        CLOSED peer = strand_accept(listener);
        CHECK_STR(peer_of(fd), name);
        CHECK_STR(peer_of(peer), "");
    }
    CHECK_EQ(strand_close(listener), 0);
}

TEST_INSIDE(a_descriptor_without_a_connection_has_no_peer)
{
    int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    CHECK_EQ(strand_peer_address(fds[0], peer_name, sizeof peer_name), -ENOTSOCK);
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
    CHECK_EQ(strand_peer_address(-1, peer_name, sizeof peer_name), -EBADF);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* contract 3.7, 4.65 */
TEST_INSIDE(nobody_listening_is_an_error_code)
{
    listen_here();
    CHECK_EQ(strand_close(listener), 0);
    CHECK_EQ(strand_dial_tcp("127.0.0.1", port), -ECONNREFUSED);
}

/* contract 4.65 */
TEST_INSIDE(a_port_can_be_listened_on_once)
{
    listen_here();
    CHECK_EQ(strand_listen_tcp("127.0.0.1", port), -EADDRINUSE);
    CHECK_EQ(strand_close(listener), 0);
}

/* contract 3.7, 4.65 */
TEST_INSIDE(an_address_that_makes_no_sense_is_an_error_code)
{
    char path[200];
    memset(path, 'x', sizeof path);
    path[199] = '\0';
    CHECK_EQ(strand_listen_unix(path), -ENAMETOOLONG);
    CHECK(strand_dial_tcp("127.0.0.1", 700000) < 0);
    CHECK(strand_listen_tcp("no..host", 0) < 0); /* no name at all, so nobody is asked for it */
    CHECK_EQ(strand_listen_tcp("127.0.0.1", 65536), -EINVAL);
    CHECK_EQ(strand_dial_tcp("127.0.0.1", -1), -EINVAL);
    CHECK_EQ(strand_listen_unix(""), -EINVAL);
}

static void *read_three_messages(void *arg)
{
    const int *fds = arg;
    char message[8];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_read(fds[0], message, sizeof message), i + 1);
    return arg;
}

/* A message that is shorter than the buffer is not all that there is. */
TEST_INSIDE(messages_that_come_together_are_all_read)
{
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int fds[2];
        CHECK_EQ(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, fds), 0);
        STRAND_SCOPE(scope);
        strand reader = strand_spawn(scope, read_three_messages, fds);
        strand_sleep(STRAND_MS); /* the reader waits, so the descriptor is watched */
        for (int n = 1; n <= 3; n++)
            CHECK_EQ(send(fds[1], "abc", (size_t)n, 0), n);
        strand_join(reader);
        CHECK_EQ(strand_close(fds[0]), 0);
        CHECK_EQ(strand_close(fds[1]), 0);
    }
}

static void dial_and_close(const char *host)
{
    CLOSED fd = strand_dial_tcp(host, port);
    CHECK(fd >= 0);
}

TEST_INSIDE(no_host_means_all_addresses_of_both_versions)
{
    listener = strand_listen_tcp("", 0);
    CHECK(listener >= 0);
    port = strand_tcp_port(listener);
    dial_and_close("127.0.0.1");
    dial_and_close("::1");
    CHECK_EQ(strand_close(listener), 0);
}

TEST_INSIDE(an_at_sign_begins_an_abstract_name)
{
    char name[64];
    snprintf(name, sizeof name, "@strand-%d", (int)getpid());
    CLOSED there = strand_listen_unix(name);
    CHECK(there >= 0);
    CLOSED here = strand_dial_unix(name);
    CHECK(here >= 0);
    CHECK(access(name, F_OK) < 0);
}

static void *dial_unix(void *name)
{
    return TEST_PTR(strand_dial_unix(name));
}

TEST_REAL_INSIDE(dialling_waits_while_the_queue_of_a_unix_listener_is_full)
{
    char name[64];
    int peers[4];
    snprintf(name, sizeof name, "@strand-full-%d", (int)getpid());
    listener = strand_listen_unix(name);
    CHECK_EQ(listen(listener, 1), 0);
    STRAND_SCOPE(scope);
    strand dialers[4];
    for (int i = 0; i < 4; i++)
        dialers[i] = strand_spawn(scope, dial_unix, name);
    strand_sleep(5 * STRAND_MS);
    for (int i = 0; i < 4; i++)
        CHECK((peers[i] = strand_accept(listener)) >= 0);
    for (int i = 0; i < 4; i++) {
        int fd = (int)(intptr_t)strand_join(dialers[i]);
        CHECK(fd >= 0);
        CHECK_EQ(strand_close(fd), 0);
        CHECK_EQ(strand_close(peers[i]), 0);
    }
    CHECK_EQ(strand_close(listener), 0);
}

static void *read_with_an_urgent_byte(void *arg)
{
    char bytes[16];
    CLOSED peer = strand_accept(listener);
    int64_t all = 0, got;
    while ((got = strand_read(peer, bytes, sizeof bytes)) > 0)
        all += got;
    CHECK_EQ(all, 6);
    return arg;
}

/* A read ends at an urgent byte, although there is more. */
TEST_SYSTEM_INSIDE(an_urgent_byte_does_not_hide_what_comes_after_it)
{
    listen_here();
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_with_an_urgent_byte, NULL);
    int fd = strand_dial_tcp("127.0.0.1", port);
    strand_sleep(STRAND_MS);
    CHECK_EQ(send(fd, "abc", 3, 0), 3);
    CHECK_EQ(send(fd, "!", 1, MSG_OOB), 1);
    CHECK_EQ(send(fd, "def", 3, 0), 3);
    CHECK_EQ(strand_close(fd), 0);
    strand_join(reader);
    CHECK_EQ(strand_close(listener), 0);
}

/* ---- how connections end -------------------------------------------------------------------- */

static void *reset_the_peer(void *arg)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    char byte;
    int peer = strand_accept(listener);
    CHECK(peer >= 0);
    CHECK_EQ(strand_read(peer, &byte, 1), 1); /* the other side is connected */
    CHECK_EQ(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(strand_close(peer), 0);
    return arg;
}

/* contract 3.7, 4.65 */
TEST_SYSTEM_INSIDE(a_peer_that_resets_is_an_error_code)
{
    char byte;
    listen_here();
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, reset_the_peer, NULL);
    CLOSED fd = strand_dial_tcp("127.0.0.1", port);
    CHECK(fd >= 0);
    CHECK_EQ(strand_write(fd, "x", 1), 1);
    CHECK_EQ(strand_read(fd, &byte, 1), -ECONNRESET);
    strand_join(server);
    CHECK_EQ(strand_close(listener), 0);
}

static void *send_and_reset(void *arg)
{
    const struct linger at_once = {1, 0};
    char byte;
    CLOSED peer = strand_accept(listener);
    CHECK_EQ(strand_read(peer, &byte, 1), 1); /* the other side is connected */
    CHECK_EQ(strand_write_all(peer, "abc", 3), 3);
    CHECK_EQ(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    return arg;
}

/* The system says so once. */
TEST_SYSTEM_INSIDE(an_error_that_comes_after_bytes_is_the_next_calls)
{
    char bytes[10];
    listen_here();
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, send_and_reset, NULL);
    CLOSED fd = strand_dial_tcp("127.0.0.1", port);
    CHECK(fd >= 0);
    CHECK_EQ(strand_write(fd, "x", 1), 1);
    strand_join(server);
    CHECK_EQ(strand_read_all(fd, bytes, sizeof bytes), 3);
    CHECK_EQ(strand_read(fd, bytes, sizeof bytes), -ECONNRESET);
    CHECK_EQ(strand_close(listener), 0);
}

static void *answer_after_the_end(void *arg)
{
    char byte;
    CLOSED peer = strand_accept(listener);
    CHECK_EQ(strand_read(peer, &byte, 1), 1);
    CHECK_EQ(strand_read(peer, &byte, 1), 0);
    CHECK_EQ(strand_write_all(peer, "late", 4), 4);
    return arg;
}

TEST_INSIDE(a_half_closed_connection_still_carries_the_other_half)
{
    char buffer[8] = "";
    listen_here();
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, answer_after_the_end, NULL);
    CLOSED fd = strand_dial_tcp("127.0.0.1", port);
    CHECK_EQ(strand_write_all(fd, "x", 1), 1);
    CHECK_EQ(strand_shutdown(fd, SHUT_WR), 0);
    CHECK_EQ(strand_read_all(fd, buffer, sizeof buffer), 4);
    CHECK_STR(buffer, "late");
    strand_join(server);
    CHECK_EQ(strand_close(listener), 0);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static void *accept_one(void *arg)
{
    int fd = strand_accept(listener);
    if (fd >= 0)
        CHECK_EQ(strand_close(fd), 0);
    (void)arg;
    return TEST_PTR(fd);
}

/* V-30, contract 1.7, 5.1, 5.2, 5.4 */
TEST_INSIDE(an_accept_that_waits_is_interrupted)
{
    listen_here();
    {
        STRAND_SCOPE(scope);
        strand server = strand_spawn(scope, accept_one, NULL);
        strand_sleep(STRAND_MS);
        strand_cancel(server, NULL);
    }
    CHECK_EQ(strand_close(listener), 0);
}

/* contract 4.22 */
TEST_INSIDE(closing_a_listener_wakes_accepting_strands)
{
    listen_here();
    STRAND_SCOPE(scope);
    strand one = strand_spawn(scope, accept_one, NULL), two = strand_spawn(scope, accept_one, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_close(listener), 0);
    CHECK_EQ((intptr_t)strand_join(one), -EBADF);
    CHECK_EQ((intptr_t)strand_join(two), -EBADF);
}

/* The accepting strand has not run yet. */
/* contract 4.22 */
TEST_INSIDE(a_port_is_free_at_once_when_its_listener_is_closed)
{
    listen_here();
    STRAND_SCOPE(scope);
    strand_spawn(scope, accept_one, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_close(listener), 0);
    listener = strand_listen_tcp("127.0.0.1", port);
    CHECK(listener >= 0);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(listener), 0);
}

/* ---- lingering ----------------------------------------------------------------------------- */

enum { LINGER_S = 1000, UNREAD = 64 * 1024 };

struct lingering {
    int fd, peer;
    size_t sent;
    _Atomic int closing, closed;
};

static void set_linger(int fd, int seconds)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = seconds};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
}

/* A socket that lingers, and so much sent that the peer's system does not take all of it by itself. */
static struct lingering make_lingering(void)
{
    static char bytes[UNREAD];
    struct lingering pair = {0};
    int door = strand_listen_tcp("127.0.0.1", 0), small = 4096;
    CHECK_EQ(setsockopt(door, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    pair.fd = (int)strand_must(strand_dial_tcp("127.0.0.1", strand_tcp_port(door)));
    pair.peer = strand_accept(door);
    set_linger(pair.fd, LINGER_S);
    for (ssize_t put; (put = send(pair.fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
        pair.sent += (size_t)put;
    strand_close(door);
    return pair;
}

static void *close_it(void *arg)
{
    struct lingering *pair = arg;
    pair->closing = 1;
    CHECK_EQ(strand_close(pair->fd), 0);
    pair->closed = 1;
    return arg;
}

static size_t read_to_end(int fd)
{
    static char buffer[UNREAD];
    size_t all = 0;
    for (int64_t got; (got = strand_read(fd, buffer, sizeof buffer)) > 0;)
        all += (size_t)got;
    return all;
}

/* The number is free at once; the strand waits until the peer has taken all, or is gone, interrupted or not. */
TEST_REAL_INSIDE(closing_a_socket_that_lingers_holds_up_its_strand_and_no_thread)
{
    struct lingering pair = make_lingering();
    STRAND_SCOPE(scope);
    strand closer = strand_spawn(scope, close_it, &pair);
    test_yield_until(&pair.closing, 1);
    strand_cancel(closer, NULL);
    test_await_blocked("waits for an offloaded call", 1);
    CHECK_EQ(pair.closed, 0);
    CHECK_EQ(fcntl(pair.fd, F_GETFD), -1);
    CHECK_EQ(read_to_end(pair.peer), pair.sent);
    strand_wait(closer);
    CHECK_EQ(pair.closed, 1);
    strand_close(pair.peer);
}

TEST_REAL_INSIDE(where_nothing_may_suspend_the_system_lingers_by_itself)
{
    struct lingering pair = make_lingering();
    {
        STRAND_NO_SUSPEND;
        CHECK_EQ(strand_close(pair.fd), 0);
    }
    CHECK_EQ(read_to_end(pair.peer), pair.sent);
    strand_close(pair.peer);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* A program in which some names are never found. */
/* contract 1.7, 5.2 */
TEST_PROGRAM(looking_up_a_name_can_be_interrupted_and_has_a_deadline)
{
    static struct test_output o;
    test_program(&o, "slow_names", NULL);
    CHECK_STR(o.out, "answered beside a call that blocks\ntimed out\nnot asked\nended\n");
    CHECK_EQ(o.status, 0);
}

/* A program that dials a host of two addresses, the first of which never answers. */
TEST_PROGRAM(an_address_that_does_not_answer_leaves_time_for_the_others)
{
    static struct test_output o;
    test_program(&o, "dead_address", NULL);
    CHECK_STR(o.out, "before a deadline: connected\n"
                     "the deadline passed\n"
                     "no descriptor is left of one that was cancelled\n"
                     "without a deadline: connected\n");
    CHECK_EQ(o.status, 0);
}

/* contract 3.7, 5.4 */
TEST_REAL_INSIDE(without_descriptors_accept_says_so_and_loses_no_connection)
{
    struct rlimit limit, less;
    listen_here();
    int fd = strand_dial_tcp("127.0.0.1", port);
    CHECK(fd >= 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    less = limit;
    less.rlim_cur = (rlim_t)fd + 1;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
    CHECK_EQ(strand_accept(listener), -EMFILE);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int peer = strand_accept(listener);
    CHECK(peer >= 0);
    CHECK_EQ(strand_close(peer), 0);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_close(listener), 0);
}

/* ---- many ----------------------------------------------------------------------------------- */

enum { CLIENTS = 200 };

static void *echo_all(void *arg)
{
    char buffer[64];
    CLOSED peer = (int)(intptr_t)arg;
    for (int64_t got; (got = strand_read(peer, buffer, sizeof buffer)) > 0;)
        CHECK_EQ(strand_write_all(peer, buffer, (size_t)got), got);
    return NULL;
}

static void *serve_all(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < CLIENTS; i++) {
        int peer = strand_accept(listener);
        CHECK(peer >= 0);
        strand_spawn(scope, echo_all, TEST_PTR(peer));
    }
    strand_scope_join(scope);
    return arg;
}

static void *talk(void *arg)
{
    char text[32], back[32];
    CLOSED fd = strand_dial_tcp("127.0.0.1", port);
    CHECK(fd >= 0);
    for (long i = 0; i < test_scale(50); i++) {
        int length = snprintf(text, sizeof text, "%ld of %ld", i, (long)(intptr_t)arg);
        CHECK_EQ(strand_write_all(fd, text, (size_t)length), length);
        CHECK_EQ(strand_read_all(fd, back, (size_t)length), length);
        CHECK_EQ(memcmp(text, back, (size_t)length), 0);
    }
    return NULL;
}

/* S-27, V-23 */
TEST_REAL_INSIDE(many_clients_get_their_own_answers)
{
    listen_here();
    STRAND_SCOPE(scope);
    strand_spawn(scope, serve_all, NULL);
    for (int i = 0; i < CLIENTS; i++)
        strand_spawn(scope, talk, TEST_PTR(i));
    strand_scope_join(scope);
    CHECK_EQ(strand_close(listener), 0);
}
