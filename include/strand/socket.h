/*
 * Sockets beyond streams of bytes: addresses, bytes in several buffers, datagrams, descriptors and credentials that are
 * passed to other processes, shared ports, and what a service manager passes and asks for.
 *
 *     strand_address here, sender;
 *     strand_must(strand_address_ip(&here, "", 5353));
 *     int fd = (int)strand_must(strand_datagram_open(&here, NULL));
 *     for (;;) {
 *         int64_t size = strand_receive_from(fd, buffer, sizeof buffer, &sender);
 *         if (size > (int64_t)sizeof buffer) ...                  the datagram was cut
 *         if (size >= 0)
 *             size = strand_send_to(fd, buffer, (size_t)size, &sender);
 *     }
 *
 * Listening, dialling and streams are in strand/io.h, whose rules for descriptors hold here too: a call that waits
 * suspends the strand and not its thread; strands that use one side of a descriptor are served in FIFO order; a
 * descriptor made here is non-blocking and closed on exec, and the caller closes it (strand_close). As cases of a
 * select they are strand_on_ready, STRAND_READABLE for what receives and accepts, STRAND_WRITABLE for what sends.
 * Results are numbers or negated errno codes.
 *
 * Descriptors are those of the system. So all further options of a socket are set and read by setsockopt(2) and
 * getsockopt(2), which do not block: SO_RCVBUF, SO_BROADCAST, IP_ADD_MEMBERSHIP, ... The exceptions are the sockets of
 * a seeded run, which lie in memory (strand/sim.h): these functions fail there with ENOTSOCK.
 *
 * Which callers:
 *
 *   any thread          strand_address_ip, strand_address_unix, strand_address_print, strand_local_address,
 *                       strand_datagram_open, strand_share_port, strand_inherit
 *   any strand          all other functions
 *   a signal handler    no function
 *
 * Suspension: functions marked STRAND_BLOCKS may suspend the caller and are cancellation points. All others never
 * suspend.
 *
 * Cost: the system calls that a function stands for, and less than 100 ns beside them, unless a function says
 * otherwise. A call that waits adds a switch to another strand and a share of a call of epoll_wait(2).
 */
#ifndef STRAND_SOCKET_H
#define STRAND_SOCKET_H

#include "io.h"

#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- addresses ------------------------------------------------------------------------------------------- */

/** An address of a socket: a plain value, which functions of the system take as well: bind(fd, (struct sockaddr
 * *)&address.name, address.length). */
typedef struct strand_address {
    uint64_t name[16]; /* a struct sockaddr_in, sockaddr_in6, sockaddr_un or another one */
    uint32_t length;   /* bytes of `name`; 0: no address */
} strand_address;

/** Make an address of version four or six of the Internet protocol. `host` is a number ("192.0.2.7", "::1",
 * "fe80::1%eth0"). For a socket that is bound, "" and "::" mean all addresses of this machine, of both versions,
 * whatever its setting bindv6only is; if the machine has no version six, those of version four. Port 0 means any free
 * port. Returns 0, or a negated errno code: -EINVAL: there is no such port; -ENOENT: `host` is no number. Cost: below 1
 * us. */
int strand_address_ip(strand_address *out, const char *host, int port);
/** Make an address of a Unix socket. A path that begins with @ is an abstract name, for which there is no file. "" is a
 * name that the system chooses when a socket is bound to it. Returns 0, or -ENAMETOOLONG. Cost: some ns. */
int strand_address_unix(strand_address *out, const char *path);
/**
 * Write an address as text, in the form of strand_peer_address: 192.0.2.7:40312, [2001:db8::7]:40312, /run/app.sock, an
 * abstract name behind an @, or the empty text for a Unix socket without a name. `room` is the size of `text` in bytes;
 * STRAND_PEER_ROOM is enough, and a longer text is cut. `text` may be NULL if `room` is 0. Returns the length of the
 * text, as snprintf does, or -EAFNOSUPPORT for another family, and for no address. Cost: below 1 us.
 */
int strand_address_print(const strand_address *address, char *text, size_t room);
/** Get the address that a socket is bound to; a datagram socket that was bound to port 0, or to the Unix name "", has
 * the one that the system chose. Returns 0 or a negated errno code. Cost: one system call. */
int strand_local_address(int fd, strand_address *out);

/** Accept a connection, as strand_accept does, and get the address of its peer. `peer` is unchanged unless a descriptor
 * is returned. Returns a descriptor, which the caller closes (strand_close), or a negated errno code. */
STRAND_BLOCKS int strand_accept_from(int listener, strand_address *peer);

/* ---- bytes in several buffers ------------------------------------------------------------------------------ */

/*
 * On sockets whose messages have ends (datagrams, SOCK_SEQPACKET) a call moves one message: all buffers that it was
 * given are one message, which is never split. A message that the socket does not take is refused (-EMSGSIZE).
 */

