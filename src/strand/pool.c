/*
 * Pools that are opened in scopes: their opening, closing, resizing. Page: docs/protocols/pools.md.
 *
 * PARTIES   who opens; who closes (the first to do so: the closer); others who close it too, or leave its scope; the
 *           pool's strands; its threads; strands of other pools that spawn onto it, or hand strands off.
 * STATE     the pool's (pool->state): OPEN -> CLOSING -> NONE. The handle's: closing, gone, closed.
 * PROTOCOL  the closer makes the pool CLOSING and then cancels, of all strands that live on it, those whose scopes are
 *           of strands of other pools: the others end with them. Who spawns onto it from elsewhere counts the strand
 *           in and then looks at the state: it is refused. Who anchors a strand from elsewhere looks after that, and
 *           cancels it itself. The last strand to end finds the pool dry, and stops its threads; the last one of those
 *           posts to the closer's pool. The closer joins them, takes over what they watched, and tells the others.
 * INVARIANT [L1] a strand that is counted in is counted out later, by its pool's threads; dry is for ever when the
 *           pool is closing. [L2] a strand of a closing pool whose scope is of another pool's strand is cancelled: by
 *           the closer, who saw it, or by who anchored it. [L3] the handle is kept by its scope's owner, who forgets it
 *           when the pool is closed; so who closes it too is in the list of those to be told, or knows that it is
 *           closed, before he lets go of the handle.
 * ORDERING  the closer: state, a barrier of all threads, then the control blocks. Who anchors: the control block, then
 *           the state [L2].
 * NOT DONE  cancelling every strand of the pool: what is inside is left by its owners' frames, as of any cancelled
 *           strand. A list of a pool's strands: each spawn would pay for it.
 * TESTED BY tests/models/closing.pml.
 */
#include "../../include/strand/pool.h"

#include "pool.h"

#include "all.h"
#include "cancel.h"
#include "custom.h"
#include "end.h"
#include "exception.h"
#include "handle.h"
#include "misuse.h"
#include "print.h"
#include "quiet.h"
#include "run.h"
#include "scope.h"
#include "wait.h"

#include "../sched/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field that the caller's header knows. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_pool_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

/* The watchdog asks whatever has become of the pool, which TSan does not know to be in order. */
ARCH_NOT_INSTRUMENTED static struct opened_pool *above(const struct pool *pool)
{
    return __atomic_load_n(&pool->above, __ATOMIC_ACQUIRE);
}

/* ---- handles --------------------------------------------------------------------------------------------- */

static strand_pool handle_to(const struct opened_pool *op)
{
    uint64_t serial = word_serial(atomic_load_explicit(&op->word, memory_order_relaxed));
    return (strand_pool){{(uint64_t)(uintptr_t)op, serial | MARK_POOL}};
}

strand_pool pool_handle(const struct pool *pool)
{
    const struct opened_pool *op = above(pool);
    return op ? handle_to(op) : (strand_pool){{0}};
}

const char *pool_made(const struct opened_pool *op, char *buffer, size_t size)
{
    char where[160];
    uintptr_t offset;
    if (!op->site) {
        snprintf(buffer, size, "the pool is the run's first one");
        return buffer;
    }
    (void)arch_symbol(op->site, where, sizeof where, &offset);
    snprintf(buffer, size, "the pool '%s' was opened in %s+0x%zx", op->name, where, (size_t)offset);
    return buffer;
}

/* As long as its memory serves nobody else, it is known. */
static const char *made_stale_pool(const struct opened_pool *op, uint64_t serial, char *buffer, size_t size)
{
    bool known = word_was(atomic_load_explicit(&op->word, memory_order_relaxed), serial);
    return known ? pool_made(op, buffer, size) : "";
}

/* Nobody finds it any more. Who has, goes on for a few instructions; plain threads too, which know of no end of the
 * run. */
