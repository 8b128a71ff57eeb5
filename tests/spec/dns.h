/*
 * A name server for tests: strands that answer on a port of the loopback, by UDP and by TCP. Some names have records,
 * others stand for servers that do not do what they should.
 */
#ifndef TEST_DNS_H
#define TEST_DNS_H

#include "test.h"

#include "strand/io.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

struct dns_record {
    const char *name;
    int type;
    const char *data; /* in words: an address; a name; "priority weight port name"; or a text */
};

static const struct dns_record dns_records[] = {
    {"both.test", ns_t_a, "192.0.2.1"},
    {"both.test", ns_t_a, "192.0.2.2"},
    {"both.test", ns_t_aaaa, "2001:db8::1"},
    {"four.test", ns_t_a, "192.0.2.4"},
    {"alias.test", ns_t_cname, "four.test"},
    {"local.test", ns_t_a, "127.0.0.1"},
    {"local.test", ns_t_aaaa, "::1"},
    {"slow6.test", ns_t_a, "127.0.0.1"},
    {"one.test", ns_t_aaaa, "::1"},
    {"www.here.test", ns_t_a, "127.0.0.1"},
    {"www.here.test.corp.test", ns_t_aaaa, "::1"}, /* as if a wildcard answered */
    {"near.corp.test", ns_t_a, "127.0.0.1"},
    {"near.away.test", ns_t_aaaa, "::1"},
    {"far.off.away.test", ns_t_a, "127.0.0.1"},
    {"4.2.0.192.in-addr.arpa", ns_t_ptr, "four.test"},
    {"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", ns_t_ptr, "both.test"},
    {"_ldap._tcp.test", ns_t_srv, "20 0 390 late.test"},
    {"_ldap._tcp.test", ns_t_srv, "10 5 389 first.test"},
    {"_none._tcp.test", ns_t_srv, "0 0 0 ."},
    {"_spread._tcp.test", ns_t_srv, "1 90 1 often.test"},
    {"_spread._tcp.test", ns_t_srv, "1 10 2 seldom.test"},
    {"texts.test", ns_t_txt, "v=spf1 -all"},
    {"texts.test", ns_t_txt, "a second record"},
    {"empty.test", ns_t_mx, "unused.test"},
    {"large.test", ns_t_txt, NULL}, /* more than a datagram holds */
};

/* Questions for names of 192.0.2.80, which has no answer, and of 192.0.2.81, at which the server fails. */
#define DNS_MUTE "80.2.0.192.in-addr.arpa"
#define DNS_FAILS "81.2.0.192.in-addr.arpa"

struct dns {
    int udp, tcp, port;
    _Atomic int asked, by_tcp; /* questions */
    char servers[64];
};

/* ---- messages -------------------------------------------------------------------------------------------------- */

enum { DNS_ROOM = 4096, DNS_HEAD = 12, DNS_DATAGRAM = 512, DNS_LARGE = 12 };

struct dns_message {
    unsigned char bytes[DNS_ROOM];
    size_t size;
};

