/*
 * Waiting for the outside: descriptors, and calls that block their thread.
 */
#ifndef STRAND_IO_H
#define STRAND_IO_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- descriptors ----------------------------------------------------------------------------------------- */

/*
 * Calls that wait for a descriptor without holding up their thread. Any descriptor of the process will do: sockets,
 * pipes, terminals, what other libraries have opened. Those that are made here do not block and are closed on exec; of
 * others nothing is changed, unless it is said below. A descriptor that strands have used is closed by strand_close, in
 * the run that has used it, and by nothing else. Several strands may use one at the same time; on each side they are
 * served first come, first served. Buffers may lie on the caller's stack. Results are bytes, or negated errno codes:
 * -EBADF also when it was closed meanwhile. SIGPIPE is never raised. After a fork the child must not go on with
 * strands: what they wait with is shared with the parent. In a seeded run the outside stays as it is: a run with
 * descriptors that others use is not the same every time, and while all strands wait time passes as fast as it does
 * outside.
 */

/** At least one byte, at most size, into buffer; 0 at the end. With size 0: nothing happens. */
STRAND_BLOCKS int64_t strand_read(int fd, void *buffer, size_t size);
/** Bytes until there are `size` of them, or the end: fewer mean that it has ended, or an error, which the next call
 *  returns. An exception of an interruption tells how many there are (strand_exception_progress). */
STRAND_BLOCKS int64_t strand_read_all(int fd, void *buffer, size_t size);
/** At least one byte, at most size. */
STRAND_BLOCKS int64_t strand_write(int fd, const void *bytes, size_t size);
/** All of them: returns size, or a negated errno code. The exception of an interruption tells how many had gone
 *  (strand_exception_progress). */
STRAND_BLOCKS int64_t strand_write_all(int fd, const void *bytes, size_t size);

enum { STRAND_READABLE = 1, STRAND_WRITABLE = 2, STRAND_GONE = 4 };
/** Wait until a read (STRAND_READABLE) or a write (STRAND_WRITABLE) would not block, for calls of other libraries; or
 *  until the other side has closed its sending half, or the connection has broken, whatever there is to be read
 *  (STRAND_GONE). Returns 0, or a negated errno code. */
STRAND_BLOCKS int strand_ready(int fd, int what);

/**
 * Close a descriptor. What is behind the number is closed at once, also while others wait or make calls: they get
 * -EBADF. Only when they have is the number given back to the system, so none of their calls goes to a descriptor that
 * is opened in its place. (If there is no descriptor left at that moment, both happen then.) Returns 0, or a negated
 * errno code. Never interrupted, and refused only for a number that is not open.
 */
int strand_close(int fd);
/** A pipe: fds[0] is to be read, fds[1] to be written. Returns 0 or a negated errno code. Any thread. */
int strand_pipe(int fds[2]);

/* ---- sockets --------------------------------------------------------------------------------------------- */

/** Accept a connection: returns its descriptor (which does not block and is closed on exec), or a negated errno code:
 *  -EMFILE leaves the connection where it is. The listener is made non-blocking. */
STRAND_BLOCKS int strand_accept(int listener);
/** Connect a socket; the address is as of the system. Returns 0, or a negated errno code (-ECONNREFUSED, ...). If it is
 *  interrupted the socket is of no further use. The socket is made non-blocking. While the queue of a Unix listener is
 *  full it is tried again and again, at growing intervals of up to 20 ms. */
STRAND_BLOCKS int strand_connect(int fd, const void *address, uint32_t length);
/** shutdown(2). Returns 0 or a negated errno code. Any thread. */
int strand_shutdown(int fd, int how);

/** A listening socket for TCP: host is a number or a name, "" for all addresses of this machine, of both
 *  versions of the protocol; port 0: any free one
 *  (strand_port). A name is looked up in the crew of strand_offload. Returns a descriptor, or a negated errno code:
 * -ENOENT: there is no such host. */
STRAND_BLOCKS int strand_listen_tcp(const char *host, int port);
/** Connect by TCP to the first of the host's addresses that answers; "": this machine. Returns a descriptor or a
 * negated errno code. */
STRAND_BLOCKS int strand_dial_tcp(const char *host, int port);
/** The same for a Unix socket of this path. The listener makes the file; removing it is the caller's. After an
 *  @ comes an abstract name, for which there is no file. */
int strand_listen_unix(const char *path);
STRAND_BLOCKS int strand_dial_unix(const char *path);
/** The port that a TCP socket is bound to, or a negated errno code. Any thread. */
int strand_port(int fd);

/* ---- signals --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t bits[2];
} strand_signals;

/**
 * Here to the end of the enclosing block these signals come to strands: STRAND_SIGNALS(ends, SIGINT, SIGTERM). They do
 * nothing else meanwhile, but that handlers which the program had installed are called as well; at the end everything
 * is as before. Blocks may overlap, also in different runs: each gets every signal. Signals of faults (SIGSEGV, ...)
 * can't be had: misuse. Throws STRAND_SYSTEM if there is no descriptor, or no memory, or if the program has installed a
 * handler after an earlier block and before its end. Does not block.
 */
#define STRAND_SIGNALS(name, ...)                                                                                      \
    strand_signals name __attribute__((cleanup(strand_signals_leave_))) = strand_signals_enter_(__VA_ARGS__, 0)

/** Wait for the next of the block's signals; returns its number. Those that come while nobody waits are kept; the same
 *  one several times counts once. */
STRAND_BLOCKS int strand_signal(strand_signals signals);

strand_signals strand_signals_enter_(int first, ... /* 0 */);
void strand_signals_leave_(strand_signals *signals);

/* ---- calls that block their thread ------------------------------------------------------------------------- */

/**
 * Run fn(arg) on a thread of the run's crew, where it may block as long as it likes, and wait for it. Returns what fn
 * returned. Interruptible until a crew thread has taken it up; from then on it is waited for, uninterruptibly, because
 * fn works on the caller's memory. fn runs outside of strands: it may call only functions marked "any thread", and may
 * not throw. Throws STRAND_SYSTEM if no thread can be had. In a seeded run there is no crew: fn runs on the caller's
 * stack (64 KiB unless told otherwise) as one step of the run, and everybody waits for it.
 */
STRAND_BLOCKS void *strand_offload(strand_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
