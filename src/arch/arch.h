/*
 * The contract with the machine: everything that differs by processor or operating system, behind one header. Nothing
 * outside of src/arch knows the processor, and only src/arch makes system calls. Every function that can fail returns a
 * negated errno code; callers never read errno itself. This header says what the functions promise; the .c file named
 * after each section says how.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include "../base/atomic.h"
#include "../base/base.h"
#include "../base/index.h"

#include <stddef.h>
#include <stdint.h>

/* ---- context.c, context.h: execution contexts over Boost.Context ----------------------------------------- */

enum { ARCH_FRAME_R12 = 0x08 }; /* offset in a saved frame: context.h */
typedef void *arch_context;     /* a suspended context: the address of its saved frame, at the low end of its stack */

struct arch_transfer {
    arch_context from; /* the context that jumped here, suspended now */
    void *data;        /* what it passed */
};

extern struct arch_transfer jump_fcontext(arch_context to, void *data);
extern arch_context make_fcontext(void *top, size_t size, void (*entry)(struct arch_transfer));

/* Whether a switch between contexts with different exception flags in MXCSR is slow on this processor.
 * arch_process_start measures it once. */
extern HIDDEN bool arch_mxcsr_is_slow;

/* x86_64.S: continues with the function in r12, with a frame pointer of zero, where profilers stop. */
extern void arch_begin_(struct arch_transfer transfer);

/* Make a context that starts with entry on the stack [top - size, top); top is 16-aligned. entry never returns. */
static inline arch_context arch_context_make(char *top, size_t size, void (*entry)(struct arch_transfer))
{
    arch_context context = make_fcontext(top, size, arch_begin_);
    /* By assembler: for TSan the stack is already the new strand's. */
    __asm__ volatile("movq %1, %c2(%0)" : : "r"(context), "r"(entry), "i"(ARCH_FRAME_R12) : "memory");
    return context;
}

/* Suspend the caller and continue with `to`. Returns when another context jumps back, possibly on another thread. The
 * sticky exception flags of MXCSR are unspecified after it; rounding and masks are private to each context. */
static inline struct arch_transfer arch_context_jump(arch_context to, void *data);

/* Placed at the start of a context's entry function: unwinding and traces end at its frame. */
#define ARCH_STACK_ENDS_HERE() __asm__ volatile(".cfi_undefined rip")

/* The scheduler's record of the calling thread. Each call reads it again: a strand may resume on another thread, where
 * an address of a thread-local that the compiler has kept is wrong. */
static inline void *arch_self(void);
void arch_set_self(void *self);

/* ---- unwind.c: throwing, by libgcc_s's forced unwind -------------------------------------------------------- */

/* One unwinding in progress. Lives off the stack, from arch_unwind until a landing pad is left by arch_longjmp. */
struct arch_flight {
    uint64_t unwind_exception[4] __attribute__((aligned(16))); /* struct _Unwind_Exception */
    /* Called when a C++ catch (...) has taken the exception and did not rethrow it. aside: as in struct arch_thrown. */
    void (*caught)(struct arch_flight *flight, bool aside);
    struct arch_thrown *thrown; /* in a program with C++: arch_flight_wrap; NULL: not wrapped */
};
/* The word of unwind_exception that receives, before arch_unwind, the generation that arch_trace_throw returned; 0:
 * no trace was taken. */
enum { ARCH_FLIGHT_GENERATION = 3 };

/* Run the landing pads (clean-ups, destructors) of all frames from the caller's outwards, until one of them leaves by
 * arch_longjmp. The stop function never stops (contract §9). Also the public symbol strand_unwind_ (assembler,
 * x86_64.S). */
__attribute__((noreturn)) void arch_unwind(struct arch_flight *flight);

/* ---- exits.c: threads that are made to end ---------------------------------------------------------------- */

/* Call fn(arg). If pthread_exit or pthread_cancel ends the thread meanwhile, on whatever stack, the function set by
 * arch_on_exit is called there, before any clean-up. It must not return. */
void arch_exits_watched(void (*fn)(void *), void *arg);
void arch_on_exit(void (*on_exit)(void));

/* ---- cxx.c: with a C++ runtime --------------------------------------------------------------------------- */

/* The functions of src/strand for thrown objects. */
struct arch_thrown_ops {
    void (*keep)(void *what); /* one more reference */
    void (*release)(void *what);
    void (*again)(struct arch_flight *flight);   /* it was set aside, and has been rethrown */
    void (*escapes)(struct arch_flight *flight); /* it gets beyond the limit */
};

/* The C++ object that is thrown. */
struct arch_thrown {
    struct arch_flight *flight; /* NULL: it has landed; a std::exception_ptr may keep this object longer */
    const struct arch_thrown_ops *ops;
    void *what;            /* the flight's reference, unless `owns` */
    void (*dispose)(void); /* the runtime's destructor of the object */
    uintptr_t frame;       /* the frame that is being unwound */
    uintptr_t limit;       /* the outermost frame that it may reach; 0: no limit */
    uintptr_t beyond;      /* the function of that frame, once it is there */
    bool aside;            /* a C++ handler has it, and its strand knows */
    bool owns;             /* has a reference to `what`: a C++ handler had it, so a std::exception_ptr may keep it */
};

/* In a program with C++, before arch_unwind: make the thrown exception a C++ exception as well, which C++ handlers can
 * count, nest, rethrow and keep. Returns false if there is no such runtime. */
bool arch_flight_wrap(struct arch_flight *flight, void *what, const struct arch_thrown_ops *ops);
/* Whether a C++ handler has it, and has not rethrown it. */
bool arch_flight_is_caught(const struct arch_flight *flight);
/* The strand has caught it: C++ considers it handled. Returns false if a handler further out has rethrown it and holds
 * it again: it is set aside. */
bool arch_flight_land(struct arch_flight *flight);
/* Replace what it carries. The caller holds references to both. */
void arch_flight_swap(struct arch_flight *flight, void *what);

/* A clean-up that leaves its frame by arch_longjmp instead of returning, unless it lets the exception pass. */
struct arch_catcher {
    void (*function)(void);
    const char *name; /* in the table of symbols */
    /* How many of these clean-ups, in frames at and above the address, let the exception pass before one catches it. */
    unsigned (*count_passed)(const struct arch_catcher *catcher, uintptr_t from);
};
/* landing.c. Whether an exception thrown here would end the program in a noexcept function, before it reaches a handler
 * (of C++, or a catcher) or the frame that contains `limit`. Returns the address that the call in that function returns
 * to, or NULL. Walks over the frames, and reads the code of their landing pads. */
void *arch_unwind_ends_at(const void *limit, const struct arch_catcher *catcher);

