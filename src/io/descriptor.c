/*
 * The table of descriptors: entering, leaving and closing. The protocol block is in descriptor.h.
 */
#include "descriptor.h"

#include "../sched/thread.h"
#include "../strand/handle.h"

#include <errno.h>
#include <stdlib.h>

enum { CHUNK = 1024, CHUNKS = 2048, AWAITS = 64 };

/* The table. */
struct descriptors {
    _Atomic(struct descriptor *) chunks[CHUNKS];
};

/* ---- the table ------------------------------------------------------------------------------------------- */

/* No operation is inside. */
static void forget(struct descriptor *d)
{
    if (atomic_load_explicit(&d->known, memory_order_relaxed) && d->call != d->fd)
        (void)arch_fd_close(d->call);
    atomic_store_explicit(&d->watched, false, memory_order_relaxed);
    atomic_store_explicit(&d->waitless, false, memory_order_relaxed);
    atomic_store_explicit(&d->ours, false, memory_order_relaxed);
    atomic_store_explicit(&d->sole, false, memory_order_relaxed);
    atomic_store_explicit(&d->compared, false, memory_order_relaxed);
    atomic_store_explicit(&d->known, false, memory_order_relaxed);
    atomic_store_explicit(&d->late, 0, memory_order_relaxed);
}

void descriptors_close(struct io_run *io)
{
    struct descriptors *table = atomic_load_explicit(&io->descriptors, memory_order_relaxed);
    for (int i = 0; table && i < CHUNKS; i++) {
        struct descriptor *chunk = atomic_load_explicit(&table->chunks[i], memory_order_relaxed);
        for (int n = 0; chunk && n < CHUNK; n++)
            forget(&chunk[n]); /* it may have been closed elsewhere, or never */
        free(chunk);
    }
    free(table);
}

/* Move a descriptor to the poller of another pool; the threads of `from` have ended. Conditions that arose in between
 * still hold: a new watch reports them as events. If the watch is refused, the waiters are woken, try their calls, and
 * get the error. */
static void move_one(struct thread *thread, struct descriptor *d, struct pool *from)
{
    if (!atomic_load_explicit(&d->watched, memory_order_relaxed))
        return; /* a thread that begins to watch it uses its own poller */
    int error = 0;
    descriptor_lock(thread, d);
    if (atomic_load_explicit(&d->watched, memory_order_relaxed) && d->pool == from) {
        bool closing = atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING; /* [D6] */
        pool_unwatch(from, d->call);
        d->pool = thread->pool;
        error = closing ? 0 : pool_watch(d->pool, d->call, &d->polled);
        atomic_store_explicit(&d->watched, !closing && !error, memory_order_relaxed);
    }
    descriptor_unlock(thread, d);
    if (!error)
        return;
    struct batch woken;
    batch_init(&woken);
    descriptor_report(thread, d, ARCH_IN | ARCH_OUT | ARCH_END, &woken);
    batch_deliver(thread, &woken);
}

void descriptors_move(struct thread *thread, struct pool *from)
{
    struct descriptors *table = atomic_load_explicit(&io_run_of(thread)->descriptors, memory_order_acquire); /* [PB1] */
    for (int i = 0; table && i < CHUNKS; i++) {
        struct descriptor *chunk = atomic_load_explicit(&table->chunks[i], memory_order_acquire); /* [PB1] */
        for (int n = 0; chunk && n < CHUNK; n++)
            move_one(thread, &chunk[n], from);
    }
}

/* Get the table; the first user creates it. NULL: no memory. */
static struct descriptors *get_table(struct thread *thread)
{
    struct io_run *io = io_run_of(thread);
    struct descriptors *there = atomic_load_explicit(&io->descriptors, memory_order_acquire); /* [PB1] */
    if (LIKELY(there != NULL))
        return there;
    struct descriptors *table = platform_calloc(thread, 1, sizeof *table);
    if (!table)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&io->descriptors, &there, table, memory_order_acq_rel,
                                                memory_order_acquire)) /* [PB1] */
        return table;
    free(table);
    return there;
}

