/*
 * External events: descriptors, sockets, signals, and calls that block their thread.
 *
 * Which callers:
 *
 *   any thread                       strand_pipe, strand_shutdown, strand_peer_address, strand_tcp_port
 *   the owner of the scope, or any   strand_crew_open
 *   strand if the scope is open
 *   strands of the block's run       strand_wait_signal, strand_on_signal
 *   any strand                       all other functions
 *   a signal handler                 no function
 *
 * Suspension: functions marked STRAND_BLOCKS may suspend the caller and are cancellation points. strand_close and
 * strand_forget may suspend it and are none. All other functions never suspend.
 *
 * Cost: the system calls that a function stands for, and less than 100 ns beside them, unless a function says
 * otherwise. A call that waits adds a switch to another strand and a share of a call of epoll_wait(2). The first use of
 * a descriptor and the first wait for it add a few system calls.
 */
#ifndef STRAND_IO_H
#define STRAND_IO_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- descriptors ----------------------------------------------------------------------------------------- */

/*
 * These calls suspend the strand, and not its thread, until a descriptor is ready. They work on any descriptor of the
 * process: sockets, pipes, terminals, and descriptors of other libraries. Descriptors made here are non-blocking and
 * closed on exec; the library changes no flags of other descriptors, unless a function's text says so. Close a
 * descriptor that strands have used by strand_close, in the run that has used it; before another library closes one,
 * call strand_forget. Several strands may use one descriptor; readers and writers are each served in FIFO order.
 * Buffers may lie on the caller's stack.
 *
 * Results are numbers of bytes or negated errno codes; -EBADF also means that the descriptor was closed meanwhile.
 * SIGPIPE is never raised. After a fork the child must not continue to use strands, because it shares their descriptors
 * with the parent. In a seeded run, pipes and sockets made here lie in memory (strand/sim.h). Other descriptors stay
 * the system's: a seeded run that uses them cannot be repeated exactly, and virtual time follows real time while all
 * strands wait.
 */

/** Read from a descriptor into `buffer`: at least one byte and at most `size` bytes. With size 0 nothing is read.
 * Returns the number of bytes, 0 at the end of the stream, or a negated errno code. An interrupted call has read
 * nothing. Cost: one call of read(2) or recv(2), and another one after a wait. */
STRAND_BLOCKS int64_t strand_read(int fd, void *buffer, size_t size);
/** Read from a descriptor until `buffer` has `size` bytes, the stream ends, or an error occurs. Returns the number of
 * bytes in the buffer; fewer than `size` mean the end, or an error that the next read returns. Returns a negated errno
 * code if the error comes before the first byte. An interruption may come between two parts; the exception then tells
 * how many bytes the buffer has (strand_exception_progress). Cost: a system call for each part that arrives. */
STRAND_BLOCKS int64_t strand_read_all(int fd, void *buffer, size_t size);
/** Write up to `size` bytes at `bytes` to a descriptor, at least one. Returns the number of bytes written, or a negated
 * errno code. An interrupted call has written nothing. Cost: one call of write(2) or send(2), and another one after a
 * wait. */
STRAND_BLOCKS int64_t strand_write(int fd, const void *bytes, size_t size);
/** Write the `size` bytes at `bytes` to a descriptor. `bytes` belongs to the caller and must stay unchanged until the
 * call returns; it may lie on the caller's stack. Returns `size`, or a negated errno code; the number of bytes written
 * before an error is unknown (call strand_write in a loop to know it). An interruption may come between two parts; the
 * exception then tells how many bytes were written (strand_exception_progress). Cost: a system call and a wait for each
 * part that the descriptor accepts at once. */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_write_all(int fd, const void *bytes, size_t size);