/* Leave by a jump to a frame that saved itself in jump: form 0 by __builtin_setjmp, compiled with or without
 * -fcf-protection, form 1 by strand_setjmp_. That is also a public symbol (assembler, x86_64.S). */
__attribute__((noreturn)) void arch_longjmp(void **jump, uint32_t form);
/* The stack pointer of the frame that saved itself in jump. */
const void *arch_jump_stack(void *const *jump, uint32_t form);

/* A C++ exception that has left a function. */
struct arch_foreign {
    void *kept;       /* a std::exception_ptr, which the caller owns */
    void *ours;       /* the argument of arch_flight_wrap if it was wrapped there; no reference */
    const char *what; /* what() of a std::exception, or NULL; valid as long as it is kept */
    const char *type; /* the mangled name */
};
/* Call fn(arg) through a frame that catches every C++ exception and calls on_foreign, which does not return. */
void *arch_call(void *(*fn)(void *), void *arg);
void arch_on_foreign(void (*on_foreign)(const struct arch_foreign *foreign));
void arch_foreign_drop(void *kept);
/* Throw it as C++ does; the caller keeps owning `kept`. */
__attribute__((noreturn)) void arch_foreign_rethrow(void *kept);
/* Called when arch_unwind reaches a function, with an address in it, that has no unwind tables, so its caller is
 * unknown. The program ends afterwards. */
void arch_on_lost(void (*on_lost)(void *ip));
/* The mangled name of the type of the C++ exception that a handler has, including the runtime's own handler at the end
 * of the program. NULL: no handler has any. */
const char *arch_cxx_handled(void);
/* Called when the C++ runtime terminates the program, between arch_signals_enter and leave; then the handler that was
 * there before runs. Has no effect in a program without a C++ runtime. */
void arch_on_terminate(void (*on_terminate)(void));

/* The two words of the calling thread's C++ exception state (__cxa_get_globals), or NULL in a program without it. */
struct arch_cxx {
    void *caught;
    uintptr_t uncaught; /* an unsigned int, padded */
};
struct arch_cxx *arch_cxx_globals(void);
/* A C++ file names its runtime: the functions, in the order of cxx_find.c, and std::exception. False: strands use
 * another one. */
bool arch_cxx_announce(void (*const *functions)(void), unsigned count, const void *base);
/* The program has a C++ runtime, without what it takes to carry exceptions of C++ that leave a function. */
bool arch_cxx_lacks_functions(void);
/* Look for the runtime: a library loaded meanwhile may have brought it. Takes the process's lock. */
void arch_cxx_refresh(void);
/* A number that changes when the calling thread first uses a thread-local variable of a library loaded since: at the
 * latest when the thread first throws or catches by a new C++ runtime. */
static inline uint64_t arch_locals_generation(void);

/* ---- trace.c: stack traces -------------------------------------------------------------------------------- */

/* Store the return addresses of the calling thread's frames, innermost first. Returns how many. All variants leave out
 * frames of the library itself at both ends, but keep them between others. A few ns per frame. */
size_t arch_trace(void **ips, size_t max);
/* Likewise, before a throw: *generation receives what ARCH_FLIGHT_GENERATION is for. */
size_t arch_trace_throw(void **ips, size_t max, uint32_t *generation);
/* Likewise, for a suspended context. If `saved` is not NULL, memory [saved_base, saved_base + saved_size) is read
 * there. */
size_t arch_trace_context(arch_context context, const void *saved, uintptr_t saved_base, size_t saved_size, void **ips,
                          size_t max);
/* Likewise, for many contexts: most have the same return addresses at the same distances as an earlier one. The result
 * for one context is kept, and compared with the next one word by word: some ns per frame. Its stack ends at `top`. The
 * patterns start as zeros. */
struct arch_patterns;
size_t arch_patterns_size(void);
size_t arch_trace_alike(struct arch_patterns *patterns, arch_context context, const void *saved, size_t saved_size,
                        const char *top, void **ips, size_t max);
/* Likewise, for the code that a signal interrupted; ucontext as a SA_SIGINFO handler gets it. Async-signal-safe as far
 * as libunwind is. */
size_t arch_trace_signal(void *ucontext, void **ips, size_t max);
/* Likewise, for the result of arch_ask. */
struct arch_asked;
size_t arch_trace_asked(const struct arch_asked *asked, void **ips, size_t max);
/* Write the name of the function around ip to buf (NUL-terminated, shortened to fit; also static functions if the
 * symbol table has them), and ip's distance from the function's start to *offset. False if unknown: then buf has the
 * name of the object, and *offset is an address for addr2line; or buf is "?", and *offset is ip. */
bool arch_symbol(void *ip, char *buf, size_t size, uintptr_t *offset);
/* Demangle a C++ name from arch_symbol if the C++ runtime is there; other names stay. Calls malloc. */
void arch_demangle(char *name, size_t size);

/* ---- names.c: source names of addresses --------------------------------------------------------------------- */

/* For one print. NULL, which the two functions below accept: only symbols are known, because a tool watches the
 * program, the caller is a signal handler, or there is no memory. */
struct arch_names;
struct arch_names *arch_names_open(void);
/* As arch_symbol, but demangled, and with "file:line" of the call that returns to ip, or "". Takes milliseconds the
 * first time, then microseconds. */
void arch_names_find(struct arch_names *names, void *ip, char *name, size_t name_size, uintptr_t *offset, char *line,
                     size_t line_size);
void arch_names_close(struct arch_names *names);

OWN_INLINE const char *arch_stack_pointer(void)
{
    const char *sp;
    __asm__("movq %%rsp, %0" : "=r"(sp));
    return sp;
}

/* ---- memory.c: mappings, guards -------------------------------------------------------------------------- */

size_t arch_page_size(void);
/* Clear all vector registers. */
void arch_vectors_clear(void);
/* Map zeroed private memory, without reserving it, and never in huge pages. *out is page-aligned. */
int arch_map(size_t bytes, void **out);
/* Unmap. If the process is at its limit of mappings, the addresses stay mapped, and only the pages are released. */
void arch_unmap(void *at, size_t bytes);
/* Release the pages to the system; the range stays mapped and reads zero. Guards survive. */
void arch_discard(void *at, size_t bytes);

/* Copy memory that may have been unmapped meanwhile. Returns false if it was, or if the system can't copy safely. */
bool arch_peek(void *to, const void *from, size_t bytes);
/* Likewise, for a text, shortened to fit. */
bool arch_peek_text(char *to, size_t size, const char *from);

/* How many bytes of this range are backed by pages. */
size_t arch_resident(char *begin, const char *end);
/* On a stack whose lowest address is `low`: how many bytes below `top` have been written since it was zero, or the last
 * call. Zero words at the low end look like fresh memory, and count as unwritten. Memory below the caller's frame is
 * zero afterwards. */