static struct descriptor *make_chunk(struct thread *thread, _Atomic(struct descriptor *) *at, int first)
{
    struct descriptor *there = atomic_load_explicit(at, memory_order_acquire); /* [PB1] */
    if (there)
        return there;
    struct descriptor *chunk = platform_calloc(thread, CHUNK, sizeof *chunk);
    if (!chunk)
        return NULL;
    for (int i = 0; i < CHUNK; i++) {
        chunk[i].polled.fire = descriptor_fire;
        chunk[i].fd = first + i;
        for (int side = 0; side < SIDES; side++)
            list_init(&chunk[i].sides[side].queue);
    }
    if (atomic_compare_exchange_strong_explicit(at, &there, chunk, memory_order_acq_rel,
                                                memory_order_acquire)) /* [PB1] */
        return chunk;
    free(chunk);
    return there;
}

/* Slow path: the first use of a number among CHUNK neighbours, or of any; or a bad number. */
static COLD int find_first(struct thread *thread, int fd, struct descriptor **out)
{
    if (fd < 0)
        return -EBADF;
    if (fd >= CHUNK * CHUNKS)
        return arch_fd_ready(fd) == -EBADF ? -EBADF : -EMFILE;
    struct descriptors *table = get_table(thread);
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
    struct descriptors *there = atomic_load_explicit(&io_run_of(thread)->descriptors, memory_order_acquire); /* [PB1] */
    uint32_t number = (uint32_t)fd;
    if (UNLIKELY(!there || number >= CHUNK * CHUNKS))
        return find_first(thread, fd, out);
    struct descriptor *chunk = atomic_load_explicit(&there->chunks[number / CHUNK], memory_order_acquire); /* [PB1] */
    if (UNLIKELY(!chunk))
        return find_first(thread, fd, out);
    *out = &chunk[number % CHUNK];
    return 0;
}

/* ---- operations inside -------------------------------------------------------------------------------------- */

static bool swap_users(struct thread *thread, struct descriptor *d, uint32_t *old, uint32_t new)
{
    if (!thread->concurrent) {
        atomic_store_explicit(&d->users, new, memory_order_relaxed);
        return true;
    }
    return atomic_compare_exchange_weak_explicit(&d->users, old, new, memory_order_acq_rel,
                                                 memory_order_relaxed); /* [D6] */
}

/* Wait a moment for operations that are about to leave, in some rounds by running others on this thread. */
static uint32_t await_users(struct thread **thread, struct descriptor *d, int round)
{
    if (round % AWAITS == 0) {
        thread_tick(*thread);
        *thread = thread_yield(*thread);
    } else {
        platform_await(*thread);
    }
    return atomic_load_explicit(&d->users, memory_order_acquire); /* [D6] */
}

/* Whether the number may be a new object's already, while the old one has not quite left its record. Closing may take
 * as long as the peer likes (SO_LINGER), and the system may reuse the number before it returns. */
static bool is_undecided(const struct descriptor *d, uint32_t users)
{
    return users == CLOSING || (users & CLOSING && descriptor_going(d) == GOING_REPLACED);
}

static int enter(struct thread **thread, struct descriptor *d)
{
    uint32_t users = atomic_load_explicit(&d->users, memory_order_acquire); /* [D6] */
    for (int round = 1;; round++) {
        if (is_undecided(d, users)) {
            users = await_users(thread, d, round);
        } else if (users & CLOSING) {
            return -EBADF;
        } else if (swap_users(*thread, d, &users, users + 1)) {
            return 0;
        }
    }
}

/* For a closing descriptor. Under the lock: the watching pool may be about to end, and to move it to another pool. */
static void unwatch(struct thread *thread, struct descriptor *d)
{
    descriptor_lock(thread, d);
    if (atomic_exchange_explicit(&d->watched, false, memory_order_relaxed))
        pool_unwatch(d->pool, d->call);
    descriptor_unlock(thread, d);
}

