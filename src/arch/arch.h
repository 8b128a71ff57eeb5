/*
 * The contract with the machine: all that differs by processor or operating system, behind one header. Nothing outside
 * of src/arch knows the processor, and system calls are made here only. Every function that can fail returns a negated
 * errno code; errno itself is never left to be read by a caller. What the functions promise is said here; how, in the
 * .c file of the same name as the section.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include "../base/atomic.h"
#include "../base/base.h"

#include <stddef.h>
#include <stdint.h>

/* ---- context.c, context.h: execution contexts over Boost.Context ----------------------------------------- */

enum { ARCH_FRAME_R12 = 0x08 }; /* in a saved frame: context.h */
typedef void *arch_context;     /* a suspended context: the address of its saved frame, at the low end of its stack */

struct arch_transfer {
    arch_context from; /* whoever jumped here, suspended now */
    void *data;        /* what it gave */
};

extern struct arch_transfer jump_fcontext(arch_context to, void *data);
extern arch_context make_fcontext(void *top, size_t size, void (*entry)(struct arch_transfer));

/* Whether a switch between contexts with different exception flags in MXCSR is slow on this processor; measured once
 * by arch_process_start. */
extern HIDDEN bool arch_mxcsr_is_slow;

/* x86_64.S: goes on with the function in r12, with a frame pointer of zero, where profilers stop. */
extern void arch_begin_(struct arch_transfer transfer);

/* A new context that starts with entry on the stack [top - size, top); top is 16-aligned. entry never returns. */
static inline arch_context arch_context_make(char *top, size_t size, void (*entry)(struct arch_transfer))
{
    arch_context context = make_fcontext(top, size, arch_begin_);
    /* By assembler: the stack is the new strand's already, for TSan. */
    __asm__ volatile("movq %1, %c2(%0)" : : "r"(context), "r"(entry), "i"(ARCH_FRAME_R12) : "memory");
    return context;
}

/* Suspend the caller, go on with `to`; returns when somebody jumps back, maybe on another thread. The sticky exception
 * flags of MXCSR are unspecified after it; rounding and masks are each context's own. */
static inline struct arch_transfer arch_context_jump(arch_context to, void *data);

/* Put at the start of a context's entry function: its frame is where unwinding and traces end. */
#define ARCH_STACK_ENDS_HERE() __asm__ volatile(".cfi_undefined rip")

/* What the calling thread is to the scheduler. Read anew by every call: a strand may wake up on another thread, and
 * what the compiler knows of a thread-local's address is wrong then. */
static inline void *arch_self(void);
void arch_set_self(void *self);

/* ---- unwind.c: throwing, by libgcc_s's forced unwind ----------------------------------------------------- */

/* One unwinding on its way. Lives off the stack, from arch_unwind until somebody jumps out of the landing pads. */
struct arch_flight {
    uint64_t unwind_exception[4] __attribute__((aligned(16))); /* struct _Unwind_Exception */
    /* A C++ catch (...) has taken the exception and did not rethrow it. aside: as in struct arch_thrown. */
    void (*caught)(struct arch_flight *flight, bool aside);
    struct arch_thrown *thrown; /* in a program with C++: arch_flight_wrap; NULL: not wrapped */
};

/* Run the landing pads (clean-ups, destructors) of all frames from the caller's outwards, until one of them leaves by
 * arch_longjmp. The stop function never stops (contract §9). Also the public symbol strand_unwind_ (assembler,
 * x86_64.S).
 */
__attribute__((noreturn)) void arch_unwind(struct arch_flight *flight);

/* ---- exits.c: threads that are made to end ---------------------------------------------------------------- */

/* Call fn(arg). If pthread_exit or pthread_cancel ends the thread meanwhile, on whatever stack, the function that
 * arch_on_exit named is called there, before any clean-up. It must not return. */
void arch_exits_watched(void (*fn)(void *), void *arg);
void arch_on_exit(void (*on_exit)(void));

/* ---- cxx.c: with a C++ runtime --------------------------------------------------------------------------- */

/* What the strand's side does. */
struct arch_thrown_ops {
    void (*keep)(void *what); /* one more reference */
    void (*release)(void *what);
    void (*again)(struct arch_flight *flight);   /* set aside, it was rethrown */
    void (*escapes)(struct arch_flight *flight); /* it gets beyond the limit */
};

