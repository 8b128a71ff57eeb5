/*
 * Waiting for the outside: descriptors, and calls that block their thread.
 */
#ifndef STRAND_IO_H
#define STRAND_IO_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- descriptors ----------------------------------------------------------------------------------------- */

/*
 * Calls that wait for a descriptor without holding up their thread. Any descriptor of the process will do: sockets,
 * pipes, terminals, what other libraries have opened. Those that are made here do not block and are closed on exec; of
 * others nothing is changed, unless it is said below. A descriptor that strands have used is closed by strand_close, in
 * the run that has used it; before another library closes one, call strand_forget. Several strands may use one at the
 * same time; on each side they are served first come, first served. Buffers may lie on the caller's stack. Results are
 * bytes, or negated errno codes: -EBADF also when it was closed meanwhile. SIGPIPE is never raised. After a fork the
 * child must not go on with strands: what they wait with is shared with the parent. In a seeded run pipes and sockets
 * that are made here lie in memory (strand/sim.h). Those that come from elsewhere stay the system's: such a run is not
 * the same every time, and while all strands wait time passes as fast as it does outside.
 */

/** Read at least one byte, and at most size, into buffer. Returns how many, 0 at the end, or a negated errno code. With
 *  size 0 nothing is read. */
STRAND_BLOCKS int64_t strand_read(int fd, void *buffer, size_t size);
/** Read until there are `size` bytes, or the end, or an error. Returns how many there are: fewer mean that it has
 *  ended, or that an error came after them, which the next read of the descriptor returns. An error before the first
 *  byte is returned as a negated errno code. An interruption can come between the parts too; its exception tells how
 * many bytes are in the buffer (strand_exception_progress). */
STRAND_BLOCKS int64_t strand_read_all(int fd, void *buffer, size_t size);
/** Write at least one of the bytes, and at most size. Returns how many, or a negated errno code. */
STRAND_BLOCKS int64_t strand_write(int fd, const void *bytes, size_t size);
/** Write all of the bytes. Returns size, or a negated errno code: then nothing tells how many had gone, and who has to
 *  know calls strand_write in a loop. An interruption can come between the parts too; its exception tells how many had
 *  gone (strand_exception_progress). */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_write_all(int fd, const void *bytes, size_t size);

enum { STRAND_READABLE = 1, STRAND_WRITABLE = 2, STRAND_GONE = 4 };
/** Wait until a read (STRAND_READABLE) or a write (STRAND_WRITABLE) would not block, for calls of other libraries; or
 *  until the other side has closed its sending half, or the connection has broken, whatever there is to be read
 *  (STRAND_GONE). Returns 0, or a negated errno code. */
STRAND_BLOCKS int strand_ready(int fd, int what);

/** strand_ready as a case of a select; its `result` is that of strand_ready. It stands in line with those who read or
 *  write: when it has happened nobody else was told so, and it is the caller's turn. */
strand_case strand_on_ready(int fd, int what);

/**
 * Close a descriptor. What is behind the number is closed at once, also while others wait or make calls: they get
 * -EBADF. Only when they have is the number given back to the system, so none of their calls goes to a descriptor that
 * is opened in its place. (If there is no descriptor left at that moment, both happen then.) Returns 0, or a negated
 * errno code. Never interrupted, and refused only for a number that is not open.
 */
int strand_close(int fd);
/**
 * Say that another library is about to close a descriptor, or has just closed it. What the run knows of the number is
 * dropped, and strands that wait for it get -EBADF; the number itself stays as it is. Returns when no strand of this
 * run makes a call on it any more. The next use of the number makes a new record. Without this call, a number that is
 * used again for a descriptor which was not made by this library is recognised before a strand waits for it; strands
 * that still waited for the old one get -EBADF then. Never interrupted. O(1). A number that no strand has used is
 * ignored.
 */
void strand_forget(int fd);
/** Make a pipe: fds[0] is to be read, fds[1] to be written. Returns 0 or a negated errno code. Any thread. */
int strand_pipe(int fds[2]);

/* ---- sockets --------------------------------------------------------------------------------------------- */

/** Accept a connection. Returns its descriptor, which does not block and is closed on exec, or a negated errno code:
 *  -EMFILE leaves the connection where it is. The listener is made non-blocking. */
STRAND_BLOCKS int strand_accept(int listener);
/** Connect a socket to an address, which is as of the system. Returns 0, or a negated errno code (-ECONNREFUSED, ...).
 *  Interrupted before it begins, it has done nothing; interrupted while it waits, it may have called the other side:
 *  the socket is of no further use, and is to be closed. The socket is made non-blocking. While the queue of a Unix
 *  listener is full it is tried again and again, at growing intervals of up to 20 ms. */
STRAND_BLOCKS int strand_connect(int fd, const void *address, uint32_t length);
/** Shut down one direction of a connection, or both, as shutdown(2) does. Returns 0 or a negated errno code. Any
 *  thread. */