/* The last operation to leave a closing descriptor returns the number to the system [D1]. */
int descriptor_leave(struct thread *thread, struct descriptor *d)
{
    uint32_t users = atomic_load_explicit(&d->users, memory_order_relaxed);
    arch_san_release(d);
    while (!swap_users(thread, d, &users, users - 1))
        ;
    if (LIKELY(users != (CLOSING | 1)))
        return 0;
    arch_san_acquire(d);
    unwatch(thread, d);
    forget(d);
    int result = descriptor_going(d) == GOING_CLOSED ? fd_close(thread, d->fd) : 0;
    atomic_store_explicit(&d->users, 0, memory_order_release); /* [D6] */
    return result;
}

/* The first operation on a number asks the system for its type. */
static int get_to_know(struct thread *thread, struct descriptor *d)
{
    if (LIKELY(atomic_load_explicit(&d->known, memory_order_acquire))) /* [PB1] */
        return 0;
    struct arch_fd_object object = {0};
    int own, type = fd_type(thread, d->fd, &own, &object);
    if (type < 0)
        return type;
    if (UNLIKELY(thread->platform != NULL) && type != ARCH_FD_PLAYED && !descriptor_is_file(type))
        thread->platform->meet(thread->sub, d->fd);
    descriptor_lock(thread, d);
    if (!atomic_load_explicit(&d->known, memory_order_relaxed)) {
        d->type = (enum arch_fd_type)type;
        d->call = own < 0 ? d->fd : own;
        d->object = object;
        atomic_store_explicit(&d->compared, descriptor_is_file(type) || own >= 0, memory_order_relaxed);
        own = -1;
        d->ended = false;
        for (int i = 0; i < SIDES; i++)
            atomic_store_explicit(&d->sides[i].ready, true, memory_order_relaxed);
        atomic_store_explicit(&d->known, true, memory_order_release); /* [PB1] */
    }
    descriptor_unlock(thread, d);
    if (own >= 0)
        (void)arch_fd_close(own); /* another strand was faster */
    return 0;
}

static int arrive(struct thread *thread, struct descriptor *d)
{
    int error = get_to_know(thread, d);
    if (error)
        (void)descriptor_leave(thread, d);
    return error;
}

int descriptor_enter(struct thread **thread, int fd, struct descriptor **out)
{
    int error = find(*thread, fd, out);
    if (!error)
        error = enter(thread, *out);
    return error ? error : arrive(*thread, *out);
}

static int count_in(struct thread *thread, struct descriptor *d)
{
    uint32_t users = atomic_load_explicit(&d->users, memory_order_acquire); /* [D6] */
    do {
        if (users & CLOSING)
            return is_undecided(d, users) ? -EAGAIN : -EBADF;
    } while (!swap_users(thread, d, &users, users + 1));
    return 0;
}

int descriptor_enter_at_once(struct thread *thread, int fd, struct descriptor **out)
{
    int error = find(thread, fd, out);
    if (error)
        return error;
    error = count_in(thread, *out);
    for (int round = 1; error == -EAGAIN && thread->concurrent && round < AWAITS; round++) {
        platform_await(thread); /* usually a close takes no longer */
        error = count_in(thread, *out);
    }
    return error ? error : arrive(thread, *out);
}

/* ---- the end of an object: closing, here or elsewhere ------------------------------------------------------- */

bool descriptor_turn_out(struct thread *thread, struct descriptor *d, enum going how, struct batch *woken)
{
    descriptor_lock(thread, d);
    bool first = !(atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING); /* [D6] */
    if (first) {
        atomic_store_explicit(&d->going, (uint8_t)how, memory_order_relaxed);
        atomic_fetch_or_explicit(&d->users, CLOSING, memory_order_acq_rel); /* [D6] */
    }
    operations_claim(thread, d, woken);
    descriptor_unlock(thread, d);
    return first;
}

int descriptor_is_replaced(struct thread *thread, struct descriptor *d)
{
    if (d->type == ARCH_FD_PLAYED || atomic_load_explicit(&d->ours, memory_order_relaxed))
        return 0;
    struct arch_fd_object now;
    int error = arch_fd_object(d->fd, &now);
    if (error)
        return error == -EBADF ? error : 0; /* a file system may refuse the question */
    if (now.device != d->object.device || now.inode != d->object.inode)
        return 1;
    if (now.inode || !atomic_load_explicit(&d->watched, memory_order_relaxed))
        return 0;
    descriptor_lock(thread, d); /* another pool might get it meanwhile */
    bool gone = atomic_load_explicit(&d->watched, memory_order_relaxed) && !pool_watches(d->pool, d->call, &d->polled);
    descriptor_unlock(thread, d);
    return gone;
}