/** Read into several buffers, one after the other, as strand_read does into one: at least one byte. `count` is their
 * number, at most 1024 (-EINVAL); buffers of size 0 are skipped. Returns the number of bytes, 0 at the end of the
 * stream, or a negated errno code. An interrupted call has read nothing. Cost: that of strand_read. */
STRAND_BLOCKS int64_t strand_readv(int fd, const struct iovec *buffers, int count);
/** Write bytes of several buffers, one after the other, as strand_write does of one: at least one byte. Returns the
 * number of bytes, or a negated errno code. An interrupted call has written nothing. Cost: that of strand_write. */
STRAND_BLOCKS int64_t strand_writev(int fd, const struct iovec *buffers, int count);
/** Write the bytes of several buffers, all of them, as strand_write_all does. The buffers belong to the caller and must
 * stay unchanged until the call returns; the array of them is not changed. Returns the number of bytes, or a negated
 * errno code; the number of bytes written before an error is unknown. An interruption may come between two parts; the
 * exception then tells how many bytes were written (strand_exception_progress). Cost: a system call
 * for each part that the descriptor accepts at once, and a wait before the next one, if there is one. */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_writev_all(int fd, const struct iovec *buffers, int count);

/* ---- datagrams --------------------------------------------------------------------------------------------- */

/**
 * Make a socket for datagrams: UDP, or Unix. It is bound to `local` and connected to `peer`; either may be NULL, and
 * then the other one says the family. A connected socket sends to its peer and receives only from there. A client that
 * wants answers over a Unix socket needs a name of its own: give it the address "".
 *
 * A Unix socket that is bound to a path makes a file, which the caller has to remove. strand_connect connects a socket
 * later, or to another peer; it never waits for a datagram socket. Returns a descriptor, which the caller closes
 * (strand_close), or a negated errno code: that of socket(2), bind(2) or connect(2); -EINVAL without an address. Cost:
 * up to four system calls.
 */
STRAND_CHECKED int strand_datagram_open(const strand_address *local, const strand_address *peer);

/**
 * Receive a datagram into `buffer`, which has room for `size` bytes. *from gets the address of the sender, whose length
 * is 0 if it has none; `from` may be NULL.
 *
 * Returns the size of the datagram, which may be 0. If that is more than `size`, the buffer has the first `size` bytes
 * and the rest is lost. Or returns a negated errno code: that which the network reported about an earlier datagram of a
 * connected socket (-ECONNREFUSED: nobody listens there); -EOPNOTSUPP for TCP, where there are no datagrams.
 * Descriptors that come with the datagram are closed by the system. An interrupted call has received nothing. Cost: one
 * system call, and another one after a wait.
 */
STRAND_BLOCKS int64_t strand_receive_from(int fd, void *buffer, size_t size, strand_address *from);
/**
 * Send the `size` bytes at `bytes` as one datagram. `to` is the address of the receiver; NULL: the peer that the socket
 * is connected to. UDP does not wait for the receiver, and the network may lose, repeat and reorder datagrams. Unix
 * datagrams arrive, each once and in order: the call waits while the receiver's queue is full. With NULL, an event ends
 * the wait. No event tells of the queue of another receiver: with `to`, the call tries again at growing intervals of up
 * to 20 ms, whatever the socket is connected to.
 *
 * Returns `size`, or a negated errno code: -EMSGSIZE: it is too large for a datagram; -EDESTADDRREQ or -ENOTCONN: `to`
 * is NULL and the socket is not connected; -ECONNREFUSED or -ENOENT: nobody has the Unix name. An interrupted call has
 * sent nothing. Cost: one system call, and another one after a wait.
 */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_send_to(int fd, const void *bytes, size_t size, const strand_address *to);

/** One datagram of several. */
typedef struct strand_datagram {
    void *bytes;             /* the caller's buffer */
    size_t size;             /* its size; for sending: that of the datagram */
    size_t got;              /* set by receiving: the size of the datagram; above `size`, the rest is lost */
    strand_address *address; /* receiving: gets the sender; sending: the receiver; NULL, or length 0: the peer */
} strand_datagram;

/** Receive up to `count` datagrams, at most 64, and at least one: those that are there, without waiting for more. The
 * buffers and addresses of the list belong to the caller. Returns how many have come, 0 if `count` is 0, or a negated
 * errno code, as strand_receive_from. An interrupted call has received nothing. Cost: one system call for all, and
 * another one after a wait. */
STRAND_BLOCKS int strand_receive_many(int fd, strand_datagram *list, size_t count);
/** Send `count` datagrams, all of them, in their order, and wait like strand_send_to. Returns how many were sent; fewer
 * than `count` mean an error, which the next call returns; or a negated errno code, as strand_send_to. An interruption
 * may come in between; the exception then tells how many were sent (strand_exception_progress). Cost: one system call
 * for up to 64. */
