/*
 * The table of descriptors and the waiting for them. The protocol block is in descriptor.h.
 */
#include "descriptor.h"

#include "../sched/thread.h"
#include "../strand/handle.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdlib.h>

enum { CHUNK = 1024, CHUNKS = 2048, AWAITS = 64 };
#define CLOSING (UINT32_C(1) << 31)
/* Between two looks at a descriptor in a seeded run, in virtual time. */
#define SEEDED_LOOK_NS INT64_C(50000)

static const uint32_t event_of[SIDES] = {[SIDE_IN] = ARCH_IN, [SIDE_OUT] = ARCH_OUT, [SIDE_END] = ARCH_END};

struct table {
    struct descriptors base;
    _Atomic(struct descriptor *) chunks[CHUNKS];
};

/* ---- the table ------------------------------------------------------------------------------------------- */

static struct table *table_of(struct descriptors *descriptors)
{
    return CONTAINER(descriptors, struct table, base);
}

/* Of whom nobody is inside. */
static void forget(struct descriptor *d)
{
    if (atomic_load_explicit(&d->known, memory_order_relaxed) && d->call != d->fd)
        (void)arch_fd_close(d->call);
    atomic_store_explicit(&d->watched, false, memory_order_relaxed);
    atomic_store_explicit(&d->waitless, false, memory_order_relaxed);
    atomic_store_explicit(&d->known, false, memory_order_relaxed);
    atomic_store_explicit(&d->late, 0, memory_order_relaxed);
}

static void close_table(struct descriptors *descriptors)
{
    struct table *table = table_of(descriptors);
    for (int i = 0; i < CHUNKS; i++) {
        struct descriptor *chunk = atomic_load_explicit(&table->chunks[i], memory_order_relaxed);
        for (int n = 0; chunk && n < CHUNK; n++)
            forget(&chunk[n]); /* it may have been closed elsewhere, or never */
        free(chunk);
    }
    free(table);
}

/* Made by the first who needs it. NULL: no memory. */
static struct table *get_table(struct runtime *runtime)
{
    struct descriptors *there = atomic_load_explicit(&runtime->descriptors, memory_order_acquire);
    if (LIKELY(there != NULL))
        return table_of(there);
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->base.close = close_table;
    if (atomic_compare_exchange_strong_explicit(&runtime->descriptors, &there, &table->base, memory_order_acq_rel,
                                                memory_order_acquire))
        return table;
    free(table);
    return table_of(there);
}

static void fire(struct thread *thread, struct polled *polled, uint32_t events);

static struct descriptor *make_chunk(struct thread *thread, _Atomic(struct descriptor *) *at, int first)
{
    struct descriptor *there = atomic_load_explicit(at, memory_order_acquire);
    if (there)
        return there;
    struct descriptor *chunk = calloc(CHUNK, sizeof *chunk);
    if (!chunk)
        return NULL;
    for (int i = 0; i < CHUNK; i++) {
        chunk[i].polled.fire = fire;
        chunk[i].fd = first + i;
        chunk[i].pool = &thread->sub->pool;
    }
    if (atomic_compare_exchange_strong_explicit(at, &there, chunk, memory_order_acq_rel, memory_order_acquire))
        return chunk;
    free(chunk);
    return there;
}

/* The first use of a number among CHUNK neighbours, or of any; or a bad number. */
static COLD int find_first(struct thread *thread, int fd, struct descriptor **out)
{
    if (fd < 0)
        return -EBADF;
    if (fd >= CHUNK * CHUNKS)
        return arch_fd_ready(fd) == -EBADF ? -EBADF : -EMFILE;
    struct table *table = get_table(runtime_of(thread));
    if (!table)
        return -ENOMEM;
    struct descriptor *chunk = make_chunk(thread, &table->chunks[fd / CHUNK], fd / CHUNK * CHUNK);
    if (!chunk)
        return -ENOMEM;
    *out = &chunk[fd % CHUNK];
    return 0;
}

static inline int find(struct thread *thread, int fd, struct descriptor **out)
{
    struct descriptors *there = atomic_load_explicit(&runtime_of(thread)->descriptors, memory_order_acquire);
    uint32_t number = (uint32_t)fd;
    if (UNLIKELY(!there || number >= CHUNK * CHUNKS))
        return find_first(thread, fd, out);
    struct descriptor *chunk = atomic_load_explicit(&table_of(there)->chunks[number / CHUNK], memory_order_acquire);
    if (UNLIKELY(!chunk))
        return find_first(thread, fd, out);
    *out = &chunk[number % CHUNK];
    return 0;
}

/* A pool of one thread has nobody to lock out, and needs no atomic operations. */
static void lock(struct thread *thread, struct descriptor *d)
{
    if (thread->shared)
        spin_lock(&d->lock, thread);
}

