/*
 * What this layer adds to a run.
 */
#ifndef IO_IO_LAYER_H
#define IO_IO_LAYER_H

#include "../base/tree.h"
#include "../strand/core.h"
#include "io_blocked.h"

struct crew;
struct descriptors;
struct program;

/* A run's own crews, each made when it is needed. Calls of one kind do not wait behind those of another. */
enum run_crew {
    CREW_CALLS,  /* strand_offload */
    CREW_NAMES,  /* look-ups */
    CREW_CLOSES, /* of sockets that linger */
    CREW_FILES,  /* calls on files */
    RUN_CREWS
};

enum { IO_PART = 0 }; /* in runtime.parts */
struct io_run {
    _Atomic(struct crew *) crews[RUN_CREWS];   /* crew_open.c */
    _Atomic(struct descriptors *) descriptors; /* the table of descriptor.c; NULL: none was used */
    struct tree processes;                     /* process.c: those that have not been reaped */
    struct program *programs;                  /* process_play.c; under the lock, too */
    int played;                                /* processes that they have stood for */
    atomic_flag processes_lock;
    struct episodes stops; /* keepers that stop a process */
};

static inline struct io_run *io_run_of(const struct thread *thread)
{
    return ((const struct runtime *)thread->sub)->parts[IO_PART];
}

/* At the end of the run, outside of strands. */
void crew_close_all(struct io_run *io);
void descriptors_close(struct io_run *io);
void programs_close(struct io_run *io);
/* The descriptors that the poller of `from` watches are watched by that of the thread's pool from now on. The threads
 * of `from` have ended. */
void descriptors_move(struct thread *thread, struct pool *from);

#endif
