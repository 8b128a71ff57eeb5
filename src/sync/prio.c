/*
 * Priority semaphores: taking a permit and returning it. Pruning is in prio_prune.c. The protocol block is in prio.h.
 */
#include "prio.h"

#include "../strand/cancel.h"
#include "../strand/cancel_reason.h"
#include "../strand/escape.h"
#include "../strand/exception.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/scope.h"
#include "../strand/sized.h"
#include "../strand/throw.h"
#include "../strand/wait.h"
#include "source.h"

#include <errno.h>
#include <stdio.h>

/* ---- making ------------------------------------------------------------------------------------------------ */

enum { SCRAMBLE = 0x5e3a };

const char *prio_made(const struct prio *sem, char *buffer, size_t size)
{
    char where[LOCATION_WORDS];
    snprintf(buffer, size, "%s #%llu was made in %s", sem->name, (unsigned long long)sem->serial,
             print_location_line(sem->site, where, sizeof where));
    return buffer;
}

/* No other run of the process ever had this number, even if memory was reused. */
static inline uint64_t run_of(struct thread *thread)
{
    return runtime_of(thread)->listed.number;
}

static COLD struct prio *not_usable(struct thread *thread, const struct prio *sem, const char *function)
{
    if (!sem)
        misuse(function, "", "it is NULL");
    if (sem->self != ((uintptr_t)sem ^ SCRAMBLE))
        MISUSE_AT(function, "semaphore", (const void *)sem,
                  "it was never initialised, or has been copied: initialise it where it stays");
    if (sem->run != run_of(thread))
        misuse(function, prio_made(sem, MADE_ROOM), "it belongs to another run");
    struct cb *me = current_of(thread);
    if (atomic_load_explicit(&sem->asking, memory_order_relaxed) != me)
        return (struct prio *)(uintptr_t)sem; /* another strand runs the function */
    struct misuse_section_words words = misuse_section_words(me);
    misuse(function, words.made, "it uses the semaphore %s, which the semaphore itself has called", words.where);
}

struct prio *prio_of(struct thread *thread, const strand_prio_semaphore *handle, const char *function)
{
    struct prio *sem = (struct prio *)(uintptr_t)handle;
    if (UNLIKELY(!sem || sem->self != ((uintptr_t)sem ^ SCRAMBLE) || sem->run != run_of(thread) ||
                 atomic_load_explicit(&sem->asking, memory_order_relaxed)))
        return not_usable(thread, sem, function);
    return sem;
}

/* How many strands wait at a semaphore that was in this memory before. It may be any memory, also parts of an earlier
 * semaphore left on a stack: so no number in it proves anything, and it has no usable lock. A ticket that says it is in
 * the tree here does prove it; a ticket's address can be read, since tickets lie in the handle range. */
ARCH_NOT_INSTRUMENTED static size_t waiting_at(struct thread *thread, struct prio *sem)
{
    arch_san_unwritten(sem, sizeof *sem);
    if (LIKELY(sem->self != ((uintptr_t)sem ^ SCRAMBLE) || sem->run != run_of(thread)))
        return 0;
    const struct ticket *ticket = ticket_of(sem->tickets.root);
    bool is_here = (uintptr_t)ticket % TICKET_SIZE == 0 && arch_in_handles(ticket) && ticket->sem == sem;
    return is_here ? sem->waiting : 0;
}

void prio_make(struct thread *thread, strand_prio_semaphore *handle, const strand_prio_options *options, void *site,
               const char *function)
{
    struct prio *sem = (struct prio *)(uintptr_t)handle;
    must_not_escape_object(thread, sem, "semaphore", function);
    must_not_escape(thread, options->arg, "options.arg", function);
    must_not_escape(thread, options->name, "the name", function); /* the pointer is kept */
    size_t waiting = waiting_at(thread, sem);
    if (UNLIKELY(waiting))
        misuse(function, prio_made(sem, MADE_ROOM), "it is initialised again while %zu wait for it: initialise it once",
               waiting);
    memset(handle, 0, sizeof *handle);
    sem->self = (uintptr_t)sem ^ SCRAMBLE;
    sem->serial = next_serial(worker_of(thread));
    sem->run = run_of(thread);
    sem->limit = options->permits;
    sem->max_waiters = options->max_waiters;
    sem->on_full = (uint8_t)options->on_full;
    sem->compare = options->compare;
    sem->priority = options->priority;
    sem->arg = options->arg;
    sem->name = options->name ? options->name : "semaphore";
    sem->site = site;
}

