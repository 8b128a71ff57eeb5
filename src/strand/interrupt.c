/*
 * Raising, lowering and throwing interruptions. The rules are in interrupt.h and docs/protocols/interrupt.md. Models:
 * tests/models/interrupt.pml (the flags and `due`), tests/models/wait.pml (the wait that is claimed),
 * tests/models/joined.pml (the wait for a child).
 */
#include "interrupt.h"

#include "cancel_reason.h"
#include "carry.h"
#include "cxx.h"
#include "handle.h"
#include "log.h"
#include "misuse.h"
#include "print.h"
#include "scope.h"

#include <errno.h>
#include <stdio.h>

static bool still_waits(const struct cb *c, uint64_t state)
{
    return atomic_load_explicit(&c->wait.state, memory_order_acquire) == state; /* [W1] */
}

/* The strand waited in WAIT_CHILD, in this state. Returns its child, with a reference, or NULL if the wait has ended.
 * Never waits for references alone: their holders may wait for ENDS_LOCK [E7]. */
static struct cb *keep_awaited(struct thread *thread, struct cb *c, uint64_t state)
{
    struct cb *child = plain_load(child_awaited(c), memory_order_acquire); /* [E8] */
    do {
        uint64_t word = atomic_load_explicit(&child->word, memory_order_relaxed);
        int error = word & WORD_FREE ? -ESRCH : handle_ref_take_at_once(&child->word, word_serial(word));
        if (error != -EAGAIN)
            return error ? NULL : child; /* if the child is gone, the strand has consumed it */
        platform_await(thread);
    } while (still_waits(c, state));
    return NULL;
}

/* Under ENDS_LOCK of the child. Returns whether this ends the wait. */
static bool end_wait_for_child(struct cb *c, uint64_t state, bool shared)
{
    uint64_t interrupted = (state & ~UINT64_C(0xff)) | WAIT_INTERRUPTED;
    return swap_guessed_word(&c->wait.state, &state, interrupted, shared); /* [W1] [E6] */
}

/* The strand waited in WAIT_CHILD, in this state. Ends the wait, unless another party has ended it. Returns whether it
 * did. */
static COLD bool part_from_child(struct cb *c, uint64_t state, bool shared)
{
    struct thread *thread = thread_self();
    struct cb *child = keep_awaited(thread, c, state);
    if (!child)
        return false;
    bool parted = false;
    uintptr_t ends = atomic_load_explicit(&child->ends, memory_order_acquire); /* [E5] */
    while (!(ends & ENDS_OVER) && still_waits(c, state)) {                     /* [E7] [E8] */
        if (ends & ENDS_LOCK) {
            platform_await(thread);
            ends = atomic_load_explicit(&child->ends, memory_order_acquire);   /* [E5] */
        } else if (swap_ends(&child->ends, &ends, ends | ENDS_LOCK, shared)) { /* [E5] */
            parted = end_wait_for_child(c, state, shared);
            ends = parted ? ends | ENDS_PARTED : ends;                       /* [E6] */
            atomic_store_explicit(&child->ends, ends, memory_order_release); /* [E5] */
            break;
        }
    }
    handle_unref_cb(thread, child);
    return parted;
}

struct member *interrupt_raise(struct cb *c, uint32_t index, bool shared)
{
    /* This load comes after the store of the source's flag: the strand, which lowers `due`, may have read the flags
     * before it [I1]. */
    uint32_t due = atomic_load_explicit(&c->due, memory_order_seq_cst);
    while (due <= index) {
        if (!shared) {
            atomic_store_explicit(&c->due, index + 1, memory_order_relaxed);
            break;
        }
        if (atomic_compare_exchange_weak_explicit(&c->due, &due, index + 1, memory_order_seq_cst,
                                                  memory_order_relaxed)) /* [I1] */
            break;
    }
    if (shared)
        atomic_thread_fence(memory_order_seq_cst); /* also if `due` was higher before [W4] */
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_seq_cst); /* [W4] */
    while (wait_is_armed(state) && index >= wait_floor(state)) {                 /* [W3] */
        if (wait_tag(state) == WAIT_CHILD)
            return part_from_child(c, state, shared) ? &c->member : NULL;
        if (swap_word(&c->wait.state, &state, (state & ~UINT64_C(0xff)) | WAIT_INTERRUPTED, shared)) /* [W1] */
            return &c->member;
    }
    return NULL;
}