size_t arch_stack_used(char *low, const char *top);

enum arch_guard { ARCH_GUARD_PAGE = 1, ARCH_GUARD_MAPPING = 2 };
/* Make the page at `page` fault: by guard-install, or else by mprotect as long as all guards of the process together
 * take no more than half of vm.max_map_count (limit_mappings) or as the system allows (!limit_mappings). Returns an
 * arch_guard or a negated errno code (-ENOMEM at the limit). */
int arch_guard_install(void *page, bool limit_mappings);
/* Likewise, as ARCH_GUARD_PAGE, for `count` pages that are `apart` bytes apart, by one system call. Returns how many of
 * them, the first ones, are guards now: 0 if that is not possible. */
size_t arch_guards_install(char *first, size_t apart, size_t count);
/* Remove a guard before reuse as ordinary memory. guard: what install returned. */
void arch_guard_remove(void *page, int guard);
/* Uncount guards of the kind ARCH_GUARD_MAPPING that arch_unmap has removed together with the memory around them. */
void arch_guards_unmapped(size_t count);

/* ---- wait.c: futex, clock, poller, processors ------------------------------------------------------------ */

#define ARCH_FOREVER INT64_MAX

int64_t arch_clock_ns(void); /* CLOCK_MONOTONIC */
int64_t arch_date_ns(void);  /* CLOCK_REALTIME */
void arch_nap(int64_t ns);   /* suspends the whole thread */
uint64_t arch_ticks(void);   /* a cheap counter of constant rate (the time-stamp counter, or else the clock) */
uint64_t arch_ticks_per_ms(void);

/* Sleep while *word == expected, until a wake-up or the instant deadline_ns (ARCH_FOREVER: none). Wake-ups may be
 * spurious. Returns 0 or -ETIMEDOUT. Only threads of this process. */
int arch_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);
/* Returns how many threads were woken. Async-signal-safe; preserves errno. */
int arch_futex_wake(_Atomic uint32_t *word, int threads);

/* A wait for descriptors that another thread can end. One thread at a time waits. */
struct arch_poller {
    int epoll, kick, timer;
    int64_t armed; /* the instant that the timer is set to; ARCH_FOREVER: none */
};
/* Two values of `data` that are reserved. */
#define ARCH_POLLER_KICK UINT64_MAX
#define ARCH_POLLER_TIMER (UINT64_MAX - 1)
struct arch_event {
    uint64_t data;   /* as registered */
    uint32_t events; /* ARCH_IN, ARCH_OUT, ARCH_END */
};
int arch_poller_open(struct arch_poller *poller);
void arch_poller_close(struct arch_poller *poller);
/* In the child of a fork, which shares the poller with the parent: arch_poller_wait returns 0 at once, even if a signal
 * handler stood just before its system call and has forked. */
void arch_poller_orphan(const struct arch_poller *poller);
/* Wait until the instant deadline_ns (0: not at all), with nanosecond precision and no timer slack if the system has
 * it. Stores up to max events in out. Returns how many; 0 after a time-out, a kick or EINTR. */
int arch_poller_wait(struct arch_poller *poller, struct arch_event *out, int max, int64_t deadline_ns);
/* Set the timer without waiting: the poller's descriptor becomes readable at that instant. */
void arch_poller_arm(struct arch_poller *poller, int64_t deadline_ns);
/* End the current or the next wait. Any thread. Async-signal-safe; preserves errno. */
void arch_poller_kick(struct arch_poller *poller);
/* Whether there are events of registered descriptors; they stay pending. Any thread. The current or next wait may
 * return early. */
bool arch_poller_has_events(struct arch_poller *poller);
/* Readiness of a descriptor, both ways, as bits of arch_event.events. An error or a hang-up is readiness both ways. */
enum { ARCH_IN = 1, ARCH_OUT = 2, ARCH_END = 4 }; /* ARCH_END: the peer sends no more, or there is an error */
/* Report changes of readiness (edge-triggered), beginning with the current state. Any thread. Returns 0 or a negated
 * errno code: -EPERM: its readiness can't be waited for (a regular file); -EEXIST: it is watched already. */
int arch_poller_add(struct arch_poller *poller, int fd, uint64_t data);
/* Likewise, of a descriptor that only becomes readable. */
int arch_poller_add_in(struct arch_poller *poller, int fd, uint64_t data);
int arch_poller_remove(struct arch_poller *poller, int fd);
/* Whether the number still refers to the object that was added: a registration ends with its object. Its current state
 * is reported once more. Any thread. */
bool arch_poller_has(struct arch_poller *poller, int fd, uint64_t data);

/* ---- uring.c: io_uring, calls that the kernel makes ----------------------------------------------------------- */

struct iovec;

/* Calls are added to a queue that the kernel shares, and begin when a thread enters the ring, in their order. The
 * kernel reports each end once, in no particular order. The owner of the ring serialises all functions but
 * arch_uring_enter. */
struct arch_uring {
    int fd;
    bool refuses;           /* entering has failed for good: a sandbox that the program has put on meanwhile */
    uint64_t able;          /* a bit for each enum arch_uring_kind */
    uint32_t entries, room; /* calls that fit into the queue; calls whose ends fit into the other one */
    uint64_t added;         /* the position behind the last call that was added */
    void *rings, *calls;
    size_t rings_size, calls_size;
    _Atomic uint32_t *sq_head, *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    struct io_uring_cqe *ends;
};

enum arch_uring_kind {
    ARCH_URING_READ,     /* pointer, size, offset */
    ARCH_URING_WRITE,    /* pointer: the list of buffers; size: how many */
    ARCH_URING_SYNC,     /* flags: data only */
    ARCH_URING_ALLOCATE, /* flags, offset, size */
    ARCH_URING_CANCEL,   /* pointer: `data` of the call */
    ARCH_URING_KINDS
};
struct arch_uring_call {
    enum arch_uring_kind kind;
    int fd, flags;
    int64_t offset, size;
    const void *pointer;
};
struct arch_uring_end {
    void *data;
    int32_t result; /* as that of the system call, or -ECANCELED */
};

/* Returns 0, or a negated errno code: the kernel is too old, or has no such calls for this process. */
int arch_uring_open(struct arch_uring *ring);
/* No call is under way. */
void arch_uring_close(struct arch_uring *ring);
/* In the child of a fork: the ring is the parent's, and the child does not reach it again. other: any descriptor that
 * is no ring. */
void arch_uring_orphan(struct arch_uring *ring, int other);
/* Add a call. What it points to stays until its end; data: not NULL, and unique among the calls under way. A cancel has
 * no data, and reports no end. Returns the call's position, or -EAGAIN: the queue is full, or so many ends may come
 * that they would not find room. */