void strand_prio_init(strand_prio_semaphore *sem, const strand_prio_options *options)
{
    struct thread *thread = must_be_strand("strand_prio_init");
    must_be_there(sem, "semaphore", "strand_prio_init");
    must_be_there(options, "options", "strand_prio_init");
    must_have_size(options->size, sizeof *options, "strand_prio_options", "strand_prio_init");
    if (!options->permits || (options->compare && options->priority))
        misuse("strand_prio_init", "", "%s",
               options->permits ? "`compare` and `priority` are both set, and only one can order the waiters"
                                : "strand_prio_options.permits is 0: nobody would ever have a permit");
    if (options->on_full != STRAND_PRIO_FULL_PRUNE && options->on_full != STRAND_PRIO_FULL_REFUSE)
        misuse("strand_prio_init", "", "on_full is %d", (int)options->on_full);
    prio_make(thread, sem, options, __builtin_return_address(0), "strand_prio_init");
}

/* ---- tickets ----------------------------------------------------------------------------------------------- */

OWN_INLINE struct ticket *ticket_get(struct thread *thread)
{
    struct ticket *ticket = platform_slab_get(thread, &worker_of(thread)->tickets);
    if (ticket)
        arch_san_acquire(ticket);
    return ticket;
}

OWN_INLINE void ticket_put(struct thread *thread, struct ticket *ticket)
{
    arch_san_release(ticket);
    slab_put(&worker_of(thread)->tickets, ticket);
}

/* ---- permits, under the lock --------------------------------------------------------------------------------- */

static inline bool is_free_for(struct prio *sem, const void *key)
{
    return sem->in_flight < sem->limit && (!sem->priority || prio_queue_ask(sem, key) != STRAND_NOT_NOW);
}

/* Hand the free permit to the best strand that still waits. Returns that strand, or NULL if no strand takes it. */
static inline struct member *hand_over(struct thread *thread, struct prio *sem)
{
    struct ticket *ticket;
    while ((ticket = prio_queue_best(sem))) {
        struct wait_node *node = ticket->node;
        prio_queue_remove(sem, ticket);
        if (LIKELY(wait_claim(node, thread->concurrent))) { /* [PS4] */
            node->result = 0;
            return &node->waiter->member;
        }
    }
    return NULL;
}

/* Under the lock, which it releases: hand over free permits [PS1] [PS2]. */
static inline void serve(struct thread *thread, struct prio *sem)
{
    struct member *member = NULL;
    struct batch more;
    batch_init(&more);
    while (sem->in_flight < sem->limit && sem->waiting) {
        struct member *next = hand_over(thread, sem);
        if (!next)
            break;
        sem->in_flight++;
        batch_add(&more, member);
        member = next;
    }
    prio_unlock(thread, sem);
    batch_deliver(thread, &more);
    if (member)
        thread_ready(thread, member);
}

bool prio_try(struct thread *thread, struct prio *sem, const void *key)
{
    prio_lock(thread, sem);
    bool taken = is_free_for(sem, key);
    sem->in_flight += taken;
    prio_unlock(thread, sem);
    return taken;
}

void prio_give(struct thread *thread, struct prio *sem, const char *function)
{
    prio_lock(thread, sem);
    if (UNLIKELY(!sem->in_flight)) {
        prio_unlock(thread, sem);
        misuse(function, prio_made(sem, MADE_ROOM),
               "more permits were released than acquired: release each once, or use a block macro");
    }
    sem->in_flight--;
    serve(thread, sem);
}

/* ---- waiting alone -------------------------------------------------------------------------------------------- */

/* What a waiter needs: obtained before the lock is taken again. */
struct means {
    struct ticket *ticket;
    struct cancel_reason *reason; /* of a pruning, if the queue is full */
    bool reason_made;
};

static inline bool is_full(const struct prio *sem)
{
    return UNLIKELY(sem->max_waiters && sem->waiting >= sem->max_waiters);
}

/* Under the lock. Returns 0: the queue has room; -ENOBUFS: it has none; -EINTR: the newcomer was the worst, and is
 * pruned; -EAGAIN: a reason is needed first. */
static int make_room(struct thread *thread, struct prio *sem, struct cb *me, const void *key, struct means *means,
                     struct batch *batch)
{
    while (is_full(sem)) {
        if (sem->on_full == STRAND_PRIO_FULL_REFUSE)
            return -ENOBUFS;
        if (!means->reason_made)
            return -EAGAIN;
        if (!means->reason)
            return -ENOMEM;
        switch (prio_prune_one(thread, sem, means->reason, true, key, batch)) {
        case PRUNED_NOBODY:
            return -ENOBUFS;
        case PRUNED_WHO_COMES:
            return own_of(me)->floor == 0 && me->anchor ? -EINTR : -ENOBUFS;
        default:
            break;
        }
    }
    return 0;
}

static void make_reason(struct thread *thread, struct cb *me, struct prio *sem, struct means *means)
{
    char why[129];
    snprintf(why, sizeof why, "the queue of %s is full", sem->name);
    means->reason = prio_reason(thread, me, why);
    means->reason_made = true;
}

