/*
 * Monitors (strand/monitor.h): a no-suspend section and a lock. No strand suspends under the lock. So it is always free
 * in a run of one thread (rule N-02), and otherwise held for a short time.
 */
#include "misuse.h"
#include "section.h"

#include "../../include/strand/monitor.h"

struct monitor {
    atomic_flag lock;
    _Atomic uint32_t run;   /* the run whose strand is inside, or was last: the low bits of its number */
    _Atomic uint64_t owner; /* the id of the strand inside, or 0 */
};
_Static_assert(sizeof(struct monitor) <= sizeof(struct strand_monitor_), "the user gives it its memory");

static inline struct monitor *monitor_of(struct strand_monitor_ *monitor)
{
    return (struct monitor *)(void *)monitor;
}

NO_ANALYSIS struct strand_guard_ strand_monitor_enter_(struct strand_monitor_ *handle, const char *file, int line)
{
    struct thread *thread = must_be_strand("STRAND_MONITOR_ENTER");
    struct cb *me = current_of(thread);
    struct monitor *monitor = monitor_of(handle);
    if (UNLIKELY(!monitor))
        misuse("STRAND_MONITOR_ENTER", "", "at %s:%d the monitor is NULL", file, line);
    uint64_t owner = atomic_load_explicit(&monitor->owner, memory_order_acquire); /* [PB1] */
    uint32_t run = (uint32_t)runtime_of(thread)->listed.number;
    if (UNLIKELY(owner == cb_id(me)))
        misuse("STRAND_MONITOR_ENTER", "",
               "at %s:%d the strand is in this monitor already: pass the members to functions that are called inside",
               file, line);
    if (UNLIKELY(owner && atomic_load_explicit(&monitor->run, memory_order_relaxed) != run))
        misuse("STRAND_MONITOR_ENTER", "", "at %s:%d strand #%llu of another run is in the monitor, which serves one",
               file, line, (unsigned long long)owner);
    spin_lock_if_concurrent(&monitor->lock, thread);
    atomic_store_explicit(&monitor->run, run, memory_order_relaxed);
    atomic_store_explicit(&monitor->owner, cb_id(me), memory_order_release); /* [PB1] */
    struct strand_guard_ guard = section_enter(me, file, line, NULL);
    guard.bits[2] = (uint64_t)(uintptr_t)monitor;
    return guard;
}

NO_ANALYSIS void strand_monitor_leave_(struct strand_guard_ *guard)
{
    struct thread *thread = must_be_strand("STRAND_MONITOR_ENTER");
    struct monitor *monitor = (struct monitor *)(uintptr_t)guard->bits[2];
    atomic_store_explicit(&monitor->owner, 0, memory_order_relaxed);
    spin_unlock_if_concurrent(&monitor->lock, thread);
    section_leave(current_of(thread), guard);
}
