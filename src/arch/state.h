/*
 * The state of the process, for the files of src/arch only. process.c defines and starts it; each part is explained in
 * the file that uses it.
 */
#ifndef ARCH_STATE_H
#define ARCH_STATE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "arch.h"
#include "unwind_rule.h"
#include "x86_64.h"

#include <sched.h>
#include <signal.h>

enum arch_guards { ARCH_GUARDS_UNKNOWN, ARCH_GUARDS_PAGES, ARCH_GUARDS_MAPPINGS, ARCH_GUARDS_NONE };

enum { ARCH_SIGNALS = 64 };

/* A signal that strands wait for. */
struct arch_watched {
    int users;
    bool buried; /* another handler was installed over the library's, and may pass signals on to it */
    struct sigaction previous;
};

/* Chunks of the handle range: [0, open) are readable, those from fresh on were never taken. Returned chunks are linked
 * by numbers in a separate array, since their own pages may have been released. */
struct arch_chunks {
    uint32_t *next;                   /* of a returned chunk: number + 1; 0: the last */
    uint32_t given[ARCH_CHUNK_TYPES]; /* number + 1 of the first; 0: none */
    uint32_t fresh, open, most;
};

/* A set of processors. */
struct arch_cpus {
    size_t size; /* of the set, in bytes */
    cpu_set_t set[];
};

/* A std::type_info. */
struct arch_cxx_type {
    void (*const *methods)(void);
    const char *name;
};

/* The functions and objects of the C++ runtime that are used. Written once, before `there`. */
struct arch_cxx_runtime {
    _Atomic bool there;
    bool throws;    /* it has everything needed to make strands' exceptions C++ exceptions */
    uint64_t loads; /* the number of loaded libraries when it was looked for */
    struct arch_cxx *(*globals)(void);
    void *(*allocate)(size_t size);
    void *(*init)(void *object, void *type, void (*destroy)(void *object));
    void *(*begin_catch)(void *exception);
    void (*end_catch)(void);
    const void *personality, *terminate, *resume; /* resume: _Unwind_Resume */
    void (*(*set_terminate)(void (*)(void)))(void);
    void (*(*get_terminate)(void))(void);
    struct arch_cxx_type type;
    /* A std::exception_ptr is one pointer; these functions take and return its address. */
    void (*current)(void **out);
    void (*drop)(void **exception_ptr);
    void (*rethrow)(void **exception_ptr);
    const struct arch_cxx_type *base; /* std::exception */
    bool keeps;                       /* it has everything needed to carry C++ exceptions */
};

/* The runtime that a C++ file has announced (cxx_find.c). */
enum { ARCH_CXX_SYMBOLS = 14 };
struct arch_cxx_announced {
    _Atomic int state;
    const void *addresses[ARCH_CXX_SYMBOLS]; /* written once, before `state` says so */
};

/* The class of the library's exceptions: the vendor's four letters and the language's four. unwind_x86_64.S knows it.
 */
#define ARCH_CLASS_OURS UINT64_C(0x4C49425354524E44) /* "LIBSTRND" */

/* Rules for unwinding (unwind_cached.c). */
enum { ARCH_RULE_BITS = 11 };
struct arch_rule_slot {
    _Atomic uint32_t sequence;
    _Atomic uint32_t generation;
    _Atomic uint64_t ip;       /* 0: unused */
    _Atomic uint64_t words[4]; /* a struct arch_rule */
} __attribute__((aligned(64)));
struct arch_rules {
    struct arch_rule_slot slots[1 << ARCH_RULE_BITS];
    atomic_flag writing;
};

/* Children of this OS process (reap.c). */
struct arch_reaping {
    struct tree starting, known; /* of struct arch_child: by serial number; by pid */
    uint64_t starts;             /* the serial number of the last start */
    struct arch_watch *watch;    /* the reaper's; NULL: there is none */
    bool adopts;                 /* it has made this process a subreaper */
    bool waits;
    int seen;            /* the pid of an ended child that may be one of those that start; 0: none */
    uint64_t seen_after; /* the last start when it was first seen */
};

struct arch_state {
    /* memory.c */
    _Atomic int guards;            /* enum arch_guards: the best kind not yet refused */
    _Atomic int64_t guard_count;   /* guards that are mappings */
    _Atomic int64_t mappings_most; /* vm.max_map_count; 0: not read yet */

    /* wait.c */
    bool tsc; /* ticks come from the time-stamp counter */
    uint64_t ticks_per_ms;

    /* cpus.c */
    _Atomic(struct arch_cpus *) cpus; /* allowed before the first thread was bound; never freed */

    /* unwind.c */
    _Atomic(void (*)(const struct arch_foreign *)) on_foreign;
    _Atomic(void (*)(void)) on_terminate;
    _Atomic(void (*)(void *ip)) on_lost;

    uintptr_t resume; /* the address of strand_resume_ */

    /* unwind_cached.c */
    struct arch_rules rules;
    _Atomic uint32_t loader_users; /* loader.c */

    /* exits.c */
    _Atomic(void (*)(void)) on_exit;

    /* cxx.c, cxx_find.c: under the process's lock */
    struct arch_cxx_runtime cxx;
    struct arch_cxx_announced cxx_announced;                  /* cxx_find.c: not under a lock */
    void (*terminate_before)(void), (*terminate_first)(void); /* NULL: none yet */
    _Atomic uint32_t terminating;                             /* the thread that was last in the library's handler */