int strand_shutdown(int fd, int how);

/**
 * Make a listening socket for TCP. host is a number or a name, "" for all addresses of this machine, of both versions
 * of the protocol; port 0 is any free one (strand_tcp_port). Returns a descriptor, or a negated errno code; -EINVAL:
 * there is no such port. Of several addresses of a host it is the first that can be had; if none can, the code is that
 * of the last. Interrupted, it leaves no socket behind.
 *
 * A name is looked up in the crew of strand_offload. If that is interrupted the caller goes on at once and leaves the
 * question to the crew; the end of the run waits for its answer. Codes of names are -ENOENT: there is no such host, or
 * its name servers refuse; -EHOSTUNREACH: no answer can be had at present, later there may be one; -ENOMEM; or that of
 * a system call that has failed. Throws STRAND_SYSTEM if no thread can be had.
 */
STRAND_BLOCKS int strand_listen_tcp(const char *host, int port);
/** Connect by TCP to the first of the host's addresses that answers; "" is this machine. Returns a descriptor, or a
 *  negated errno code: that of the last address, or of the name, as strand_listen_tcp has them and looks it up.
 *  Interrupted, it closes its socket. */
STRAND_BLOCKS STRAND_CHECKED int strand_dial_tcp(const char *host, int port);
/** Make a listening Unix socket of this path, or connect to one. Returns a descriptor, or a negated errno code. The
 *  listener makes the file; removing it is the caller's. After an @ comes an abstract name, for which there is no file.
 *  Dialling that is interrupted closes its socket. */
int strand_listen_unix(const char *path);
STRAND_BLOCKS STRAND_CHECKED int strand_dial_unix(const char *path);
/** Tell the port that a TCP socket is bound to. Returns it, or a negated errno code. Any thread. */
int strand_tcp_port(int fd);

/* ---- signals --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t bits[2];
} strand_signals;

/**
 * Have signals come to strands, from here to the end of the enclosing block: STRAND_SIGNALS(ends, SIGINT, SIGTERM).
 * They do nothing else meanwhile, but that handlers which the program had installed are called as well; at the end
 * everything is as before. Blocks may overlap, also in different runs: each gets every signal. Signals of faults
 * (SIGSEGV, ...) can't be had: misuse. Throws STRAND_SYSTEM if there is no descriptor, or no memory, or if the program
 * has installed a handler after an earlier block and before its end. Does not block.
 */
#define STRAND_SIGNALS(name, ...)                                                                                      \
    strand_signals name STRAND_CLEANUP_(strand_signals_leave_) = strand_signals_enter_(__VA_ARGS__, 0)

/** Wait for the next signal of a block of STRAND_SIGNALS. Returns its number. Those that come while nobody waits are
 *  kept; the same one several times counts once. Of several that have come each gets its turn, in the order of their
 *  numbers. Interrupted, it has taken none. */
STRAND_BLOCKS int strand_signal(strand_signals signals);
/** The same as a case of a select: *number (may be NULL) is the signal's. */
strand_case strand_on_signal(strand_signals signals, int *number);

strand_signals strand_signals_enter_(int first, ... /* 0 */);
void strand_signals_leave_(strand_signals *signals);

/* ---- calls that block their thread ------------------------------------------------------------------------- */

/*
 * Functions that block run on the threads of a crew, outside of strands, while the strand waits. A crew grows by a
 * thread when a call comes and no thread is idle, up to its most; then calls wait, first come, first served. A thread
 * that has had no call for a while goes. One that is idle takes no processor time, and wakes up once: to go.
 *
 * A run has a crew of its own, of options.offload_threads at most; further ones are opened in scopes: so that calls of
 * one kind (to one disk, to one database) do not wait for those of another, and no more than so many are made at once.
 *
 * An offloaded function may call only what is marked "any thread", and strand_run. It returns: that it throws is
 * misuse, and so is that it ends its thread (pthread_exit); a C++ exception that leaves it ends the program
 * (std::terminate). What was done before the call is seen by it, and what it did is seen after the call.
 *
 * In a seeded run the threads of crews are simulated: the function runs on a stack of 8 MiB, from its beginning to its
 * end in one step of the run unless it calls the library; and idle threads go in virtual time.
 */

/** The handle of a crew, a value. */
typedef struct strand_crew {
    uint64_t bits[2];
} strand_crew; /* {0}: the run's own; goes stale when its scope has been left */

/** What a crew may be told at its opening. Zero is the default of each. */
typedef struct strand_crew_attr {
    size_t size;      /* sizeof(strand_crew_attr); required */
    const char *name; /* for people; copied, up to 31 bytes; the first 15 are its threads' too; NULL: "crew" */
    int threads;      /* at most; 0: 8; 1024 at most */
    int64_t idle_ns;  /* how long a thread without a call stays; 0: ten seconds; below 0: until the crew ends */
    size_t waiting;   /* how many calls may wait for a thread; 0: any number */
} strand_crew_attr;

