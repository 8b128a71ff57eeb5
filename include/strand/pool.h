/*
 * How and where strands run: the options of a run, the attributes of a strand.
 * Both structs carry their size, so that a program built against an older header goes on working.
 */
#ifndef STRAND_POOL_H
#define STRAND_POOL_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the options of strand_run --------------------------------------------------------------------------- */

/** What a strand does where its stack can have no guard page. */
enum strand_guards {
    STRAND_GUARDS_BEST_EFFORT = 0, /* guard pages while the system has them, then checked canaries and one warning */
    STRAND_GUARDS_REQUIRED = 1     /* a strand fails rather than run on a stack without a guard page */
};

/** What a misuse hook is told. All pointers are valid during the call only. */
struct strand_misuse {
    const char *function; /* the public function that was misused */
    const char *what;     /* what was done, in words, with the rule it breaks */
    const char *made;     /* where the object was made ("file:line" or a trace), or "" */
};

/** The options of strand_run. Zero is the default of each. */
struct strand_options {
    size_t size; /* sizeof(strand_options); required */

    int threads;           /* 0: one; STRAND_THREADS_ALLOWED: one per allowed CPU (3 if that can't be known) */
    bool own_threads;      /* all threads are the run's own; the caller sleeps meanwhile (required inside a strand) */
    const char *scheduler; /* "stealing" (NULL: the same) or "global" */
    int64_t spin_us;       /* of several threads, one without work looks for some so long before it sleeps; 0: 20 */

    size_t stack_size; /* address space of a strand's stack in bytes; 0: 64 KiB; rounded up to a power of two, 16 KiB at
                          least */
    enum strand_guards guards;
    size_t max_strands; /* a limit on the strands that exist at a time; 0: none but memory's */

    int offload_threads; /* the most threads that strand_offload uses; 0: 8 */

    /* STRAND_SEED=n in the environment, or has_seed here: a deterministic run on one thread (docs/testing.md) */
    bool has_seed;
    uint64_t seed;

    /* NULL: an exception that leaves the root strand ends the program. Else it is stored here (the caller owns it),
     * or NULL if none did. */
    strand_exception **uncaught;

    /* A misuse is about to end the program. Any thread may call it. It may not return by longjmp. */
    void (*on_misuse)(const struct strand_misuse *misuse, void *arg);
    /* Something that no exception could carry: lost exceptions of cancelled children, warnings. NULL: standard error.
     */
    void (*on_log)(const char *message, void *arg);
    void *hook_arg;
};
#define STRAND_THREADS_ALLOWED (-1)

/** Options in the place of an argument; in C++ in the order of the fields. For example:
 * strand_run(STRAND_OPTIONS(.threads = 4), root, NULL). */
#define STRAND_OPTIONS(...) STRAND_SIZED_(strand_options, __VA_ARGS__)

/** How many CPUs the calling thread may use (its affinity, limited by STRAND_THREADS in the environment); 3 if that
 * can't be known. Any thread. */
int strand_threads_allowed(void);

/* ---- pools ------------------------------------------------------------------------------------------------ */

/** The threads that a strand runs on. A run has one pool, which its options describe. */
typedef struct strand_pool strand_pool;
/** The pool that the calling strand runs on. It lives as long as its run. */
strand_pool *strand_pool_self(void);

/* ---- the attributes of a strand -------------------------------------------------------------------------- */

/** The attributes of a strand, for strand_spawn_with. Zero is the default of each. */
struct strand_attr {
    size_t size;       /* sizeof(strand_attr); required */
    const char *name;  /* copied, up to 31 bytes; NULL: "strand" */
    size_t stack_size; /* address space in bytes; 0: as the options say; rounded up as there */
    /* Gets a result that nobody takes: of a child that was joined by its scope, or never. */
    void (*drop)(void *result);
    strand_pool *pool; /* where it runs; NULL: where its spawner does. One of another run is misuse. */
};

/** Attributes in the place of an argument; in C++ in the order of the fields. For example: STRAND_ATTR(.name =
 * "reader"). */
#define STRAND_ATTR(...) STRAND_SIZED_(strand_attr, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