/* The C++ object that is thrown. */
struct arch_thrown {
    struct arch_flight *flight; /* NULL: it has landed; a std::exception_ptr may keep this object longer */
    const struct arch_thrown_ops *ops;
    void *what;            /* the flight's reference, unless `owns` */
    void (*dispose)(void); /* the runtime's function for that */
    uintptr_t frame;       /* that is being unwound */
    uintptr_t limit;       /* a frame that it may get to, and no further; 0: none */
    uintptr_t beyond;      /* the function of that, once it is there */
    bool aside;            /* a C++ handler has it, and its strand knows */
    bool owns;             /* a reference to `what`: a C++ handler had it, so a std::exception_ptr may keep it */
};

/* In a program with C++, before arch_unwind: what is thrown becomes a C++ exception as well, which handlers of C++ can
 * count, nest, rethrow and keep. False: there is no such runtime. */
bool arch_flight_wrap(struct arch_flight *flight, void *what, const struct arch_thrown_ops *ops);
/* Whether a C++ handler has it, and has not rethrown it. */
bool arch_flight_is_caught(const struct arch_flight *flight);
/* The strand has caught it: to C++ it is handled. False: a handler further out has rethrown it, and has it again: it is
 * set aside. */
bool arch_flight_land(struct arch_flight *flight);
/* It carries something else from now on. The caller holds references to both. */
void arch_flight_swap(struct arch_flight *flight, void *what);

/* landing.c. Whether an exception that a strand threw here would get to the frame that has `limit` in it, or be caught
 * by a handler of C++ before; false: a function on the way is noexcept, and would end the program. A walk over the
 * frames. */
bool arch_unwind_lands(const void *limit);

/* Leave a frame that saved itself in jump: form 0 by __builtin_setjmp, compiled with or without -fcf-protection, form 1
 * by strand_setjmp_. The second form is also the public symbol strand_setjmp_ (assembler, x86_64.S). */
__attribute__((noreturn)) void arch_longjmp(void **jump, uint32_t form);

/* An exception of C++ that has left a function. */
struct arch_foreign {
    void *kept;       /* a std::exception_ptr: the caller's */
    void *ours;       /* what arch_flight_wrap was given, if it is one of those; no reference */
    const char *what; /* what() of a std::exception, or NULL; as long as it is kept */
    const char *type; /* the name, mangled */
};
/* fn(arg), through a frame that catches every exception of C++ and calls on_foreign, which does not return. */
void *arch_call(void *(*fn)(void *), void *arg);
void arch_on_foreign(void (*on_foreign)(const struct arch_foreign *foreign));
void arch_foreign_drop(void *kept);
/* Throw it as C++ does; `kept` stays the caller's. */
__attribute__((noreturn)) void arch_foreign_rethrow(void *kept);
/* Called when arch_unwind gets to a function, with an address in it, that has no unwind tables, so nothing tells who
 * has called it. The program ends after that. */
void arch_on_lost(void (*on_lost)(void *ip));
/* The name, mangled, of the type of the C++ exception that a handler has, the runtime's own at the end of the program
 * included; NULL: none has any. */
const char *arch_cxx_handled(void);
/* Called when the C++ runtime terminates the program, between arch_signals_enter and leave; then the handler that was
 * there before goes on. In a program without a C++ runtime it does nothing. */
void arch_on_terminate(void (*on_terminate)(void));

/* The two words of the calling thread's C++ exception state (__cxa_get_globals), or NULL in a program without it. */
struct arch_cxx {
    void *caught;
    uintptr_t uncaught; /* an unsigned int, padded */
};
struct arch_cxx *arch_cxx_globals(void);
/* Look for the runtime: a library that was loaded meanwhile may have brought it. Takes the lock of the process. */
void arch_cxx_look(void);
/* A number that changes when the calling thread first uses a thread-local variable of a library which was loaded since:
 * at the latest when the thread first throws or catches by a C++ runtime that is new. */
static inline uint64_t arch_locals_generation(void);

/* ---- trace.c: stack traces, by libunwind ----------------------------------------------------------------- */

/* The return addresses of the calling thread's frames, innermost first; returns how many were stored. Of all three:
 * frames of the library itself are left out, in front and at the end; between others they stay. A few ns per frame. */
size_t arch_trace(void **ips, size_t max);
/* The same of a suspended context. If image is not NULL, memory [image_base, image_base + image_size) is read there. */
size_t arch_trace_context(arch_context context, const void *image, uintptr_t image_base, size_t image_size, void **ips,
                          size_t max);
