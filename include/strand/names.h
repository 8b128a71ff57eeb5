/*
 * Names: looking up addresses, names, services and texts, and connecting to a host by its name. This header is of a
 * library of its own, libstrand-names, which uses c-ares: pkg-config --cflags --libs strand-names. libstrand needs
 * neither.
 *
 *     char why[STRAND_NAMES_WHY];
 *     int fd = strand_names_dial("example.com", "https", STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why));
 *     if (fd < 0)
 *         fprintf(stderr, "%s\n", why);        example.com: 2001:db8::7: Connection timed out; 192.0.2.7: ...
 *
 * A look-up suspends the strand, and no thread waits for an answer: c-ares' sockets are waited for as all descriptors
 * are, and its time-outs are timers of the run. An interrupted look-up leaves nothing behind. c-ares reads the files
 * /etc/hosts, /etc/resolv.conf and /etc/nsswitch.conf for each look-up, so that a change counts from then on. It reads
 * them on the pool's thread, which these reads block: some tens of microseconds if the files are short and in the
 * system's memory, and longer for a hosts file of many lines or on a slow disk. With attr->nsswitch a thread of a crew
 * reads them. The library keeps no answers.
 *
 * nsswitch.conf may list sources of hosts that c-ares does not know, such as ldap, mdns4_minimal or myhostname. Where
 * c-ares does not find a host, or no name server answers, a thread of a crew asks the C library, which knows all
 * sources. So these come last, wherever they stand in the list. This is not done with attr->no_fallback, with
 * attr->servers, and for the names of Tor (.onion), nor where no name server answers and attr->tries or
 * attr->timeout_ns limits how long the call waits for one: the C library has limits of its own, of some ten seconds. An
 * interrupted call leaves the question to the thread; attr->crew keeps such threads apart from those of strand_offload.
 *
 * Which callers:
 *
 *   any strand          all functions
 *   a signal handler    no function
 *
 * Suspension: all functions may suspend the caller, and are cancellation points.
 *
 * Cost: reading those files, one datagram there and back for each question, and some tens of microseconds, unless a
 * function says otherwise.
 */
#ifndef STRAND_NAMES_H
#define STRAND_NAMES_H

#include "io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- attributes -------------------------------------------------------------------------------------------- */

/** A service of a name: a host and a port that offer it. */
typedef struct strand_names_service {
    const char *host;
    int port;
    int priority; /* a client tries those of the lowest priority first */
    int weight;   /* among those of one priority, a share of the clients */
} strand_names_service;

/** A text of a name: the strings of one record, one after the other. It may contain any byte. */
typedef struct strand_names_text {
    const char *text; /* followed by a 0 byte */
    size_t size;      /* without that byte */
} strand_names_text;

/** What a table of a test knows of a name: strand_names_attr.table. Zero is the default of each field. */
typedef struct strand_names_entry {
    const char *name;
    const char *addresses; /* numbers, with spaces between them; NULL: none */
    int family;            /* 4 or 6: the entry answers questions for these addresses only; 0: for both */
    int error;             /* a negated errno code: there is no answer but this */
    int64_t delay_ns;      /* how long the answer takes */
    const strand_names_service *services;
    size_t service_count;
    const strand_names_text *texts;
    size_t text_count;
} strand_names_entry;

/**
 * The optional attributes of a look-up. Zero is the default of each field but `size`: a field that is zero takes the
 * value that is bound to STRAND_NAMES, and else the default that is named here. What the attributes point to must not
 * lie on a shared stack, and must stay valid until the call returns.
 */
typedef struct strand_names_attr {
    size_t size;         /* sizeof(strand_names_attr); required */
    const char *servers; /* the name servers, as "192.0.2.1,192.0.2.2:5353,[2001:db8::1]:53"; NULL: those of
                            /etc/resolv.conf */
    int family;          /* 4 or 6: only such addresses; 0: both */
    int tries;           /* how often each server is asked; 0: 3 */
    int64_t timeout_ns;  /* how long the first try waits for an answer, at least a millisecond; each later one waits
                            longer. 0: 2 s */
    /* Ask the C library (getaddrinfo) in the place of c-ares, on a thread of a crew: for the order of sources in
     * nsswitch.conf. It has no services and no texts: these are always asked for by c-ares. An interrupted call goes on
     * at once, and leaves the question to the thread. */
    bool nsswitch;
    strand_crew crew; /* where the C library is asked; {0}: the run's own */
    /* For tests: these entries answer all questions, and nothing is sent. A name without an entry does not exist. In a
     * seeded run the delays are virtual time. */
    const strand_names_entry *table;
    size_t table_count;
    int64_t resolution_delay_ns; /* for strand_names_dial: how long it waits for IPv6 addresses when it has IPv4 ones;
                                    0: 50 ms */
    int64_t attempt_delay_ns;    /* for strand_names_dial: how long after an attempt the next one begins; 0: 250 ms */
    /* The call writes here in words why it has failed, cut at `why_room` bytes; "" if it has not. NULL: nothing. It may
     * lie on a shared stack. */
    char *why;
    size_t why_room;
    bool no_fallback; /* never ask the C library for what c-ares has not found, whatever nsswitch.conf lists */
} strand_names_attr;

/** A size for strand_names_attr.why that is enough for many addresses. */
#define STRAND_NAMES_WHY 1024
/** Write attributes as an argument, with `size` filled in: STRAND_NAMES_ATTR(.family = 6). C++ requires the order of
 * the fields. */
#define STRAND_NAMES_ATTR(...) STRAND_SIZED_(strand_names_attr, __VA_ARGS__)

/** The key of the attributes that a block and the strands spawned there use: STRAND_LOCAL(&STRAND_NAMES, &attributes).
 * So a test can put a table under a program that does not know of it. The fields `why` and `why_room` are not taken
 * from there. */
