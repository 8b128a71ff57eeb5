/*
 * Datagrams, and addresses of sockets.
 */
#define SUITE datagram
#include "test.h"

#include "strand/chan.h"
#include "strand/sim.h"
#include "strand/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void close_fd(const int *fd)
{
    CHECK_EQ(strand_close(*fd), 0);
}
#define CLOSED __attribute__((cleanup(close_fd))) const int

static strand_address ip(const char *host, int port)
{
    strand_address address;
    CHECK_EQ(strand_address_ip(&address, host, port), 0);
    return address;
}

/* A Unix name that no other process uses. */
static strand_address name(const char *word)
{
    char path[64];
    strand_address address;
    snprintf(path, sizeof path, "@strand-%s-%d", word, (int)getpid());
    CHECK_EQ(strand_address_unix(&address, path), 0);
    return address;
}

static int bound(strand_address address)
{
    int fd = strand_datagram_open(&address, NULL);
    CHECK(fd >= 0);
    return fd;
}

static strand_address address_of(int fd)
{
    strand_address address;
    CHECK_EQ(strand_local_address(fd, &address), 0);
    return address;
}

static int connected(strand_address peer)
{
    int fd = strand_datagram_open(NULL, &peer);
    CHECK(fd >= 0);
    return fd;
}

static const char *text_of(const strand_address *address)
{
    static char text[STRAND_PEER_ROOM];
    int length = strand_address_print(address, text, sizeof text);
    CHECK_EQ(length, (int)strlen(text));
    return text;
}

/* ---- addresses ------------------------------------------------------------------------------ */

TEST(an_address_is_printed_as_it_was_written)
{
    strand_address address = ip("192.0.2.7", 40312);
    CHECK_STR(text_of(&address), "192.0.2.7:40312");
    address = ip("2001:db8::7", 5);
    CHECK_STR(text_of(&address), "[2001:db8::7]:5");
    CHECK_EQ(strand_address_unix(&address, "/run/app.sock"), 0);
    CHECK_STR(text_of(&address), "/run/app.sock");
    CHECK_EQ(strand_address_unix(&address, "@app"), 0);
    CHECK_STR(text_of(&address), "@app");
    CHECK_EQ(strand_address_unix(&address, ""), 0);
    CHECK_STR(text_of(&address), "");
}

TEST(an_address_is_one_of_the_system)
{
    strand_address address = ip("127.0.0.1", 80);
    struct sockaddr_in four;
    memcpy(&four, address.name, sizeof four);
    CHECK_EQ(address.length, sizeof four);
    CHECK_EQ(four.sin_family, AF_INET);
    CHECK_EQ(ntohs(four.sin_port), 80);
    CHECK_EQ(ntohl(four.sin_addr.s_addr), INADDR_LOOPBACK);
}

TEST(a_text_that_is_no_address_is_an_error_code)
{
    strand_address address;
    char path[200], text[8] = "";
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    CHECK_EQ(strand_address_ip(&address, "127.0.0.1", 65536), -EINVAL);
    CHECK_EQ(strand_address_ip(&address, "127.0.0.1", -1), -EINVAL);
    CHECK_EQ(strand_address_ip(&address, "localhost", 1), -ENOENT);
    CHECK_EQ(strand_address_unix(&address, path), -ENAMETOOLONG);
    address = (strand_address){.length = 0};
    CHECK_EQ(strand_address_print(&address, text, sizeof text), -EAFNOSUPPORT);
    address = ip("192.0.2.7", 40312);
    CHECK_EQ(strand_address_print(&address, text, sizeof text), (int)strlen("192.0.2.7:40312"));
    CHECK_STR(text, "192.0.2");
    CHECK_EQ(strand_address_print(&address, NULL, 0), (int)strlen("192.0.2.7:40312"));
}

/* ---- one datagram ---------------------------------------------------------------------------- */

