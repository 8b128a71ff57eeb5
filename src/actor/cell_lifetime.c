/*
 * The beginning and the end of a cell. The protocol block is in actor.h.
 */
#include "cell.h"

#include "actor_timers.h"
#include "life.h"
#include "mailbox.h"
#include "optional.h"
#include "runners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the beginning ----------------------------------------------------------------------------------------- */

const void *cell_args(struct cell *cell)
{
    const struct cell_type *type = cell_type(cell);
    return type->args ? (char *)cell_state(cell) + type->args_at : NULL;
}

void cell_reset(struct cell *cell)
{
    const struct cell_type *type = cell_type(cell);
    const strand_actor_class *class = type->class;
    char *state = cell_state(cell);
    memset(state, 0, class->state_size);
    if (!class->start && type->args)
        memcpy(state, state + type->args_at, type->args < class->state_size ? type->args : class->state_size);
}

static bool give_state(struct thread *thread, struct cell *cell)
{
    if (LIKELY(!cell_type(cell)->outside))
        return true;
    void *state = platform_malloc(thread, cell_type(cell)->whole);
    if (state)
        memcpy(cell->state, &state, sizeof state);
    return state;
}

static void free_more(struct cell *cell)
{
    struct optional *optional = cell_optional(cell);
    if (LIKELY(!optional))
        return;
    behaviours_drop(optional);
    restarts_drop(optional);
    free(optional->levels);
    free(optional);
}

/* Free a cell that no reference leads to any more, except its name. */
static void unmake(struct thread *thread, struct cell *cell)
{
    if (UNLIKELY(cell_type(cell)->outside))
        free(cell_state(cell));
    struct slab_cache *cache = &actor_thread_of(thread)->cells[cell_type(cell)->size_class];
    free_more(cell);
    arch_san_release(cell);
    slab_put(cache, cell);
}

/* Under the parent's lock. */
static bool is_stopping(uint64_t parent)
{
    return (parent & CELL_AWAKE) && (word_activation(parent)->flags & (ACTIVATION_STOPPING | ACTIVATION_RESTARTING));
}

/* Link the cell to its parent, and publish its word. Returns false if the parent stops, or has ended. */
static bool adopt(struct thread *thread, strand_actor above, struct cell *cell, uint64_t as)
{
    struct cell *parent = ref_cell(above);
    uint64_t word;
    if (!cell_lock(thread, parent, ref_serial(above), &word))
        return false;
    bool open = !is_stopping(word);
    if (open) {
        atomic_store_explicit(&cell->word, as, memory_order_release); /* [PB1] [A7] */
        cell->older = parent->children;
        if (cell->older)
            cell->older->newer = cell;
        parent->children = cell;
    }
    cell_unlock(parent, word);
    return open;
}

/* Allocate and initialise a cell, except its word. NULL: no memory. */
static struct cell *build(struct thread *thread, struct cell_type *type, struct cell *parent, const void *args)
{
    struct cell *cell = platform_slab_get(thread, &actor_thread_of(thread)->cells[type->size_class]);
    if (!cell)
        return NULL;
    arch_san_acquire(cell);
    cell->form = (uintptr_t)type;
    if (!give_state(thread, cell)) {
        slab_put(&actor_thread_of(thread)->cells[type->size_class], cell);
        return NULL;
    }
    if (UNLIKELY(type->class->priority != NULL) && !levels_open(thread, cell)) {
        unmake(thread, cell);
        return NULL;
    }
    if (type->args)
        memcpy((char *)cell_state(cell) + type->args_at, args, type->args);
    cell_reset(cell);
    cell->parent = parent;
    cell->children = cell->newer = cell->older = NULL;
    return cell;
}

/* Until the cell is in its parent's list it can't be found, not even by its name; afterwards it stays locked until it
 * is complete. Before that the holder of its lock waits for no other: the parent may have ended, and its memory be that
 * of a cell like this. */