/* The same, of many contexts: most of them stand where another one stood, with their return addresses at the same
 * distances. What was found out of one is kept, and compared with the next, word by word: some ns per frame. Its stack
 * ends at `top`. Starts as zeros. */
struct arch_patterns;
size_t arch_patterns_size(void);
size_t arch_trace_alike(struct arch_patterns *patterns, arch_context context, const void *image, size_t image_size,
                        const char *top, void **ips, size_t max);
/* The same of what a signal interrupted; ucontext as a SA_SIGINFO handler gets it. Async-signal-safe as far as
 * libunwind is. */
size_t arch_trace_signal(void *ucontext, void **ips, size_t max);
/* The same of what arch_ask has found. */
struct arch_asked;
size_t arch_trace_asked(const struct arch_asked *asked, void **ips, size_t max);
/* The name of the function around ip into buf (NUL-terminated, shortened to fit; static functions too where the symbol
 * table has them), *offset its distance from the function's start. False if unknown: then buf has the name of the
 * object, and *offset is what addr2line takes for it; or buf is "?", and *offset is ip. */
bool arch_symbol(void *ip, char *buf, size_t size, uintptr_t *offset);
/* A name of C++, as arch_symbol gives it, is written as the program does, if the C++ runtime is there; others stay.
 * Asks malloc. */
void arch_demangle(char *name, size_t size);

/* ---- names.c: addresses in words of the source ------------------------------------------------------------- */

/* For one print. NULL, with which the two others work too: nothing but symbols is known, because a tool watches the
 * program, the caller is in the handler of a signal, or there is no memory. */
struct arch_names;
struct arch_names *arch_names_open(void);
/* As arch_symbol, but with names of C++ as the program writes them; and "file:line" of the call that returns to ip, or
 * "". Takes milliseconds the first time, then microseconds. */
void arch_names_find(struct arch_names *names, void *ip, char *name, size_t name_size, uintptr_t *offset, char *line,
                     size_t line_size);
void arch_names_close(struct arch_names *names);

/* ---- memory.c: mappings, guards -------------------------------------------------------------------------- */

size_t arch_page_size(void);
/* No vector register holds anything that was in it. */
void arch_vectors_clear(void);
/* Zeroed private memory, not reserved, never in huge pages. *out is page aligned. */
int arch_map(size_t bytes, void **out);
/* A process that has all the mappings it may have keeps the addresses; the pages are given back all the same. */
void arch_unmap(void *at, size_t bytes);
/* Give the pages back to the system; the range stays mapped and reads zero. Guards survive. */
void arch_discard(void *at, size_t bytes);

/* Copy memory that may have been given back to the system meanwhile. False: it was, or the system does not do that. */
bool arch_peek(void *to, const void *from, size_t bytes);
/* The same of a text, shortened to fit. */
bool arch_peek_text(char *to, size_t size, const char *from);

/* How many bytes of this range are backed by pages. */
size_t arch_resident(char *begin, const char *end);
/* On a stack whose lowest address is `low`: how many bytes below `top` have been written since it was zero, or the last
 * call. Zeroes that cost nothing to tell from fresh memory count as unwritten. What lies below the caller's frame is
 * zero then. */
size_t arch_stack_used(char *low, const char *top);

enum arch_guard { ARCH_GUARD_PAGE = 1, ARCH_GUARD_MAPPING = 2 };
/* Make the page at `page` fault: by guard-install, else by mprotect as long as all guards of the process together take
 * no more than half of vm.max_map_count (limit_mappings) or as the system allows (!limit_mappings). Returns an
 * arch_guard or a negated errno code (-ENOMEM at the limit). */
int arch_guard_install(void *page, bool limit_mappings);
/* The same as ARCH_GUARD_PAGE for `count` pages that lie `apart` bytes apart, by one system call. Returns how many of
 * them, the first ones, are guards now: 0 where that is not possible. */
size_t arch_guards_install(char *first, size_t apart, size_t count);
/* Before reuse as ordinary memory. guard: what install returned. */
void arch_guard_remove(void *page, int guard);
/* So many guards of the kind ARCH_GUARD_MAPPING went with the memory around them, by arch_unmap: they count no more. */
void arch_guards_unmapped(size_t count);

/* ---- wait.c: futex, clock, poller, processors ------------------------------------------------------------ */

#define ARCH_FOREVER INT64_MAX