int64_t arch_uring_add(struct arch_uring *ring, const struct arch_uring_call *call, void *data);
/* How many calls were added and have not begun. While a thread enters the ring, the number may be too high. */
uint32_t arch_uring_waiting(const struct arch_uring *ring);
/* Take back a call. No thread enters the ring meanwhile. Returns false if it has begun. */
bool arch_uring_take_back(struct arch_uring *ring, int64_t position);
/* Begin `count` calls; then, if waits, wait for an end. Any thread. Returns how many have begun, or a negated errno
 * code: after -EAGAIN, -EBUSY and -EINTR the caller takes the ends and tries again. */
int arch_uring_enter(struct arch_uring *ring, unsigned count, bool waits);
/* Whether there are ends to be taken. Any thread, at any time. */
bool arch_uring_has_ends(const struct arch_uring *ring);
/* Take ends, up to `most`. Returns how many. */
int arch_uring_take(struct arch_uring *ring, struct arch_uring_end *out, int most);
/* How many threads the kernel has made in this process for such calls; 0: it has made none, or they can't be seen. */
int arch_uring_workers(void);
/* Remove a call that has not begun and never will. No thread enters the ring meanwhile, or again. Returns its data, or
 * NULL: there is none. */
void *arch_uring_take_refused(struct arch_uring *ring);

/* ---- fd.c: descriptors. None of these calls waits on a non-blocking descriptor ------------------------------ */

/* Adopt a descriptor that the library has opened for itself, or -1 and errno: never one of the first three, which a
 * program started without them takes for the standard ones. Closes on exec. Returns the descriptor, or a negated errno
 * code. */
int arch_fd_own(int fd);
/* One more descriptor of the same open file description. */
int arch_fd_twin(int fd);

struct iovec;
enum arch_fd_type {
    ARCH_FD_SOCKET, /* may block, but each call can avoid that */
    ARCH_FD_TCP,    /* likewise; a read that gets less than it had room for has drained it */
    ARCH_FD_OTHER,  /* as a socket where the system allows that; otherwise it is polled first, then called */
    ARCH_FD_FILE,   /* always ready, however long it takes */
    ARCH_FD_DIRECT, /* likewise, past the system's memory (O_DIRECT): the buffers have to be aligned */
    ARCH_FD_PLAYED  /* simulated by a seeded run (sched/fds.h) */
};
/* The object behind a number. inode 0: it has none of its own (eventfd, ...), so others of the type look the same. */
struct arch_fd_object {
    uint64_t device, inode;
};
/* Returns 0 or a negated errno code. */
int arch_fd_object(int fd, struct arch_fd_object *out);
/* Returns an enum arch_fd_type, or a negated errno code: -EBADF also for O_PATH, on which no call works. The blocking
 * mode of a descriptor is shared with other users, so it is not changed, and they may change it at any time. A terminal
 * that blocks is opened once more for the library's calls: *own is that descriptor, or -1. */
int arch_fd_type(int fd, int *own, struct arch_fd_object *object);
/* Returns the bytes moved (reading: 0 at the end), or a negated errno code: -EAGAIN: not ready. Retries after EINTR,
 * and never raises SIGPIPE. */
int64_t arch_fd_read(int fd, enum arch_fd_type type, void *buffer, size_t size);
int64_t arch_fd_write(int fd, enum arch_fd_type type, const void *buffer, size_t size);
/* Likewise with several parts, one of which is not empty; together they have less than 2 GiB. */
int64_t arch_fd_readv(int fd, enum arch_fd_type type, const struct iovec *parts, int count);
int64_t arch_fd_writev(int fd, enum arch_fd_type type, const struct iovec *parts, int count);
void *arch_fd_part(const struct iovec *parts, int number, size_t *size);
/* Send bytes of a file at an offset, without moving them through the program. Waits for the file's disk, and never for
 * room. Returns the number of bytes; 0 at the end of the file; -EAGAIN: there is no room; -EOPNOTSUPP: `to` blocks;
 * -EINVAL: the system can't send from such a file, or to such a descriptor. Never raises SIGPIPE. */
int64_t arch_fd_send_file(int to, int from, int64_t offset, size_t size);
/* Move bytes from one descriptor to another without moving them through the program; one of them is a pipe. Waits for
 * neither. Returns the number of bytes; 0 at the end of `from`; -EAGAIN: `from` is empty, or `to` is full; -EOPNOTSUPP:
 * one of them blocks; -EINVAL: the system can't do it with these. Never raises SIGPIPE. */
int64_t arch_fd_splice(int from, int to, size_t size);
/* Likewise, to a file, for whose disk it waits, or to a pipe that has a reader. */
int64_t arch_fd_splice_into(int from, int to, size_t size);
/* Returns the current readiness: ARCH_IN, ARCH_OUT, ARCH_END, or a negated errno code. */
int arch_fd_ready(int fd);
int arch_fd_close(int fd);
/* A new number that is closed on exec, and on which every call but closing fails with EBADF. */
int arch_fd_number(void);
/* Close the object behind the number, and keep the number: until arch_fd_close all calls on it fail with EBADF. */
int arch_fd_blank(int fd);
int arch_fd_shutdown(int fd, int how);
/* These make descriptors that don't block and are closed on exec; addresses as for the system. */
int arch_fd_accept(int fd, void *address, uint32_t *length);
int arch_fd_socket(int family); /* a stream */
int arch_fd_socket_of_datagrams(int family);
int arch_fd_bind(int fd, const void *address, uint32_t length);
int arch_fd_listen(int fd, int backlog);
int arch_fd_connect(int fd, const void *address, uint32_t length); /* -EINPROGRESS: under way */
int arch_fd_error(int fd);                                         /* SO_ERROR, negated */
int arch_fd_pipe(int fds[2]);
bool arch_fd_is_pipe(int fd);
/* How many bytes a pipe has room for, once it got `wanted` if the system permits that; wanted 0: as it is. 0: unknown.
 */
size_t arch_fd_pipe_room(int fd, size_t wanted);
/* 1 for a socket that keeps messages apart (datagrams, SEQPACKET), otherwise 0. */
int arch_fd_keeps_messages(int fd);
/* A descriptor that becomes readable at a date, in ns of CLOCK_REALTIME. Reading it fails with ECANCELED once the clock
 * was set. date: above 0. */
int arch_fd_date(int64_t date_ns);
/* Make a listener non-blocking for good, since accepting would block a thread. */
int arch_fd_unblock(int fd);
/* 1: closing its last descriptor may wait for the peer (SO_LINGER). */
int arch_fd_lingers(int fd);
int arch_fd_linger_not(int fd);

