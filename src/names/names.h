/*
 * Look-ups over c-ares.
 *
 * PARTIES   the caller, a strand; c-ares, whose code runs on that strand only.
 * STATE     a channel of c-ares for each look-up: its sockets, and what it waits for.
 * PROTOCOL  the strand asks, and then waits with a select for c-ares' sockets and its next time-out until the callback
 *           has come. It lets c-ares work in a no-suspend section: a strand that suspended there could continue on
 *           another thread, and c-ares reads errno.
 * OWNERSHIP the channel and its sockets belong to the strand. c-ares makes and closes the sockets by the functions of
 *           names_system.c, so that the run knows when a number is given back.
 * PROGRESS  on each way out the channel is destroyed: an interrupted look-up has neither sockets nor questions.
 * NOT DONE  one channel for many look-ups: it would need a strand of its own that drives it, an order among its users,
 *           and a way to take one question back, which c-ares has not; docs/decisions.md has more.
 */
#ifndef NAMES_NAMES_H
#define NAMES_NAMES_H

#include "../../include/strand/names.h"

#include <ares.h>

struct sockaddr;

enum { MAX_NAME = 255, MAX_SERVICE = 63, MAX_SERVERS = 512, MAX_ADDRESSES = 64, MAX_WORDS = 384 };

/* ---- names_config.c: attributes, and errors in words ---- */

/* The attributes of a call, with those that are bound and the defaults. */
struct names_config {
    strand_names_attr attr;
    char servers[MAX_SERVERS];
    bool limited; /* the caller has chosen the number of tries, or how long they take */
};

/* Begin a call: a cancellation point. `name` is what it asks about, and `what` says so. Returns 0 or -EINVAL. */
int names_begin(struct names_config *config, const strand_names_attr *attr, const char *name, const char *what);
/* Say why the call fails. Returns the code. */
int names_fail(const struct names_config *config, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, for a status of c-ares. refused: 0, or the errno code of a socket that the system has refused; it counts if
 * no server has answered. */
int names_fail_by(const struct names_config *config, int status, int refused, const char *name);
/* What an errno code means. */
const char *names_words(int code);

/* ---- names_channel.c: c-ares ---- */

struct names_channel {
    ares_channel ares;
    int refused;   /* the errno code of the last socket, if the system has refused it; or 0 */
    int answer;    /* the code of the last answer that a server has sent; 0: it was good */
    bool asked;    /* c-ares has wanted a socket */
    bool answered; /* a server has sent an answer */
    bool done;     /* the callback has come */
    int status;    /* of the callback */
};

/* lookups: where c-ares looks, in this order: 'f' the hosts file, 'b' the name servers; NULL: as the system's files
 * say. Returns ARES_SUCCESS or a status; names_channel_close closes it in both cases. */
int names_channel_open(struct names_channel *channel, const struct names_config *config, const char *lookups);
void names_channel_close(struct names_channel *channel);
/* Wait until the callback has come. */
void names_channel_wait(struct names_channel *channel);
/* By the answers: what c-ares has called ARES_ENOTFOUND, where it says so of each failure. Returns a status. */
int names_channel_missing(const struct names_channel *channel);

/* ---- names_system.c: what the system does ---- */

extern const struct ares_socket_functions names_sockets;
/* Add an address to a list, with the list's port. Returns 1, 0 for a family that is neither IPv4 nor IPv6, or a negated
 * errno code: there was no memory. */
int names_list_add(strand_names_list *list, const struct sockaddr *address, int ttl_s);
/* Add the addresses that a number stands for: none, or one of that family (0: any). Returns their
 * number, or a negated errno code. */
int names_list_add_number(strand_names_list *list, const char *number, int family);
/* Whether the environment names a file of aliases (hostname(7)). */
bool names_system_has_aliases(void);
/* Whether nsswitch.conf lists a source of hosts that c-ares does not know. Returns 1, 0 or a negated errno code. */
int names_system_has_further(void);
/* As the functions without "system" below, by the C library on a thread of a crew. */
int names_system_find(const struct names_config *config, const char *host, int port, int family,
                      strand_names_list **out);
int names_system_port(const struct names_config *config, const char *service);
int names_system_reverse(const struct names_config *config, const strand_names_address *address, char **name);

/* ---- names_lookup.c ---- */

/* Make a list with room for `count` addresses; NULL: there is no memory. */
strand_names_list *names_list_make(size_t count, const char *canonical, int port);

/* Find the port of a service. Returns it or a negated errno code. */
int names_port(const struct names_config *config, const char *service);
/* Look up the addresses of one family, or of both (0). */
int names_find(const struct names_config *config, const char *host, int port, int family, strand_names_list **out);
/* Find a host without a question: a number, or a host of the hosts file. Returns 1 with the list, 0 if there is none,
 * or a negated errno code. */
int names_find_number(const struct names_config *config, const char *host, int port, int family,
                      strand_names_list **out);
int names_find_file(const struct names_config *config, const char *host, int port, int family, strand_names_list **out);
/* Ask the name servers for this name only, which ends with a dot. The host is that of the caller, for failures. */
int names_find_exactly(const struct names_config *config, const char *host, const char *name, int port, int family,
                       strand_names_list **out);

/* ---- names_further.c: sources that c-ares does not know ---- */

/* c-ares has failed by `code`: let the C library look, if nsswitch.conf lists a source that may have the host. Returns
 * 0, `code` again, or another negated errno code if that says more. */
int names_find_further(const struct names_config *config, const char *host, int port, int family, int code,
                       strand_names_list **out);
int names_reverse_further(const struct names_config *config, const strand_names_address *address, int code,
                          char **name);
/* Whether a host is one of Tor's. */
bool names_is_of_tor(const char *host);

/* ---- names_search.c ---- */

/* Where a host may be known, in this order: names that the name servers are asked for, each with a dot at its end; ""
 * stands for the hosts file. All of it is one block of memory. */
struct names_search {
    size_t count;
    const char **names;
};

/* Returns 0, or a negated errno code. The caller frees the block. */
int names_search_make(const struct names_config *config, const char *host, struct names_search **out);

/* ---- names_table.c: what a test knows ---- */

int names_table_find(const struct names_config *config, const char *host, int port, int family,
                     strand_names_list **out);
int names_table_reverse(const struct names_config *config, const char *number, char **name);
/* Find an entry that has services, or texts, and wait as long as its answer takes. */
int names_table_records(const struct names_config *config, const char *name, bool services,
                        const strand_names_entry **out);

#endif