int64_t arch_clock_ns(void); /* CLOCK_MONOTONIC */
void arch_nap(int64_t ns);   /* of the whole thread */
uint64_t arch_ticks(void);   /* a cheap counter of constant rate (the time-stamp counter, else the clock) */
uint64_t arch_ticks_per_ms(void);

/* Sleep while *word == expected, until woken, or until the instant deadline_ns (ARCH_FOREVER: none). Spurious returns
 * are allowed. Returns 0 or -ETIMEDOUT. Only threads of this process. */
int arch_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);
/* How many were woken. Async-signal-safe; leaves errno alone. */
int arch_futex_wake(_Atomic uint32_t *word, int threads);

/* A wait for descriptors that another thread can end. One thread at a time waits. */
struct arch_poller {
    int epoll, kick, timer;
    int64_t armed; /* the instant that timer is set to, ARCH_FOREVER: none */
};
/* The two words that nobody else registers. */
#define ARCH_POLLER_KICK UINT64_MAX
#define ARCH_POLLER_TIMER (UINT64_MAX - 1)
struct arch_event {
    uint64_t data;   /* as registered */
    uint32_t events; /* ARCH_IN, ARCH_OUT, ARCH_END */
};
int arch_poller_open(struct arch_poller *poller);
void arch_poller_close(struct arch_poller *poller);
/* Up to max events into out; waits until the instant deadline_ns (0: not at all), with the precision of nanoseconds and
 * no timer slack where the system has it. Returns how many, 0 after a time-out or a kick. EINTR returns 0. */
int arch_poller_wait(struct arch_poller *poller, struct arch_event *out, int max, int64_t deadline_ns);
/* Without waiting: its descriptor becomes readable then. */
void arch_poller_arm(struct arch_poller *poller, int64_t deadline_ns);
/* Ends the present or the next wait. Any thread. Async-signal-safe; leaves errno alone. */
void arch_poller_kick(struct arch_poller *poller);
/* Whether there are events of registered descriptors, which stay there. Any thread. Whoever waits meanwhile, or next,
 * may return early. */
bool arch_poller_has_events(struct arch_poller *poller);
/* Readiness of a descriptor, both ways, as bits of arch_event.events. An error or a hang-up is readiness both ways. */
enum { ARCH_IN = 1, ARCH_OUT = 2, ARCH_END = 4 }; /* ARCH_END: the peer sends no more, or there is an error */
/* Report changes of readiness (edge-triggered), beginning with what holds now. Any thread. Returns 0 or a negated errno
 * code: -EPERM: its readiness can't be waited for (a regular file); -EEXIST: it is watched already. */
int arch_poller_add(struct arch_poller *poller, int fd, uint64_t data);
int arch_poller_remove(struct arch_poller *poller, int fd);
/* Whether the number still means what was added: a registration ends with its object. What holds now is reported once
 * more. Any thread. */
bool arch_poller_has(struct arch_poller *poller, int fd, uint64_t data);

/* ---- fd.c: descriptors. None of these calls waits on a descriptor that does not block --------------------- */

/* What the library has opened for itself, or -1 and errno: never one of the first three, which a program that was
 * started without them takes for the standard ones. Closes on exec. Returns it, or a negated errno code. */
int arch_fd_own(int fd);
/* One more descriptor of the same open file. */
int arch_fd_twin(int fd);

enum arch_fd_kind {
    ARCH_FD_SOCKET, /* may block, but each call can be told not to */
    ARCH_FD_TCP,    /* the same; and who reads less than there was room for has read all that there is */
    ARCH_FD_OTHER,  /* as a socket, as far as the system knows how; else it is asked first, and then called */
    ARCH_FD_FILE,   /* always ready, however long it takes */
    ARCH_FD_PLAYED  /* not the system's: a seeded run's (sched/fds.h) */
};
/* What lies behind a number. inode 0: it has none of its own (eventfd, ...), so others of the kind look the same. */
struct arch_fd_object {
    uint64_t device, inode;
};
/* Returns 0 or a negated errno code. */
int arch_fd_object(int fd, struct arch_fd_object *out);
/* An arch_fd_kind, or a negated errno code: -EBADF also of O_PATH, which no call means anything on. Whether a
 * descriptor blocks is shared with others, whom a change of that would surprise, and who may change it at any time. A
 * terminal that blocks is opened once more for our calls: *own is that descriptor, or -1. */