/** What strand_splice has moved, by one or several calls. {0} at first. */
typedef struct strand_spliced {
    uint64_t moved; /* bytes that `to` has got: each call adds to it, also if it fails or is interrupted */
    /* Bytes that were taken from `from`, and that `to` has not got. The next call moves them first. The
     * memory is of malloc(3), and the caller frees it; NULL if there are none. */
    char *rest;
    size_t rest_size;
} strand_spliced;
/**
 * Move bytes from one descriptor to another, until `size` bytes have gone or `from` ends; UINT64_MAX: until it ends.
 * Each of them may be a stream socket, a pipe, a terminal or a file, also both the same socket. A file is read and
 * written at the position of its descriptor, which moves, or written at its end if it was opened with O_APPEND. The
 * system moves the bytes (splice(2)), without copying them through the program, between sockets and pipes and from
 * these to files, if it can and if no socket blocks; from a file it sends them (strand_file_send). Otherwise, and in a
 * seeded run, the call reads and writes.
 *
 * The call waits until `from` has bytes and `to` has room. It does not notice that the reader of `to` has gone before
 * there are bytes to write. Strands that read `from` or write to `to` meanwhile get, or mix in, parts of the stream;
 * the position of a file belongs to the call until it ends.
 *
 * If the call is interrupted or fails, up to 1 MiB may have been taken from `from` that `to` has not got. *spliced has
 * these bytes then, and how many bytes `to` has got: nothing is lost, and a call with the same *spliced goes on, also
 * to another descriptor. A caller may put bytes there itself, such as those that it has read behind a header. `spliced`
 * may be NULL if the streams are of no use after an interruption or an error: the bytes are dropped then.
 *
 * Returns the number of bytes that `to` got from this call; fewer than `size`: `from` has ended. Or a negated errno
 * code, also after some bytes: -EPIPE: nobody reads `to`; -EPROTOTYPE: a socket that keeps messages apart (datagrams,
 * SEQPACKET); -EINVAL: the file `from` was opened with O_DIRECT; -ENOMEM. An interruption may come between two parts
 * and while the call waits; the exception tells how many bytes `to` has got (strand_exception_progress).
 *
 * Cost: for each part of up to 1 MiB that is there at once, six system calls; eight and a pipe of its own (two
 * descriptors; without them it reads and writes) if neither is a pipe. A part that goes to a file adds a round trip to
 * another thread.
 */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_splice(int from, int to, uint64_t size, strand_spliced *spliced);

/** The events of a descriptor: a read would not block; a write would not block; the other side has closed its sending
 * half or the connection has broken, even if there are bytes to read. */
enum strand_ready_event { STRAND_READABLE = 1, STRAND_WRITABLE = 2, STRAND_GONE = 4 };
/** Wait for an event on a descriptor, for calls of other libraries. An interrupted call has no effect. Returns 0, or a
 * negated errno code. Cost: a call of poll(2), and another one after a wait. */
STRAND_BLOCKS int strand_wait_ready(int fd, enum strand_ready_event event);

/** Make the case that a descriptor has an event. It waits in the same queue as readers or writers, so no other strand
 * was notified of the event when it happens. Somebody else may have taken what was there before the strand runs:
 * another process that shares the descriptor, or a strand that reads from a copy of it (dup(2)). The case's result is
 * that of strand_wait_ready. Cost: a few ns; the select makes a call of poll(2) if the event may have happened, and one
 * after a wait. In a run of one thread it makes none for the bytes of an accepted connection. */
strand_case strand_on_ready(int fd, enum strand_ready_event event);

/**
 * Close a descriptor. The open file is closed at once, even while strands wait for it or make calls on it; these get
 * -EBADF. The system gets the number back when they have returned, so that none of their calls reaches a descriptor
 * that is opened with the same number. (If the process has no free descriptor at that moment, both happen then.) The
 * call is never interrupted. Returns 0, or a negated errno code; it fails only for a number that is not open.
 *
 * If the socket has SO_LINGER with a time, the number is free at once. The strand, but not its thread, waits until the
 * peer has taken what was sent or the time is over. Where nothing may suspend, or without a free descriptor or thread,
 * the call switches the option off and returns at once; the system continues to send.
 */
