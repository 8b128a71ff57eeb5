/*
 * Every call of the library that can fail is made to fail, at each place that the workloads reach: what the workloads
 * (a file each), the calls (calls.def, calls.c) and their runner (main.c) have in common.
 *
 * The program is linked with a copy of the library in which the calls have other names (fault_malloc, ...), those of
 * calls.c. So the calls of the workloads, of the C library and of libunwind are not hit. Each satellite is such a copy,
 * too, with calls of its own (fault_names_malloc, ...): names_calls.def and names_calls.c, tls_calls.def and
 * tls_calls.c.
 */
#ifndef FAULT_H
#define FAULT_H

#include "strand.h"
#include "strand/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- for workloads --------------------------------------------------------------------------------------- */

/* Which runs a workload is good for. */
enum { RUN_SEEDED = 1, RUN_ALONE = 2, RUN_PAIR = 4 };
#define RUN_ANY (RUN_SEEDED | RUN_ALONE | RUN_PAIR)

/* A workload is the root strand of a run, beside which nothing of the process is changed. It gives back all that it
 * takes, on every way out; throws what it is refused (strand_must); checks what it has got; and returns FAULT_DONE. */
struct workload {
    const char *name;
    unsigned runs;
    strand_fn *root;
    strand_options options;
    const char *variable, *value; /* of the environment; or NULL */
    void (*prepare)(void);        /* or NULL: called before all points, perhaps again; what it leaves stays */
    void (*settle)(void);         /* or NULL: called after each run: gives back what the thread keeps */
    const char *of;               /* a satellite, whose calls alone fail in the short form; or NULL */
    struct workload *next;
};
void fault_register(struct workload *workload);
#define FAULT_DONE ((void *)fault_done)
extern char fault_done[1];

/* FAULT_WORKLOAD(name, runs, root, fields of the options and of the workload...) */
#define FAULT_WORKLOAD(name_, runs_, root_, ...)                                                                       \
    static struct workload workload_##name_ = {                                                                        \
        .name = #name_, .runs = (runs_), .root = (root_), .options.size = sizeof(strand_options), __VA_ARGS__};        \
    __attribute__((constructor)) static void register_##name_(void)                                                    \
    {                                                                                                                  \
        fault_register(&workload_##name_);                                                                             \
    }

/* What must hold whatever fails. */
#define FAULT_CHECK(condition) ((condition) ? (void)0 : fault_wrong(__FILE__, __LINE__, #condition))
__attribute__((noreturn)) void fault_wrong(const char *file, int line, const char *what);

/* A descriptor that is closed by strand_close when its block is left; -1: none. */
#define FAULT_FD __attribute__((cleanup(fault_close_fd)))
void fault_close_fd(int *fd);

/* ---- calls.c: what is made to fail ----------------------------------------------------------------------- */

enum part {
#define FAILS(symbol, part, ...) PART_##part,
#define INSIDE(part, ...) PART_##part,
#define WATCHED(symbol, part, why) PART_##part,
#define SAME(symbol, part)
#define SURE(symbol, why)
#define FOREIGN(prefix, why)
#include "all_calls.def"
#undef FAILS
#undef INSIDE
#undef WATCHED
#undef SAME
#undef SURE
#undef FOREIGN
    PARTS
};

enum must { MUST_TELL, MUST_PASS, MAY_EITHER };

struct failure {
    const char *name;
    int error, code; /* a report has this code, above 0; or any, if it is 0 */
    enum must must;
    bool once;  /* never for ever */
    bool keeps; /* what should have been given back may stay */
};

enum { FAILURES_MOST = 5 };
struct call {
    const char *symbol, *part;
    struct failure failures[FAILURES_MOST]; /* name NULL: no more */
};
extern const struct call fault_calls[PARTS];

struct plan {
    enum part part; /* PARTS: nothing fails */
    long at;        /* the first that fails, from 1 */
    bool forever;   /* and all after it */
    int error;
};
/* From now on calls are counted, and fail as planned. */
void fault_arm(const struct plan *plan);
void fault_disarm(void);
extern _Atomic long fault_seen[PARTS]; /* calls since */
extern _Atomic long fault_hits;        /* those that were made to fail */

/* What the library has taken and not given back; foreign: what the library below a satellite has. */
enum kind { KIND_BLOCK, KIND_MAPPING, KIND_DESCRIPTOR, KIND_ADDRESSES, KIND_FOREIGN, KINDS };
extern const char *const fault_kinds[KINDS];
long fault_live(enum kind kind);
/* So many that it gave back without having taken them. */
extern _Atomic long fault_strange;
/* Print what is live to standard error, with the addresses of the calls that took it. */
void fault_print_live(void);

/* For the calls of the satellites. Count a call; true: it has to fail, errno is set. */
bool fault_refused(enum part part);
/* The error of the plan. */
int fault_error(void);
/* Note that something is taken, at the address of a call, or given back, which it was not if the result is false. */
void fault_take(enum kind kind, uintptr_t key, size_t size, const void *by);
bool fault_give(enum kind kind, uintptr_t key, size_t size);
#define FAULT_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

#endif
