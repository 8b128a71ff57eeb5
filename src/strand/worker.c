/*
 * What this layer keeps for each thread of a run, and the slabs of the run, of which each thread has caches.
 */
#include "worker.h"

#include "cxx.h"
#include "end.h"
#include "exception.h"

#include <errno.h>

/* ---- slabs ----------------------------------------------------------------------------------------------- */

/* Of chunks of the handle range. */
enum {
    KIND_CBS,
    KIND_GUESTS,
    KIND_BLOCKS,
    KIND_OBJECTS,
    KIND_TICKETS,
    KIND_OFFERS,
    KIND_TASKS,
    KIND_RUNNERS,
    KIND_PROMISES,
    KIND_CELLS,
    KIND_ENVELOPES = KIND_CELLS + CELL_CLASSES,
    KINDS = KIND_ENVELOPES + ENVELOPE_CLASSES
};
_Static_assert((int)KINDS <= (int)ARCH_CHUNK_KINDS, "each has a list");

/* Each of the run's slabs, of which each thread has a cache by the same name: EACH(name, kind, bytes of an object, what
 * makes it ready once). */
#define EACH_SLAB(EACH)                                                                                                \
    EACH(cbs, KIND_CBS, CB_SIZE, cb_construct)                                                                         \
    EACH(guests, KIND_GUESTS, GUEST_SIZE, cb_construct_guest)                                                          \
    EACH(blocks, KIND_BLOCKS, (sizeof(union any_block) + 63) & ~(size_t)63, NULL)                                      \
    EACH(objects, KIND_OBJECTS, OBJECT_SIZE, NULL)                                                                     \
    EACH(tickets, KIND_TICKETS, TICKET_SIZE, NULL)                                                                     \
    EACH(offers, KIND_OFFERS, OFFERS_SIZE, NULL)                                                                       \
    EACH(tasks, KIND_TASKS, TASK_SIZE, NULL)                                                                           \
    EACH(runners, KIND_RUNNERS, RUNNER_SIZE, NULL)                                                                     \
    EACH(promises, KIND_PROMISES, PROMISE_SIZE, NULL)                                                                  \
    EACH(cells[0], KIND_CELLS, cell_sizes[0], NULL)                                                                    \
    EACH(cells[1], KIND_CELLS + 1, cell_sizes[1], NULL)                                                                \
    EACH(cells[2], KIND_CELLS + 2, cell_sizes[2], NULL)                                                                \
    EACH(cells[3], KIND_CELLS + 3, cell_sizes[3], NULL)                                                                \
    EACH(cells[4], KIND_CELLS + 4, cell_sizes[4], NULL)                                                                \
    EACH(envelopes[0], KIND_ENVELOPES, envelope_sizes[0], NULL)                                                        \
    EACH(envelopes[1], KIND_ENVELOPES + 1, envelope_sizes[1], NULL)
#define COUNT(slab, kind, size, construct) +1
_Static_assert(0 EACH_SLAB(COUNT) == KINDS, "each kind has a slab");
#undef COUNT

/* ---- threads --------------------------------------------------------------------------------------------- */

void worker_open(struct worker *worker, struct runtime *runtime)
{
#define OPEN(slab_, kind, size, construct) worker->slab_.slab = &runtime->slab_;
    EACH_SLAB(OPEN)
#undef OPEN
}

void worker_flush(struct worker *worker)
{
#define FLUSH(slab, kind, size, construct) slab_flush(&worker->slab);
    EACH_SLAB(FLUSH)
#undef FLUSH
}

void worker_open_outside(struct worker *worker, struct runtime *runtime)
{
    struct thread *thread = &worker->thread;
    thread->sub = &runtime->sub;
    thread->stacks.memory = &runtime->sub.memory;
    thread->pool = &runtime->sub.pool;
    thread->concurrent = true;
    thread->index = -1;
    worker_open(worker, runtime);
}

int worker_begin(struct thread *thread)
{
    struct worker *worker = worker_of(thread);
    worker_open(worker, runtime_of(thread));
    if (exception_reserve_open(worker) == 0)
        return 0;
    exception_reserve_close(worker);
    return -ENOMEM;
}

void worker_end(struct thread *thread)
{
    exception_reserve_close(worker_of(thread));
}

/* ---- slabs of a run -------------------------------------------------------------------------------------- */

static const struct slab_source chunks = {ARCH_CHUNK, arch_chunk_take, arch_chunk_give, arch_pause};

void slabs_open(struct runtime *runtime)
{
#define INIT(slab, kind, size, construct) slab_init(&runtime->slab, &chunks, kind, size, construct);
    EACH_SLAB(INIT)
#undef INIT
}

void slabs_close(struct runtime *runtime)
{
#define CLOSE(slab, kind, size, construct) slab_close(&runtime->slab);
    EACH_SLAB(CLOSE)
#undef CLOSE
}
