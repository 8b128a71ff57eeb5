/*
 * Cells and their activations. The protocol block is in actor.h.
 */
#include "cell.h"

#include "deadlock.h"
#include "runners.h"

#include "../strand/cancel.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>

/* ---- types ------------------------------------------------------------------------------------------------- */

static void lay_out(struct cell_type *type, const strand_actor_class *class, size_t args)
{
    type->args = args;
    type->args_at = (class->state_size + 15) & ~(size_t)15;
    type->whole = args ? type->args_at + args : class->state_size;
    size_t size = sizeof(struct cell) + type->whole;
    while (type->size_class < CELL_CLASSES && cell_sizes[type->size_class] < size)
        type->size_class++;
    type->outside = type->size_class == CELL_CLASSES;
    if (type->outside)
        type->size_class = 0;
}

static inline bool is_type(const struct cell_type *type, const struct runners *runners, const strand_actor_class *class,
                           size_t args)
{
    return type->class == class && type->args == args && type->runners == runners;
}

static struct cell_type *find_near(struct cell_type *type, const struct runners *runners,
                                   const strand_actor_class *class, size_t args)
{
    while (type && !is_type(type, runners, class, args))
        type = type->next;
    return type;
}

static uint64_t key_of(const struct runners *runners, const strand_actor_class *class, size_t args)
{
    uint64_t key = ((uintptr_t) class * UINT64_C(0x9e3779b97f4a7c15)) ^ (uintptr_t)runners;
    return key * UINT64_C(0xff51afd7ed558ccd) + args;
}

static struct cell_type *find_far(const struct tree *types, const struct runners *runners,
                                  const strand_actor_class *class, size_t args)
{
    uint64_t key = key_of(runners, class, args);
    struct index_node *at = index_find(types, key);
    while (at && at->key == key && !is_type(CONTAINER(at, struct cell_type, by_parts), runners, class, args))
        at = index_next(at);
    return at && at->key == key ? CONTAINER(at, struct cell_type, by_parts) : NULL;
}

static struct cell_type *cell_type_new(struct thread *thread, struct runners *runners, const strand_actor_class *class,
                                       size_t args)
{
    struct cell_type *type = platform_calloc(thread, 1, sizeof *type);
    if (!type)
        return NULL;
    type->system = runners->system;
    type->class = class;
    type->runners = runners;
    type->most = class->max_mailbox ? class->max_mailbox : UINT32_MAX;
    type->receive = class->receive;
    snprintf(type->label, sizeof type->label, "%s", class->name ? class->name : "actor");
    type->slow =
        class->priority || class->log_receives || runners->quantum || class->mailbox_full == STRAND_MAILBOX_FULL_OLDEST;
    lay_out(type, class, args);
    arch_san_release(type);
    return type;
}

/* Under the lock of the system. A type is near as long as there are few. */
static void enter(struct system *system, struct cell_type *type)
{
    struct cell_type *first = atomic_load_explicit(&system->types, memory_order_relaxed);
    if (system->types_near == TYPES_NEAR) {
        index_add(&system->further_types, &type->by_parts, key_of(type->runners, type->class, type->args));
        return;
    }
    system->types_near++;
    type->next = first;
    atomic_store_explicit(&system->types, type, memory_order_release); /* [PB1] */
}

struct cell_type *cell_type_of(struct thread *thread, struct runners *runners, const strand_actor_class *class,
                               size_t args)
{
    struct system *system = runners->system;
    struct cell_type *type =
        find_near(atomic_load_explicit(&system->types, memory_order_acquire), runners, class, args); /* [PB1] */
    if (LIKELY(type != NULL))
        return type;
    if ((unsigned)class->mailbox_full > STRAND_MAILBOX_FULL_OLDEST)
        MISUSE("strand_actor_spawn", "",
               "mailbox_full of the class '%s' is %d: set an enumerator, such as STRAND_MAILBOX_FULL_FAIL",
               class->name ? class->name : "actor", (int)class->mailbox_full);
    spin_lock(&system->lock, thread);
    type = find_near(atomic_load_explicit(&system->types, memory_order_acquire), runners, class, args); /* [PB1] */
    if (!type)
        type = find_far(&system->further_types, runners, class, args);
    if (!type && (type = cell_type_new(thread, runners, class, args)))
        enter(system, type);
    spin_unlock(&system->lock);
    return type;
}

/* ---- awake ------------------------------------------------------------------------------------------------- */

struct activation *cell_wake(struct thread *thread, struct cell *cell, uint64_t *word)
{
    struct activation *activation = platform_slab_get(thread, &actor_thread_of(thread)->activations);
    if (UNLIKELY(!activation))
        return NULL;
    arch_san_acquire(activation);
    activation->cell = cell;
    activation->runner = NULL;
    activation->first = activation->batch = NULL;
    activation->last = activation->counted = &activation->first;
    atomic_store_explicit(&activation->calls, 0, memory_order_relaxed);
    activation->decided_above = false;
    activation->flags = *word & CELL_FRESH ? ACTIVATION_FRESH : 0;
    activation->queued = activation->taken = 0;
    list_init(&activation->waiters);
    activation->cursor = NULL;
    activation->failed = activation->escalated = NULL;
    activation->why = NULL;
    atomic_store_explicit(&activation->serial, word_serial(*word), memory_order_release); /* [A8] */
    *word =
        (uint64_t)(++activation->wakes & CELL_WAKES_MOST) << CELL_WAKES | (uint64_t)(uintptr_t)activation | CELL_AWAKE;
    return activation;
}