static void *echo(void *arg)
{
    char buffer[16];
    strand_address from;
    for (;;) {
        int64_t got = strand_receive_from(*(int *)arg, buffer, sizeof buffer, &from);
        CHECK(got >= 0);
        CHECK_EQ(strand_send_to(*(int *)arg, buffer, (size_t)got, &from), got);
        if (!got)
            return arg;
    }
}

static void check_echo(int client, const strand_address *to)
{
    static const char *const words[] = {"one", "second", "x", ""};
    strand_address from;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char buffer[16] = "";
        int64_t size = (int64_t)strlen(words[i]);
        CHECK_EQ(strand_send_to(client, words[i], (size_t)size, to), size);
        CHECK_EQ(strand_receive_from(client, buffer, sizeof buffer, &from), size);
        CHECK_STR(buffer, words[i]);
    }
}

static void check_server(strand_address at, bool connects, strand_address own)
{
    int server = bound(at);
    at = address_of(server);
    {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, echo, &server);
        CLOSED client = strand_datagram_open(&own, connects ? &at : NULL);
        CHECK(client >= 0);
        check_echo(client, connects ? NULL : &at);
        strand_join(child);
    }
    CHECK_EQ(strand_close(server), 0);
}

TEST_INSIDE(a_datagram_is_answered_by_the_address_that_it_came_from)
{
    check_server(ip("127.0.0.1", 0), false, ip("127.0.0.1", 0));
}

TEST_INSIDE(a_connected_socket_needs_no_address)
{
    check_server(ip("127.0.0.1", 0), true, ip("127.0.0.1", 0));
}

TEST_INSIDE(unix_datagrams_work_as_well)
{
    strand_address any;
    CHECK_EQ(strand_address_unix(&any, ""), 0);
    check_server(name("server"), false, any);
    check_server(name("server"), true, name("client"));
}

TEST_INSIDE(all_addresses_are_those_of_both_versions)
{
    CLOSED server = bound(ip("", 0));
    char byte, text[STRAND_PEER_ROOM];
    strand_address from;
    int port = strand_tcp_port(server);
    CHECK(port > 0);
    CLOSED client = connected(ip("127.0.0.1", port));
    CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
    CHECK_EQ(strand_receive_from(server, &byte, 1, &from), 1);
    snprintf(text, sizeof text, "127.0.0.1:%d", strand_tcp_port(client));
    CHECK_STR(text_of(&from), text);
}

TEST_INSIDE(a_datagram_that_is_too_large_for_the_buffer_is_cut_and_its_size_says_so)
{
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    char buffer[4] = "....";
    CHECK_EQ(strand_send_to(client, "long one", 8, NULL), 8);
    CHECK_EQ(strand_send_to(client, "next", 4, NULL), 4);
    CHECK_EQ(strand_receive_from(server, buffer, 3, NULL), 8);
    CHECK_EQ(memcmp(buffer, "lon.", 4), 0);
    CHECK_EQ(strand_receive_from(server, NULL, 0, NULL), 4);
    CHECK_EQ(strand_send_to(client, NULL, 0, NULL), 0);
    CHECK_EQ(strand_receive_from(server, buffer, sizeof buffer, NULL), 0);
}

TEST_INSIDE(plain_reads_and_writes_move_datagrams_of_a_connected_socket)
{
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    strand_address back = address_of(client);
    char buffer[8];
    CHECK_EQ(strand_connect(server, back.name, back.length), 0);
    for (int i = 1; i <= 3; i++)
        CHECK_EQ(strand_write(client, "abcdefg", (size_t)i), i);
    for (int i = 1; i <= 3; i++)
        CHECK_EQ(strand_read(server, buffer, sizeof buffer), i);
    const struct iovec parts[] = {{buffer, 2}, {buffer + 2, 6}}, halves[] = {{"ab", 2}, {"cdef", 4}};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_writev(client, halves, 2), 6);
    for (int i = 0; i < 2; i++) {
        memset(buffer, 0, sizeof buffer);
        CHECK_EQ(strand_readv(server, parts, 2), 6);
        CHECK_STR(buffer, "abcdef");
    }
    CHECK_EQ(strand_peer_address(server, NULL, 0), (int)strlen(text_of(&back)));
}

