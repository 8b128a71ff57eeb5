/*
 * How strands follow what C++ code does with exceptions. The runtime notifies nobody when a handler catches an
 * exception of the library, or when a C++ exception is in flight. So the strand's records are brought up to date where
 * they are read: at the start of an operation, a block, a try block or a throw.
 *
 * STATE     thread->cxx->uncaught is the C++ runtime's own count for the strand that runs: the exceptions in flight,
 *           the library's included, that no handler has caught. Blocks and try blocks record it when they are entered.
 * INVARIANTS [U1] the strand runs clean-ups of an exception if and only if the count is higher than at the entry of the
 *           innermost try block. Then every source outside of the blocks that were opened since is deferred. [U2] after
 *           an update, own.flight has no exception that a handler has caught. A handler that rethrows an exception puts
 *           it back before the first frame is unwound. [U3] a strand's first use of the runtime may be a clean-up,
 *           before its thread has noticed the runtime [S5]. So the thread looks for it where a block or try block
 *           records the count, and before an operation throws an interruption.
 * NOT DONE  a notification by the C++ runtime: there is none.
 * TESTED BY tests/spec/cxx.cc, tests/spec/cxx_handlers.cc.
 */
#ifndef STRAND_STRAND_CXX_H
#define STRAND_STRAND_CXX_H

#include "exception.h"

/* Calls fn(arg). A C++ exception that would leave fn is thrown on as STRAND_FOREIGN. */
static inline void *cxx_call(struct thread *thread, strand_fn *fn, void *arg)
{
    return UNLIKELY(thread->cxx != NULL) ? arch_call(fn, arg) : fn(arg);
}
/* As strand_try. A C++ exception is returned as STRAND_FOREIGN. */
strand_exception *cxx_try(strand_fn *fn, void *arg);
/* For arch_on_foreign. */
void cxx_on_foreign(const struct arch_foreign *foreign);
/* For arch_on_terminate: the C++ runtime ends the program. */
void cxx_terminating(void);

void exception_settle_cxx_(struct thread *thread, struct cb *me);

static inline void cxx_settle(struct thread *thread, struct cb *me)
{
    if (UNLIKELY(thread->cxx != NULL) && (thread->cxx->uncaught || own_of(me)->floor))
        exception_settle_cxx_(thread, me);
}

/* As cxx_settle, but looks for the runtime first [U3]. */
static inline void cxx_notice(struct thread *thread, struct cb *me)
{
    thread_notice_cxx(thread);
    cxx_settle(thread, me);
}

/* Called before own.flight is compared with its value at the entry of a block or try block: a handler that has ended
 * since may have rethrown an exception, which another handler then caught [U2]. */
static inline void cxx_set_aside(struct thread *thread, struct cb *me)
{
    if (UNLIKELY(thread->cxx != NULL))
        exception_set_aside(me);
}

#endif