/* Under the lock, which it releases: wait in the queue for a permit. Returns 0; -EINTR; -EAGAIN: it was interrupted,
 * and the interruption is already over. Makes the strands runnable that were pruned for it. */
static NOINLINE int wait_in_queue(struct thread **thread, struct cb *me, struct prio *sem, struct ticket *ticket,
                                  struct batch *pruned)
{
    struct wait_node *node = ticket->node = &me->wait.node;
    wait_because(*thread, me, BLOCKED_PERMIT, (uint64_t)(uintptr_t)sem);
    node->epoch = wait_arm(*thread, me, own_of(me)->floor);
    prio_queue_add(sem, ticket);
    prio_unlock(*thread, sem);
    batch_deliver(*thread, pruned);
    if (UNLIKELY(interrupted(me)) && wait_retract(*thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        *thread = thread_park(*thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return 0;
    }
    prio_lock(*thread, sem);
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        prio_queue_remove(sem, ticket);
    prio_unlock(*thread, sem);
    return interrupted_here(me) ? -EINTR : -EAGAIN;
}

/* Take a permit, or wait if there is room. -EAGAIN: the caller retries. */
static inline int take_or_wait(struct thread **thread, struct cb *me, struct prio *sem, const void *key,
                               struct means *means)
{
    struct batch batch;
    prio_lock(*thread, sem);
    if (LIKELY(is_free_for(sem, key))) {
        sem->in_flight++;
        prio_unlock(*thread, sem);
        return 0;
    }
    if (UNLIKELY(!means->ticket)) {
        prio_unlock(*thread, sem);
        means->ticket = ticket_get(*thread);
        return means->ticket ? -EAGAIN : -ENOMEM;
    }
    batch_init(&batch);
    int error = make_room(*thread, sem, me, key, means, &batch);
    means->ticket->key = key;
    if (LIKELY(!error))
        return wait_in_queue(thread, me, sem, means->ticket, &batch);
    prio_unlock(*thread, sem);
    batch_deliver(*thread, &batch);
    if (error == -EAGAIN)
        make_reason(*thread, me, sem, means);
    if (error != -EINTR)
        return error;
    interrupt_put_off_coming(me);
    if (own_of(me)->floor > 0)
        return -ENOBUFS; /* as in a shield [I2] */
    /* The caller is not armed: there is no wait to claim. */
    (void)cancel_strand(*thread, me, means->reason, false);
    return -EINTR;
}

static COLD bool would_take(struct thread *thread, struct prio *sem, const void *key)
{
    prio_lock(thread, sem);
    bool free = is_free_for(sem, key);
    prio_unlock(thread, sem);
    return free;
}

int prio_take(struct thread **thread, struct cb *me, struct prio *sem, const void *key)
{
    struct means means = {0};
    int error;
    if (UNLIKELY(thread_is_asked_for(*thread)) && would_take(*thread, sem, key)) {
        *thread = thread_yield(*thread);
        if (interrupted_here(me))
            return -EINTR;
    }
    while ((error = take_or_wait(thread, me, sem, key, &means)) == -EAGAIN)
        ;
    if (means.ticket)
        ticket_put(*thread, means.ticket);
    cancel_reason_release(means.reason);
    return error;
}

/* ---- for users --------------------------------------------------------------------------------------------------- */

static inline int acquire(strand_prio_semaphore *handle, const void *key, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    struct prio *sem = prio_of(thread, handle, function);
    may_block(thread, me, function);
    must_not_escape(thread, key, "the key", function);
    int error = prio_take(&thread, me, sem, key);
    if (UNLIKELY(error == -EINTR))
        interrupt_throw(thread, me, 0);
    if (UNLIKELY(error == -ENOMEM))
        throw_no_memory(me, "a place in a queue");
    return error;
}

int strand_prio_acquire(strand_prio_semaphore *sem, const void *key)
{
    return acquire(sem, key, "strand_prio_acquire");
}

static void permit_leave(struct strand_guard_ *guard)
{
    struct thread *thread = must_be_strand("STRAND_PRIO_PERMIT");
    strand_prio_semaphore *sem = (strand_prio_semaphore *)(uintptr_t)guard->bits[0];
    prio_give(thread, prio_of(thread, sem, "STRAND_PRIO_PERMIT"), "STRAND_PRIO_PERMIT");
}

struct strand_guard_ strand_prio_permit_enter_(strand_prio_semaphore *sem, const void *key)
{
    int error = acquire(sem, key, "STRAND_PRIO_PERMIT");
    if (UNLIKELY(error))
        throw_system(current_of(thread_self()), error, "a place in a queue");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)sem, 0, 0}, permit_leave};
}