TEST_INSIDE(a_sender_without_a_name_has_no_address)
{
    strand_address there = name("server"), from = ip("192.0.2.7", 1);
    CLOSED server = bound(there);
    CLOSED client = connected(there);
    char byte;
    CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
    CHECK_EQ(strand_receive_from(server, &byte, 1, &from), 1);
    CHECK_EQ(from.length, 0);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void *receive_one(void *fd)
{
    char buffer[8] = "";
    CHECK_EQ(strand_receive_from(*(const int *)fd, buffer, sizeof buffer, NULL), 1);
    test_log("%s", buffer);
    return fd;
}

TEST_INSIDE(receivers_are_served_in_the_order_in_which_they_came)
{
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    STRAND_SCOPE(scope);
    strand children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = strand_spawn(scope, receive_one, (void *)(uintptr_t)&server);
        test_await_blocked("waits for descriptor", i + 1);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(strand_send_to(client, &"abc"[i], 1, NULL), 1);
        strand_join(children[i]);
    }
    CHECK_LOG("a b c");
}

TEST_INSIDE(an_interrupted_receiver_takes_no_datagram)
{
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    char buffer[8] = "";
    {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, receive_one, (void *)(uintptr_t)&server);
        test_await_blocked("waits for descriptor", 1);
        strand_cancel(child, NULL);
        CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
        CHECK(test_join_interrupted(child));
    }
    CHECK_EQ(strand_receive_from(server, buffer, sizeof buffer, NULL), 1);
    CHECK_STR(buffer, "x");
}

static void *receive_until_closed(void *fd)
{
    char byte;
    CHECK_EQ(strand_receive_from(*(const int *)fd, &byte, 1, NULL), -EBADF);
    return fd;
}

TEST_INSIDE(closing_ends_the_wait_of_a_receiver)
{
    int server = bound(ip("127.0.0.1", 0));
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, receive_until_closed, &server);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(strand_close(server), 0);
    strand_join(child);
    CHECK_EQ(strand_receive_from(server, NULL, 0, NULL), -EBADF);
    CHECK_EQ(strand_send_to(server, "x", 1, NULL), -EBADF);
}

TEST_INSIDE(a_datagram_is_a_case_of_a_select)
{
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    char byte = 0;
    strand_case cases[] = {strand_on_ready(server, STRAND_READABLE), strand_on_time(strand_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
    cases[1] = strand_on_time(strand_in(FOREVER));
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    CHECK_EQ(strand_receive_from(server, &byte, 1, NULL), 1);
    CHECK_EQ(byte, 'x');
    cases[0] = strand_on_ready(client, STRAND_WRITABLE);
    CHECK_EQ(strand_select(cases, 2, 0), 0);
}

/* More than any queue of the system holds. */
enum { MANY = 600 };

struct flood {
    int fd;
    const strand_address *to;
};

static void *send_many(void *arg)
{
    const struct flood *flood = arg;
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_send_to(flood->fd, &i, sizeof i, flood->to), sizeof i);
    return arg;
}

/* All that send_many sends, in order. */
static void receive_many(int server)
{
    int number;
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(strand_receive_from(server, &number, sizeof number, NULL), sizeof number);
        CHECK_EQ(number, i);
    }
}

static void receive_flood(bool connects)
{
    strand_address there = name("server");
    CLOSED server = bound(there);
    CLOSED client = strand_datagram_open(&(strand_address){.length = 0}, &there);
    CHECK(client >= 0);
    CLOSED other = bound(name("other"));
    struct flood flood = {connects ? client : other, connects ? NULL : &there};
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_many, &flood);
    test_await_blocked("waits for descriptor", 1);
    receive_many(server);
    strand_join(child);
}

