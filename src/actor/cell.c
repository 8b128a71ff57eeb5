/*
 * Cells and their tasks. The protocol block is in actor.h.
 */
#include "cell.h"

#include "clock.h"
#include "life.h"
#include "mailbox.h"
#include "message.h"
#include "more.h"
#include "place.h"

#include "../strand/cancel.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds ------------------------------------------------------------------------------------------------- */

static void lay_out(struct kind *kind, const strand_actor_class *class, size_t args)
{
    kind->args = args;
    kind->args_at = (class->state_size + 15) & ~(size_t)15;
    kind->whole = args ? kind->args_at + args : class->state_size;
    size_t size = sizeof(struct cell) + kind->whole;
    while (kind->size_class < CELL_CLASSES && cell_sizes[kind->size_class] < size)
        kind->size_class++;
    kind->outside = kind->size_class == CELL_CLASSES;
    if (kind->outside)
        kind->size_class = 0;
}

static inline bool is_kind(const struct kind *kind, const struct place *place, const strand_actor_class *class,
                           size_t args)
{
    return kind->class == class && kind->args == args && kind->place == place;
}

static struct kind *find_near(struct kind *kind, const struct place *place, const strand_actor_class *class,
                              size_t args)
{
    while (kind && !is_kind(kind, place, class, args))
        kind = kind->next;
    return kind;
}

static uint64_t key_of(const struct place *place, const strand_actor_class *class, size_t args)
{
    uint64_t key = ((uintptr_t) class * UINT64_C(0x9e3779b97f4a7c15)) ^ (uintptr_t)place;
    return key * UINT64_C(0xff51afd7ed558ccd) + args;
}

static struct kind *find_far(const struct tree *kinds, const struct place *place, const strand_actor_class *class,
                             size_t args)
{
    uint64_t key = key_of(place, class, args);
    struct index_node *at = index_find(kinds, key);
    while (at && at->key == key && !is_kind(CONTAINER(at, struct kind, by_parts), place, class, args))
        at = index_next(at);
    return at && at->key == key ? CONTAINER(at, struct kind, by_parts) : NULL;
}

static struct kind *kind_new(struct thread *thread, struct place *place, const strand_actor_class *class, size_t args)
{
    struct kind *kind = driver_calloc(thread, 1, sizeof *kind);
    if (!kind)
        return NULL;
    kind->system = place->system;
    kind->class = class;
    kind->place = place;
    kind->most = class->max_mailbox ? class->max_mailbox : UINT32_MAX;
    kind->receive = class->receive;
    snprintf(kind->label, sizeof kind->label, "%s", class->name ? class->name : "actor");
    kind->slow =
        class->priority || class->log_receives || place->quantum || class->mailbox_full == STRAND_MAILBOX_FULL_OLDEST;
    lay_out(kind, class, args);
    arch_note_release(kind);
    return kind;
}

/* Under the lock of the system. A kind is near as long as there are few. */
static void enter(struct system *system, struct kind *kind)
{
    struct kind *first = atomic_load_explicit(&system->kinds, memory_order_relaxed);
    if (system->kinds_near == KINDS_NEAR) {
        index_add(&system->more_kinds, &kind->by_parts, key_of(kind->place, kind->class, kind->args));
        return;
    }
    system->kinds_near++;
    kind->next = first;
    atomic_store_explicit(&system->kinds, kind, memory_order_release); /* [PB1] */
}

struct kind *kind_of(struct thread *thread, struct place *place, const strand_actor_class *class, size_t args)
{
    struct system *system = place->system;
    struct kind *kind =
        find_near(atomic_load_explicit(&system->kinds, memory_order_acquire), place, class, args); /* [PB1] */
    if (LIKELY(kind != NULL))
        return kind;
    if ((unsigned)class->mailbox_full > STRAND_MAILBOX_FULL_OLDEST)
        MISUSE("strand_actor_spawn", "", "of the class '%s', mailbox_full is %d", class->name ? class->name : "actor",
               (int)class->mailbox_full);
    spin_lock(&system->lock, thread);
    kind = find_near(atomic_load_explicit(&system->kinds, memory_order_acquire), place, class, args); /* [PB1] */
    if (!kind)
        kind = find_far(&system->more_kinds, place, class, args);
    if (!kind && (kind = kind_new(thread, place, class, args)))
        enter(system, kind);
    spin_unlock(&system->lock);
    return kind;
}