struct runner *activation_schedule_(struct thread *thread, struct activation *activation)
{
    activation->flags |= ACTIVATION_SCHEDULED; /* [A3] */
    struct runners *runners = cell_type(activation->cell)->runners;
    struct runner *r = runners_get(thread, runners);
    if (UNLIKELY(!r))
        return runners_starve(thread, runners, activation);
    runners_assign(r, activation);
    return r;
}

void activation_retire(struct thread *thread, struct activation *activation)
{
    atomic_store_explicit(&activation->serial, 0, memory_order_release); /* [A8] */
    arch_san_release(activation);
    slab_put(&actor_thread_of(thread)->activations, activation);
}

static bool suspended_for(uint64_t word, const strand_exception *why)
{
    return (word & CELL_AWAKE) && plain_load(&word_activation(word)->why, memory_order_relaxed) == why;
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
    if (UNLIKELY(why) && !suspended_for(word, why)) {
        cell_unlock(cell, word);
        return 0;
    }
    struct activation *activation = word & CELL_AWAKE ? word_activation(word) : cell_wake(thread, cell, &word);
    struct runner *r = NULL;
    struct member *woken = NULL;
    bool fresh = false;
    if (activation) {
        fresh = activation->flags & ACTIVATION_FRESH;
        uint32_t before = atomic_load_explicit(&activation->calls, memory_order_relaxed);
        if (calls & (CALL_RESUME | CALL_RESTART)) /* the latest request wins */
            before &= ~(uint32_t)CALL_SUSPEND;
        if (calls & CALL_SUSPEND)
            before &= ~(uint32_t)CALL_RESUME;
        if (calls & CALLS_DECIDED)
            count_decision(activation);
        atomic_store_explicit(&activation->calls, before | calls, memory_order_relaxed);
        r = activation_schedule(thread, activation);
        bool ends =
            activation->flags & (ACTIVATION_STOPPING | ACTIVATION_RESTARTING); /* its stop function is not a message */
        struct runner *other = plain_load(&activation->runner, memory_order_acquire); /* [PB1] */
        if (!r && (calls & ~before & CALL_NOW) && other && !ends) /* once: afterwards another runner handles it */
            woken = cancel_strand(thread, other->strand, NULL, false);
    }
    cell_unlock(cell, word);
    if (r)
        runners_go(thread, r, fresh);
    if (woken)
        thread_ready(thread, woken);
    return activation ? 0 : -ENOMEM;
}

void cell_decided(struct thread *thread, strand_actor actor, const strand_exception *why)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return;
    if (suspended_for(word, why)) {
        struct activation *activation = word_activation(word);
        uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
        atomic_store_explicit(&activation->calls, calls | CALL_DECIDED, memory_order_relaxed);
        count_decision(activation);
    }
    cell_unlock(cell, word);
}

bool cell_is_there(struct thread *thread, strand_actor actor)
{
    return ref_is_ours(thread, actor) && cell_ref(ref_cell(actor)).bits[1] == actor.bits[1];
}

/* Whether it handles nothing for now: its turn's strand waits for something, or it is suspended. */
static bool is_blocked(const struct activation *activation, const struct runner *r)
{
    if (activation->flags & (ACTIVATION_SUSPENDED | ACTIVATION_WAITS))
        return true;
    return r && wait_is_armed(atomic_load_explicit(&r->strand->wait.state, memory_order_relaxed));
}

size_t cell_load(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return SIZE_MAX;
    const struct activation *activation = word & CELL_AWAKE ? word_activation(word) : NULL;
    size_t load = 0;
    if (activation && (activation->flags & ACTIVATION_STOPPING)) {
        load = SIZE_MAX;
    } else if (activation) {
        const struct runner *r = plain_load(&activation->runner, memory_order_acquire); /* [PB1] */
        load = (size_t)activation->queued * 4 + (is_blocked(activation, r) ? 2 : 0) + (r ? 1 : 0);
    }
    cell_unlock(cell, word);
    return load;
}

/* ---- children ---------------------------------------------------------------------------------------------- */

strand_actor cell_ref(const struct cell *cell)
{
    uint64_t word = atomic_load_explicit(&cell->word, memory_order_acquire), again, serial; /* [A8] */
    for (;; word = again) {
        const struct activation *activation = word_activation(word);
        if ((word & CELL_AWAKE) && !is_activation(activation))
            return (strand_actor){{0, 0}}; /* no cell: the caller's reference is damaged */
        serial = word & CELL_AWAKE ? atomic_load_explicit(&activation->serial, memory_order_acquire) /* [A8] */
                                   : word_serial(word);
        again = atomic_load_explicit(&cell->word, memory_order_acquire); /* [A8] */
        if (((again ^ word) & ~(uint64_t)CELL_LOCK) == 0)
            return word & WORD_FREE ? (strand_actor){{0, 0}} : ref_of(cell, serial);
    }
}

strand_actor cell_next_child(struct activation *activation)
{
    strand_actor found = {{0, 0}};
    while (activation->cursor && !found.bits[1]) {
        struct cell *child = activation->cursor;
        activation->cursor = child->older;
        found = cell_ref(child);
    }
    return found;
}