static inline void dns_put(struct dns_message *m, const void *bytes, size_t size)
{
    CHECK(m->size + size <= sizeof m->bytes);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static inline void dns_put16(struct dns_message *m, unsigned value)
{
    unsigned char two[] = {(unsigned char)(value >> 8), (unsigned char)value};
    dns_put(m, two, 2);
}

static inline void dns_put_name(struct dns_message *m, const char *name)
{
    while (*name && strcmp(name, ".") != 0) {
        unsigned char length = (unsigned char)strcspn(name, ".");
        dns_put(m, &length, 1);
        dns_put(m, name, length);
        name += length + (name[length] == '.');
    }
    dns_put(m, "", 1);
}

/* The name of the question. Returns the place after it. */
static inline size_t dns_name_of(const struct dns_message *m, char *name, size_t room)
{
    size_t at = DNS_HEAD, used = 0;
    while (m->bytes[at]) {
        size_t length = m->bytes[at];
        CHECK(used + length + 2 < room && at + length < m->size);
        memcpy(name + used, m->bytes + at + 1, length);
        used += length;
        name[used++] = '.';
        at += length + 1;
    }
    name[used ? used - 1 : 0] = 0;
    return at + 1;
}

static inline void dns_put_text(struct dns_message *m, const char *text)
{
    unsigned char length = (unsigned char)strlen(text);
    dns_put(m, &length, 1);
    dns_put(m, text, length);
}

static inline void dns_put_data(struct dns_message *m, const struct dns_record *record)
{
    struct in6_addr address;
    int priority, weight, port;
    char target[256];
    switch (record->type) {
    case ns_t_a:
        CHECK_EQ(inet_pton(AF_INET, record->data, &address), 1);
        dns_put(m, &address, 4);
        break;
    case ns_t_aaaa:
        CHECK_EQ(inet_pton(AF_INET6, record->data, &address), 1);
        dns_put(m, &address, 16);
        break;
    case ns_t_srv:
        CHECK_EQ(sscanf(record->data, "%d %d %d %255s", &priority, &weight, &port, target), 4);
        dns_put16(m, (unsigned)priority);
        dns_put16(m, (unsigned)weight);
        dns_put16(m, (unsigned)port);
        dns_put_name(m, target);
        break;
    case ns_t_txt:
        for (int i = 0; !record->data && i < DNS_LARGE; i++)
            dns_put_text(m, "a string of a record that has many, which a datagram of the usual size does not hold");
        if (record->data)
            dns_put_text(m, record->data);
        break;
    default:
        dns_put_name(m, record->data);
    }
}

static inline void dns_put_record(struct dns_message *m, const struct dns_record *record)
{
    dns_put_name(m, record->name);
    dns_put16(m, (unsigned)record->type);
    dns_put16(m, ns_c_in);
    dns_put16(m, 0);
    dns_put16(m, 300); /* seconds */
    size_t at = m->size;
    dns_put16(m, 0);
    dns_put_data(m, record);
    size_t size = m->size - at - 2;
    m->bytes[at] = (unsigned char)(size >> 8);
    m->bytes[at + 1] = (unsigned char)size;
}

/* Add the records of a name, and of the one that it is an alias of. Returns how many; known: whether there is the
 * name. */
static inline int dns_put_records(struct dns_message *m, const char *name, int type, bool *known)
{
    int count = 0;
    for (size_t i = 0; i < sizeof dns_records / sizeof *dns_records; i++) {
        const struct dns_record *record = &dns_records[i];
        if (strcasecmp(record->name, name) != 0)
            continue;
        *known = true;
        if (record->type != type && record->type != ns_t_cname)
            continue;
        dns_put_record(m, record);
        count += 1 + (record->type == type ? 0 : dns_put_records(m, record->data, type, known));
    }
    return count;
}

/* Make an answer of a question. Returns false if there is none. */
static inline bool dns_answer(struct dns_message *m, bool datagram)
{
    char name[300];
    size_t end = dns_name_of(m, name, sizeof name) + 4;
    int type = m->bytes[end - 4] << 8 | m->bytes[end - 3];
    bool known = false;
    m->size = end; /* without what follows the question */
    m->bytes[2] = 0x84;
    m->bytes[3] = 0x80;
    memset(m->bytes + 8, 0, 4);
    if (strncmp(name, "mute", 4) == 0 || strcmp(name, DNS_MUTE) == 0 ||
        (strcmp(name, "slow6.test") == 0 && type == ns_t_aaaa))
        return false;
    if (strncmp(name, "garbage", 7) == 0) {
        m->bytes[7] = 3; /* three answers, of which there is none */
        dns_put(m, "\xc0\xff\xff\xff\xff", 5);
        return true;
    }
    if (strncmp(name, "strange", 7) == 0) { /* a datagram of an unusual code, with no more by TCP than a failure */
        m->bytes[2] |= datagram ? 2 : 0;    /* truncated */
        m->bytes[3] |= datagram ? ns_r_yxdomain : ns_r_servfail;
        return true;
    }
    int count = dns_put_records(m, name, type, &known);
    m->bytes[7] = (unsigned char)count;
    m->bytes[3] |= strncmp(name, "fail", 4) == 0 || strcmp(name, DNS_FAILS) == 0 ? ns_r_servfail
                   : strncmp(name, "refuse", 6) == 0                             ? ns_r_refused
                   : known                                                       ? ns_r_noerror
                                                                                 : ns_r_nxdomain;
    if (datagram && m->size > DNS_DATAGRAM) {
        m->bytes[2] |= 2; /* truncated */
        m->bytes[7] = 0;
        m->size = end;
    }
    return true;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static inline void *dns_serve_udp(void *arg)
{
    struct dns *dns = *(struct dns **)arg;
    struct dns_message *m = calloc(1, sizeof *m);
    STRAND_TRY {
        for (;;) {
            struct sockaddr_storage from;
            socklen_t length = sizeof from;
            CHECK_EQ(strand_wait_ready(dns->udp, STRAND_READABLE), 0);
            ssize_t got =
                recvfrom(dns->udp, m->bytes, sizeof m->bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
            if (got < DNS_HEAD)
                continue;
            m->size = (size_t)got;
            dns->asked++;
            if (dns_answer(m, true))
                CHECK_EQ(sendto(dns->udp, m->bytes, m->size, 0, (struct sockaddr *)&from, length), m->size);
        }
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        (void)e;
    }
    STRAND_END
    free(m);
    return NULL;
}

static inline void dns_serve_connection(struct dns *dns, int fd, struct dns_message *m)
{
    unsigned char size[2];
    while (strand_read_all(fd, size, 2) == 2) {
        m->size = (size_t)size[0] << 8 | size[1];
        CHECK_EQ(strand_read_all(fd, m->bytes, m->size), m->size);
        dns->asked++;
        dns->by_tcp++;
        if (!dns_answer(m, false))
            continue;
        size[0] = (unsigned char)(m->size >> 8);
        size[1] = (unsigned char)m->size;
        CHECK_EQ(strand_write_all(fd, size, 2), 2);
        CHECK_EQ(strand_write_all(fd, m->bytes, m->size), m->size);
    }
}

static inline void *dns_serve_tcp(void *arg)
{
    struct dns *dns = *(struct dns **)arg;
    struct dns_message *m = calloc(1, sizeof *m);
    STRAND_TRY {
        for (;;) {
            int fd = strand_must(strand_accept(dns->tcp));
            dns_serve_connection(dns, fd, m);
            strand_close(fd);
        }
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        (void)e;
    }
    STRAND_END
    free(m);
    return NULL;
}

/* Start a server in a scope. It ends when its strands are cancelled: dns_stop. */
static inline struct dns *dns_start(strand_scope scope)
{
    struct dns *dns = calloc(1, sizeof *dns);
    dns->tcp = strand_must(strand_listen_tcp("127.0.0.1", 0));
    dns->port = strand_tcp_port(dns->tcp);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)dns->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    dns->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(dns->udp >= 0);
    CHECK_EQ(bind(dns->udp, (struct sockaddr *)&address, sizeof address), 0);
    snprintf(dns->servers, sizeof dns->servers, "127.0.0.1:%d", dns->port);
    strand_spawn_with(scope, NULL, dns_serve_udp, &dns, sizeof dns);
    strand_spawn_with(scope, NULL, dns_serve_tcp, &dns, sizeof dns);
    return dns;
}

static inline void dns_stop(strand_scope scope, struct dns *dns)
{
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(dns->udp), 0);
    CHECK_EQ(strand_close(dns->tcp), 0);
    free(dns);
}

#endif
