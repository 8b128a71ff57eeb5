/*
 * Observers and reporters of a run: for src/run, which installs them.
 */
#ifndef DEBUG_LAYER_H
#define DEBUG_LAYER_H

#include "../actor/actor_layer.h"
#include "../strand/print.h"

enum { DEBUG_PART = 2 }; /* in runtime.parts */

/* What this layer adds to a run. */
struct debug_run {
    _Atomic uintptr_t dumping; /* the thread that dumps: stopped_run.c; 0: none does */
    /* NULL: it was not asked for. */
    struct census *census;
    struct quit *quit;
    struct watchdog *watchdog;
};

static inline struct debug_run *debug_run_of(const struct runtime *runtime)
{
    return runtime->parts[DEBUG_PART];
}

extern const struct reports debug_reports;

/* Record how much the strands of a run use of their stacks (options.census). Returns 0 or -ENOMEM. */
int census_open(struct runtime *runtime);
/* sched_ops.census */
void census_record(struct thread *thread, struct member *member, size_t used, enum census_what what);
/* Print the figures, and discard them. */
void census_close(struct runtime *runtime);

/* Until quit_close, a dedicated thread writes a dump to standard error on SIGQUIT (options.dump_on_quit). The run uses
 * atomic operations. Returns 0 or a negated errno code, and then there is nothing to close. */
int quit_open(struct runtime *runtime);
void quit_close(struct runtime *runtime);

/* Until watchdog_close, a dedicated thread reports strands that occupy their thread for too long (options.watchdog_ns).
 * Returns like quit_open. */
int watchdog_open(struct runtime *runtime);
void watchdog_close(struct runtime *runtime);
/* sched_ops.moved */
void watchdog_moved(struct subprocess *sub);

/* Printed by the SIGQUIT thread, and when a run is found to be out of work; debug_reports has the others. */
void dump_on_quit(struct thread *thread, int fd);
int dump_from(struct thread *thread, int fd);
void dump_report(struct thread *thread);
void graph_report(struct thread *thread);
bool graph_summary(struct thread *thread, char *text, size_t size);

/* The watchdog's part of the record of a thread, which nothing else reads: watch_threads.c. Times are the watchdog's
 * own. */
struct occupancy {
    /* As it was seen last. */
    struct fibre *fibre;
    uint64_t switches, ticked, taken;
    int32_t ticks;
    /* The strand that occupies it. */
    int64_t since;
    int64_t waited_for; /* since then somebody waits for the thread; 0: nobody does */
    int64_t cpu;        /* what the thread had used of a processor at `since`; or a negated errno code */
    int64_t due;        /* when the next report is due */
    uint32_t reports;   /* so far */
    uint32_t tries;     /* to learn where it is, since then */
    bool counted;       /* it is one of those that are late */
    uint64_t id;
    char name[32], pool[32]; /* its own, and of its pool */
};

/* src/run puts it behind the parts of the other layers. */
static inline struct occupancy *occupancy_of(struct thread *thread)
{
    return (struct occupancy *)(void *)(actor_thread_of(thread) + 1);
}

#endif