TEST_INSIDE(a_sender_waits_while_the_queue_of_a_unix_receiver_is_full)
{
    receive_flood(true);
}

TEST_INSIDE(a_sender_that_is_not_connected_waits_as_well)
{
    receive_flood(false);
}

/* Send to a full receiver over a socket that is connected to another one, which nobody reads. */
static void receive_beside(bool peer_is_full)
{
    strand_address there = name("server"), beside = name("peer");
    int number, fills = -1;
    CLOSED server = bound(there);
    CLOSED peer = bound(beside);
    CLOSED client = connected(beside);
    strand_case now = strand_on_ready(client, STRAND_WRITABLE);
    while (peer_is_full && strand_select(&now, 1, STRAND_SELECT_NOW) == 0)
        CHECK_EQ(strand_send_to(client, &fills, sizeof fills, NULL), sizeof fills);
    struct flood flood = {client, &there};
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_many, &flood);
    test_await_blocked("waits for descriptor", 1);
    receive_many(server);
    strand_join(child);
    if (peer_is_full)
        CHECK_EQ(strand_receive_from(peer, &number, sizeof number, NULL), sizeof number);
}

TEST_INSIDE(a_sender_waits_for_its_receiver_and_not_for_the_full_peer_of_its_socket)
{
    receive_beside(true);
}

TEST_INSIDE(a_sender_waits_for_its_receiver_while_the_peer_of_its_socket_has_room)
{
    receive_beside(false);
}

static void *send_until_closed(void *arg)
{
    const struct flood *flood = arg;
    int64_t put;
    while ((put = strand_send_to(flood->fd, "x", 1, flood->to)) == 1)
        ;
    CHECK_EQ(put, -EBADF);
    return arg;
}

/* The number of its socket is not another socket's while it waits between two tries. */
TEST_INSIDE(a_sender_that_waits_hears_that_its_socket_was_closed)
{
    strand_address there = name("server");
    CLOSED server = bound(there);
    struct flood flood = {bound(name("other")), &there};
    char byte;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_until_closed, &flood);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(strand_close(flood.fd), 0);
    CLOSED next = bound(name("next"));
    while (!strand_ended(child)) {
        (void)strand_receive_from(server, &byte, 1, NULL);
        strand_sleep(STRAND_MS);
        if (!strand_ended(child) && strand_send_to(next, "y", 1, &there) != 1)
            CHECK_FAIL("the other socket can't send");
    }
    strand_join(child);
}