extern const strand_key STRAND_NAMES;

/* ---- looking up -------------------------------------------------------------------------------------------- */

/** The room of an address in words: 2001:db8::7 or fe80::1%eth0. */
#define STRAND_NAMES_NUMBER 64

/** An address of a host. */
typedef struct strand_names_address {
    char number[STRAND_NAMES_NUMBER]; /* in words, without a port */
    int family;                       /* 4 or 6 */
    int ttl_s;                        /* how many seconds the answer may be kept; 0: unknown */
    uint32_t length;                  /* of `socket_address` */
    uint64_t socket_address[4];       /* a struct sockaddr, with the port, for strand_connect */
} strand_names_address;

/** The addresses of a host. All of it is one block of memory. */
typedef struct strand_names_list {
    const char *canonical; /* the name that the host's other names lead to; that of the question if there is none */
    int port;
    size_t count; /* at least 1 */
    const strand_names_address *addresses;
} strand_names_list;

/**
 * Look up the addresses of a host, in the order in which a client should try them (RFC 6724). `host` is a number, which
 * causes no question, and may stand in brackets if it is one of IPv6, as in a URL; a name in /etc/hosts, likewise; a
 * name that the name servers know, also without the domains that resolv.conf lists; or one that a further source of
 * nsswitch.conf knows. `service` is a number from 0 to 65535 or a name ("https"); NULL is port 0. `attr` may be
 * NULL. An interrupted call has no effect.
 *
 * Returns 0, and sets *out to the addresses, which the caller frees by free(3); or a negated errno code:
 *  - -ENOENT: there is no such name, or it has no such record,
 *  - -EHOSTUNREACH: there is no answer at present (no server answers, or they refuse or report a failure),
 *  - -EPROTO: the answer is malformed,
 *  - -EINVAL: the host, the service or an attribute is malformed, or there is no such service,
 *  - -ENOMEM, -EMFILE, -ENFILE and others of the system.
 *
 * Throws STRAND_SYSTEM if there is no memory for a timer, or no thread (for the C library, or a service's name).
 */
STRAND_BLOCKS STRAND_CHECKED int strand_names_lookup(const char *host, const char *service,
                                                     const strand_names_attr *attr, strand_names_list **out);

/**
 * Look up the name of an address. `address` is a number, or what strand_peer_address writes: 192.0.2.7, 2001:db8::7,
 * 192.0.2.7:40312 or [2001:db8::7]:40312. `attr` may be NULL. An interrupted call has no effect. The owner of an
 * address may claim any name: look that name up before trusting it.
 *
 * Returns 0, and sets *name, which the caller frees by free(3); or a negated errno code as strand_names_lookup. Throws
 * what strand_names_lookup throws.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_names_reverse(const char *address, const strand_names_attr *attr, char **name);

/** The services of a name. All of it is one block of memory. */
typedef struct strand_names_services {
    size_t count;                         /* at least 1 */
    const strand_names_service *services; /* in the order in which a client should try them */
} strand_names_services;

/**
 * Look up a service (SRV records, RFC 2782): "_imaps._tcp.example.com". The order of the result is that of the
 * priorities; among services of one priority it is random by their weights. `attr` may be NULL. An interrupted call has
 * no effect.
 *
 * Returns 0, and sets *out to the services, which the caller frees by free(3); or a negated errno code as
 * strand_names_lookup. -ENOENT also means that the domain says it has no such service. Throws what strand_names_lookup
 * throws.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_names_srv(const char *name, const strand_names_attr *attr,
                                                  strand_names_services **out);

/** The texts of a name. All of it is one block of memory. */
typedef struct strand_names_texts {
    size_t count; /* at least 1 */
    const strand_names_text *texts;
} strand_names_texts;

/** Look up the texts of a name (TXT records). `attr` may be NULL. An interrupted call has no effect. Returns 0, and
 * sets *out to the texts, which the caller frees by free(3); or a negated errno code as strand_names_lookup. Throws
 * what strand_names_lookup throws. */
STRAND_BLOCKS STRAND_CHECKED int strand_names_txt(const char *name, const strand_names_attr *attr,
                                                  strand_names_texts **out);

/* ---- connecting ---------------------------------------------------------------------------------------------- */

/**
 * Connect by TCP to a host with all its addresses, of which some may not answer (Happy Eyeballs version 2, RFC 8305).
 * IPv6 and IPv4 addresses are asked for at the same time. Those of both families come from the same place: the hosts
 * file if it has the host, or else the first domain of the search in which the host has an address of either family.
 * One question asks the C library for both families. The first attempt begins when the IPv6 addresses are there,
 * or when the IPv4 addresses have been there for attr->resolution_delay_ns. Each further attempt begins
 * attr->attempt_delay_ns after the one before, or as soon as any attempt has failed, with an address of the other
 * family if there is one. The first address to connect wins; the call cancels the other attempts and closes their
 * sockets. `host`, `service` and `attr` are as for strand_names_lookup. The call takes as long as the system tries
 * addresses that do not answer (about two minutes), so it wants a deadline. An interrupted call leaves no socket
 * behind.
 *
 * Returns a descriptor, which is non-blocking and closed on exec and which the caller closes (strand_close), or a
 * negated errno code: that of the last address, or of the name (strand_names_lookup). attr->why has each address with
 * its reason. Throws what strand_names_lookup and strand_spawn throw. Cost: that of two look-ups for
 * each domain that it searches, of reading the system's files twice more, and of a strand and strand_dial_tcp for each
 * address that it tries.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_names_dial(const char *host, const char *service,
                                                   const strand_names_attr *attr);

#ifdef __cplusplus
}
#endif
#endif