int arch_fd_kind(int fd, int *own, struct arch_fd_object *object);
/* Bytes moved (reading: 0 at the end), or a negated errno code: -EAGAIN: not ready. EINTR is tried again, SIGPIPE never
 * raised. */
int64_t arch_fd_read(int fd, enum arch_fd_kind kind, void *buffer, size_t size);
int64_t arch_fd_write(int fd, enum arch_fd_kind kind, const void *buffer, size_t size);
/* Readiness at this moment: ARCH_IN, ARCH_OUT, ARCH_END, or a negated errno code. */
int arch_fd_ready(int fd);
int arch_fd_close(int fd);
/* A new number that is closed on exec, and on which every call but closing fails with EBADF. */
int arch_fd_number(void);
/* Close what is behind the number, and keep the number: until arch_fd_close all calls on it fail with EBADF. */
int arch_fd_blank(int fd);
int arch_fd_shutdown(int fd, int how);
/* Descriptors that don't block and are closed on exec; address as of the system. */
int arch_fd_accept(int fd, void *address, uint32_t *length);
int arch_fd_socket(int family); /* a stream */
int arch_fd_bind(int fd, const void *address, uint32_t length);
int arch_fd_listen(int fd, int backlog);
int arch_fd_connect(int fd, const void *address, uint32_t length); /* -EINPROGRESS: under way */
int arch_fd_error(int fd);                                         /* SO_ERROR, negated */
int arch_fd_pipe(int fds[2]);
/* Accepting would block a thread: this changes it for good. */
int arch_fd_unblock(int fd);
/* 1: closing its last descriptor may wait for the peer (SO_LINGER). */
int arch_fd_lingers(int fd);
int arch_fd_linger_not(int fd);

struct arch_address {
    uint32_t length, family;
    bool both;          /* a listener: the fourth version of the protocol too (arch_fd_both) */
    uint64_t bytes[16]; /* a struct sockaddr_storage */
};
/* The addresses of a TCP host ("": all of this machine, or loopback to connect to) and port. look_up: also by name,
 * which may block the thread for long. Returns how many, up to most, or a negated errno code: -ENOENT: there is no such
 * host, -EHOSTUNREACH: nobody knows at the moment, -EINVAL: there is no such port. */
int arch_address_tcp(const char *host, int port, bool passive, bool look_up, struct arch_address *out, int most);
/* -ENAMETOOLONG: the path does not fit; -EINVAL: it is empty. After an @ comes an abstract name. */
int arch_address_unix(const char *path, struct arch_address *out);
/* The port in an address of TCP, or -EAFNOSUPPORT. */
int arch_address_port(const void *address, uint32_t length);
/* The port that a socket is bound to, or a negated errno code. */
int arch_fd_port(int fd);
int arch_fd_both(int fd);
/* Before a TCP listener is bound: its port can be taken again at once after its end. */
int arch_fd_reuse(int fd);
/* A TCP stream sends what it has at once. */
int arch_fd_no_delay(int fd);

/* Signals that are waited for (signal n: bit n - 1), from now until the end. Handlers of the host program that were
 * there before are called as well; otherwise the signal does nothing else. Each that comes counts the descriptor up;
 * what has come stands in the record, a signal that comes again meanwhile once. -EBUSY: somebody has put a handler over
 * ours. Closing leaves the descriptor to the caller. */
struct arch_watch;
bool arch_watch_can(int signal); /* false: it is no signal, or belongs to faults, or can't be had */
int arch_watch_open(uint64_t signals, const void *owner, struct arch_watch **out);
const void *arch_watch_owner(const struct arch_watch *watch);
int arch_watch_fd(const struct arch_watch *watch);
uint64_t arch_watch_signals(int fd); /* which ones are waited for with this descriptor; 0: none */
uint64_t arch_watch_serial(const struct arch_watch *watch); /* another one after each closing; records stay */
int arch_watch_take(struct arch_watch *watch);              /* the number of one that has come, and is taken; 0: none */
void arch_watch_close(struct arch_watch *watch);
/* For a thread that does nothing else: wait until something has come, or arch_watch_wake was called since the last
 * return. */
void arch_watch_wait(struct arch_watch *watch);
void arch_watch_wake(struct arch_watch *watch);