STRAND_BLOCKS STRAND_CHECKED int strand_send_many(int fd, const strand_datagram *list, size_t count);

/* ---- descriptors and credentials --------------------------------------------------------------------------- */

/** What goes with bytes over a Unix socket. */
typedef struct strand_passed {
    size_t size;     /* sizeof(strand_passed); required */
    int *fds;        /* the caller's list of descriptors */
    size_t max_fds;  /* receiving: room for so many; 0: none */
    size_t fd_count; /* sending: so many descriptors; set by receiving */
    bool cut; /* set by receiving: more descriptors came than there was room or free numbers for; these are closed */
    bool has_credentials; /* sending: pass those of this process; set by receiving: the next fields are those of the
                             sender */
    int pid;
    unsigned uid, gid; /* the real ones */
} strand_passed;

/**
 * Receive bytes over a Unix socket, and the descriptors and credentials that come with them. The descriptors are closed
 * on exec, and the caller closes them (strand_close). Each one that came is in passed->fds, or was closed and
 * passed->cut says so: none is left open. The system tells the credentials only if the receiver has asked for them
 * before (setsockopt(2) with SO_PASSCRED), and then with each message.
 *
 * Returns the number of bytes, 0 at the end of a stream, or the size of a datagram as strand_receive_from; or a negated
 * errno code: -EOPNOTSUPP for TCP, and for sockets that a seeded run simulates. *passed is unchanged then. An
 * interrupted call has received nothing. Cost: one system call, and another one after a wait.
 */
STRAND_BLOCKS int64_t strand_receive_passed(int fd, void *buffer, size_t size, strand_passed *passed);
/**
 * Send bytes over a connected Unix socket, with up to 253 descriptors (-EINVAL: more) and with credentials. The
 * descriptors stay open in this process, too. A stream needs at least one byte, and the descriptors go with the first
 * one that is sent.
 *
 * Returns the number of bytes. A stream may take less than `size`; strand_write_all sends the rest. Or returns a
 * negated errno code: -EBADF if one of the descriptors is not open, -ETOOMANYREFS if too many are under way,
 * -EOPNOTSUPP as for strand_receive_passed. An interrupted call has sent nothing. Cost: one system call, and another
 * one after a wait.
 */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_send_passed(int fd, const void *bytes, size_t size,
                                                        const strand_passed *passed);

/* ---- several sockets of one port ----------------------------------------------------------------------------- */

/** The types of sockets that share a port. */
enum strand_sharing { STRAND_SHARE_TCP = 0, STRAND_SHARE_UDP };
/**
 * Make `count` sockets that are bound to one address, for example one for each thread of a pool, where a strand that is
 * pinned to the thread accepts (strand_attr.pin): the system spreads connections, or the senders of datagrams, over
 * them (SO_REUSEPORT). TCP sockets listen. Port 0 means one free port for all. Other processes of the same user may
 * share the port as well. A connection that waits in the queue of a listener is lost when that is closed.
 *
 * Writes the descriptors, which the caller closes (strand_close), to fds[0] to fds[count - 1]. Returns 0, or a negated
 * errno code: then there are none. -EINVAL: `count` is below 1, or there is no address. Any thread may call it. Cost:
 * some system calls for each.
 */
STRAND_CHECKED int strand_share_port(const strand_address *address, enum strand_sharing type, int *fds, int count);

/* ---- service managers ---------------------------------------------------------------------------------------- */

/** A descriptor that a service manager has opened for this process. */
typedef struct strand_inherited {
    int fd;
    char name[256]; /* as the manager calls it; "unknown" if it does not */
} strand_inherited;

/**
 * Get the descriptors that a service manager such as systemd has passed to this process (LISTEN_FDS, LISTEN_PID and
 * LISTEN_FDNAMES in the environment, sd_listen_fds(3)): listeners, for strand_accept, or others. Variables that were
 * meant for another process are ignored. The call marks the descriptors as closed on exec and changes nothing else;
 * each call returns the same. The caller owns them.
 *
 * `most` is the room of the list. Returns how many were passed, which may be more than `most`; 0: none; or a negated
 * errno code: -EINVAL if the variables make no sense, -EBADF if a descriptor is not open. Any thread may call it. Cost:
 * two system calls for each.
 */
int strand_inherit(strand_inherited *list, size_t most);
/**
 * Report a state to the service manager (NOTIFY_SOCKET in the environment, sd_notify(3)): "READY=1", "STOPPING=1",
 * "STATUS=...", "WATCHDOG=1", or several on lines of their own. Waits like strand_send_to while the manager's queue is
 * full. Returns 1; 0 if no manager asks for reports; or a negated errno code: -EAFNOSUPPORT for a kind of socket that
 * is not known here. An interrupted call has reported nothing. Cost: some system calls.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_notify(const char *state);

#ifdef __cplusplus
}
#endif
#endif