int strand_close(int fd);
/**
 * Tell the run that another library is about to close a descriptor, or has just closed it. The run drops its record of
 * the number, and strands that wait for it get -EBADF; the number itself is not changed. The call returns when no
 * strand of this run makes a call on the descriptor any more. The next use of the number makes a new record. Without
 * this call, the library recognises a reused number in two cases: at once if it makes the new descriptor itself, and
 * before a strand waits for it if another library made the old one. Strands that still wait for the old one get -EBADF
 * then. In any other case the new descriptor is taken for the old one. If another library made and closed it, and the
 * number is not used again, a call that would wait returns -EBADF. A number that no strand has used is ignored. The
 * call suspends and is never interrupted; in a no-suspend section it is misuse. Cost: O(1).
 */
STRAND_SECTION_EXCLUDES_ void strand_forget(int fd);
/** Make a pipe: read from fds[0], write to fds[1]. Both are non-blocking and closed on exec; the caller closes them
 * (strand_close). Any thread may call it. Returns 0 or a negated errno code. */
int strand_pipe(int fds[2]);

/* ---- sockets --------------------------------------------------------------------------------------------- */

/** Accept a connection. The call makes the listener non-blocking. Returns a descriptor, which is non-blocking and
 * closed on exec and which the caller closes (strand_close), or a negated errno code. With -EMFILE, -ENFILE, -ENOBUFS
 * or -ENOMEM the connection stays in the queue: a server sleeps a little and tries again. An interrupted call has
 * accepted none. Cost: about three system calls for each connection, and a wait if none is in the queue. */
STRAND_BLOCKS int strand_accept(int listener);
/** Connect a socket to an address of `length` bytes (a struct sockaddr). The call makes the socket non-blocking. While
 * the queue of a Unix listener is full, it tries again at growing intervals of up to 20 ms. A call that is interrupted
 * while it waits may have reached the other side: the socket is useless then and must be closed. Returns 0, or a
 * negated errno code (-ECONNREFUSED, ...). Cost: two or three system calls and the wait for the other side. */
STRAND_BLOCKS int strand_connect(int fd, const void *address, uint32_t length);
/** Shut down one or both directions of a connection. `how` is SHUT_RD (no more reads), SHUT_WR (no more writes: the
 * peer reads the end of the stream) or SHUT_RDWR, as for shutdown(2). The descriptor stays open. The call does not wait
 * for the peer. Any thread may call it. Returns 0 or a negated errno code. Cost: one system call. */
int strand_shutdown(int fd, int how);

/**
 * Make a listening socket for TCP. `host` is a number or a name; "" means all addresses of this machine, of both
 * versions of the protocol. Port 0 means any free port (strand_tcp_port). The call uses the host's first address that
 * works. An interrupted call leaves no socket behind.
 *
 * One of at most eight threads that do nothing else looks names up, so a look-up does not wait behind calls of
 * strand_offload. An interrupted caller continues at once and leaves the question to the thread; the end of the run
 * waits for the answer.
 *
 * Returns a descriptor, or a negated errno code: that of the last address, of a system call, or:
 *  - -EINVAL: there is no such port,
 *  - -ENOENT: there is no such host, or its name servers refuse,
 *  - -EHOSTUNREACH: there is no answer at present; there may be one later,
 *  - -ENOMEM: there is no memory.
 *
 * Throws STRAND_SYSTEM if the system refuses a thread. The caller closes the descriptor (strand_close). Only looking up
 * a name suspends; a number is parsed at once. Cost: about five system calls; for a name also a wake-up of a thread and
 * the look-up itself.
 */
STRAND_BLOCKS int strand_listen_tcp(const char *host, int port);
/**
 * Connect by TCP to the first of the host's addresses that answers; "" means this machine. The call tries the addresses
 * one after the other. Each but the last gets a part of the time until the caller's deadline: at most 5 s, and at least
 * 250 ms unless that is more than half of the time. The last address gets the rest. Names are looked up like those of
 * strand_listen_tcp. An interrupted call closes its socket. strand_names_dial (names.h) does not wait for one address
 * before it tries the next.
 *
 * Returns a descriptor, or a negated errno code: that of the last address, or of the name (strand_listen_tcp). The
 * caller closes the descriptor (strand_close). Cost: a few system calls for each address that it tries, and the look-up
 * of a name.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_dial_tcp(const char *host, int port);
/** Listen on a Unix socket. A path that begins with @ is an abstract name, for which there is no file. Otherwise the
 * call makes the file, which the caller has to remove. Returns a descriptor, which the caller closes (strand_close), or
 * a negated errno code. Cost: three system calls. */