TEST_INSIDE(a_sender_that_waits_hears_that_its_receiver_has_gone)
{
    strand_address there = name("server");
    int server = bound(there);
    CLOSED client = connected(there);
    int64_t put;
    strand_case now = strand_on_ready(client, STRAND_WRITABLE);
    while (strand_select(&now, 1, STRAND_SELECT_NOW) == 0)
        CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
    CHECK_EQ(strand_close(server), 0);
    put = strand_send_to(client, "x", 1, NULL);
    CHECK(put == -ECONNREFUSED || put == -ECONNRESET);
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST_INSIDE(a_connected_socket_learns_that_nobody_listens)
{
    int server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    char byte;
    CHECK_EQ(strand_close(server), 0);
    CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
    CHECK_EQ(strand_receive_from(client, &byte, 1, NULL), -ECONNREFUSED);
    CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
}

TEST_INSIDE(a_datagram_that_cannot_be_sent_is_an_error_code)
{
    static char large[70000];
    strand_address nobody = name("nobody");
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    CLOSED local = bound(name("local"));
    CHECK_EQ(strand_send_to(client, large, sizeof large, NULL), -EMSGSIZE);
    CHECK_EQ(strand_send_to(server, "x", 1, NULL), -EDESTADDRREQ);
    CHECK_EQ(strand_send_to(local, "x", 1, NULL), -ENOTCONN);
    CHECK_EQ(strand_send_to(local, "x", 1, &nobody), -ECONNREFUSED);
    CHECK_EQ(strand_datagram_open(NULL, &nobody), -ECONNREFUSED);
    CHECK_EQ(strand_datagram_open(NULL, NULL), -EINVAL);
    CHECK_EQ(strand_datagram_open(&(strand_address){.length = 0}, NULL), -EINVAL);
    nobody = address_of(server);
    CHECK_EQ(strand_datagram_open(&nobody, NULL), -EADDRINUSE);
}

TEST_INSIDE(streams_and_pipes_have_no_datagrams)
{
    int fds[2];
    CLOSED listener = strand_listen_tcp("127.0.0.1", 0);
    CLOSED fd = strand_dial_tcp("127.0.0.1", strand_tcp_port(listener));
    CLOSED peer = strand_accept(listener);
    char buffer[8] = "";
    strand_address address;
    CHECK_EQ(strand_write_all(fd, "abc", 3), 3);
    CHECK_EQ(strand_receive_from(peer, buffer, 1, NULL), -EOPNOTSUPP);
    CHECK_EQ(strand_read_all(peer, buffer, 3), 3); /* no byte is lost */
    CHECK_STR(buffer, "abc");
    CHECK_EQ(strand_pipe(fds), 0);
    CHECK(strand_receive_from(fds[0], buffer, 1, NULL) == (test_seed() ? -EOPNOTSUPP : -ENOTSOCK));
    CHECK(strand_send_to(fds[1], buffer, 1, NULL) == (test_seed() ? -EOPNOTSUPP : -ENOTSOCK));
    CHECK_EQ(strand_local_address(fds[0], &address), -ENOTSOCK);
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
    CHECK_EQ(strand_local_address(-1, &address), -EBADF);
}

/* ---- options --------------------------------------------------------------------------------- */

TEST_SYSTEM_INSIDE(further_options_are_those_of_the_system)
{
    CLOSED fd = bound(ip("127.0.0.1", 0));
    int size = 32768, got = 0;
    socklen_t length = sizeof got;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length), 0);
    CHECK(got >= size);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* ---- accepting ------------------------------------------------------------------------------- */

TEST_INSIDE(a_connection_is_accepted_with_the_address_of_its_peer)
{
    CLOSED listener = strand_listen_tcp("127.0.0.1", 0);
    CLOSED fd = strand_dial_tcp("127.0.0.1", strand_tcp_port(listener));
    strand_address from, local = {.length = 0};
    CLOSED peer = strand_accept_from(listener, &from);
    CHECK(peer >= 0);
    char expected[STRAND_PEER_ROOM];
    snprintf(expected, sizeof expected, "127.0.0.1:%d", strand_tcp_port(fd));
    CHECK_STR(text_of(&from), expected);
    CHECK_EQ(strand_local_address(fd, &local), 0);
    CHECK_STR(text_of(&local), expected);
    CHECK_EQ(strand_accept_from(-1, &from), -EBADF);
    CHECK_STR(text_of(&from), expected);
}

/* ---- several at once ------------------------------------------------------------------------- */

enum { BATCH = 150 };

static void fill(strand_datagram *list, int *numbers, strand_address *addresses, int count)
{
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        list[i] = (strand_datagram){&numbers[i], sizeof numbers[i], 0, addresses ? &addresses[i] : NULL};
    }
}

TEST_INSIDE(several_datagrams_come_in_the_order_in_which_they_were_sent)
{
    static strand_datagram out[BATCH], in[BATCH];
    static int sent[BATCH], got[BATCH];
    static strand_address from[BATCH];
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    strand_address own = address_of(client);
    fill(out, sent, NULL, BATCH);
    fill(in, got, from, BATCH);
    CHECK_EQ(strand_send_many(client, out, BATCH), BATCH);
    for (int i = 0; i < BATCH;) {
        int count = strand_receive_many(server, in + i, (size_t)(BATCH - i));
        CHECK(count > 0 && count <= 64);
        i += count;
    }
    for (int i = 0; i < BATCH; i++) {
        CHECK_EQ(in[i].got, sizeof(int));
        CHECK_EQ(got[i], i);
        CHECK_EQ(from[i].length, own.length);
        CHECK_EQ(memcmp(from[i].name, own.name, own.length), 0);
    }
    CHECK_EQ(strand_receive_many(server, in, 0), 0);
    CHECK_EQ(strand_send_many(client, out, 0), 0);
}

