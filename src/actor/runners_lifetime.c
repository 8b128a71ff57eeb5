/*
 * Opening the runners of a dispatcher, and ending the runners of a system. The protocol block is in runners.h.
 */
#include "runners.h"

#include "../strand/end.h"
#include "../strand/spawn.h"

#include <errno.h>
#include <string.h>

int runners_open(struct thread *thread, struct system *system, struct runners *runners, struct pool *pool, int pin,
                 int threads_most)
{
    memset(runners, 0, sizeof *runners);
    runners->system = system;
    runners->pool = pool;
    runners->pin = pin;
    runners->threads_most = threads_most;
    runners->most = TURN_MOST;
    runners->slow_idle = true;
    atomic_init(&runners->threads, 1);
    atomic_init(&runners->running, 1); /* the first runner, until it falls idle */
    struct runner *r;
    int error = runners_make_runner(thread, runners, &r); /* so that there is one, even without memory later */
    if (error)
        return error;
    strand handle = handle_of(r->strand);
    r->launched = true;
    spawn_launch(thread, r->strand);
    while (!atomic_load_explicit(&runners->has_begun, memory_order_acquire)) {                        /* [PB1] */
        if (strand_ended(handle) && !atomic_load_explicit(&runners->has_begun, memory_order_acquire)) /* [PB1] */
            return -ENOMEM;
        thread = thread_yield(thread);
    }
    return 0;
}

/* Under the lock: a runner that ends next; NULL: none is idle now. */
static struct runner *take_idle(struct system *system)
{
    for (struct link *link = system->living.next; link != &system->living; link = link->next) {
        struct runner *r = CONTAINER(link, struct runner, others);
        if (!r->launched || (atomic_load_explicit(&r->idle, memory_order_acquire) & RUNNER_IDLE)) { /* [T5] */
            list_remove(link);
            list_push_back(&system->ended, link);
            return r;
        }
    }
    return NULL;
}

/* The system is closing: runners check that when they fall idle. */
static void idle_slowly(struct thread *thread, struct runners *runners)
{
    spin_lock_if_concurrent(&runners->lock, thread);
    atomic_store_explicit(&runners->slow_idle, true, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&runners->lock, thread);
}

/* A runner that ends by the system's failure does so by itself: it must not be cancelled before. */
static void await_failed(struct thread *thread, struct system *system)
{
    for (struct link *link = system->failed.next; link != &system->failed; link = link->next)
        while (!ended(CONTAINER(link, struct runner, others)->strand))
            thread = thread_yield(thread);
}

void runners_close(struct thread *thread, struct system *system)
{
    spin_lock_if_concurrent(&system->lock, thread);
    atomic_store_explicit(&system->closing, true, memory_order_relaxed);
    spin_unlock_if_concurrent(&system->lock, thread);
    struct runners *runners = atomic_load_explicit(&system->runners, memory_order_acquire); /* [PB1] */
    idle_slowly(thread, &system->default_runners);
    for (; runners; runners = runners->next)
        idle_slowly(thread, runners);
    for (bool empty = false; !empty;) {
        spin_lock_if_concurrent(&system->lock, thread);
        empty = list_empty(&system->living);
        struct runner *r = take_idle(system);
        spin_unlock_if_concurrent(&system->lock, thread);
        if (!r)
            thread = thread_yield(thread); /* it is about to be idle, or to leave */
        else if (r->launched)
            thread_ready(thread, &r->strand->member);
        else
            spawn_launch(thread, r->strand);
    }
    await_failed(thread_self(), system);
}