struct arch_address {
    uint32_t length, family;
    bool both;          /* a listener: for IPv4 too (arch_fd_both) */
    uint64_t bytes[16]; /* a struct sockaddr_storage */
};
/* The addresses of a TCP host ("": all of this machine, or loopback to connect to) and port. look_up: also by name,
 * which may block the thread for long. Returns how many, up to most, or a negated errno code: -ENOENT: there is no such
 * host, -EHOSTUNREACH: the name can't be resolved now, -EINVAL: there is no such port. */
int arch_address_tcp(const char *host, int port, bool passive, bool look_up, struct arch_address *out, int most);
/* Returns -ENAMETOOLONG if the path does not fit, -EINVAL if it is empty. "@" begins an abstract name. */
int arch_address_unix(const char *path, struct arch_address *out);
/* Likewise; the empty path is a name that the system chooses when a socket is bound to it. */
int arch_address_of_name(const char *path, struct arch_address *out);
/* The port in a TCP address, or -EAFNOSUPPORT. */
int arch_address_port(const void *address, uint32_t length);
/* Write an address like snprintf: "192.0.2.7:80", "[::1]:80", a path or "@" and an abstract name. Returns its length,
 * or -EAFNOSUPPORT. */
int arch_address_text(const void *address, uint32_t length, char *text, size_t room);
/* Whether an address, whatever its family, has the host of a TCP address. */
bool arch_address_is_host(const void *address, const struct arch_address *host);
/* The port that a socket is bound to, or a negated errno code. */
int arch_fd_port(int fd);
/* The same, for the peer of a connected socket. */
int arch_fd_peer(int fd, char *text, size_t room);
int arch_address_family(const void *address);
int arch_fd_both(int fd);
/* Before a TCP listener is bound: its port is available again right after its end. */
int arch_fd_reuse(int fd);
/* Before a socket is bound: others of the same user that ask for it too may be bound to the same port. */
int arch_fd_share(int fd);
/* Disable Nagle's algorithm. */
int arch_fd_no_delay(int fd);

/* ---- message.c: datagrams, and what goes with bytes -------------------------------------------------------- */

/* As strand_address (strand/socket.h): a struct sockaddr_storage and its length. */
struct __attribute__((may_alias)) arch_name {
    uint64_t bytes[16];
    uint32_t length;
};
/* As strand_datagram. */
struct __attribute__((may_alias)) arch_datagram {
    void *bytes;
    size_t size;
    size_t got;
    struct arch_name *name;
};
/* The name that a socket is bound to. Returns 0 or a negated errno code. */
int arch_fd_name(int fd, struct arch_name *out);
int64_t arch_fd_receive_parts(int fd, const struct iovec *parts, int count);
int64_t arch_fd_send_parts(int fd, const struct iovec *parts, int count);
/* Take a datagram. Returns its size, which may be more than `size`, or a negated errno code. name: NULL, or gets the
 * sender. */
int64_t arch_fd_receive(int fd, void *buffer, size_t size, struct arch_name *name);
int64_t arch_fd_send(int fd, const void *bytes, size_t size, const struct arch_name *name);
/* Take, or send, up to ARCH_DATAGRAMS_MOST datagrams, without waiting for more. Returns how many, at least one, or a
 * negated errno code. */
enum { ARCH_DATAGRAMS_MOST = 64 };
int arch_fd_receive_many(int fd, struct arch_datagram *list, int count);
int arch_fd_send_many(int fd, const struct arch_datagram *list, int count);

/* What goes with the bytes of a Unix socket. */
struct arch_passed {
    int *fds;
    int max_fds; /* room for so many */
    int fd_count;
    bool cut; /* more descriptors came than there was room for; they are closed */
    bool has_credentials;
    int pid;
    unsigned uid, gid;
};
enum { ARCH_PASSED_MOST = 253 }; /* descriptors; the system refuses more */
/* Receive bytes, and fill in `passed`. All descriptors that come are in it, or are closed. */
int64_t arch_fd_receive_passed(int fd, void *buffer, size_t size, struct arch_passed *passed);
/* Send bytes with the first fd_count descriptors, and with the credentials of this process if has_credentials. */
int64_t arch_fd_send_passed(int fd, const void *bytes, size_t size, const struct arch_passed *passed);

/* The number of this process. */
int arch_process_number(void);
int arch_fd_close_on_exec(int fd);

/* Signals that are waited for (signal n: bit n - 1), from open to close. Earlier handlers of the host program are
 * called as well; otherwise the signal does nothing else. Each signal counts the descriptor up, and is recorded; a
 * signal that comes again meanwhile is recorded once. -EBUSY: another handler was installed over the library's. Closing
 * leaves the descriptor to the caller. */
struct arch_watch;
bool arch_watch_can(int signal); /* false: no signal, or one of the faults, or it can't be caught */
int arch_watch_open(uint64_t signals, const void *owner, struct arch_watch **out);
const void *arch_watch_owner(const struct arch_watch *watch);
int arch_watch_fd(const struct arch_watch *watch);
uint64_t arch_watch_signals(int fd); /* which signals are waited for with this descriptor; 0: none */
/* Whether that is a watch, and has that serial; any pointer may be asked about. O(watches that ever were at a time). */
bool arch_watch_is(const struct arch_watch *watch, uint64_t serial);
uint64_t arch_watch_serial(const struct arch_watch *watch); /* changes with each closing; records are never freed */
int arch_watch_take(struct arch_watch *watch);              /* takes a signal that has come and returns its number; 0:
                                                             * none */
void arch_watch_close(struct arch_watch *watch);
/* For a dedicated thread: wait until a signal has come, or arch_watch_wake was called since the last return. */
void arch_watch_wait(struct arch_watch *watch);
void arch_watch_wake(struct arch_watch *watch);
/* As if that signal, which the watch is for, had come. */
void arch_watch_raise(struct arch_watch *watch, int signal);

/* How many CPUs this thread may use, or the process once threads were bound; 3 if unknown. */
int arch_cpus_allowed(void);
/* Whether this CPU is among them; true if unknown. */
bool arch_cpu_is_allowed(int cpu);
/* Bind the calling thread to this CPU. */
int arch_thread_bind(int cpu);
/* Report that a system call was refused that can't fail and has worked before, with advice, and abort. */
__attribute__((noreturn)) void arch_refused(const char *call, int error);

/* An expedited private membarrier: every other running thread of the process passes a full barrier before it returns.
 * arch_membarrier_works says whether it may be used (registered by arch_process_start; false under TSan and
 * valgrind). */
extern HIDDEN bool arch_membarrier_works;
void arch_membarrier(void);

static inline void arch_pause(void)
{
    __builtin_ia32_pause();
}