static void unlock(struct thread *thread, struct descriptor *d)
{
    if (thread->shared)
        spin_unlock(&d->lock);
}

/* ---- who is inside --------------------------------------------------------------------------------------- */

static bool swap_users(struct thread *thread, struct descriptor *d, uint32_t *old, uint32_t new)
{
    if (!thread->shared) {
        atomic_store_explicit(&d->users, new, memory_order_relaxed);
        return true;
    }
    return atomic_compare_exchange_weak_explicit(&d->users, old, new, memory_order_acq_rel, memory_order_relaxed);
}

/* Closing may take as long as the other side likes (SO_LINGER), and the system may have given the number to somebody
 * new before it returns. */
static int enter(struct thread **thread, struct descriptor *d)
{
    uint32_t users = atomic_load_explicit(&d->users, memory_order_relaxed);
    for (int rounds = 1;; rounds++) {
        if (users == CLOSING) {
            if (rounds % AWAITS == 0) {
                thread_tick(*thread);
                *thread = thread_yield(*thread);
            } else {
                driver_await(*thread);
            }
            users = atomic_load_explicit(&d->users, memory_order_relaxed);
        } else if (users & CLOSING) {
            return -EBADF;
        } else if (swap_users(*thread, d, &users, users + 1)) {
            return 0;
        }
    }
}

void descriptor_made(int fd)
{
    struct thread *thread = thread_self();
    struct descriptor *d;
    if (thread && find(thread, fd, &d) == 0 && !atomic_load_explicit(&d->users, memory_order_acquire))
        forget(d);
}

/* Of one that is closing. */
static void unwatch(struct descriptor *d)
{
    if (atomic_exchange_explicit(&d->watched, false, memory_order_relaxed))
        pool_unwatch(d->pool, d->call);
}

/* The last one of a descriptor that is closing gives the number back [D1]. */
static int leave(struct thread *thread, struct descriptor *d)
{
    uint32_t users = atomic_load_explicit(&d->users, memory_order_relaxed);
    while (!swap_users(thread, d, &users, users - 1))
        ;
    if (LIKELY(users != (CLOSING | 1)))
        return 0;
    unwatch(d);
    forget(d);
    int result = arch_fd_close(d->fd);
    atomic_store_explicit(&d->users, 0, memory_order_release);
    return result;
}

/* The first operation on a number asks the system what it is. */
static int get_to_know(struct thread *thread, struct descriptor *d)
{
    if (LIKELY(atomic_load_explicit(&d->known, memory_order_acquire)))
        return 0;
    int own, kind = arch_fd_kind(d->fd, &own);
    if (kind < 0)
        return kind;
    lock(thread, d);
    if (!atomic_load_explicit(&d->known, memory_order_relaxed)) {
        d->kind = (enum arch_fd_kind)kind;
        d->call = own < 0 ? d->fd : own;
        own = -1;
        d->ended = false;
        for (int i = 0; i < SIDES; i++)
            atomic_store_explicit(&d->sides[i].ready, true, memory_order_relaxed);
        atomic_store_explicit(&d->known, true, memory_order_release);
    }
    unlock(thread, d);
    if (own >= 0)
        (void)arch_fd_close(own); /* somebody else was faster */
    return 0;
}

/* ---- the queue of a side, under the lock ------------------------------------------------------------------ */

static void mirror(struct side *side)
{
    atomic_store_explicit(&side->waited, side->turn || side->first, memory_order_relaxed);
}

static void append(struct side *side, struct wait_node *node, bool in_front)
{
    struct wait_node **at = &side->first;
    while (*at && !in_front)
        at = &(*at)->next;
    node->next = *at;
    *at = node;
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
}

static bool cut_out(struct side *side, struct wait_node *node)
{
    struct wait_node **at = &side->first;
    while (*at && *at != node)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        *at = node->next;
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
    return found;
}

/* The first who can still be woken; NULL: nobody. */
static struct fibre *claim_first(struct thread *thread, struct side *side)
{
    struct fibre *fibre = NULL;
    while (!fibre && side->first) {
        struct wait_node *node = side->first;
        side->first = node->next;
        atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
        if (wait_claim(node->waiter, node->epoch, WAIT_WON, thread->shared))
            fibre = node->waiter->member.fibre;
    }
    return fibre;
}