int strand_listen_unix(const char *path);
/** Connect to a Unix socket. `path` is as for strand_listen_unix. An interrupted call closes its socket. Returns a
 * descriptor, which the caller closes (strand_close), or a negated errno code. Cost: a few system calls. */
STRAND_BLOCKS STRAND_CHECKED int strand_dial_unix(const char *path);
/**
 * Write the address of the peer of a connected socket as text:
 *
 *     192.0.2.7:40312            IPv4, also if the listener is for both versions of the protocol
 *     [2001:db8::7]:40312        IPv6, without a zone
 *     /run/app.sock, @app        a Unix socket; the empty text if the peer has no name, as most that connect have none
 *
 * `room` is the size of `text` in bytes; STRAND_PEER_ROOM is enough for any address, and a longer text is cut. `text`
 * may be NULL if `room` is 0. Any thread may call it. It does not suspend.
 *
 * Returns the length of the address, as snprintf does, or a negated errno code: -ENOTCONN if the socket is not
 * connected any more, or not yet; -ENOTSOCK; -EAFNOSUPPORT for another family of addresses. Cost: one system call.
 */
int strand_peer_address(int fd, char *text, size_t room);
#define STRAND_PEER_ROOM 128
/** Get the port that a TCP socket is bound to. Any thread may call it. Returns the port, or a negated errno code. Cost:
 * one system call. */
int strand_tcp_port(int fd);

/* ---- signals --------------------------------------------------------------------------------------------- */

/** A handle of a block of STRAND_SIGNALS. */
typedef struct {
    uint64_t bits[2];
} strand_signals;

/**
 * Deliver signals to strands until the enclosing block ends: STRAND_SIGNALS(ends, SIGINT, SIGTERM). Meanwhile the
 * signals have no other effect, but handlers that the program had installed are called as well. The end of the block
 * restores the former state. Blocks may overlap, also in different runs; each gets every signal. Any strand may open a
 * block; the block does not suspend. Cost: a descriptor and a few system calls for each block.
 *
 * The library handles a signal on whichever thread of the process the system delivers it to. A signal that all threads
 * block reaches no strand. No handler runs on a thread that runs only code of the library (the watchdog's, that of
 * dump_on_quit, and those that look up names, work on files and close sockets): they block signals. These signals are
 * misuse: those of faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT), SIGKILL and SIGSTOP, which no
 * program can wait for, and those that the C library uses.
 *
 * Throws STRAND_SYSTEM with -EMFILE or -ENFILE if there is no descriptor; with -ENOMEM if there is no memory; with
 * -EBUSY if the program installed a handler of its own for one of the signals after an earlier block had begun, and
 * that handler was still installed when the block ended. The library's handler is then below the program's, and to
 * install it twice could make a cycle of handlers.
 */
#define STRAND_SIGNALS(name, ...)                                                                                      \
    STRAND_BLOCK_BEGINS_ strand_signals name STRAND_CLEANUP_(strand_signals_leave_) =                                  \
        strand_signals_enter_(__VA_ARGS__, 0)

/**
 * Wait for the next signal of a block of STRAND_SIGNALS. The block keeps a signal that arrives while no strand waits,
 * such as between two calls, and the next call returns it at once. A signal that arrives again before a call has
 * returned it counts once, a real-time signal too. Different signals take turns in the order of their numbers. An
 * interrupted call has consumed none.
 *
 * Any strand of the run that opened the block may call it, on any thread, until the block is left. Each signal reaches
 * one of the strands that wait for the block. Calls of another run, or after the block was left, are misuse. Cost: at
 * most a few system calls for each signal.
 *
 * Returns the number of the signal. Throws STRAND_SYSTEM with -EBADF to a strand that waits when the block is left.
 */
