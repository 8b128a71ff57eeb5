/*
 * The systems of a run: what their handles refer to, and the list of them. See registry.h.
 */
#include "registry.h"

#include "../strand/misuse.h"

/* ---- handles ------------------------------------------------------------------------------------------------ */

/* The target of a handle, in the slab of promises. */
struct door {
    _Atomic uint64_t word; /* as in a promise */
    struct system *system;
};
_Static_assert(sizeof(struct door) <= PROMISE_SIZE, "it lies in a slab");

static uint64_t serial_of(const struct door *door)
{
    return word_serial(atomic_load_explicit(&door->word, memory_order_acquire)); /* [HN2] */
}

bool registry_open(struct thread *thread, struct system *system)
{
    struct door *door = platform_slab_get(thread, &actor_thread_of(thread)->promises);
    if (!door)
        return false;
    door->system = system;
    system->door = door;
    atomic_store_explicit(&door->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release); /* [HN2] */
    return true;
}

void registry_close(struct thread *thread, struct system *system)
{
    struct door *door = system->door;
    atomic_store_explicit(&door->word, word_freed(serial_of(door) << WORD_SERIAL), memory_order_release); /* [HN2] */
    slab_put(&actor_thread_of(thread)->promises, door);
}

strand_actors registry_handle(const struct system *system)
{
    return (strand_actors){{(uint64_t)(uintptr_t)system->door, serial_of(system->door) | MARK_ACTORS}};
}

struct system *registry_find(struct thread *thread, strand_actors handle, const char *function)
{
    struct door *door = (struct door *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(door) || !slab_has(&actor_run_of(thread)->promises, door) ||
        (serial_of(door) | MARK_ACTORS) != handle.bits[1])
        MISUSE(function, "",
               handle.bits[1]
                   ? "the system of actors is gone: its block has been left. Use the handle within that block"
                   : "there is no system of actors behind {0}: STRAND_ACTORS opens one");
    return door->system;
}

/* ---- the list ----------------------------------------------------------------------------------------------- */

void registry_add(struct thread *thread, struct system *system)
{
    struct actor_run *run = actor_run_of(thread);
    spin_lock(&run->lock, thread);
    system->older = run->systems;
    run->systems = system;
    spin_unlock(&run->lock);
}

void registry_remove(struct thread *thread, struct system *system)
{
    struct actor_run *run = actor_run_of(thread);
    spin_lock(&run->lock, thread);
    struct system **at = &run->systems;
    while (*at != system)
        at = &(*at)->older;
    *at = system->older;
    spin_unlock(&run->lock);
}