/* ---- a cell's beginning ------------------------------------------------------------------------------------ */

const void *cell_args(struct cell *cell)
{
    const struct kind *kind = cell_kind(cell);
    return kind->args ? (char *)cell_state(cell) + kind->args_at : NULL;
}

void cell_reset(struct cell *cell)
{
    const struct kind *kind = cell_kind(cell);
    const strand_actor_class *class = kind->class;
    char *state = cell_state(cell);
    memset(state, 0, class->state_size);
    if (!class->start && kind->args)
        memcpy(state, state + kind->args_at, kind->args < class->state_size ? kind->args : class->state_size);
}

static bool give_state(struct thread *thread, struct cell *cell)
{
    if (LIKELY(!cell_kind(cell)->outside))
        return true;
    void *state = driver_malloc(thread, cell_kind(cell)->whole);
    if (state)
        memcpy(cell->state, &state, sizeof state);
    return state;
}

/* Free a cell that no reference leads to any more, except its name. */
static void unmake(struct thread *thread, struct cell *cell)
{
    if (UNLIKELY(cell_kind(cell)->outside))
        free(cell_state(cell));
    struct slab_cache *cache = &actor_thread_of(thread)->cells[cell_kind(cell)->size_class];
    more_end(cell);
    arch_note_release(cell);
    slab_put(cache, cell);
}