STRAND_BLOCKS int strand_wait_signal(strand_signals signals);
/** Make the case that a signal of a block of STRAND_SIGNALS has arrived. The select consumes the signal and stores its
 * number in *number, unless that is NULL. *number and the block must last until the select returns. Cost: a few ns. */
strand_case strand_on_signal(strand_signals signals, int *number);

strand_signals strand_signals_enter_(int first, ... /* 0 */);
void strand_signals_leave_(strand_signals *signals);

/* ---- calls that block their thread ------------------------------------------------------------------------- */

/*
 * A crew is a pool of plain threads that make blocking calls while strands wait for their results. It starts a thread
 * when a call comes and no thread is idle, up to a maximum; further calls wait in FIFO order. A thread without a call
 * ends after a while. An idle thread uses no CPU time and wakes up once, to end.
 *
 * A run has a crew with at most options.max_offload_threads threads. Open further ones in scopes, so that calls of one
 * kind (to a disk, to a database) do not wait for those of another and their number is limited.
 *
 * An offloaded function may call strand_run and the functions that any thread may call. The function must return
 * normally: throwing and calling pthread_exit are misuse, and a C++ exception that leaves it ends the program
 * (std::terminate). The call happens before the function begins, and its end happens before the call returns.
 *
 * In a seeded run the threads of crews are simulated: the function runs on a stack of 8 MiB, in one step of the run
 * unless it calls the library. Idle threads end in virtual time.
 */

/** A handle of a crew. {0} is the run's own crew. A handle goes stale when the crew's scope has been left. */
typedef struct strand_crew {
    uint64_t bits[2];
} strand_crew;

/** The optional attributes of a crew. Zero is the default of each field but `size`. */
typedef struct strand_crew_attr {
    size_t size;        /* sizeof(strand_crew_attr); required */
    const char *name;   /* diagnostics only; copied, up to 31 bytes; threads get the first 15; NULL means "crew" */
    int max_threads;    /* the maximum number of threads, up to 1024; 0: 8 */
    int64_t idle_ns;    /* ns after which an idle thread ends; 0: ten seconds; below 0: when the crew ends */
    size_t max_waiting; /* the maximum number of calls that wait for a thread; 0: no limit */
} strand_crew_attr;

/** Write attributes as an argument, with `size` filled in: strand_crew_open(scope, STRAND_CREW_ATTR(.name =
 * "disk")). */
#define STRAND_CREW_ATTR(...) STRAND_SIZED_(strand_crew_attr, __VA_ARGS__)

/**
 * Open a crew in a scope. `attr` may be NULL. The crew starts its first thread with the first call. Only the owner of
 * the scope may call this function, or any strand of the run if the scope is open (STRAND_SCOPE_OPEN). It does not
 * suspend.
 *
 * The crew ends when its scope has been left and all strands of the scope have ended. The strand that leaves the scope
 * then waits uninterruptibly for the running functions, those of callers that went on included, and for the threads to
 * end. Calls of strands outside the scope that still wait for a thread throw STRAND_SYSTEM with -ECANCELED. Leaving the
 * scope in a no-suspend section is misuse.
 *
 * Returns the handle of the crew. Throws STRAND_SYSTEM if there is no memory, or (with -ECANCELED) if the scope is open
 * and has been left. Cost: an allocation.
 */
strand_crew strand_crew_open(strand_scope scope, const strand_crew_attr *attr);

/** Figures of a crew at one moment. */
typedef struct strand_crew_info {
    size_t size;        /* sizeof(strand_crew_info); required */
    size_t threads;     /* threads that exist or are being started */
    size_t idle;        /* threads without a call */
    size_t running;     /* threads in a function, or in `release`, `drop` (strand_offload_attr) */
    size_t waiting;     /* calls that wait for a thread */
    size_t max_threads; /* the maximum number of threads */
} strand_crew_info;
/** Read the figures of a crew into *info; {0} is the run's own crew. The caller sets info->size; the function fills in
 * the fields that this size covers. Cost: some tens of ns. */
