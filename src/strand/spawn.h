/*
 * Spawning: by a plan, and strands of the library's own.
 */
#ifndef STRAND_SPAWN_H
#define STRAND_SPAWN_H

#include "core.h"

/* The properties of a new strand. */
struct spawn_plan {
    strand_fn *fn;
    void *arg;
    void *site;
    size_t stack_size;
    struct extra *extra;
    struct pool *pool;           /* NULL means the spawner's pool, or that of `shared` */
    struct shared_fibre *shared; /* NULL means a private fibre */
    struct thread *pin;          /* NULL means any thread of the pool; otherwise counted by pool_pin */
    int32_t rank;
    bool wipes;
};

/* Spawns a strand into the scope behind a handle, for `function`. Takes over plan->extra, unless no strand was made.
 * Returns 0 or a negated errno code. After an error no strand exists. */
int spawn_planned(struct thread *thread, struct cb *me, strand_scope handle, const char *function,
                  struct spawn_plan *plan, strand *out);
/* Throws STRAND_SYSTEM for an error of spawn_planned. */
__attribute__((noreturn)) void spawn_throw(struct cb *me, int error);

/* Makes a strand of the library's own in an open scope that stays open. The strand inherits nothing, and is runnable
 * once the caller launches it. pin: the index of the thread that it is pinned to, or -1. alone: it may block its
 * thread, so it gets a private fibre. Any thread of the run may call this, also outside of strands. Returns 0 or a
 * negated errno code. */
int spawn_own(struct thread *thread, struct scope *scope, struct pool *pool, int pin, bool alone, strand_fn *fn,
              void *arg, struct cb **out);
void spawn_launch(struct thread *thread, struct cb *c);

#endif