/* A thread of the operating system. */
typedef struct {
    uint64_t bits;
} arch_thread;
int arch_thread_start(arch_thread *thread, void *(*fn)(void *), void *arg, const char *name);
/* Likewise, for a thread that runs only code of the library. All signals are blocked but those that the thread itself
 * causes (faults, SIGXFSZ): the system chooses another thread for a signal of the process, and no handler of the
 * program runs here. */
int arch_thread_start_unsignalled(arch_thread *thread, void *(*fn)(void *), void *arg, const char *name);
void arch_thread_join(arch_thread thread);
void arch_thread_yield(void);
uint32_t arch_thread_id(void); /* gettid */
/* How many threads the process has, without those of a sanitizer; or a negated errno code: unknown. */
int arch_thread_count(void);
/* How long the calling thread was runnable but not running so far; or a negated errno code: unknown. Time in which it
 * was stopped does not count. */
int64_t arch_thread_delayed_ns(void);
/* How much CPU time a thread has used; or a negated errno code. */
int64_t arch_thread_cpu_ns(uint32_t thread_id);

/* secure_getenv; NULL if unset. */
const char *arch_env(const char *name);
uint64_t arch_entropy(void); /* for seeds that the user did not choose */
/* Write everything. Retries after EINTR, and after EAGAIN until nothing could be written for a second. Returns 0 or a
 * negated errno code. */
int64_t arch_write(int fd, const void *bytes, size_t size);

/* ---- file.c: files. Blocks the calling thread unless a function says otherwise ------------------------------ */

struct stat;
enum { ARCH_FILE_CWD = -100 };          /* as `dir`: the working directory */
enum { ARCH_FILE_CREATES = 020001100 }; /* flags of an open that changes something: O_CREAT, O_TRUNC, O_TMPFILE */
/* A flag of an open: nothing above `dir` is opened. None of the system's has this bit. */
enum { ARCH_FILE_BENEATH = 1 << 30 };
struct arch_file_entry {
    uint64_t inode;
    int type;       /* DT_... */
    char name[260]; /* ended by a 0 byte */
};
/* Each function does what the system call does, and returns its result or a negated errno code. -EINTR: call it again,
 * nothing has happened. */
/* Read what the system has in memory, without blocking: -EAGAIN, or fewer bytes, if it has not all; -EOPNOTSUPP. */
int64_t arch_file_read_now(int fd, const struct iovec *parts, int count, int64_t offset);
/* Whether the system seems to have a range of a file in memory: looks at a byte of every second of its windows of
 * read-ahead. Does not block. */
bool arch_file_is_cached(int fd, int64_t offset, size_t size);
/* offset below 0: at the position of the descriptor. */
int64_t arch_file_read(int fd, const struct iovec *parts, int count, int64_t offset);
int64_t arch_file_write(int fd, const struct iovec *parts, int count, int64_t offset);
/* The position of the descriptor, or a negated errno code; set it. Neither waits for a disk. */
int64_t arch_file_position(int fd);
int64_t arch_file_seek(int fd, int64_t offset);
/* Offsets may be NULL, and move. */
int64_t arch_file_copy(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t size);
int arch_file_sync(int fd, bool data_only);
int arch_file_truncate(int fd, int64_t size);
int arch_file_allocate(int fd, int mode, int64_t offset, int64_t size);
int arch_file_lock(int fd, int type, int64_t offset, int64_t size); /* -EAGAIN: it is taken */
int arch_file_open(int dir, const char *path, int flags, unsigned mode);
/* Likewise with ARCH_FILE_BENEATH, if the system has all names of the path in memory. Makes no file, and does not
 * block: -EAGAIN, or -EINVAL of a system that can't do that. */
int arch_file_open_now(int dir, const char *path, int flags);
int arch_file_stat(int dir, const char *path, int flags, struct stat *out);
int arch_file_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int arch_file_link(int from_dir, const char *from, int to_dir, const char *to, int flags);
int arch_file_symlink(const char *target, int dir, const char *path);
int arch_file_read_link(int dir, const char *path, char *target, size_t room); /* without a 0 byte; cut to the room */
int arch_file_unlink(int dir, const char *path, int flags);
int arch_file_make_directory(int dir, const char *path, unsigned mode);
/* Take the next entries but "." and ".."; 0 at the end. */
int arch_file_list(int fd, struct arch_file_entry *out, size_t most);
/* Read a whole file into memory of malloc, with a 0 byte behind it: -EFBIG above max_size. Returns the size. */
int64_t arch_file_load(int dir, const char *path, size_t max_size, char **out);
/* Replace a whole file by way of one beside it, on disk, whose name `chance` decides. Writes to the path meanwhile. */
int arch_file_store(int dir, char *path, const void *bytes, size_t size, unsigned mode, uint64_t chance);
/* A number for the i-th try of a new name. The first ones follow from `chance`. */
uint64_t arch_file_chance(uint64_t chance, int i);

/* ---- file_path.c: calls of several system calls; as those of file.c -------------------------------------------- */

enum { ARCH_FILE_DIRECTORY = 0200000 }; /* the flag of an open */
enum {
    ARCH_FILE_MODE = 1,
    ARCH_FILE_USER = 2,
    ARCH_FILE_GROUP = 4,
    ARCH_FILE_ACCESSED = 8,
    ARCH_FILE_MODIFIED = 16,
    ARCH_FILE_ALL = 31
};
/* Set what ARCH_FILE_... say: owner and group, then the mode, then the times. */
int arch_file_set(int dir, const char *path, int flags, unsigned what, const struct stat *status);
/* Make a directory and the parents that are missing; 0: it is there. Writes to the path meanwhile. */
int arch_file_make_directories(int dir, char *path, unsigned mode);
/* Make a file, or a directory with ARCH_FILE_DIRECTORY, with new letters instead of the XXXXXX at the end of the path.
 * `chance` decides the letters. Returns a descriptor. */
int arch_file_open_temporary(int dir, char *path, int flags, uint64_t chance);
/* Put the absolute path without links into `out`. Returns its length. */
int arch_file_resolve(int dir, const char *path, char *out, size_t room);

/* ---- file_tree.c: removing a tree of directories; as functions of file.c, but never -EINTR ------------------------
 */

struct arch_tree;
/* Begin. The caller closes the tree, which is *out. Returns 0, or a negated errno code: then there is none. */
int arch_tree_open(int dir, const char *path, struct arch_tree **out);
/* Remove up to `steps` names. Returns whether that was all. */
bool arch_tree_remove(struct arch_tree *tree, int steps);
int arch_tree_error(const struct arch_tree *tree); /* the first one, or 0 */
/* The path of the first name that can't be removed, until the tree is closed. NULL: there was no memory for it. */
const char *arch_tree_failed(const struct arch_tree *tree);
uint64_t arch_tree_removed(const struct arch_tree *tree); /* names so far */
void arch_tree_close(struct arch_tree *tree);

