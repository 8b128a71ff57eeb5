/*
 * The functions that the stacks of a run need of its threads.
 *
 * INVARIANT [GD1] from when a stack without a guard page exists, all threads check canaries.
 * ORDERING  [GD1] seq_cst: the thread that finds the first such stack sets `warned`, then SWITCH_CANARIES of all
 *           threads. The flags of a thread that begins are cleared, then `warned` is read. One of them sees the other.
 */
#include "stack_ops.h"

#include "platform.h"
#include "records.h"
#include "shared_fibre.h"

static struct thread *thread_of(struct stack_user *user)
{
    return CONTAINER(user, struct thread, stacks);
}

static void await(struct stack_user *user)
{
    platform_await(thread_of(user));
}

static bool refuses(struct stack_user *user)
{
    return platform_refuses(thread_of(user));
}

static void starved(struct stack_user *user, struct guest *active, size_t bytes)
{
    thread_of(user)->sub->ops->starved(member_of(active), bytes);
}

static void check_canaries(struct thread *thread)
{
    const uint32_t bits = SWITCH_CHECK | SWITCH_CANARIES;
    atomic_fetch_or_explicit(&thread->slow_switch.any, bits, memory_order_seq_cst); /* [GD1] */
}

void thread_prepare_canaries(struct thread *thread)
{
    if (atomic_load_explicit(&thread->sub->memory.stacks.warned, memory_order_seq_cst)) /* [GD1] */
        check_canaries(thread);
}

/* Makes every thread check canaries: any may get a stack without a guard page from a cache, or a fibre that lives on
 * one. */
static void unguarded(struct stack_memory *memory)
{
    struct subprocess *sub = CONTAINER(memory, struct subprocess, memory);
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        check_canaries(other);
    sub->ops->warn(sub, "no more guard pages are available: further stacks are checked by canaries, "
                        "at switches only");
}

const struct stack_ops thread_stack_ops = {
    .await = await, .refuses = refuses, .starved = starved, .unguarded = unguarded};