/* Under the parent's lock. */
static bool is_stopping(uint64_t parent)
{
    return (parent & CELL_AWAKE) && (word_task(parent)->flags & (TASK_STOPPING | TASK_RESTARTING));
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
static struct cell *build(struct thread *thread, struct kind *kind, struct cell *parent, const void *args)
{
    struct cell *cell = driver_slab_get(thread, &actor_thread_of(thread)->cells[kind->size_class]);
    if (!cell)
        return NULL;
    arch_note_acquire(cell);
    cell->form = (uintptr_t)kind;
    if (!give_state(thread, cell)) {
        slab_put(&actor_thread_of(thread)->cells[kind->size_class], cell);
        return NULL;
    }
    if (UNLIKELY(kind->class->priority != NULL) && !levels_open(thread, cell)) {
        unmake(thread, cell);
        return NULL;
    }
    if (kind->args)
        memcpy((char *)cell_state(cell) + kind->args_at, args, kind->args);
    cell_reset(cell);
    cell->parent = parent;
    cell->children = cell->newer = cell->older = NULL;
    return cell;
}

/* Until the cell is in its parent's list it can't be found, not even by its name; afterwards it stays locked until it
 * is complete. Before that the holder of its lock waits for no other: the parent may have ended, and its memory be that
 * of a cell like this. */
int cell_make(struct thread *thread, struct kind *kind, strand_actor above, const char *name, const void *args,
              uint32_t calls, struct envelope *first, strand_actor *out)
{
    struct cell *cell = build(thread, kind, ref_cell(above), args);
    uint64_t serial = next_serial(worker_of(thread)), word = serial << WORD_SERIAL | CELL_FRESH;
    struct task *task = cell && (calls || first) ? cell_wake(thread, cell, &word) : NULL;
    if (cell && !task && (calls || first)) {
        unmake(thread, cell);
        cell = NULL;
    }
    if (!cell)
        return -ENOMEM;
    if (task)
        atomic_store_explicit(&task->calls, calls, memory_order_relaxed);
    uint64_t locked = word | (thread->concurrent ? CELL_LOCK : 0);
    bool alone = !above.bits[1];
    atomic_store_explicit(&cell->word, alone ? locked : word_freed(serial << WORD_SERIAL),
                          memory_order_release); /* [PB1] [A4] */
    int error = name ? more_name(thread, cell, name) : 0;
    if (!error && !alone && !adopt(thread, above, cell, locked)) {
        more_unname(thread, cell);
        error = -ESHUTDOWN;
    }
    if (UNLIKELY(error)) {
        if (task)
            task_retire(thread, task);
        unmake(thread, cell);
        return error;
    }
    if (first)
        mailbox_put(task, first);
    *out = ref_of(cell, serial);
    struct runner *r = task ? task_schedule(thread, task) : NULL;
    cell_unlock(cell, word);
    if (r)
        place_go(thread, r, true);
    return 0;
}

/* ---- awake ------------------------------------------------------------------------------------------------- */

static struct task *task_new(struct thread *thread)
{
    if (!STRAND_ACTOR_TASKS_MALLOC)
        return driver_slab_get(thread, &actor_thread_of(thread)->tasks);
    struct task *task = driver_malloc(thread, sizeof *task);
    if (task)
        task->wakes = 0;
    return task;
}

static void task_free(struct thread *thread, struct task *task)
{
    if (STRAND_ACTOR_TASKS_MALLOC)
        free(task);
    else
        slab_put(&actor_thread_of(thread)->tasks, task);
}

struct task *cell_wake(struct thread *thread, struct cell *cell, uint64_t *word)
{
    struct task *task = task_new(thread);
    if (UNLIKELY(!task))
        return NULL;
    arch_note_acquire(task);
    task->cell = cell;
    task->runner = NULL;
    task->first = task->batch = NULL;
    task->last = task->counted = &task->first;
    atomic_store_explicit(&task->calls, 0, memory_order_relaxed);
    task->flags = *word & CELL_FRESH ? TASK_FRESH : 0;
    task->queued = task->taken = 0;
    list_init(&task->waiters);
    task->cursor = NULL;
    task->failed = task->escalated = NULL;
    task->why = NULL;
    atomic_store_explicit(&task->serial, word_serial(*word), memory_order_release); /* [A8] */
    *word = (uint64_t)(++task->wakes & CELL_WAKES_MOST) << CELL_WAKES | (uint64_t)(uintptr_t)task | CELL_AWAKE;
    return task;
}

struct runner *task_schedule_(struct thread *thread, struct task *task)
{
    task->flags |= TASK_SCHEDULED; /* [A3] */
    struct place *place = cell_kind(task->cell)->place;
    struct runner *r = place_get(thread, place);
    if (UNLIKELY(!r))
        return place_starve(thread, place, task);
    place_assign(r, task);
    return r;
}

void task_retire(struct thread *thread, struct task *task)
{
    atomic_store_explicit(&task->serial, 0, memory_order_release); /* [A8] */
    arch_note_release(task);
    task_free(thread, task);
}

static bool rests_for(uint64_t word, const strand_exception *why)
{
    return (word & CELL_AWAKE) && plain_load(&word_task(word)->why, memory_order_relaxed) == why;
}

int cell_call(struct thread *thread, strand_actor actor, uint32_t calls)
{
    return cell_call_failed(thread, actor, calls, NULL);
}

int cell_call_failed(struct thread *thread, strand_actor actor, uint32_t calls, const strand_exception *why)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return -ESRCH;
    if (UNLIKELY(why) && !rests_for(word, why)) {
        cell_unlock(cell, word);
        return 0;
    }
    struct task *task = word & CELL_AWAKE ? word_task(word) : cell_wake(thread, cell, &word);
    struct runner *r = NULL;
    struct member *woken = NULL;
    bool fresh = false;
    if (task) {
        fresh = task->flags & TASK_FRESH;
        uint32_t before = atomic_load_explicit(&task->calls, memory_order_relaxed);
        if (calls & (CALL_RESUME | CALL_RESTART)) /* the latest request wins */
            before &= ~(uint32_t)CALL_SUSPEND;
        if (calls & CALL_SUSPEND)
            before &= ~(uint32_t)CALL_RESUME;
        atomic_store_explicit(&task->calls, before | calls, memory_order_relaxed);
        r = task_schedule(thread, task);
        bool ends = task->flags & (TASK_STOPPING | TASK_RESTARTING);            /* its stop function is not a message */
        struct runner *other = plain_load(&task->runner, memory_order_acquire); /* [PB1] */
        if (!r && (calls & ~before & CALL_NOW) && other && !ends) /* once: afterwards another runner handles it */
            woken = cancel_strand(thread, other->strand, NULL, false);
    }
    cell_unlock(cell, word);
    if (r)
        place_go(thread, r, fresh);
    if (woken)
        thread_ready(thread, woken);
    return task ? 0 : -ENOMEM;
}

void cell_decided(struct thread *thread, strand_actor actor, const strand_exception *why)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return;
    if (rests_for(word, why)) {
        struct task *task = word_task(word);
        uint32_t calls = atomic_load_explicit(&task->calls, memory_order_relaxed);
        atomic_store_explicit(&task->calls, calls | CALL_DECIDED, memory_order_relaxed);
    }
    cell_unlock(cell, word);
}

