/*
 * Cells and their tasks. The protocol block is in actor.h.
 */
#include "cell.h"

#include "runners.h"

#include "../strand/cancel.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

static inline bool is_kind(const struct kind *kind, const struct runners *runners, const strand_actor_class *class,
                           size_t args)
{
    return kind->class == class && kind->args == args && kind->runners == runners;
}

static struct kind *find_near(struct kind *kind, const struct runners *runners, const strand_actor_class *class,
                              size_t args)
{
    while (kind && !is_kind(kind, runners, class, args))
        kind = kind->next;
    return kind;
}

static uint64_t key_of(const struct runners *runners, const strand_actor_class *class, size_t args)
{
    uint64_t key = ((uintptr_t) class * UINT64_C(0x9e3779b97f4a7c15)) ^ (uintptr_t)runners;
    return key * UINT64_C(0xff51afd7ed558ccd) + args;
}

static struct kind *find_far(const struct tree *kinds, const struct runners *runners, const strand_actor_class *class,
                             size_t args)
{
    uint64_t key = key_of(runners, class, args);
    struct index_node *at = index_find(kinds, key);
    while (at && at->key == key && !is_kind(CONTAINER(at, struct kind, by_parts), runners, class, args))
        at = index_next(at);
    return at && at->key == key ? CONTAINER(at, struct kind, by_parts) : NULL;
}

static struct kind *kind_new(struct thread *thread, struct runners *runners, const strand_actor_class *class,
                             size_t args)
{
    struct kind *kind = platform_calloc(thread, 1, sizeof *kind);
    if (!kind)
        return NULL;
    kind->system = runners->system;
    kind->class = class;
    kind->runners = runners;
    kind->most = class->max_mailbox ? class->max_mailbox : UINT32_MAX;
    kind->receive = class->receive;
    snprintf(kind->label, sizeof kind->label, "%s", class->name ? class->name : "actor");
    kind->slow =
        class->priority || class->log_receives || runners->quantum || class->mailbox_full == STRAND_MAILBOX_FULL_OLDEST;
    lay_out(kind, class, args);
    arch_san_release(kind);
    return kind;
}

/* Under the lock of the system. A kind is near as long as there are few. */
static void enter(struct system *system, struct kind *kind)
{
    struct kind *first = atomic_load_explicit(&system->kinds, memory_order_relaxed);
    if (system->kinds_near == KINDS_NEAR) {
        index_add(&system->more_kinds, &kind->by_parts, key_of(kind->runners, kind->class, kind->args));
        return;
    }
    system->kinds_near++;
    kind->next = first;
    atomic_store_explicit(&system->kinds, kind, memory_order_release); /* [PB1] */
}

struct kind *kind_of(struct thread *thread, struct runners *runners, const strand_actor_class *class, size_t args)
{
    struct system *system = runners->system;
    struct kind *kind =
        find_near(atomic_load_explicit(&system->kinds, memory_order_acquire), runners, class, args); /* [PB1] */
    if (LIKELY(kind != NULL))
        return kind;
    if ((unsigned)class->mailbox_full > STRAND_MAILBOX_FULL_OLDEST)
        MISUSE("strand_actor_spawn", "", "of the class '%s', mailbox_full is %d", class->name ? class->name : "actor",
               (int)class->mailbox_full);
    spin_lock(&system->lock, thread);
    kind = find_near(atomic_load_explicit(&system->kinds, memory_order_acquire), runners, class, args); /* [PB1] */
    if (!kind)
        kind = find_far(&system->more_kinds, runners, class, args);
    if (!kind && (kind = kind_new(thread, runners, class, args)))
        enter(system, kind);
    spin_unlock(&system->lock);
    return kind;
}

/* ---- awake ------------------------------------------------------------------------------------------------- */

static struct task *task_new(struct thread *thread)
{
    if (!STRAND_ACTOR_TASKS_MALLOC)
        return platform_slab_get(thread, &actor_thread_of(thread)->tasks);
    struct task *task = platform_malloc(thread, sizeof *task);
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
    arch_san_acquire(task);
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
    struct runners *runners = cell_kind(task->cell)->runners;
    struct runner *r = runners_get(thread, runners);
    if (UNLIKELY(!r))
        return runners_starve(thread, runners, task);
    runners_assign(r, task);
    return r;
}

void task_retire(struct thread *thread, struct task *task)
{
    atomic_store_explicit(&task->serial, 0, memory_order_release); /* [A8] */
    arch_san_release(task);
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
        runners_go(thread, r, fresh);
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
        if ((word & CELL_AWAKE) && !is_task(task))
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