int strand_prio_try_acquire(strand_prio_semaphore *handle, const void *key)
{
    struct thread *thread = must_be_strand("strand_prio_try_acquire");
    return prio_try(thread, prio_of(thread, handle, "strand_prio_try_acquire"), key) ? 0 : -EAGAIN;
}

void strand_prio_release(strand_prio_semaphore *handle)
{
    struct thread *thread = must_be_strand("strand_prio_release");
    prio_give(thread, prio_of(thread, handle, "strand_prio_release"), "strand_prio_release");
}

void strand_prio_reconsider(strand_prio_semaphore *handle)
{
    struct thread *thread = must_be_strand("strand_prio_reconsider");
    struct prio *sem = prio_of(thread, handle, "strand_prio_reconsider");
    prio_lock(thread, sem);
    serve(thread, sem);
}

size_t prio_read(const strand_prio_semaphore *handle, size_t offset, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct prio *sem = prio_of(thread, handle, function);
    prio_lock(thread, sem);
    size_t value = *(size_t *)(void *)((char *)sem + offset);
    prio_unlock(thread, sem);
    return value;
}

size_t strand_prio_waiting(const strand_prio_semaphore *sem)
{
    return prio_read(sem, offsetof(struct prio, waiting), "strand_prio_waiting");
}

size_t strand_prio_in_flight(const strand_prio_semaphore *sem)
{
    return prio_read(sem, offsetof(struct prio, in_flight), "strand_prio_in_flight");
}

/* ---- as a case of a select ---------------------------------------------------------------------------------- */

/* The case happens at once, with this result. If node is not NULL, the strand is armed. */
static enum answer settle(struct thread *thread, struct cb *me, strand_case *c, const struct wait_node *node,
                          int result)
{
    if (node && !wait_retract(thread, me))
        return SOURCE_LOST;
    c->result = result;
    return SOURCE_DONE;
}

/* Under the lock. There is no permit, and the strand is armed: it adds its ticket. */
static enum answer stand_in_queue(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node,
                                  struct prio *sem, struct means *means, struct batch *batch)
{
    if ((node->marks & NODE_TRY_ONLY) && is_full(sem)) {
        node->value = NULL; /* it would not wait: neither a prune nor a refusal */
        return SOURCE_NOT;
    }
    int error = means->ticket ? make_room(thread, sem, me, c->value, means, batch) : -ENOMEM;
    if (error)
        return settle(thread, me, c, node, error == -EINTR ? -ENOBUFS : error);
    means->ticket->key = c->value;
    means->ticket->node = node;
    node->value = means->ticket;
    means->ticket = NULL;
    prio_queue_add(sem, node->value);
    return SOURCE_NOT;
}

static enum answer permit_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    struct prio *sem = prio_of(thread, (strand_prio_semaphore *)(uintptr_t)c->object[0], "strand_select");
    struct means means = {0};
    struct batch batch;
    batch_init(&batch);
    if (node) {
        must_not_escape(thread, c->value, "the key", "strand_select");
        means.ticket = ticket_get(thread);
        if (sem->max_waiters && sem->on_full == STRAND_PRIO_FULL_PRUNE)
            make_reason(thread, me, sem, &means);
    }
    prio_lock(thread, sem);
    enum answer answer = SOURCE_NOT;
    if (is_free_for(sem, c->value)) {
        answer = settle(thread, me, c, node, 0);
        sem->in_flight += answer == SOURCE_DONE;
    } else if (node) {
        answer = stand_in_queue(thread, me, c, node, sem, &means, &batch);
    }
    prio_unlock(thread, sem);
    batch_deliver(thread, &batch);
    if (means.ticket)
        ticket_put(thread, means.ticket);
    cancel_reason_release(means.reason);
    return answer;
}

static enum answer permit_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    struct ticket *ticket = node->value;
    (void)me;
    if (won) {
        c->result = node->result;
    } else {
        struct prio *sem = (struct prio *)(uintptr_t)c->object[0];
        prio_lock(thread, sem);
        if (atomic_load_explicit(&node->linked, memory_order_relaxed))
            prio_queue_remove(sem, ticket);
        prio_unlock(thread, sem);
    }
    if (LIKELY(ticket != NULL))
        ticket_put(thread, ticket);
    return SOURCE_DONE;
}

static const struct strand_source_ source_permit = {
    .stand = permit_stand, .over = permit_over, .blocked = BLOCKED_PERMIT};

strand_case strand_on_prio_permit(strand_prio_semaphore *sem, const void *key)
{
    if (!sem)
        misuse("strand_on_prio_permit", "", "it is NULL");
    return (strand_case){
        .source = &source_permit, .object = {(uint64_t)(uintptr_t)sem, 0}, .value = (void *)(uintptr_t)key};
}
