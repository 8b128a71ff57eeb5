/*
 * Memory for exceptions. Every thread keeps a few objects, so that it can throw without memory, and so that a throw
 * usually costs no allocation. The last RESERVE_LEAST objects are taken only when malloc fails.
 */
#include "exception.h"

#include <stdlib.h>

enum { RESERVE_LEAST = 4, RESERVE_MOST = 16 };

OWN_INLINE uint32_t kept(struct worker *worker)
{
    return worker->exceptions_count;
}

OWN_INLINE strand_exception *pop(struct worker *worker)
{
    strand_exception *e = worker->exceptions;
    worker->exceptions = e->next;
    worker->exceptions_count--;
    arch_san_acquire(e);
    return e;
}

OWN_INLINE void push(struct worker *worker, strand_exception *e)
{
    arch_san_release(e);
    e->next = worker->exceptions;
    worker->exceptions = e;
    worker->exceptions_count++;
}

OWN_INLINE struct worker *here(void)
{
    struct thread *thread = thread_self();
    return thread ? worker_of(thread) : NULL;
}

strand_exception *exception_alloc(void)
{
    struct worker *worker = here();
    if (worker && kept(worker) > RESERVE_LEAST)
        return pop(worker);
    if (worker && kept(worker) && platform_refuses(thread_self()))
        return pop(worker); /* a refusal by a seed never takes the last object, so it can't end the program */
    strand_exception *e = malloc(sizeof *e);
    if (e)
        return e;
    if (worker && kept(worker))
        return pop(worker);
    static const char text[] = "libstrand: no memory, not even for an exception; the program ends\n";
    arch_write(2, text, sizeof text - 1);
    abort();
}

void exception_free(strand_exception *e)
{
    struct worker *worker = here();
    if (worker && kept(worker) < RESERVE_MOST)
        push(worker, e);
    else
        free(e);
}

int exception_reserve_open(struct worker *worker)
{
    while (kept(worker) < RESERVE_LEAST) {
        strand_exception *e = malloc(sizeof *e);
        if (!e)
            return -1;
        push(worker, e);
    }
    return 0;
}

void exception_reserve_close(struct worker *worker)
{
    while (kept(worker))
        free(pop(worker));
}