struct member *block_raise(struct block *block, bool shared)
{
    atomic_store_explicit(&block->due, 1, memory_order_seq_cst); /* [I1] */
    return interrupt_raise(block->owner, block->index, shared);
}

/* The timer of an outer deadline may be late. It must not come after that of an inner one, so an outer deadline counts
 * as soon as the clock has passed it. */
static bool has_passed(struct cb *me, struct block *block)
{
    const struct deadline *deadline = CONTAINER(block, struct deadline, block);
    if (block->type != BLOCK_DEADLINE || deadline->when > platform_now(me->member.fibre->pool->sub))
        return false;
    block_raise(block, me->member.fibre->pool->sub->concurrent);
    return true;
}

struct block *interrupt_source(struct cb *me)
{
    if (own_of(me)->floor == 0 && (atomic_load_explicit(&me->word, memory_order_relaxed) & WORD_ITSELF))
        return NULL;
    struct block *source = NULL;
    for (struct block *block = own_of(me)->blocks; block && block->index >= own_of(me)->floor; block = block->outer)
        if (atomic_load_explicit(&block->due, memory_order_seq_cst) || (source && has_passed(me, block))) /* [I1] */
            source = block;
    return source;
}

/* Returns 1 + the number of the highest source that holds, or 0. */
static uint32_t highest(struct cb *me)
{
    for (struct block *block = own_of(me)->blocks; block; block = block->outer)
        if (atomic_load_explicit(&block->due, memory_order_seq_cst)) /* [I1] */
            return block->index + 1;
    return atomic_load_explicit(&me->word, memory_order_seq_cst) & WORD_ITSELF ? 1 : 0; /* [I1] */
}

/* A raiser sets its flag first, and raises `due` only if that is not high enough already. So after each swap the strand
 * reads the flags again, and itself raises what came in between [I1]. */
void interrupt_lower(struct thread *thread, struct cb *me)
{
    uint32_t due = atomic_load_explicit(&me->due, memory_order_seq_cst); /* [I1] */
    for (;;) {
        uint32_t now = highest(me);
        if (now == due)
            return;
        if (!thread->concurrent)
            atomic_store_explicit(&me->due, now, memory_order_relaxed);
        else if (!atomic_compare_exchange_strong_explicit(&me->due, &due, now, memory_order_seq_cst,
                                                          memory_order_seq_cst)) /* [I1] */
            continue;
        due = now;
    }
}

strand_exception *block_flight(struct thread *thread, struct cb *me, struct block *block)
{
    cxx_set_aside(thread, me);
    return own_of(me)->flight != block->in_flight ? own_of(me)->flight->exception : NULL;
}

bool block_is_source(struct block *block, const strand_exception *e)
{
    return e && e->source == block && e->kind == &STRAND_INTERRUPTED &&
           e->source_serial == word_serial(atomic_load_explicit(&block->word, memory_order_relaxed));
}

bool block_foreign(struct thread *thread, struct block *block)
{
    return thread->cxx && (unsigned)thread->cxx->uncaught > (unsigned)block->uncaught;
}

/* ---- throwing -------------------------------------------------------------------------------------------- */

static strand_exception *by_cancel(struct cb *me)
{
    struct cancel_reason *reason = cancel_reason_of(me);
    strand_exception *e =
        exception_new(&STRAND_INTERRUPTED, "cancelled%s%s%s%s", reason ? " by " : "", reason ? reason->who : "",
                      reason && reason->why[0] ? ": " : "", reason ? reason->why : "");
    e->cancel_reason = cancel_reason_keep(reason);
    e->source = me;
    e->source_serial = cb_id(me);
    return e;
}

/* Returns a reference to the exception of the first failed child that the owner has not seen, or NULL. */
static strand_exception *first_failure(struct thread *thread, struct scope *scope)
{
    scope_lock(thread, scope);
    struct cb *child = scope_first_failed(scope);
    strand_exception *e = child ? strand_exception_keep(cb_exception(child)) : NULL;
    scope_unlock(thread, scope);
    return e;
}

static strand_exception *by_block(struct thread *thread, struct block *block)
{
    strand_exception *e;
    if (block->type == BLOCK_DEADLINE) {
        e = exception_new(&STRAND_INTERRUPTED, "interrupted by the deadline of %s:%d", block->file, block->line);
    } else {
        strand_exception *failure = first_failure(thread, CONTAINER(block, struct scope, block));
        e = exception_new(&STRAND_INTERRUPTED, "interrupted by the failure of a child of the scope of %s:%d%s%s",
                          block->file, block->line, failure ? ": " : "", failure ? failure->text : "");
        e->cause = failure;
    }
    e->source = block;
    e->source_serial = word_serial(atomic_load_explicit(&block->word, memory_order_relaxed));
    return e;
}