void strand_crew_info_get(strand_crew crew, strand_crew_info *info);

/**
 * Run fn(arg) on a thread of the run's crew and wait for it. The function may block its thread as long as it likes. The
 * call is interruptible until a thread has begun the function; from then on it waits uninterruptibly, because the
 * function works on the caller's memory. Returns the result of fn, which the caller owns. Throws STRAND_SYSTEM if there
 * is no memory, or if the system refuses a thread and the crew has none. Cost: two wake-ups of a thread, together 40 to
 * 50 us, beside fn.
 */
STRAND_BLOCKS void *strand_offload(strand_fn *fn, void *arg);
/** Run fn(arg) on a thread of a crew and wait for it; {0} is the run's own crew. It waits and is interrupted like
 * strand_offload. Returns the result of fn. Throws what strand_offload throws, and STRAND_SYSTEM with -ENOBUFS if the
 * maximum number of calls waits there already. A stale handle, and one of another run, is misuse. Cost: that of
 * strand_offload. */
STRAND_BLOCKS void *strand_offload_on(strand_crew crew, strand_fn *fn, void *arg);

/**
 * The optional attributes of an offloaded call. Zero is the default of each field but `size`. `release` and `drop` are
 * called on any thread, outside of strands, after the caller has gone on. Blocking and throwing in them are misuse. So
 * is a `stop` that blocks or throws.
 */
typedef struct strand_offload_attr {
    size_t size;      /* sizeof(strand_offload_attr); required */
    strand_crew crew; /* {0}: the run's own */
    void *answer;     /* the arguments are copied back to here when fn has returned; may be `args`; NULL: no copy */
    /* Called once with the arguments if the call throws for any reason: when fn has returned, or will never be called.
     * It gets `args` itself if those were not copied yet. NULL: the arguments own nothing. */
    void (*release)(void *args);
    /* Called before `release` with the result of fn, if the caller has gone on and fn was called. NULL: the result owns
     * nothing. */
    void (*drop)(void *result);
    /* Called once with fn's arguments by a caller that is interrupted while fn runs: makes fn return early, as
     * sqlite3_interrupt and PQcancel do, or by a flag in the arguments. fn may be about to begin or may have returned;
     * what it uses lives until `release`. */
    void (*stop)(void *args);
    /* fn works on the caller's memory: once a thread has begun it, the call waits for it like strand_offload, after
     * `stop` if there is one, and returns its result. */
    bool borrows;
} strand_offload_attr;

/** Write attributes as an argument, with `size` filled in: STRAND_OFFLOAD_ATTR(.crew = disk, .drop = free). C++
 * requires the order of the fields. */
#define STRAND_OFFLOAD_ATTR(...) STRAND_SIZED_(strand_offload_attr, __VA_ARGS__)

/**
 * Run fn on a thread of a crew with a copy of its arguments, and wait for it. The call copies `size` bytes of `args`
 * and passes the address of the copy to fn; the copy lives until fn has returned, whatever happens to the caller. With
 * size 0 fn gets `args` itself. `attr` may be NULL.
 *
 * An interrupted caller goes on at once. If no thread has begun the call, fn is never called. Else the crew finishes
 * it: the result goes to attr->drop, and the end of the crew, or of the run, waits for it. The attributes say how to
 * release what the arguments own and how to make fn return early; with attr->borrows the caller waits.
 *
 * Returns the result of fn. A result that points into the copy becomes the same place in attr->answer, or NULL without
 * one. Throws what strand_offload_on throws. Cost: that of strand_offload, and O(size) for the copy.
 */
STRAND_BLOCKS void *strand_offload_with(const strand_offload_attr *attr, strand_fn *fn, const void *args, size_t size);

#ifdef __cplusplus
}
#endif
#endif