/* ---- changes.c: changes of files and directories ------------------------------------------------------------- */

struct arch_change {
    int number;
    uint32_t what, cookie; /* IN_... */
    char name[256];
};
/* Make a descriptor of them. */
int arch_changes_open(void);
/* Observe a path, or another set of its changes. Returns its number. Blocks the calling thread, as functions of file.c
 * do. */
int arch_changes_add(int fd, int dir, const char *path, uint32_t what);
int arch_changes_remove(int fd, int number);
/* Take the next changes, at most `most` of them. Returns how many, at least one; -EAGAIN; -EINVAL: it is another kind
 * of descriptor, from which nothing was read. */
int arch_changes_read(int fd, struct arch_change *list, int most);

/* ---- child.c: child processes ---------------------------------------------------------------------------- */

/* Call fn(arg) in a child, which then ends with success. Returns 0 and its number, or a negated errno code. */
int arch_child_start(void (*fn)(void *), void *arg, int *pid);
int arch_child_wait(int pid, int *status); /* as waitpid */
/* Map zeroed memory that children share with their parent. */
int arch_map_shared(size_t bytes, void **out);

/* ---- exec.c: child processes that run another program ------------------------------------------------------ */

/* What the child does before it runs the program. The members are the caller's memory, and no stack of another thread:
 * the child reads them. Descriptors that `fds` does not name are closed in the child; signals get their defaults. */
struct arch_exec_fd {
    int number; /* in the child; each once */
    int source; /* of this process; what is not open stays closed if `inherited` */
    bool inherited;
    int moved; /* the child's */
};
struct arch_exec_limit {
    int resource; /* RLIMIT_NOFILE, ... */
    uint64_t soft, hard;
};
struct arch_exec_user {
    uint32_t user, group;
    const uint32_t *groups;
    size_t count;
};
enum arch_exec_group { ARCH_EXEC_LEADS_GROUP, ARCH_EXEC_LEADS_SESSION, ARCH_EXEC_JOINS_GROUP };
struct arch_exec {
    const char *const *files; /* the program: the first of them that can be run; NULL ends the list */
    const char *const *argv;
    const char *const *env; /* NULL: this process's */
    const char *directory;  /* NULL: this process's */
    struct arch_exec_fd *fds;
    size_t fd_count;
    const struct arch_exec_limit *limits;
    size_t limit_count;
    const struct arch_exec_user *user; /* NULL: this process's */
    enum arch_exec_group group;
    bool terminal; /* descriptor 0 becomes the controlling terminal of the session */
    int mask;      /* umask; -1: this process's */
    int nice;      /* added */
};
/* A child of arch_exec, at a fixed place until it has been reaped. */
struct arch_child {
    int pid, pidfd;
    struct index_node node; /* reap.c's */
};
/* The object of a step, in the struct arch_exec that it is about. */
enum arch_exec_object {
    ARCH_EXEC_FILE,
    ARCH_EXEC_DIRECTORY,
    ARCH_EXEC_FD,    /* fds[index] */
    ARCH_EXEC_LIMIT, /* limits[index] */
    ARCH_EXEC_NICE,
    ARCH_EXEC_GROUP_COUNT,
    ARCH_EXEC_GROUP_ID,
    ARCH_EXEC_USER_ID
};
struct arch_exec_failed {
    const char *step; /* in words: "changing the directory" */
    enum arch_exec_object object;
    int index;
    int error; /* a negated errno code */
};
/* Starts the program in a child, whose parent waits until it runs. Returns 0 or a negated errno code; then there is no
 * child, and *failed says what failed. The caller closes child->pidfd. */
int arch_exec(const struct arch_exec *exec, struct arch_child *child, struct arch_exec_failed *failed);
struct arch_exec_end {
    int code, signal; /* the exit code, or the signal that ended it and -1 */
    bool dumped_core;
    int64_t user_ns, system_ns;
    uint64_t peak_bytes;
};
/* Takes the status of a child that has ended. Returns 0, -EAGAIN: it has not, or -ECHILD: its status was taken, or is
 * discarded because the program ignores SIGCHLD. */
int arch_exec_reap(struct arch_child *child, struct arch_exec_end *end);
/* These are for a child that has not been reaped by arch_exec_reap. */
bool arch_exec_has_ended(const struct arch_child *child);
int arch_exec_signal(const struct arch_child *child, int signal);
/* To the process group of a child that leads one, and to the child. Returns 0 if either got it. */
int arch_exec_signal_group(const struct arch_child *child, int signal);
/* The state of a process, as proc(5) names it: 'D' is an uninterruptible wait. 0: unknown. */
char arch_exec_state(int pid);
/* reap.c: the ends of children that arch_exec has not started. The watch is one of SIGCHLD: it gets one whenever there
 * may be such an end. -EBUSY: this process has another reaper. subreaper: orphans below this process become its
 * children, until the reaper is closed. */
int arch_reaper_open(struct arch_watch *watch, bool subreaper);
void arch_reaper_close(void);
/* Returns 0, and how a child has ended, which arch_reaper_take then takes; or -EAGAIN: there is none now. */
int arch_reaper_find(int *pid, struct arch_exec_end *end);
void arch_reaper_take(int pid);
/* The places to look for a program in: PATH. */
const char *arch_exec_path(void);
/* The environment of this process, ended by NULL. */
const char *const *arch_exec_environment(void);
/* Opens a pseudo-terminal. fds: the master, which does not block, and the other side. Both are closed on exec. */
int arch_exec_terminal(int fds[2]);
/* A pipe of which only `fds[ours]` does not block. Both ends are closed on exec. */
int arch_exec_pipe(int fds[2], int ours);
int arch_exec_null(void); /* a descriptor of /dev/null, closed on exec */

/* ---- ask.c: the stack of another thread --------------------------------------------------------------------- */

/* What a thread reports of itself in a signal handler, or the system reports of it. */
struct arch_asked {
    /* Where the stack ends that the stack pointer lies in, if it is a stack of interest; 0: it is not. Called by the
     * handler, or by the asking thread: async-signal-safe. self: arch_self of the thread. */
    uintptr_t (*top)(void *self, uintptr_t sp, struct arch_asked *asked);
    uint64_t tag; /* for `top` */
    char *copy;   /* receives the stack from sp on, up to its end or `room` bytes */
    size_t room;
    uintptr_t sp;
    uintptr_t end; /* of the stack; 0: it ran on another stack, and nothing is copied */
    size_t size;
    bool waits;             /* in a system call: only RSP and RIP are known */
    uint64_t registers[17]; /* numbered as in libunwind */
};
/* Ask a thread for its registers and stack, by a signal. Returns 0, or a negated errno code: -ETIMEDOUT: no answer;
 * -EAGAIN: no signal is free, or another thread asks. One thread of the process asks at a time. The signal is the
 * highest unused real-time signal; its handler stays. A system call in which that thread waits is interrupted, and
 * restarted if the system does that. */