bool cell_is_there(struct thread *thread, strand_actor actor)
{
    return ref_is_ours(thread, actor) && cell_ref(ref_cell(actor)).bits[1] == actor.bits[1];
}

/* Whether it handles nothing for now: its turn's strand waits for something, or it is suspended. */
static bool is_blocked(const struct task *task, const struct runner *r)
{
    if (task->flags & (TASK_SUSPENDED | TASK_WAITS))
        return true;
    return r && wait_tag(atomic_load_explicit(&r->strand->wait.state, memory_order_relaxed)) == WAIT_ARMED;
}

size_t cell_load(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return SIZE_MAX;
    const struct task *task = word & CELL_AWAKE ? word_task(word) : NULL;
    size_t load = 0;
    if (task && (task->flags & TASK_STOPPING)) {
        load = SIZE_MAX;
    } else if (task) {
        const struct runner *r = plain_load(&task->runner, memory_order_acquire); /* [PB1] */
        load = (size_t)task->queued * 4 + (is_blocked(task, r) ? 2 : 0) + (r ? 1 : 0);
    }
    cell_unlock(cell, word);
    return load;
}

/* ---- children ---------------------------------------------------------------------------------------------- */

strand_actor cell_ref(const struct cell *cell)
{
    uint64_t word = atomic_load_explicit(&cell->word, memory_order_acquire), again, serial; /* [A8] */
    for (;; word = again) {
        const struct task *task = word_task(word);
        if ((word & CELL_AWAKE) && !arch_in_handles(task))
            return (strand_actor){{0, 0}}; /* no cell: the caller's reference is damaged */
        serial = word & CELL_AWAKE ? atomic_load_explicit(&task->serial, memory_order_acquire) /* [A8] */
                                   : word_serial(word);
        again = atomic_load_explicit(&cell->word, memory_order_acquire); /* [A8] */
        if (((again ^ word) & ~(uint64_t)CELL_LOCK) == 0)
            return word & WORD_FREE ? (strand_actor){{0, 0}} : ref_of(cell, serial);
    }
}

strand_actor cell_next_child(struct task *task)
{
    strand_actor found = {{0, 0}};
    while (task->cursor && !found.bits[1]) {
        struct cell *child = task->cursor;
        task->cursor = child->older;
        found = cell_ref(child);
    }
    return found;
}

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
        struct task *task = word_task(word);
        if (task->cursor == cell)
            task->cursor = cell->older;
        if (!parent->children && (task->flags & TASK_WAITS)) {
            uint32_t calls = atomic_load_explicit(&task->calls, memory_order_relaxed);
            atomic_store_explicit(&task->calls, calls | CALL_ALONE, memory_order_relaxed);
            r = task_schedule(thread, task);
        }
    }
    cell_unlock(parent, word);
    if (r)
        place_go(thread, r, false);
}

void cell_unmake(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word = cell_lock_living(thread, cell);
    more_unname(thread, cell);
    cell_unlock(cell, word_freed(word & ~(uint64_t)CELL_BITS));
    leave_parent(thread, cell);
    unmake(thread, cell);
}

void cell_end(struct thread *thread, struct runner *r)
{
    struct cell *cell = r->cell;
    struct task *task = r->task;
    if (cell_more(cell)) {
        more_unname(thread, cell);
        clock_forget(thread, cell_more(cell));
    }
    (void)cell_lock_living(thread, cell);
    ASSERT(!task->first && !task->batch && list_empty(&task->waiters));
    struct more *more = cell_more(cell); /* from here on no other thread accesses it */
    strand_exception *why = task->why;
    struct failure *failed = task->failed, *escalated = task->escalated;
    cell_unlock(cell, word_freed(ref_serial(r->self) << WORD_SERIAL));
    task_retire(thread, task);
    r->task = NULL;
    if (more) {
        watch_forget(thread, &more->watching);
        watch_tell_askers(thread, &more->askers);
        thread = watch_tell(thread, &more->watchers);
    }
    strand_exception_release(why);
    failures_drop(failed);
    failures_drop(escalated);
    leave_parent(thread, cell);
    unmake(thread, cell);
}