/* Under the lock: give the turn to the next one, if there is something for him. */
static struct fibre *pass_on(struct thread *thread, struct side *side)
{
    struct fibre *fibre = NULL;
    if (!side->turn && atomic_load_explicit(&side->ready, memory_order_relaxed))
        fibre = claim_first(thread, side);
    if (fibre)
        side->turn = true;
    mirror(side);
    return fibre;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static void fire(struct thread *thread, struct polled *polled, uint32_t events)
{
    struct descriptor *d = CONTAINER(polled, struct descriptor, polled);
    struct fibre *woken[SIDES] = {NULL};
    lock(thread, d);
    if (events & ARCH_END)
        d->ended = true;
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &d->sides[i];
        if (!(events & event_of[i]))
            continue;
        uint32_t count = atomic_load_explicit(&side->events, memory_order_relaxed);
        atomic_store_explicit(&side->events, count + 1, memory_order_release); /* [D2] */
        atomic_store_explicit(&side->ready, true, memory_order_relaxed);
        woken[i] = pass_on(thread, side);
    }
    unlock(thread, d);
    for (int i = 0; i < SIDES; i++)
        if (woken[i])
            pool_deliver(thread, woken[i]);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

int operation_enter(struct operation *op, int fd, enum side_name side, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct descriptor *d;
    *op = (struct operation){.thread = thread, .me = current_of(thread), .function = function};
    may_block(thread, op->me, function);
    int error = find(thread, fd, &d);
    if (!error)
        error = enter(&op->thread, d);
    if (error)
        return error;
    thread = op->thread;
    op->d = d;
    op->side = &d->sides[side];
    if ((error = get_to_know(thread, d)))
        operation_leave(op);
    return error;
}

void operation_leave(struct operation *op)
{
    if (UNLIKELY(op->turn)) {
        lock(op->thread, op->d);
        op->side->turn = op->turn = false;
        struct fibre *next = op->thread->driver ? NULL : pass_on(op->thread, op->side); /* [D3] */
        mirror(op->side);
        unlock(op->thread, op->d);
        if (next)
            thread_ready(op->thread, next);
    }
    leave(op->thread, op->d);
}

static void clear_ready(struct operation *op, bool unless_ended)
{
    struct descriptor *d = op->d;
    struct side *side = op->side;
    if (atomic_load_explicit(&d->waitless, memory_order_relaxed))
        return;
    lock(op->thread, d);
    if (atomic_load_explicit(&side->events, memory_order_relaxed) == op->seen && !(unless_ended && d->ended))
        atomic_store_explicit(&side->ready, false, memory_order_relaxed);
    unlock(op->thread, d);
}

void operation_drained(struct operation *op)
{
    clear_ready(op, false);
}

/* Messages, lines and credentials make short reads of other kinds. Before the descriptor is watched nobody would report
 * the end. */
void operation_short(struct operation *op)
{
    if (op->d->kind == ARCH_FD_TCP && atomic_load_explicit(&op->d->watched, memory_order_relaxed))
        clear_ready(op, true);
}

/* Not of one that is closing: what is behind its number has changed. */
static int watch(struct thread *thread, struct descriptor *d)
{
    lock(thread, d);
    bool closing = atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING;
    int error = closing ? -EBADF : pool_watch(d->pool, d->call, &d->polled);
    bool known = error == -EEXIST;
    if (!error || known)
        atomic_store_explicit(&d->watched, true, memory_order_relaxed);
    unlock(thread, d);
    if (error == -EPERM) {
        atomic_store_explicit(&d->waitless, true, memory_order_relaxed);
        return 0;
    }
    return known ? 0 : error;
}

static void throw_interrupted(struct operation *op)
{
    uint64_t progress = op->progress;
    operation_leave(op);
    interrupt_throw(op->thread, op->me, progress);
}

/* Resumed, or never parked: true if the turn is ours or the descriptor is closing. */
static bool wait_armed(struct operation *op)
{
    struct cb *me = op->me;
    struct wait_node *node = &me->wait.node;
    if (UNLIKELY(interrupted(me)) && wait_retract(op->thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        op->thread = thread_park(op->thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return true;
    }
    lock(op->thread, op->d);
    cut_out(op->side, node);
    mirror(op->side);
    unlock(op->thread, op->d);
    return false;
}

/* Once: whether it is this operation's turn, and there is something for it. Or a negated errno code. */
static int look_seeded(struct operation *op, uint32_t wanted)
{
    struct side *side = op->side;
    if (atomic_load_explicit(&op->d->users, memory_order_acquire) & CLOSING)
        return -EBADF;
    lock(op->thread, op->d);
    bool mine = op->turn || (!side->turn && side->first == &op->me->wait.node);
    unlock(op->thread, op->d);
    if (!mine)
        return 0;
    int ready = arch_fd_ready(op->d->call);
    return ready < 0 ? ready : ((uint32_t)ready & wanted) != 0;
}

/* In a seeded run nobody passes events on: those who wait stand in the queue as ever, and the first one looks now and
 * then. Time is virtual, but goes no faster than the real one while all others sleep (src/sim). */
static int wait_seeded(struct operation *op)
{
    uint32_t wanted = event_of[op->side - op->d->sides];
    struct side *side = op->side;
    struct wait_node *node = &op->me->wait.node;
    int result, how = 0;
    lock(op->thread, op->d);
    if (!op->turn)
        append(side, node, false);
    mirror(side);
    unlock(op->thread, op->d);
    while ((result = look_seeded(op, wanted)) == 0) {
        op->thread->sub->outside++;
        wait_because(op->thread, op->me, BLOCKED_DESCRIPTOR, (uint64_t)op->d->fd);
        how = wait_until(&op->thread, op->me, driver_now(op->thread->sub) + SEEDED_LOOK_NS, op->me->floor);
        op->thread->sub->outside--;
        if (how < 0 || (how == WAIT_INTERRUPTED && interrupted(op->me)))
            break;
    }
    lock(op->thread, op->d);
    if (!op->turn)
        cut_out(side, node);
    if (result > 0) {
        side->turn = op->turn = true;
        atomic_store_explicit(&side->ready, true, memory_order_relaxed);
    }
    mirror(side);
    unlock(op->thread, op->d);
    if (result == 0 && how >= 0)
        throw_interrupted(op);
    return result > 0 ? 0 : result ? result : how;
}

/* Until it may be worth a call. */
static int wait_for_side(struct operation *op)
{
    struct descriptor *d = op->d;
    struct side *side = op->side;
    struct cb *me = op->me;
    if (!atomic_load_explicit(&d->watched, memory_order_relaxed)) {
        int error = watch(op->thread, d);
        if (error || atomic_load_explicit(&d->waitless, memory_order_relaxed))
            return error;
    }
    lock(op->thread, d);
    bool closing = atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING;
    bool mine = op->turn || !(side->turn || side->first);
    if (closing || (mine && atomic_load_explicit(&side->ready, memory_order_relaxed))) {
        unlock(op->thread, d);
        return closing ? -EBADF : 0;
    }
    wait_because(op->thread, me, BLOCKED_DESCRIPTOR, (uint64_t)d->fd);
    me->wait.node.epoch = wait_arm(op->thread, me, me->floor);
    append(side, &me->wait.node, op->turn);
    if (op->turn)
        side->turn = op->turn = false;
    mirror(side);
    unlock(op->thread, d);
    if (!wait_armed(op))
        throw_interrupted(op);
    op->turn = true; /* of one that is closing it means nothing */
    return atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING ? -EBADF : 0;
}

int operation_ready(struct operation *op)
{
    struct side *side = op->side;
    op->thread = thread_share(op->thread);
    for (;;) {
        if (interrupted(op->me))
            throw_interrupted(op);
        op->seen = atomic_load_explicit(&side->events, memory_order_acquire);
        bool free = op->turn || !atomic_load_explicit(&side->waited, memory_order_relaxed);
        if (UNLIKELY(atomic_load_explicit(&op->d->users, memory_order_relaxed) & CLOSING))
            return -EBADF;
        if (free && atomic_load_explicit(&side->ready, memory_order_relaxed))
            return 0;
        if (atomic_load_explicit(&op->d->waitless, memory_order_relaxed))
            return 0;
        int error = op->thread->driver ? wait_seeded(op) : wait_for_side(op);
        if (error)
            return error;
    }
}

/* ---- closing --------------------------------------------------------------------------------------------- */

int descriptor_close(struct thread *thread, int fd)
{
    struct descriptor *d;
    struct link woken, *link;
    list_init(&woken);
    int error = find(thread, fd, &d);
    if (error == -EMFILE || error == -ENOMEM)
        return arch_fd_close(fd); /* nobody can be inside of what has no entry */
    if (!error)
        error = enter(&thread, d);
    if (error)
        return error;
    lock(thread, d);
    bool first = !(atomic_fetch_or_explicit(&d->users, CLOSING, memory_order_acq_rel) & CLOSING);
    for (int i = 0; i < SIDES; i++) {
        struct fibre *fibre;
        while (!thread->driver && (fibre = claim_first(thread, &d->sides[i]))) /* else they look for themselves */
            list_push_back(&woken, &fibre->queued);
        d->sides[i].turn = false;
        mirror(&d->sides[i]);
    }
    unlock(thread, d);
    if (first && (atomic_load_explicit(&d->users, memory_order_relaxed) & ~CLOSING) > 1) {
        unwatch(d);
        if (d->call == d->fd) /* of a terminal that was opened once more the number is a second way in */
            (void)arch_fd_blank(fd);
    }
    while ((link = list_pop_front(&woken)))
        thread_ready(thread, CONTAINER(link, struct fibre, queued));
    int result = leave(thread, d);
    return first ? result : -EBADF;
}
