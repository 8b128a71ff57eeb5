/*
 * The list of strands that unwind. The protocol block is in unwinding.h.
 */
#include "core.h"

COLD void unwinding_begins_(struct cb *me, struct unwinding *unwinding)
{
    struct thread *thread = thread_self();
    struct unwindings *unwindings = &runtime_of(thread)->unwindings;
    unwinding->c = me;
    unwinding->watchdog_ref = NULL;
    unwinding->since = platform_now(thread->sub);
    spin_lock(&unwindings->lock, thread);
    list_push_back(&unwindings->all, &unwinding->link);
    spin_unlock(&unwindings->lock);
}

COLD void unwinding_ends_(struct unwinding *unwinding)
{
    struct thread *thread = thread_self();
    struct unwindings *unwindings = &runtime_of(thread)->unwindings;
    spin_lock(&unwindings->lock, thread);
    if (unwinding->link.next)
        list_remove(&unwinding->link);
    if (unwinding->watchdog_ref)
        *unwinding->watchdog_ref = NULL;
    spin_unlock(&unwindings->lock);
}