int arch_ask(uint32_t thread_id, struct arch_asked *asked, int64_t wait_ns);
/* Likewise, without a signal, for a thread that waits in the system, for a call or a page: the thread does not notice.
 * Its stack has to stay mapped; self: its arch_self. -EAGAIN: it does not wait, or not any more, or elsewhere; or the
 * system does not tell (no /proc). */
int arch_ask_waiting(uint32_t thread_id, void *self, struct arch_asked *asked);

/* ---- process.c: the state of the process -------------------------------------------------------------------- */

/* What keeps strands from working in this program: a compiler's option. NULL: nothing does. */
const char *arch_unsupported(void);
/* Reserve the handle range, register membarrier, measure MXCSR. Idempotent, any thread. Returns 0 or a negated errno
 * code. */
int arch_process_start(void);

/* A lock for what exceptions carry, which is shared by threads of all runs and of none. It is held briefly, and across
 * a fork. The holder calls no user function and takes no other lock. */
void arch_carried_lock(void);
void arch_carried_unlock(void);

/* The runs, for debuggers and for other threads that examine them: a list in arch_state. */
struct arch_run {
    struct arch_run *next;
    uint64_t number;        /* the newest has the highest */
    _Atomic uint32_t users; /* how many threads examine it */
};
void arch_run_enter(struct arch_run *run);
/* Waits until no thread examines it. */
void arch_run_leave(struct arch_run *run);
/* The newest run with a number below that. It stays until arch_run_unuse. Returns 0, -ESRCH: there is none, or -EBUSY:
 * the calling thread, in a signal handler, may itself hold the lock. */
int arch_run_use(uint64_t below, struct arch_run **run);
/* The run for which is_it returns true; is_it may not dereference `what`. NULL: there is none. Not in signal
 * handlers. */
struct arch_run *arch_run_use_that(bool (*is_it)(struct arch_run *run, const void *what), const void *what);
void arch_run_unuse(struct arch_run *run);

/* Forks. In the child there is one thread, and none of those that ran strands; runs belong to the parent. The
 * generation is the number of forks between the process that started the runtime and this one: it changes in a child
 * only, while that has one thread. Objects made under another number belong to a parent. */
extern HIDDEN uint32_t arch_generation;
/* arch_self at the time when the calling thread forked, or NULL: in the child no thread belongs to the scheduler. */
void *arch_orphan(void);
/* Called in the child of a thread that belonged to the scheduler, with arch_self at the fork, before anything else runs
 * there. */
void arch_on_orphan(void (*on_orphan)(void *self));

/* The handle range: address space for the control blocks of all runs (contract §9). Chunks of ARCH_CHUNK bytes, aligned
 * to their size; never unmapped. */
#define ARCH_CHUNK ((size_t)256 * 1024)
extern HIDDEN char *arch_handles;       /* its base */
extern HIDDEN size_t arch_handles_size; /* 1 TiB, or less if the system refuses that; 0 before the start */
extern HIDDEN size_t arch_handle_words; /* the first words of it, and a page more, can be read; it only grows */
enum { ARCH_CHUNK_TYPES = 16 };
/* Take a chunk: readable, writable, zero; -ENOMEM at the limit. A returned chunk is reused for its type only, so what a
 * handle points to keeps its type for ever. */
int arch_chunk_take(unsigned type, void **chunk);
/* Return a chunk, which reads zero from now on. Nothing was written beyond its first `used` bytes: a few are wiped and
 * stay with the process, more go back to the system. */
void arch_chunk_give(unsigned type, void *chunk, size_t used);
/* Whether the number is the address of a word that can be read. The rotation makes an address between two words a large
 * number, so one comparison is enough. A caller that has a valid handle from another thread is ordered after the
 * chunk's opening, so the load needs no order. */
static inline bool arch_in_handles(const void *p)
{
    uintptr_t offset = (uintptr_t)p - (uintptr_t)arch_handles;
    return (offset >> 3 | offset << 61) < steady_load(&arch_handle_words, memory_order_relaxed);
}

/* The player of simulated threads on the calling thread, or NULL (src/sim). A spin loop without a thread at hand
 * relaxes through it. A build with STEPS=1 calls `step` before each atomic operation of the runtime (arch_step). */
struct arch_player {
    void *run; /* the scheduler's */
    void (*relax)(struct arch_player *player);
    void (*step)(struct arch_player *player);
    void (*ending)(struct arch_player *player); /* the process ends: by abort, or by exit */
};
struct arch_player *arch_player(void);
void arch_player_set(struct arch_player *player);
/* Resources that one simulated run leaves to the next, so that it starts faster: the taker owns them. give returns what
 * was there already, which the caller then owns; or NULL. */
enum arch_stage { ARCH_STAGE_PLAYERS, ARCH_STAGE_STACKS, ARCH_STAGES };
void *arch_stage_take(enum arch_stage which);
void *arch_stage_give(enum arch_stage which, void *stage);

/* A block of numbers that are unique in this process: [*first, *first + count). Never 0. */
uint64_t arch_serials(uint64_t count);
/* Restart the numbers at `first`: for a process whose runs each stand for a process of their own. */
void arch_serials_again(uint64_t first);

/* Faults: between enter and leave (nested per process by counting) SIGSEGV and SIGBUS go first to on_fault, on a signal
 * stack of each thread that called arch_signals_thread_enter. on_fault(address, ucontext) returns true if it has
 * reported the fault as a stack overflow; either way the signal then goes on to the previous handler, as if this one
 * had not been there. */
int arch_signals_enter(bool (*on_fault)(void *address, void *ucontext));
void arch_signals_leave(void);
int arch_signals_thread_enter(void **memory);
/* The most bytes that the system writes on a stack before a signal's handler runs, including all vector and matrix
 * registers of this processor. 0: unknown, and then fewer than 4 KiB. Known from arch_process_start on. */
size_t arch_signal_frame(void);
void arch_signals_thread_leave(void *memory);
/* The stack pointer of the code that a signal interrupted, with ucontext as the handler gets it; NULL if that ran on a
 * signal stack. Async-signal-safe. */
char *arch_signal_sp(const void *ucontext);

/* What assembler calls clobber besides general registers. */
#ifdef __AVX512F__
#define ARCH_CLOBBERED_TOO                                                                                             \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",      \
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define ARCH_CLOBBERED_TOO
#endif

#define ARCH_VECTORS_                                                                                                  \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",         \
        "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",                         \
        "st(7)" ARCH_CLOBBERED_TOO

#include "san.h"

#include "context.h"

#endif