/* The caller is the root strand of a run in deadlock. */
static strand_exception *by_deadlock(struct thread *thread, struct cb *root)
{
    atomic_fetch_and_explicit(&root->word, ~(uint64_t)WORD_STUCK, memory_order_seq_cst); /* [I1] */
    interrupt_lower(thread, root);
    return exception_new(&STRAND_DEADLOCK, "%s", runtime_of(thread)->deadlock);
}

static strand_exception *interruption(struct thread *thread, struct cb *me)
{
    struct block *source = interrupt_source(me);
    uint64_t word = atomic_load_explicit(&me->word, memory_order_relaxed);
    if (UNLIKELY(!source && (word & WORD_ITSELF) == WORD_STUCK))
        return by_deadlock(thread, me);
    return source ? by_block(thread, source) : by_cancel(me);
}

static bool is_on(const struct stack *stack, const char *address)
{
    return address >= stack->low && address < stack->top;
}

/* An address in the frame that has the try block. AddressSanitizer may keep the locals of a frame in other memory; then
 * it is the stack pointer. The try blocks of the frames that serve strands may lie elsewhere, too. */
static const char *place_of(const struct stack *stack, const struct strand_try_ *try)
{
    const char *own = (const char *)try;
    return is_on(stack, own) || !try->outer ? own : arch_jump_stack(try->jump, try->form);
}

/* A strand's try blocks, for arch_unwind_ends_at. */
struct tries {
    struct arch_catcher catcher;
    const struct stack *stack;
    const struct strand_try_ *first, *end; /* from the innermost one to the one that receives the interruption */
};

static unsigned count_passed(const struct arch_catcher *catcher, uintptr_t from)
{
    const struct tries *tries = CONTAINER(catcher, const struct tries, catcher);
    unsigned count = 0;
    for (const struct strand_try_ *try = tries->first; try != tries->end; try = try->outer)
        count += (uintptr_t)place_of(tries->stack, try) >= from;
    return count;
}

/* Whether the try block receives an interruption by the source, or the error that an inner block turns it into. */
static bool receives(const struct strand_try_ *try, uint32_t source, bool is_deadlock)
{
    return !try->refuses || is_deadlock || source > try->depth;
}

/* If a noexcept function lies between here and the handler of an interruption by this source [I2], returns the return
 * address of the call in that function. Otherwise returns NULL. */
static void *noexcept_call(struct thread *thread, struct cb *me, uint32_t source)
{
    const struct stack *stack = thread->current->stack;
    const struct strand_try_ *try = own_of(me)->tries;
    struct tries tries = {{(void (*)(void))strand_try_leave_, "strand_try_leave_", count_passed}, stack, try, try};
    bool is_deadlock = !source && (atomic_load_explicit(&me->word, memory_order_relaxed) & WORD_ITSELF) == WORD_STUCK;
    while (is_on(stack, place_of(stack, tries.end)) && !receives(tries.end, source, is_deadlock))
        tries.end = tries.end->outer;
    const char *end = place_of(stack, tries.end);
    return arch_unwind_ends_at(is_on(stack, end) ? end : stack->top, &tries.catcher);
}

/* At the start of the next operation cxx_settle lowers the floor again. */
static void *put_off(struct thread *thread, struct cb *me, uint32_t source)
{
    void *call = noexcept_call(thread, me, source);
    if (call)
        own_of(me)->floor = source + 1;
    return call;
}

static uint32_t number_of_source(struct cb *me)
{
    const struct block *source = interrupt_source(me);
    return source ? source->index : 0;
}

COLD bool interrupt_put_off_(struct cb *me)
{
    struct thread *thread = thread_self();
    return thread->cxx && put_off(thread, me, number_of_source(me));
}

void interrupt_put_off_coming(struct cb *me)
{
    struct thread *thread = thread_self();
    while (thread->cxx && own_of(me)->floor <= own_of(me)->depth && put_off(thread, me, own_of(me)->floor))
        ;
}

int64_t interrupt_deadline(struct cb *me)
{
    int64_t first = ARCH_FOREVER;
    struct own *own = own_of(me);
    for (const struct block *block = own->blocks; block && block->index >= own->floor; block = block->outer)
        if (block->type == BLOCK_DEADLINE && CONTAINER(block, const struct deadline, block)->when < first)
            first = CONTAINER(block, const struct deadline, block)->when;
    return first;
}