/* How many CPUs this thread may use, once threads were bound: the process; 3 if that can't be known. */
int arch_cpus_allowed(void);
/* Whether this one is among them; true if that can't be known. */
bool arch_cpu_is_allowed(int cpu);
/* Have the calling thread run on this one only. */
int arch_thread_bind(int cpu);
/* A system call that can't fail, and that worked before, is refused: a message that says what to do, and abort. */
__attribute__((noreturn)) void arch_refused(const char *call, int error);

/* An expedited private membarrier: every other running thread of the process passes a full barrier before it returns.
 * arch_membarrier_works says whether it may be used (registered by arch_process_start; false under TSan and valgrind).
 */
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
void arch_thread_join(arch_thread thread);
void arch_thread_yield(void);
uint32_t arch_thread_id(void); /* gettid */
/* How many threads the process has, but those of a sanitizer; or a negated errno code: the system does not say. */
int arch_thread_count(void);
/* How long the calling thread could have run so far, and others did; or a negated errno code: the system does not say.
 * A thread that is stopped could not. */
int64_t arch_thread_delayed_ns(void);
/* How long a thread has used a processor; or a negated errno code. */
int64_t arch_thread_cpu_ns(uint32_t thread_id);

/* secure_getenv; NULL if unset. */
const char *arch_env(const char *name);
uint64_t arch_entropy(void); /* for seeds that nobody chose */
/* All of it, EINTR retried, EAGAIN for a second in which nothing could be written; 0 or a negated errno code. */
int64_t arch_write(int fd, const void *bytes, size_t size);

/* ---- child.c: child processes ---------------------------------------------------------------------------- */

/* fn(arg) in a child, which then ends with success. Returns 0 and its number, or a negated errno code. */
int arch_child_start(void (*fn)(void *), void *arg, int *pid);
int arch_child_wait(int pid, int *status); /* as waitpid */
/* Zeroed memory that children have in common with their parent. */
int arch_map_shared(size_t bytes, void **out);

/* ---- ask.c: where another thread stands ------------------------------------------------------------------ */

/* What a thread tells of itself in the handler of a signal, or what the system tells of it. */
struct arch_asked {
    /* Of the stack pointer, whether it lies in a stack of interest, and where that ends; 0: no. Asked by the handler,
     * or by who asks: async-signal-safe; self: arch_self of the thread. */
    uintptr_t (*top)(void *self, uintptr_t sp, struct arch_asked *asked);
    uint64_t tag; /* for `top` */
    char *copy;   /* gets the stack from sp on, up to its end or `room` bytes */
    size_t room;
    uintptr_t sp;
    uintptr_t end; /* of the stack; 0: it stood elsewhere, and nothing is copied */
    size_t size;
    bool waits;             /* in the system; of its registers no more is known than RSP and RIP */
    uint64_t registers[17]; /* by the numbers of libunwind */
};
/* Returns 0, or a negated errno code: -ETIMEDOUT: no answer; -EAGAIN: no signal is to be had, or another thread asks.
 * One thread of the process asks at a time. The signal is the highest real-time signal that nobody uses; its handler
 * stays. A system call of that thread which waits is interrupted, and begun again where the system does that. */
int arch_ask(uint32_t thread_id, struct arch_asked *asked, int64_t wait_ns);
/* The same without a signal, of a thread that waits in the system, for a call or a page: nothing happens to it. Its
 * stack has to stay mapped; self: its arch_self. -EAGAIN: it does not wait, or not any more, or elsewhere; or the
 * system does not tell (no /proc). */
int arch_ask_waiting(uint32_t thread_id, void *self, struct arch_asked *asked);

/* ---- process.c: the state that is the process's ---------------------------------------------------------- */

/* Reserve the handle range, register membarrier, measure MXCSR. Idempotent, any thread. Returns 0 or a negated errno
 * code. */
int arch_process_start(void);

/* A lock for what exceptions carry, which threads of all runs share, and those of none. Held for so long as it takes to
 * look at that, and across a fork. Whoever holds it calls no function of the user's and takes no other lock. */
void arch_carried_lock(void);
void arch_carried_unlock(void);

/* What is running, so that a debugger finds it, and whoever looks from outside: a list in arch_state. */
struct arch_run {
    struct arch_run *next;
    uint64_t number;        /* the newest has the highest */
    _Atomic uint32_t users; /* who look at it */
};
void arch_run_enter(struct arch_run *run);
/* Waits until nobody looks at it. */
void arch_run_leave(struct arch_run *run);
/* The newest of those with a number below that. It stays until arch_run_unuse. Returns 0, -ESRCH: there is none, or
 * -EBUSY: the calling thread may be the one that keeps others from looking, in a handler. */