    /* uring.c */
    _Atomic bool rings; /* this process has had a ring */

    /* trace.c */
    struct arch_tracer *tracer; /* NULL: no libunwind */

    /* san.c, san_tsan.c */
    struct arch_san_stack *san_stacks; /* unused records, under the lock */
    uint32_t fiber_lock;
    void *fiber_maker; /* the fiber in whose name TSan's fibers are made */

    /* signal.c */
    _Atomic(struct arch_watch *) watches;
    struct arch_watched watched[ARCH_SIGNALS]; /* signal n: n - 1 */

    /* signal_stack.c */
    size_t signal_frame;
    _Atomic(void *) spare_signal_stack; /* NULL: none */

    /* ask.c */
    _Atomic bool asking;
    _Atomic uint64_t ask; /* thread id << 32 | ASK_* */
    struct arch_asked *asked;
    int ask_signal; /* 0: none yet */

    /* handles.c: under the process's lock */
    struct arch_chunks chunks;

    /* reap.c: under the process's lock */
    struct arch_reaping reaping;

    /* process.c */
    atomic_flag carried;
    _Atomic(void (*)(void *)) on_orphan;
    _Atomic uint64_t serials;
    _Atomic(bool (*)(void *, void *)) on_fault;
    struct arch_run *runs; /* under the lock; also read by a debugger: tools/gdb/strand.py */
    uint64_t runs_so_far;
};

extern struct arch_state arch_state;

/* arch_process_start calls each once; the handle range's start runs under the process's lock, and again if it
 * failed. */
int arch_handles_start(void);
void arch_tool_find(void);
void arch_ticks_start(void);
void arch_signal_frame_find(void);
void arch_unwind_start(void);
/* Under process.c's lock: install the library's terminate handler, or restore the previous one. */
void arch_terminate_take(bool take);
/* Under process.c's lock: look for the C++ runtime, unless it was found before. */
void arch_cxx_find(void);
/* arch_unwind of a wrapped flight. Returns only on a corrupt stack. */
int arch_thrown_unwind_(struct arch_thrown *thrown);
struct _Unwind_Context;
/* landing.c: whether the frame is of a C function that has clean-ups. */
bool arch_frame_is_c_(struct _Unwind_Context *context);
/* unwind.c: the exception of a new flight, with what unwind_cached.c keeps in it. */
struct _Unwind_Exception;
struct _Unwind_Exception *arch_flight_exception_(struct arch_flight *flight, uint32_t generation);
uint32_t arch_flight_generation_(const struct _Unwind_Exception *exception);
/* unwind_cached.c, called by unwind_x86_64.S: they return if the forced unwind has to go on. */
void arch_unwind_begin_(struct arch_flight *flight, struct arch_frame *frame);
void arch_unwind_resume_(struct _Unwind_Exception *exception, struct arch_frame *frame);
void arch_frame_here_(struct arch_frame *frame); /* unwind_x86_64.S */
/* unwind_cached.c: at the first run of a process. */
void arch_unwind_warm(void);
/* In the child of a fork, which has one thread. */
void arch_unwind_after_fork(void);
/* loader.c: around what takes the loader's lock while runs last. Returns false while another thread forks: then do
 * without, or take the risk that the child finds the lock taken, and don't call arch_loader_leave. */
bool arch_loader_enter(void);
void arch_loader_leave(void);
/* By the forking thread: the second in the parent and in the child. */
void arch_loader_before_fork(void);
void arch_loader_after_fork(void);
/* In the child, if a signal handler has forked while its thread was inside: the loader's lock is that thread's, which
 * has another id now and can't release it. From now on arch_loader_enter returns false. */
void arch_loader_lose(void);
extern _Thread_local uint32_t arch_loader_inside; /* for loader.c */
extern _Thread_local bool arch_loader_forks;
/* Unwinding has reached the end of the stack. */
__attribute__((noreturn)) void arch_unwind_lost_(struct _Unwind_Context *context);
void arch_trace_start(void);
/* Whether this program can load libraries at run time. */
bool arch_can_load(void);

/* Let the calling thread, which was just made, use all CPUs of the process. */
void arch_thread_unbind(void);
/* The start function of the library's threads. */
void *arch_thread_main(void *start);

/* Call the handler that preceded the library's, or do what the system would do. Its mask is in force already: the
 * library's handler was installed with it. */
void arch_signal_pass_on(int signal, siginfo_t *info, void *ucontext, const struct sigaction *previous);
/* sigaction for a handler that is not instrumented: TSan does not delay its signals. */
int arch_san_sigaction(int signal, const struct sigaction *new, struct sigaction *old);
/* The only lock; held across a fork. */
void arch_process_lock(void);
void arch_process_unlock(void);
/* In the child of a fork, under the lock. */
void arch_watches_after_fork(void);
void arch_ask_after_fork(void);

/* x86_64.S */
extern void strand_resume_(struct _Unwind_Exception *exception); /* unwind_x86_64.S */
/* Continue at the code of a landing pad, with the registers of its frame. */
__attribute__((noreturn)) void arch_unwind_land_(const struct arch_frame *frame, struct _Unwind_Exception *exception,
                                                 uint64_t pad);
void arch_call_landing_(void);
__attribute__((noreturn)) void arch_longjmp_(void **jump);
__attribute__((noreturn)) void arch_longjmp_builtin_(void **jump);

#endif