int cell_make(struct thread *thread, struct cell_type *type, strand_actor above, const char *name, const void *args,
              uint32_t calls, struct envelope *first, strand_actor *out)
{
    struct cell *cell = build(thread, type, ref_cell(above), args);
    uint64_t serial = next_serial(worker_of(thread)), word = serial << WORD_SERIAL | CELL_FRESH;
    struct activation *activation = cell && (calls || first) ? cell_wake(thread, cell, &word) : NULL;
    if (cell && !activation && (calls || first)) {
        unmake(thread, cell);
        cell = NULL;
    }
    if (!cell)
        return -ENOMEM;
    if (activation)
        atomic_store_explicit(&activation->calls, calls, memory_order_relaxed);
    uint64_t locked = word | (thread->concurrent ? CELL_LOCK : 0);
    bool alone = !above.bits[1];
    atomic_store_explicit(&cell->word, alone ? locked : word_freed(serial << WORD_SERIAL),
                          memory_order_release); /* [PB1] [A4] */
    int error = name ? optional_name(thread, cell, name) : 0;
    if (!error && !alone && !adopt(thread, above, cell, locked)) {
        optional_unname(thread, cell);
        error = -ESHUTDOWN;
    }
    if (UNLIKELY(error)) {
        if (activation)
            activation_retire(thread, activation);
        unmake(thread, cell);
        return error;
    }
    if (first)
        mailbox_put(activation, first);
    *out = ref_of(cell, serial);
    struct runner *r = activation ? activation_schedule(thread, activation) : NULL;
    cell_unlock(cell, word);
    if (r)
        runners_go(thread, r, true);
    return 0;
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

/* Unlink from the parent, which is notified if it waits for its last child. */
static void leave_parent(struct thread *thread, struct cell *cell)
{
    struct cell *parent = cell->parent;
    if (!parent)
        return;
    struct runner *r = NULL;
    uint64_t word = cell_lock_living(thread, parent);
    if (cell->newer)
        cell->newer->older = cell->older;
    else
        parent->children = cell->older;
    if (cell->older)
        cell->older->newer = cell->newer;
    if (word & CELL_AWAKE) {
        struct activation *activation = word_activation(word);
        if (activation->cursor == cell)
            activation->cursor = cell->older;
        if (!parent->children && (activation->flags & ACTIVATION_WAITS)) {
            uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
            atomic_store_explicit(&activation->calls, calls | CALL_ALONE, memory_order_relaxed);
            r = activation_schedule(thread, activation);
        }
    }
    cell_unlock(parent, word);
    if (r)
        runners_go(thread, r, false);
}

void cell_unmake(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word = cell_lock_living(thread, cell);
    optional_unname(thread, cell);
    cell_unlock(cell, word_freed(word & ~(uint64_t)CELL_BITS));
    leave_parent(thread, cell);
    unmake(thread, cell);
}

void cell_end(struct thread *thread, struct runner *r)
{
    struct cell *cell = r->cell;
    struct activation *activation = r->activation;
    if (cell_optional(cell)) {
        optional_unname(thread, cell);
        actor_timers_forget(thread, cell_optional(cell));
    }
    (void)cell_lock_living(thread, cell);
    ASSERT(!activation->first && !activation->batch && list_empty(&activation->waiters));
    struct optional *optional = cell_optional(cell); /* from here on no other thread accesses it */
    strand_exception *why = activation->why;
    struct failure *failed = activation->failed, *escalated = activation->escalated;
    cell_unlock(cell, word_freed(ref_serial(r->self) << WORD_SERIAL));
    activation_retire(thread, activation);
    r->activation = NULL;
    if (optional) {
        watch_forget(thread, &optional->watching);
        watch_notify_askers(thread, &optional->askers);
        thread = watch_notify_watchers(thread, &optional->watchers);
    }
    strand_exception_release(why);
    failures_drop(failed);
    failures_drop(escalated);
    leave_parent(thread, cell);
    unmake(thread, cell);
}