/** Attributes in the place of an argument: strand_crew_open(scope, STRAND_CREW_ATTR(.threads = 2, .name = "disk")). */
#define STRAND_CREW_ATTR(...) STRAND_SIZED_(strand_crew_attr, __VA_ARGS__)

/**
 * Open a crew in a scope. attr may be NULL. It has no thread before the first call. Throws STRAND_SYSTEM if memory is
 * refused. Owner of the scope only, unless it is open. Does not block.
 *
 * The crew ends when its scope has been left and all strands of it have ended. Who leaves the scope then waits,
 * uninterruptibly, for the functions that run there yet, those that were left by their callers among them, and for the
 * ends of its threads; calls of strangers that still wait for a thread throw STRAND_SYSTEM with -ECANCELED. So leaving
 * it in a STRAND_NO_SUSPEND section is misuse.
 */
strand_crew strand_crew_open(strand_scope scope, const strand_crew_attr *attr);

/** Figures of a crew, as they were at one moment. */
struct strand_crew_info {
    size_t size;    /* sizeof(struct strand_crew_info); required */
    size_t threads; /* that exist, or are being made */
    size_t idle;    /* of these: without a call */
    size_t running; /* of these: in a function, or in what is called after it (strand_offload_attr) */
    size_t waiting; /* calls that no thread has taken up */
    size_t most;    /* threads, at most */
};
/** Fill in those figures that the struct has room for; {0} is the run's own crew. Does not suspend. */
void strand_crew_info_get(strand_crew crew, struct strand_crew_info *info);

/**
 * Run fn(arg) on a thread of the run's crew, where it may block as long as it likes, and wait for it. Returns what fn
 * returned. Interruptible until a crew thread has taken it up; from then on it is waited for, uninterruptibly, because
 * fn works on the caller's memory. Throws STRAND_SYSTEM if memory is refused, or if no thread can be had and there is
 * none.
 */
STRAND_BLOCKS void *strand_offload(strand_fn *fn, void *arg);
/** The same on a thread of that crew; {0} is the run's own. Throws STRAND_SYSTEM with -ENOBUFS too, if as many calls
 *  wait there as may. A stale handle, and one of another run, is misuse. */
STRAND_BLOCKS void *strand_offload_on(strand_crew crew, strand_fn *fn, void *arg);

/**
 * What a call may be told. Zero is the default of each.
 *
 * `release` and `drop` are called after the call was left, in nobody's strand, on any thread; they may neither block
 * nor throw, which is misuse, and so are those that `stop` may not.
 */
typedef struct strand_offload_attr {
    size_t size;      /* sizeof(strand_offload_attr); required */
    strand_crew crew; /* {0}: the run's own */
    void *answer; /* the arguments are copied back to here when fn has returned; may be `args`; NULL: they are not */
    /* If the call throws, for whatever reason: called once with the arguments (with `args`, if they were not copied
     * yet), when fn has returned or is known never to be called. NULL: nothing is to be given back. */
    void (*release)(void *args);
    /* Before that, gets what fn returned, if it was called: the result of a call that was left. NULL: nothing is. */
    void (*drop)(void *result);
    /* Called once by a caller who is interrupted while fn runs, with fn's arguments: has fn return early, as
     * sqlite3_interrupt and PQcancel do, or by a flag in the arguments. fn may be about to begin, or have returned:
     * what it uses lasts until `release`. */
    void (*stop)(void *args);
    /* fn works on memory of the caller's: once a thread has taken it up it is waited for, as by strand_offload, after
     * `stop` if there is one, and the call returns its result. */
    bool borrows;
} strand_offload_attr;

/** Attributes in the place of an argument; in C++ in the order of the fields. For example:
 * STRAND_OFFLOAD_ATTR(.crew = disk, .drop = free). */
#define STRAND_OFFLOAD_ATTR(...) STRAND_SIZED_(strand_offload_attr, __VA_ARGS__)

/**
 * Run fn on a thread of a crew with a copy of its arguments, and wait for it. size bytes of `args` are copied; fn gets
 * the address of the copy, which lasts until fn has returned, whatever becomes of the caller. With size 0, fn gets
 * `args` itself. Returns what fn returned; a result inside of the copy comes back as the same place in attr->answer, or
 * as NULL without one. attr may be NULL.
 *
 * Interrupted, the caller goes on at once. If no thread has taken the call up, fn is never called; else it is left to
 * the crew: what fn returns goes to attr->drop, and the end of the crew, or of the run, waits for it. The attributes
 * have more: what is to become of things that the arguments hold, how fn learns that nobody waits for it, and
 * `borrows`, with which it is waited for.
 *
 * Throws as strand_offload_on does.
 */
STRAND_BLOCKS void *strand_offload_with(const strand_offload_attr *attr, strand_fn *fn, const void *args, size_t size);

#ifdef __cplusplus
}
#endif
#endif