void descriptor_replaced(struct thread *thread, struct descriptor *d)
{
    struct batch woken;
    batch_init(&woken);
    (void)descriptor_turn_out(thread, d, GOING_REPLACED, &woken);
    batch_deliver(thread, &woken);
    (void)descriptor_leave(thread, d);
}

void descriptor_made(int fd)
{
    struct thread *thread = thread_self();
    struct descriptor *d;
    if (!thread || find(thread, fd, &d))
        return;
    uint32_t users = atomic_load_explicit(&d->users, memory_order_acquire); /* [D6] */
    if (!users)
        forget(d);
    else if (!(users & CLOSING) && count_in(thread, d) == 0)
        descriptor_replaced(thread, d); /* strands still wait for an object that was closed elsewhere */
    atomic_store_explicit(&d->ours, true, memory_order_relaxed);
}

void descriptor_accepted(struct thread *thread, int fd)
{
    descriptor_made(fd);
    struct descriptor *d = descriptor_find_used(thread, fd);
    if (d)
        atomic_store_explicit(&d->sole, true, memory_order_relaxed);
}

struct descriptor *descriptor_find_used(struct thread *thread, int fd)
{
    struct descriptors *there = atomic_load_explicit(&io_run_of(thread)->descriptors, memory_order_acquire); /* [PB1] */
    uint32_t number = (uint32_t)fd;
    if (!there || number >= CHUNK * CHUNKS)
        return NULL;
    struct descriptor *chunk = atomic_load_explicit(&there->chunks[number / CHUNK], memory_order_acquire); /* [PB1] */
    return chunk ? &chunk[number % CHUNK] : NULL;
}

void descriptor_forget(struct thread *thread, int fd)
{
    struct descriptor *d = descriptor_find_used(thread, fd);
    struct batch woken;
    batch_init(&woken);
    if (!d || enter(&thread, d))
        return;
    bool first = descriptor_turn_out(thread, d, GOING_FORGOTTEN, &woken);
    batch_deliver(thread, &woken);
    uint32_t users = atomic_load_explicit(&d->users, memory_order_acquire); /* [D6] */
    for (int round = 1; first && users != (CLOSING | 1); round++)
        users = await_users(&thread, d, round);
    (void)descriptor_leave(thread, d);
}

/* As enter, for a caller that must not suspend. Returns -EAGAIN if the record still belongs to an object whose number
 * was reused: its operations may need this thread to leave. The thread that closes a number runs meanwhile, so that can
 * be waited for. */
static int enter_unsuspended(struct thread *thread, struct descriptor *d)
{
    int error;
    while ((error = count_in(thread, d)) == -EAGAIN && descriptor_going(d) != GOING_REPLACED)
        platform_await(thread);
    return error;
}

int descriptor_close(struct thread *thread, int fd, bool may_suspend)
{
    struct descriptor *d;
    struct batch woken;
    batch_init(&woken);
    int error = find(thread, fd, &d);
    if (!error)
        error = may_suspend ? enter(&thread, d) : enter_unsuspended(thread, d);
    if (error == -EMFILE || error == -ENOMEM || error == -EAGAIN)
        return fd_close(thread, fd); /* an object without a record has no operations inside */
    if (error)
        return error;
    bool first = descriptor_turn_out(thread, d, GOING_CLOSED, &woken);
    if (first && (atomic_load_explicit(&d->users, memory_order_relaxed) & ~CLOSING) > 1) {
        unwatch(thread, d);
        bool known = atomic_load_explicit(&d->known, memory_order_acquire); /* [PB1] */
        /* If not known, the operations inside have only just entered. */
        if (!known || d->call == d->fd) /* a terminal that was opened once more does not depend on the number */
            (void)fd_blank(thread, fd);
    }
    batch_deliver(thread, &woken);
    int result = descriptor_leave(thread, d);
    return first ? result : -EBADF;
}