static void await_finders(struct thread *thread, struct opened_pool *op)
{
    uint64_t word = atomic_fetch_or_explicit(&op->word, WORD_DEAD, memory_order_acq_rel);
    while (word & WORD_PINS) {
        driver_await(thread);
        word = atomic_load_explicit(&op->word, memory_order_acquire);
    }
    atomic_store_explicit(&op->word, word_freed(word), memory_order_release);
}

/* Its pool is closed. */
static void forget(struct thread *thread, struct opened_pool *op)
{
    await_finders(thread, op);
    __atomic_store_n(&op->pool->above, NULL, __ATOMIC_RELAXED);
    pool_let_go(op->pool);
    note_release(op->note);
    free(op->cpus);
    arch_note_release(op);
    slab_put(&worker_of(thread)->objects, op);
}

struct opened_pool *pool_of_handle(strand_pool handle, const char *function)
{
    struct opened_pool *op = (struct opened_pool *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(op) || !(handle.bits[1] & MARK_POOL))
        MISUSE(function, "", "the handle is none of a pool");
    return op;
}

uint64_t pool_serial(strand_pool handle)
{
    return handle.bits[1] ^ MARK_POOL;
}

struct opened_pool *pool_find(struct thread *thread, strand_pool handle, const char *function)
{
    struct opened_pool *op = pool_of_handle(handle, function);
    uint64_t serial = pool_serial(handle);
    if (UNLIKELY(!slab_has(&runtime_of(thread)->objects, op)) &&
        word_serial(atomic_load_explicit(&op->word, memory_order_relaxed)) == serial)
        misuse_foreign(function, "pool");
    if (!pin(thread, &op->word, serial))
        MISUSE(function, made_stale_pool(op, serial, (char[256]){0}, 256), "the pool is gone: its scope has been left");
    return op;
}

void pool_found(struct opened_pool *op)
{
    atomic_fetch_sub_explicit(&op->word, WORD_PIN, memory_order_acq_rel);
}

static struct opened_pool *make_handle(struct thread *thread, const char *name, void *site)
{
    struct opened_pool *op = driver_slab_get(thread, &worker_of(thread)->objects);
    if (!op)
        return NULL;
    arch_note_acquire(op);
    memset((char *)op + offsetof(struct opened_pool, pool), 0, sizeof *op - offsetof(struct opened_pool, pool));
    snprintf(op->name, sizeof op->name, "%s", name ? name : "pool");
    op->site = site;
    return op;
}

/* From here on it can be found. */
static void publish(struct thread *thread, struct opened_pool *op, struct pool *pool)
{
    op->pool = pool;
    __atomic_store_n(&pool->above, op, __ATOMIC_RELEASE);
    atomic_store_explicit(&op->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release);
}

int pool_know(struct runtime *runtime)
{
    struct thread *first = runtime->sub.pool.threads[0];
    struct opened_pool *op = make_handle(first, "first", NULL);
    if (!op)
        return -ENOMEM;
    publish(first, op, &runtime->sub.pool);
    return 0;
}

