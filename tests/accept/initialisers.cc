/*
 * C++: the same, and initialisers of members.
 */
#include "initialisers.c"

struct members {
    strand_mutex mutex = STRAND_MUTEX_INIT;
    strand_semaphore two = STRAND_SEMAPHORE_INIT(2);
    strand_event event = STRAND_EVENT_INIT;
};

void use_members(members &own);
void use_members(members &own)
{
    STRAND_LOCKED(&own.mutex);
    strand_semaphore_acquire(&own.two);
    strand_event_set(&own.event);
}
