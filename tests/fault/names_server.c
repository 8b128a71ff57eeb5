/*
 * The name server of the workload of names. Names that begin with "none" do not exist; a text of "large" is sent by TCP
 * only.
 */
#define _GNU_SOURCE
#include "names_server.h"

#include <arpa/nameser.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ROOM = 2048, HEAD = 12 };

struct message {
    unsigned char bytes[ROOM];
    size_t size;
};

static in_port_t port; /* in the order of the network; 0: there is no server */

socklen_t names_server_address(struct sockaddr_storage *address, int family)
{
    memset(address, 0, sizeof *address);
    if (family == AF_INET) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        memcpy(address, &four, sizeof four);
        return sizeof four;
    }
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
    memcpy(six.sin6_addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
    memcpy(address, &six, sizeof six);
    return sizeof six;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

static void put(struct message *m, const void *bytes, size_t size)
{
    FAULT_CHECK(m->size + size <= sizeof m->bytes);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

#define PUT(m, text) put((m), (text), sizeof(text) - 1)

/* A record of the question's name and type. */
static void put_record(struct message *m, int type, const void *data, size_t size)
{
    const unsigned char head[] = {
        0xc0, HEAD, 0, (unsigned char)type, 0, ns_c_in, 0, 0, 1, 0, (unsigned char)(size >> 8), (unsigned char)size};
    put(m, head, sizeof head);
    put(m, data, size);
    m->bytes[7]++;
}

static void put_data(struct message *m, int type, bool large)
{
    static const unsigned char four[] = {127, 0, 0, 1}, six[16] = {[15] = 1};
    unsigned char text[1024];
    if (type == ns_t_a)
        put_record(m, type, four, sizeof four);
    if (type == ns_t_aaaa)
        put_record(m, type, six, sizeof six);
    if (type == ns_t_ptr)
        put_record(m, type, "\4host\4test", 11);
    if (type == ns_t_srv) {
        put_record(m, type, "\0\1\0\0\0\x50\1a\4test", 14);
        put_record(m, type, "\0\1\0\0\0\x51\1b\4test", 14);
    }
    if (type == ns_t_txt) {
        memset(text, 127, sizeof text); /* strings of 127 bytes of 127 */
        put_record(m, type, text, large ? 1024 : 128);
    }
}

/* Make an answer of a question. */
static void answer(struct message *m, bool datagram)
{
    size_t end = HEAD;
    while (end < m->size && m->bytes[end])
        end += m->bytes[end] + 1;
    FAULT_CHECK(end + 5 <= m->size);
    int type = m->bytes[end + 2];
    bool none = strncmp((const char *)m->bytes + HEAD, "\4none", 5) == 0;
    bool large = strncmp((const char *)m->bytes + HEAD, "\5large", 6) == 0;
    m->size = end + 5; /* without what follows the question */
    m->bytes[2] = datagram && large ? 0x86 : 0x84;
    m->bytes[3] = none ? 0x80 | ns_r_nxdomain : 0x80;
    memset(m->bytes + 6, 0, 6);
    if (!none && !(datagram && large))
        put_data(m, type, large);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static void serve_datagram(int udp)
{
    struct message m;
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    ssize_t got = recvfrom(udp, m.bytes, sizeof m.bytes, 0, (struct sockaddr *)&from, &length);
    if (got <= HEAD)
        return;
    m.size = (size_t)got;
    answer(&m, true);
    (void)sendto(udp, m.bytes, m.size, 0, (const struct sockaddr *)&from, length);
}

/* In a process of its own: a peer may leave in the middle, or say nothing. */
static void serve_connection(int fd)
{
    unsigned char size[2];
    struct message m;
    while (recv(fd, size, 2, MSG_WAITALL) == 2) {
        m.size = (size_t)size[0] << 8 | size[1];
        if (m.size > sizeof m.bytes || recv(fd, m.bytes, m.size, MSG_WAITALL) != (ssize_t)m.size)
            break;
        answer(&m, false);
        size[0] = (unsigned char)(m.size >> 8);
        size[1] = (unsigned char)m.size;
        if (send(fd, size, 2, MSG_NOSIGNAL | MSG_MORE) < 0 || send(fd, m.bytes, m.size, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

static void accept_one(int tcp)
{
    int fd = accept(tcp, NULL, NULL);
    if (fd < 0)
        return;
    if (fork() == 0) {
        alarm(60);
        serve_connection(fd);
    }
    close(fd);
}

__attribute__((noreturn)) static void serve(int udp, int tcp)
{
    struct pollfd both[] = {{.fd = udp, .events = POLLIN}, {.fd = tcp, .events = POLLIN}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    while (getppid() != 1) {
        (void)poll(both, 2, -1);
        if (both[0].revents)
            serve_datagram(udp);
        if (both[1].revents)
            accept_one(tcp);
    }
    _exit(0);
}

/* A port that both kinds of sockets have. */
static int bind_both(int udp, int tcp)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(tcp, (const struct sockaddr *)&address, length) != 0 || listen(tcp, 64) != 0 ||
        getsockname(tcp, (struct sockaddr *)&address, &length) != 0)
        return -1;
    port = address.sin_port;
    return bind(udp, (const struct sockaddr *)&address, length);
}

void names_server_start(void)
{
    if (port)
        return;
    for (int tries = 0; tries < 100; tries++) {
        int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
            tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        FAULT_CHECK(udp >= 0 && tcp >= 0);
        int bound = bind_both(udp, tcp);
        if (bound == 0 && fork() == 0)
            serve(udp, tcp);
        close(udp);
        close(tcp);
        if (bound == 0)
            return;
    }
    FAULT_CHECK(!"a port for both kinds of sockets");
}
