/*
 * Time, yields, sleeps, and queries of a strand about itself.
 */
#include "exception.h"
#include "handle.h"
#include "interrupt.h"
#include "misuse.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *strand_version(void)
{
    return TEXT(STRAND_VERSION_MAJOR) "." TEXT(STRAND_VERSION_MINOR) "." TEXT(STRAND_VERSION_PATCH);
}

strand_time strand_now(void)
{
    struct thread *thread = thread_self();
    return (strand_time){thread ? platform_now(thread->sub) : platform_now_unknown()};
}

strand_time strand_in(int64_t ns)
{
    int64_t now = strand_now().ns, sum;
    if (__builtin_add_overflow(now, ns, &sum))
        sum = INT64_MAX;
    return (strand_time){sum > 0 ? sum : 1}; /* 0 would mean no instant */
}

void strand_yield(void)
{
    struct thread *thread = must_be_strand("strand_yield");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_yield");
    thread_yield(thread);
}

void strand_checkpoint(void)
{
    struct thread *thread = must_be_strand("strand_checkpoint");
    may_block(thread, current_of(thread), "strand_checkpoint");
}

bool strand_interrupted(void)
{
    struct thread *thread = must_be_strand("strand_interrupted");
    struct cb *me = current_of(thread);
    thread_tick(thread); /* so a loop that only asks sees time pass */
    cxx_settle(thread, me);
    return interrupted_at_start(thread, me);
}

strand_time strand_deadline(void)
{
    struct thread *thread = must_be_strand("strand_deadline");
    cxx_settle(thread, current_of(thread));
    return (strand_time){interrupt_deadline(current_of(thread))};
}

void strand_sleep_until(strand_time when)
{
    wait_sleep(when, "strand_sleep_until");
}

void strand_sleep(int64_t ns)
{
    wait_sleep(ns > 0 ? strand_in(ns) : (strand_time){0}, "strand_sleep");
}

strand strand_self(void)
{
    struct thread *thread = thread_self();
    return thread && thread->current ? handle_of(current_of(thread)) : (strand){{0, 0}};
}

uint64_t strand_id(strand s)
{
    return s.bits[1];
}

const char *strand_name(void)
{
    return cb_name(current_of(must_be_strand("strand_name")));
}