TEST_INSIDE(each_of_several_datagrams_has_its_receiver_and_its_size)
{
    CLOSED one = bound(ip("127.0.0.1", 0));
    CLOSED two = bound(ip("127.0.0.1", 0));
    CLOSED client = bound(ip("127.0.0.1", 0));
    strand_address to[] = {address_of(one), address_of(two)};
    char text[4] = "";
    strand_datagram list[] = {{"first", 5, 0, &to[0]}, {"2", 1, 0, &to[1]}, {"", 0, 0, &to[0]}},
                    in = {text, 2, 0, NULL};
    CHECK_EQ(strand_send_many(client, list, 3), 3);
    CHECK_EQ(strand_receive_many(two, &in, 1), 1);
    CHECK_EQ(in.got, 1);
    CHECK_EQ(strand_receive_many(one, &in, 1), 1);
    CHECK_EQ(in.got, 5); /* it was cut */
    CHECK_STR(text, "fi");
    CHECK_EQ(strand_receive_many(one, &in, 1), 1);
    CHECK_EQ(in.got, 0);
}

static void *send_batch(void *arg)
{
    static strand_datagram list[MANY];
    static int numbers[MANY];
    const struct flood *flood = arg;
    strand_address to = flood->to ? *flood->to : (strand_address){.length = 0};
    fill(list, numbers, NULL, MANY);
    for (int i = 0; i < MANY; i++)
        list[i].address = &to;
    CHECK_EQ(strand_send_many(flood->fd, list, MANY), MANY);
    return arg;
}

static void *send_batch_and_tell(void *arg)
{
    strand_exception *e = strand_try(send_batch, arg, NULL);
    CHECK(strand_exception_is(e, &STRAND_INTERRUPTED));
    uint64_t progress = strand_exception_progress(e);
    strand_exception_release(e);
    return (void *)(uintptr_t)progress;
}

static void interrupt_batch(bool connects)
{
    strand_address there = name("server");
    int number, count = 0;
    CLOSED server = bound(there);
    CLOSED client = connected(there);
    CLOSED other = bound(name("other"));
    struct flood flood = {connects ? client : other, connects ? NULL : &there};
    uint64_t progress;
    {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, send_batch_and_tell, &flood);
        test_await_blocked("waits for descriptor", 1);
        strand_cancel(child, NULL);
        progress = (uint64_t)(uintptr_t)strand_join(child);
    }
    strand_case cases[] = {strand_on_ready(server, STRAND_READABLE), strand_on_time(strand_in(STRAND_MS))};
    while (strand_select(cases, 2, STRAND_SELECT_ORDERED) == 0) {
        CHECK_EQ(strand_receive_from(server, &number, sizeof number, NULL), sizeof number);
        CHECK_EQ(number, count++);
    }
    CHECK_EQ(progress, count);
    CHECK(count > 0 && count < MANY);
}

TEST_INSIDE(an_interrupted_sender_of_several_tells_how_many_have_gone)
{
    interrupt_batch(true);
    interrupt_batch(false);
}

static void batch_flood(bool connects)
{
    strand_address there = name("server");
    CLOSED server = bound(there);
    CLOSED client = connected(there);
    CLOSED other = bound(name("other"));
    struct flood flood = {connects ? client : other, connects ? NULL : &there};
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_batch, &flood);
    receive_many(server);
    strand_join(child);
}

TEST_INSIDE(a_sender_of_several_waits_for_the_receiver)
{
    batch_flood(true);
    batch_flood(false);
}

