/*
 * What C++ code does with exceptions, as far as strands have to know: a handler that catches one of ours tells nobody,
 * and neither does an exception of C++ that is in flight. What is known of either is brought up to date where it
 * counts: at the start of an operation, a block, a try block or a throw.
 *
 * STATE     thread->cxx->uncaught, the runtime's own count, is the strand's while it runs: exceptions in flight,
 *           ours included, that no handler has. A try block and a block of ours record it when they are entered.
 * INVARIANTS [U1] the strand runs because of an exception if and only if the count is higher than at the entry of
 *           the innermost try block: then every source is put off that lies outside of the blocks that were opened
 *           since. [U2] own.flight has no exception that a handler has, once it was brought up to date; a handler
 *           that rethrows one puts it back, before the first frame is unwound.
 * NOT DONE  notice by the runtime: there is none.
 * TESTED BY tests/spec/cxx.cc, tests/spec/cxx_handlers.cc.
 */
#ifndef STRAND_CXX_H
#define STRAND_CXX_H

#include "exception.h"

/* fn(arg). An exception of C++ that would leave it is thrown on as STRAND_FOREIGN. */
static inline void *cxx_call(struct thread *thread, strand_fn *fn, void *arg)
{
    return UNLIKELY(thread->cxx != NULL) ? arch_call(fn, arg) : fn(arg);
}
/* As strand_try; an exception of C++ is returned as STRAND_FOREIGN. */
strand_exception *cxx_try(strand_fn *fn, void *arg);
/* For arch_on_foreign. */
void cxx_on_foreign(const struct arch_foreign *foreign);
/* For arch_on_terminate: the C++ runtime ends the program. */
void cxx_terminating(void);

void cxx_settle_(struct thread *thread, struct cb *me);

static inline void cxx_settle(struct thread *thread, struct cb *me)
{
    if (UNLIKELY(thread->cxx != NULL) && (thread->cxx->uncaught || own_of(me)->floor))
        cxx_settle_(thread, me);
}

/* Before own.flight is compared with what it was at the entry of a block or try block: a handler that has ended since
 * may have rethrown an exception, which another handler then caught [U2]. */
static inline void cxx_set_aside(struct thread *thread, struct cb *me)
{
    if (UNLIKELY(thread->cxx != NULL))
        exception_set_aside(me);
}

#endif