void pool_forget(struct runtime *runtime)
{
    struct opened_pool *op = runtime->sub.pool.above;
    struct thread *first = runtime->sub.pool.threads[0];
    if (!op)
        return;
    await_finders(first, op);
    slab_put(&worker_of(first)->objects, op);
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void end_with_scope(struct thread *thread, struct owned *owned);

/* What is wrong with the attributes is misuse: they are the program's text. */
static void take_plan(struct thread *thread, const strand_pool_attr *attr, struct pool_plan *plan)
{
    const char *name = ATTR(attr, scheduler);
    int64_t spin_us = ATTR(attr, spin_us);
    if (attr && (attr->size < offsetof(strand_pool_attr, threads) || attr->size > 4096))
        MISUSE("strand_pool_open", "", "strand_pool_attr.size is %zu, not sizeof(strand_pool_attr)", attr->size);
    char what[128];
    plan->custom = ATTR(attr, custom);
    plan->scheduler = scheduler_for(name, plan->custom, "strand_pool_attr", what, sizeof what);
    if (!plan->scheduler)
        MISUSE("strand_pool_open", "", "%s", what);
    plan->cpus_count = ATTR(attr, cpus) ? ATTR(attr, cpus_count) : 0;
    if (plan->cpus_count < 0 || plan->cpus_count > CPUS_MOST)
        MISUSE("strand_pool_open", "", "strand_pool_attr.cpus_count is %d, not 0 to %d", plan->cpus_count, CPUS_MOST);
    int asked = ATTR(attr, threads),
        usual = plan->cpus_count && !plan->scheduler->alone ? plan->cpus_count : STRAND_THREADS_ALLOWED;
    plan->threads = thread_count(asked ? asked : usual, plan->scheduler, thread->driver != NULL);
    if (plan->threads < 1 || plan->threads > THREADS_MOST)
        MISUSE("strand_pool_open", "", "strand_pool_attr.threads is %d, not 1 to %d", plan->threads, THREADS_MOST);
    if (plan->scheduler->alone && plan->threads > 1)
        MISUSE("strand_pool_open", "", "strand_pool_attr.threads is %d; a pool with the scheduler '%s' has one",
               plan->threads, plan->scheduler->name);
    plan->spin_ns = (spin_us ? spin_us : POOL_SPIN_US) * STRAND_US;
    int balance = (int)ATTR(attr, balance);
    if (!is_balance(balance))
        MISUSE("strand_pool_open", "", "strand_pool_attr.balance is %d, none of enum strand_balance", balance);
    plan->balance = (enum balance)balance;
}

/* Each of the CPUs can be had by this process. Returns 0 or a negated errno code. */
static int copy_cpus(struct thread *thread, const strand_pool_attr *attr, struct pool_plan *plan,
                     struct opened_pool *op)
{
    if (!plan->cpus_count)
        return 0;
    size_t size = (size_t)plan->cpus_count * sizeof *op->cpus;
    op->cpus = driver_malloc(thread, size);
    if (!op->cpus)
        return -ENOMEM;
    memcpy(op->cpus, attr->cpus, size);
    plan->cpus = op->cpus;
    return first_refused(op->cpus, plan->cpus_count) < 0 ? 0 : -EINVAL;
}

static int open_pool(struct thread *thread, const strand_pool_attr *attr, void *site, struct opened_pool **out)
{
    struct pool_plan plan = {0};
    take_plan(thread, attr, &plan);
    struct opened_pool *op = make_handle(thread, ATTR(attr, name), site);
    if (!op)
        return -ENOMEM;
    struct pool *pool;
    int error = copy_cpus(thread, attr, &plan, op);
    if (!error)
        error = pool_make(thread, &plan, &pool);
    if (error) {
        free(op->cpus);
        slab_put(&worker_of(thread)->objects, op);
        return error;
    }
    op->owned.release = end_with_scope;
    publish(thread, op, pool);
    *out = op;
    return 0;
}

strand_pool strand_pool_open(strand_scope scope, const strand_pool_attr *attr)
{
    struct thread *thread = must_be_strand("strand_pool_open");
    struct cb *me = current_of(thread);
    struct opened_pool *op;
    int error = open_pool(thread, attr, __builtin_return_address(0), &op);
    if (error)
        throw_system(me, error, error == -EINVAL ? "a pool with a CPU that this process may not use" : "a pool");
    strand_pool handle = handle_to(op);
    error = scope_own(thread, me, scope, &op->owned, "strand_pool_open");
    if (error) {
        pool_unmake(thread, op->pool);
        forget(thread, op);
        throw_system(me, error, "a pool of an open scope that has been left");
    }
    return handle;
}

strand_pool strand_pool_self(void)
{
    return pool_handle(must_be_strand("strand_pool_self")->pool);
}

/* ---- closing --------------------------------------------------------------------------------------------- */

/* On a thread of the closer's pool: the pool's threads have gone. */
static struct member *tell_closer(struct post *post)
{
    struct opened_pool *op = CONTAINER(post, struct opened_pool, post);
    struct thread *thread = thread_self();
    arch_note_acquire(post);
    spin_lock(&op->lock, thread);
    op->gone = true;
    struct wait_node *closer = op->closer;
    bool claimed = closer && wait_claim(closer, true);
    spin_unlock(&op->lock);
    return claimed ? &closer->waiter->member : NULL;
}

/* On the last of its threads, which ends. */
static void gone(struct pool *pool)
{
    struct opened_pool *op = above(pool);
    struct pool *home = op->home;
    op->post.run = tell_closer;
    arch_note_release(&op->post);
    pool_post(home, &op->post);
}

/* Of one that is not anchored yet it may be about to change. */
static struct pool *pool_of(struct cb *c)
{
    struct fibre *fibre = __atomic_load_n(&c->member.fibre, __ATOMIC_RELAXED);
    return __atomic_load_n(&fibre->pool, __ATOMIC_RELAXED);
}

static struct scope *anchor_of(struct cb *c)
{
    return __atomic_load_n(&c->anchor, __ATOMIC_ACQUIRE);
}

/* By somebody who keeps the strand: it lives on the pool, below one of another. One that has not been anchored yet is
 * its spawner's alone, and seen by who anchors it [L2]. */
static bool is_topmost(struct thread *thread, struct cb *c, const struct pool *pool)
{
    uintptr_t ends;
    if (!anchor_of(c))
        return false;
    ends_lock(thread, c, &ends);
    struct scope *anchor = anchor_of(c); /* which is not left before the strand ends */
    bool topmost = !(ends & ENDS_OVER) && pool_of(c) == pool && pool_of(block_owner(&anchor->block)) != pool;
    atomic_store_explicit(&c->ends, ends, memory_order_release);
    return topmost;
}

struct closing {
    struct thread *thread;
    struct opened_pool *op;
    struct batch batch;
};

static void cancel_one(struct cb *c, uint64_t id, void *arg)
{
    struct closing *closing = arg;
    struct thread *thread = closing->thread;
    if (!pin(thread, &c->word, id))
        return;
    if (pool_of(c) == closing->op->pool && is_topmost(thread, c, closing->op->pool))
        batch_add(&closing->batch, cancel_strand(thread, c, closing->op->note, false));
    unpin_cb(thread, c);
}

struct member *pool_cancels_(struct thread *thread, struct cb *c)
{
    struct pool *pool = c->member.fibre->pool;
    arch_note_acquire(&pool->gone);
    return cancel_strand(thread, c, above(pool)->note, false);
}

/* The strand is to be told when *what is set, which is done under the lock by who then claims all in *list: it parks
 * next. False: it is set already. */
static bool expect(struct thread *thread, struct cb *me, struct opened_pool *op, const bool *what,
                   struct wait_node **list)
{
    struct wait_node *node = &me->wait.node;
    wait_because(thread, me, BLOCKED_POOL, (uint64_t)(uintptr_t)op);
    node->epoch = wait_arm(thread, me, WAIT_FLOOR_MOST);
    spin_lock(&op->lock, thread);
    bool there = *what;
    if (!there) {
        node->next = *list;
        *list = node;
    }
    spin_unlock(&op->lock);
    if (!there)
        return true;
    bool mine = wait_retract(thread, me); /* nobody has seen its node */
    ASSERT(mine);
    me->blocked = BLOCKED_NOT;
    return false;
}

/* Uninterruptible: nothing is above the floor that it was armed with. */
static struct thread *await(struct thread *thread, struct cb *me)
{
    thread = thread_park(thread);
    wait_over(me);
    return thread;
}

/* The closer's last steps. From the unlocking on the handle may be given back: whoever waits does not touch it again
 * [L3]. */
static void finish(struct thread *thread, struct opened_pool *op)
{
    struct descriptors *descriptors = atomic_load_explicit(&runtime_of(thread)->descriptors, memory_order_acquire);
    struct batch batch;
    batch_init(&batch);
    pool_join_threads(op->pool, 0);
    arch_note_acquire(thread->sub); /* what its strands did is seen by who closes it */
    pool_end_common(thread, op->pool);
    if (descriptors)
        descriptors->move(descriptors, thread, op->pool);
    pool_close(op->pool);
    quiet_pool_over(thread, op->pool); /* [Q4] */
    spin_lock(&op->lock, thread);
    op->closed = true;
    for (struct wait_node *node = op->waiters, *next; node; node = next) {
        next = node->next;
        if (wait_claim(node, true))
            batch_add(&batch, &node->waiter->member);
    }
    spin_unlock(&op->lock);
    batch_deliver(thread, &batch);
}

static void close_first(struct thread *thread, struct cb *me, struct opened_pool *op, const char *why)
{
    struct closing closing = {.thread = thread, .op = op};
    batch_init(&closing.batch);
    op->home = thread->pool;
    op->note = note_new(thread, me, why);
    pool_close_begin(thread, op->pool, gone);
    each_strand(runtime_of(thread), cancel_one, &closing);
    batch_deliver(thread, &closing.batch);
    pool_close_look(thread, op->pool);
    if (expect(thread, me, op, &op->gone, &op->closer))
        thread = await(thread, me);
    finish(thread, op);
}

enum closes { CLOSES_FIRST, CLOSES_LATER, CLOSED };

/* By who keeps the handle. Later: the strand parks next, and is told when it is closed. */
static enum closes come_to_close(struct thread *thread, struct cb *me, struct opened_pool *op)
{
    spin_lock(&op->lock, thread);
    bool first = !op->closing;
    op->closing = true;
    spin_unlock(&op->lock);
    return first ? CLOSES_FIRST : expect(thread, me, op, &op->closed, &op->waiters) ? CLOSES_LATER : CLOSED;
}

/* Its scope keeps the handle until it is closed. */
static void go_on_closing(struct thread *thread, struct cb *me, struct opened_pool *op, enum closes how,
                          const char *why)
{
    if (how == CLOSES_FIRST)
        close_first(thread, me, op, why);
    else if (how == CLOSES_LATER)
        (void)await(thread, me);
}

/* Whether the strand, or one above it, lives on the pool: the close would wait for it, and it for the close. */
static bool is_below(struct thread *thread, struct cb *me, const struct pool *pool)
{
    bool below = false;
    atomic_flag *lock = &runtime_of(thread)->hand_off;
    spin_lock(lock, thread);
    for (struct cb *c = me; c && !below; c = c->anchor ? c->anchor->block.owner : NULL)
        below = c->member.fibre->pool == pool;
    spin_unlock(lock);
    return below;
}

static void must_be_elsewhere(struct thread *thread, struct cb *me, struct opened_pool *op, const char *function)
{
    if (is_below(thread, me, op->pool))
        MISUSE(function, pool_made(op, (char[256]){0}, 256),
               "a pool can't be closed by one of its own strands, or one below those: it would wait for itself");
}

static COLD void leave_in_section(struct cb *me, struct opened_pool *op)
{
    char where[256];
    const char *what;
    (void)made_section(me, where, sizeof where, &what);
    MISUSE("STRAND_SCOPE", pool_made(op, (char[256]){0}, 256),
           "leaving the scope of a pool waits for its end, inside %s", what);
}

static void end_with_scope(struct thread *thread, struct owned *owned)
{
    struct opened_pool *op = CONTAINER(owned, struct opened_pool, owned);
    struct cb *me = current_of(thread);
    if (UNLIKELY(own_of(me)->section_file != NULL))
        leave_in_section(me, op);
    must_be_elsewhere(thread, me, op, "STRAND_SCOPE");
    go_on_closing(thread, me, op, come_to_close(thread, me, op), "its pool's scope was left");
    forget(thread_self(), op);
}

/* A way of giving back: it is done by who is interrupted, too. */
void strand_pool_close(strand_pool handle, const char *why)
{
    struct thread *thread = must_be_strand("strand_pool_close");
    struct cb *me = current_of(thread);
    if (UNLIKELY(own_of(me)->section_file != NULL))
        section_misuse_(me, "strand_pool_close");
    thread_tick(thread);
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_close");
    if (!op->site)
        MISUSE("strand_pool_close", pool_made(op, (char[256]){0}, 256), "it ends with the run");
    must_be_elsewhere(thread, me, op, "strand_pool_close");
    enum closes how = come_to_close(thread, me, op);
    pool_found(op);
    go_on_closing(thread, me, op, how, why && *why ? why : "its pool was closed");
}

/* ---- resizing, and figures ------------------------------------------------------------------------------- */

int strand_pool_resize(strand_pool handle, int threads)
{
    struct thread *thread = must_be_strand("strand_pool_resize");
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_resize");
    threads = thread_count(threads, op->pool->scheduler, thread->driver != NULL);
    if (threads < 1 || threads > THREADS_MOST)
        MISUSE("strand_pool_resize", "", "%d threads, not 1 to %d", threads, THREADS_MOST);
    if (op->pool->scheduler->alone && threads > 1)
        MISUSE("strand_pool_resize", pool_made(op, (char[256]){0}, 256),
               "a pool with the scheduler '%s' has one thread", op->pool->scheduler->name);
    int error = pool_resize(thread, op->pool, threads);
    pool_found(op);
    return error;
}

static void ask(struct thread *thread, struct opened_pool *op, struct strand_pool_info *info)
{
    struct pool *pool = op->pool;
    memcpy(info->name, op->name, sizeof info->name);
    info->scheduler = scheduler_name(pool);
    info->threads = pool_threads(pool);
    info->wanted = atomic_load_explicit(&pool->size, memory_order_relaxed);
    info->strands = pool_live(pool);
    struct pool_service service = pool_service(thread, pool);
    info->unequal = service.unequal;
    info->wait_ns = service.wait_ns;
}

void strand_pool_info_get(strand_pool handle, struct strand_pool_info *out)
{
    struct thread *thread = must_be_strand("strand_pool_info_get");
    must_be_there(out, "place for the figures", "strand_pool_info_get");
    size_t size = out->size;
    if (size < sizeof size || size > 4096)
        MISUSE("strand_pool_info_get", "", "strand_pool_info.size is %zu, not sizeof(struct strand_pool_info)", size);
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_info_get");
    struct strand_pool_info info = {.size = size};
    ask(thread, op, &info);
    pool_found(op);
    memcpy(out, &info, size < sizeof info ? size : sizeof info);
}

int strand_thread_index(void)
{
    return must_be_strand("strand_thread_index")->index;
}

/* ---- fibres that all share ------------------------------------------------------------------------------- */

/* The first who spawns onto the pool opens them. */
int pool_common(struct thread *thread, struct pool *pool, struct opened **out)
{
    int error = 0;
    spin_lock(&pool->resizing, thread);
    for (int i = 0; !error && i < COMMON_FIBRES; i++)
        if (!pool->common[i])
            error = opened_open(thread, pool, thread->usual, &pool->common[i]) ? -ENOMEM : 0;
    spin_unlock(&pool->resizing);
    if (!error)
        *out = pool->common[__atomic_fetch_add(&pool->common_turn, 1, __ATOMIC_RELAXED) % COMMON_FIBRES];
    return error;
}

void pool_end_common(struct thread *thread, struct pool *pool)
{
    for (int i = 0; i < COMMON_FIBRES; i++) {
        if (pool->common[i])
            opened_release(thread, pool->common[i], OPENED_KNOWN);
        pool->common[i] = NULL;
    }
}