void interrupt_throw(struct thread *thread, struct cb *me, uint64_t progress)
{
    strand_exception *e = interruption(thread, me);
    e->progress = progress;
    exception_throw_traced(me, e, SEGMENT_THROWN);
}

COLD struct thread *interrupt_yield_before_taking(struct thread *thread, struct cb *me)
{
    thread = thread_yield(thread);
    if (interrupted_here(me))
        interrupt_throw(thread, me, 0);
    return thread;
}

void interrupt_throw_over(struct thread *thread, struct cb *me, strand_exception *pushed_aside)
{
    strand_exception *e = interruption(thread, me);
    exception_suppress(e, pushed_aside);
    exception_throw_traced(me, e, SEGMENT_THROWN);
}

/* ---- strands that ignore interruptions
 * ------------------------------------------------------------------------------ */

/* Returns the serial of the source that interrupts the strand. */
static uint64_t serial_of_source(struct cb *me)
{
    struct block *source = interrupt_source(me);
    return source ? word_serial(atomic_load_explicit(&source->word, memory_order_relaxed)) : cb_id(me);
}

/* Whether the strand has continued despite the source for the 10000th time on this thread. */
static bool is_ignored(struct thread *thread, struct cb *me, uint64_t source)
{
    enum { MANY = 10000 };
    struct worker *worker = worker_of(thread);
    struct ignored *ignored = &worker->ignored[cb_id(me) / 2 % (sizeof worker->ignored / sizeof *worker->ignored)];
    bool again = atomic_load_explicit(&ignored->id, memory_order_relaxed) == cb_id(me) &&
                 atomic_load_explicit(&ignored->source, memory_order_relaxed) == source;
    uint64_t count = again ? atomic_load_explicit(&ignored->count, memory_order_relaxed) + 1 : 1;
    atomic_store_explicit(&ignored->id, cb_id(me), memory_order_relaxed);
    atomic_store_explicit(&ignored->source, source, memory_order_relaxed);
    atomic_store_explicit(&ignored->count, count, memory_order_relaxed);
    return count == MANY;
}

/* has: "caught" or "put off". ip: where the strand did that. why: the reason of the last interruption, or "". */
static COLD void report_ignored(struct thread *thread, struct cb *me, const char *has, void *ip, const char *remedy,
                                const char *why)
{
    char text[MADE_WORDS + 640], where[LOCATION_WORDS] = "?", made[MADE_WORDS];
    if (ip)
        print_location_line(ip, where, sizeof where);
    snprintf(text, sizeof text,
             "strand '%s' #%llu has %s its interruption 10000 times in %s, and goes on; so the strand that waits for "
             "its end may wait for ever. %s (%s%s%s)",
             cb_name(me), (unsigned long long)cb_id(me), has, where, remedy, why, *why ? "; " : "",
             misuse_made_strand(me, made, sizeof made));
    log_text(runtime_of(thread), text);
}

COLD bool interrupt_put_off_at_start_(struct thread *thread, struct cb *me)
{
    if (!thread->cxx) {
        cxx_notice(thread, me);
        if (!interrupted(me))
            return true;
    }
    if (!thread->cxx)
        return false;
    uint64_t source = serial_of_source(me);
    void *call = NULL;
    while (interrupted(me)) {
        call = put_off(thread, me, number_of_source(me));
        if (!call)
            return false;
    }
    if (UNLIKELY(is_ignored(thread, me, source)))
        report_ignored(
            thread, me, "put off", call,
            "Nothing gets out: the function is noexcept. Let the interruption out, catch it inside, or open a "
            "STRAND_SHIELD around what has to happen",
            "");
    return true;
}

void interrupt_refuse(struct thread *thread, struct cb *me)
{
    if (thread_is_asked_for(thread)) /* a strand that catches it and tries again lets others run */
        thread = thread_yield(thread);
    strand_exception *e = interruption(thread, me);
    exception_trace(e, SEGMENT_THROWN, me);
    if (UNLIKELY(is_ignored(thread, me, e->source_serial)))
        report_ignored(thread, me, "caught", e->ips_count ? e->ips[0] : NULL,
                       "Catch STRAND_ERROR instead of STRAND_ANY, or throw the interruption on", e->text);
    exception_throw(me, e);
}