int arch_run_use(uint64_t below, struct arch_run **run);
/* The one that is_it says yes to, which may not follow what it is asked about. NULL: there is none. No handlers. */
struct arch_run *arch_run_use_that(bool (*is_it)(struct arch_run *run, const void *what), const void *what);
void arch_run_unuse(struct arch_run *run);

/* Forks. In the child there is one thread, and none of those that ran strands; what was running is the parent's. How
 * many forks lie between the process that has started the runtime and this one: it changes in a child only, while that
 * has one thread. What was made under another number is a parent's. */
extern HIDDEN uint32_t arch_generation;
/* What arch_self was when the calling thread forked, if it was anything: in the child nobody is the scheduler's. */
void *arch_orphan(void);
/* Called in the child of a thread that was the scheduler's, with what arch_self was, before anything else runs there.
 */
void arch_on_orphan(void (*on_orphan)(void *self));

/* The handle range: address space for the control blocks of all sub-processes (contract §9). Chunks of ARCH_CHUNK
 * bytes, aligned to their size; never unmapped. */
#define ARCH_CHUNK ((size_t)256 * 1024)
extern HIDDEN char *arch_handles;       /* its base */
extern HIDDEN size_t arch_handles_size; /* 1 TiB, less where the system refuses that; 0 before the start */
#define ARCH_HANDLES arch_handles_size
enum { ARCH_CHUNK_KINDS = 16 };
/* Readable, writable, zero; -ENOMEM at the limit. One that was given back is had again by those of its kind only: what
 * a handle points to is of that kind for ever. */
int arch_chunk_take(unsigned kind, void **chunk);
/* It reads zero from now on. Nothing was written behind its first `used` bytes: a few are wiped and stay with the
 * process, more go back to the system. */
void arch_chunk_give(unsigned kind, void *chunk, size_t used);
static inline bool arch_in_handles(const void *p)
{
    return (uintptr_t)p - (uintptr_t)arch_handles < ARCH_HANDLES;
}

/* Who plays threads on the calling thread, or NULL (src/sim). A spin loop that knows of no thread relaxes through it. A
 * build with STEPS=1 calls `step` before each atomic operation of the runtime (arch_step). */
struct arch_player {
    void *run; /* the scheduler's */
    void (*relax)(struct arch_player *player);
    void (*step)(struct arch_player *player);
    void (*ending)(struct arch_player *player); /* the process ends: by abort, or by exit */
};
struct arch_player *arch_player(void);
void arch_player_set(struct arch_player *player);
/* What one played run leaves to the next, for that to begin faster: whoever takes it owns it. give returns what was
 * there already, which is the caller's then; or NULL. */
enum arch_stage { ARCH_STAGE_PLAYERS, ARCH_STAGE_STACKS, ARCH_STAGES };
void *arch_stage_take(enum arch_stage which);
void *arch_stage_give(enum arch_stage which, void *stage);

/* A block of numbers that nobody else in this process has or had: [*first, *first + count). Never 0. */
uint64_t arch_serials(uint64_t count);
/* They begin once more at `first`: for a process whose runs stand each for one of a process of its own. */
void arch_serials_again(uint64_t first);

/* Faults: between enter and leave (nested per process by counting) SIGSEGV and SIGBUS go first to on_fault, on a signal
 * stack of each thread that called arch_signals_thread_enter. on_fault(address, ucontext) returns true when it has
 * reported the fault as a stack overflow; either way the signal then goes on to whoever had it before, as if the
 * handler had not been there. */
int arch_signals_enter(bool (*on_fault)(void *address, void *ucontext));
void arch_signals_leave(void);
int arch_signals_thread_enter(void **memory);
/* The most bytes that the system writes on a stack before a signal's handler runs: with all registers of vectors and
 * matrices that this processor has. 0: not known, and then fewer than 4 KiB. Known from
 * arch_process_start on. */
size_t arch_signal_frame(void);
void arch_signals_thread_leave(void *memory);
/* The stack pointer of what a signal interrupted, with ucontext as the handler gets it; NULL if that ran on a signal
 * stack. Async-signal-safe. */
char *arch_signal_sp(const void *ucontext);

/* What calls of assembler clobber, besides general registers. */
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

#include "notes.h"

#include "context.h"

#endif