TEST_INSIDE(an_error_after_some_datagrams_comes_with_the_next_call)
{
    static char large[70000];
    CLOSED server = bound(ip("127.0.0.1", 0));
    CLOSED client = connected(address_of(server));
    const strand_datagram list[] = {{"x", 1, 0, NULL}, {large, sizeof large, 0, NULL}, {"y", 1, 0, NULL}};
    CHECK_EQ(strand_send_many(client, list, 3), 1);
    CHECK_EQ(strand_send_many(client, list + 1, 2), -EMSGSIZE);
    CHECK_EQ(strand_receive_many(-1, NULL, 0), -EBADF);
    CHECK_EQ(strand_send_many(-1, list, 1), -EBADF);
}

/* ---- one port, several sockets ----------------------------------------------------------------- */

enum { SHARERS = 3, DIALS = 24 };

TEST_INSIDE(connections_are_spread_over_the_listeners_of_one_port)
{
    int listeners[SHARERS], accepted = 0, dialled[DIALS];
    strand_address here = ip("127.0.0.1", 0);
    CHECK_EQ(strand_share_port(&here, STRAND_SHARE_TCP, listeners, SHARERS), 0);
    for (int i = 0; i < SHARERS; i++)
        CHECK_EQ(strand_tcp_port(listeners[i]), strand_tcp_port(listeners[0]));
    for (int i = 0; i < DIALS; i++)
        CHECK((dialled[i] = strand_dial_tcp("127.0.0.1", strand_tcp_port(listeners[0]))) >= 0);
    strand_case cases[SHARERS];
    for (int i = 0; i < SHARERS; i++)
        cases[i] = strand_on_ready(listeners[i], STRAND_READABLE);
    for (; accepted < DIALS; accepted++) {
        CLOSED peer = strand_accept(listeners[strand_select(cases, SHARERS, 0)]);
        CHECK(peer >= 0);
    }
    for (int i = 0; i < DIALS; i++)
        CHECK_EQ(strand_close(dialled[i]), 0);
    for (int i = 0; i < SHARERS; i++)
        CHECK_EQ(strand_close(listeners[i]), 0);
}

TEST_INSIDE(datagrams_reach_one_of_the_sockets_of_a_port)
{
    int fds[SHARERS];
    char byte;
    strand_address here = ip("127.0.0.1", 0);
    CHECK_EQ(strand_share_port(&here, STRAND_SHARE_UDP, fds, SHARERS), 0);
    strand_case cases[SHARERS];
    for (int i = 0; i < SHARERS; i++)
        cases[i] = strand_on_ready(fds[i], STRAND_READABLE);
    for (int i = 0; i < DIALS; i++) {
        CLOSED client = connected(address_of(fds[0]));
        CHECK_EQ(strand_send_to(client, "x", 1, NULL), 1);
        CHECK_EQ(strand_receive_from(fds[strand_select(cases, SHARERS, 0)], &byte, 1, NULL), 1);
    }
    for (int i = 0; i < SHARERS; i++)
        CHECK_EQ(strand_close(fds[i]), 0);
}

TEST_INSIDE(sockets_that_cannot_share_a_port_are_an_error_code_and_leave_nothing)
{
    int fds[SHARERS];
    CLOSED alone = bound(ip("127.0.0.1", 0));
    strand_address taken = address_of(alone), none = {.length = 0};
    CHECK_EQ(strand_share_port(&taken, STRAND_SHARE_UDP, fds, SHARERS), -EADDRINUSE);
    CHECK_EQ(strand_share_port(&taken, STRAND_SHARE_UDP, fds, 0), -EINVAL);
    CHECK_EQ(strand_share_port(&none, STRAND_SHARE_TCP, fds, SHARERS), -EINVAL);
    taken = ip("127.0.0.1", 0);
    CHECK_EQ(strand_share_port(&taken, STRAND_SHARE_TCP, fds, 1), 0);
    CHECK_EQ(strand_close(fds[0]), 0);
}
