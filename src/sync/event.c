/*
 * Events, wait groups and latches: they open for all waiters at once. Page: docs/protocols/locks.md; the protocol block
 * is in gate.h.
 *
 * STATE     the gate's value. An event: SET or 0; it is open when set. Groups and latches: how many are still to come;
 *           they are open at 0. The latch's initialiser knows that.
 */
#include "gate.h"

#include "../../include/strand/sync.h"
#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#define COUNT_MOST (UINT64_C(1) << 60)
enum { SET = 1 };

_Static_assert(sizeof(struct gate) <= sizeof(strand_event), "an event is the user's object");
_Static_assert(sizeof(struct gate) <= sizeof(strand_group), "a group is the user's object");
_Static_assert(sizeof(struct gate) <= sizeof(strand_latch), "a latch is the user's object");

static struct gate *gate_of(const void *object)
{
    return (struct gate *)(uintptr_t)object;
}

static bool is_set(uint64_t *value, uintptr_t want)
{
    (void)want;
    return *value == SET;
}

static bool is_over(uint64_t *value, uintptr_t want)
{
    (void)want;
    return *value == 0;
}

static const struct gate_rules event_rules = {is_set, 0}, count_rules = {is_over, 0};

static inline void wait_for(struct gate *gate, const char *noun, unsigned why, const struct gate_rules *rules,
                            const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    must_be_there(gate, noun, function);
    may_block(thread, me, function);
    uint64_t value = gate_value(gate_read(gate));
    if (rules->admit(&value, 0)) {
        yield_if_asked(thread);
        return;
    }
    must_not_escape_object(thread, gate, noun, function);
    gate_enter(thread, me, gate, why, 0, rules);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

void strand_event_wait(strand_event *event)
{
    wait_for(gate_of(event), "event", BLOCKED_EVENT, &event_rules, "strand_event_wait");
}

static void set_to(struct gate *gate, uint64_t value, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct batch batch;
    must_be_there(gate, "event", function);
    must_not_escape_object(thread, gate, "event", function);
    batch_init(&batch);
    (void)gate_lock(thread, gate);
    gate_unlock(gate, gate_settle(thread, gate, value, &event_rules, &batch));
    batch_deliver(thread, &batch);
}

void strand_event_set(strand_event *event)
{
    set_to(gate_of(event), SET, "strand_event_set");
}

void strand_event_clear(strand_event *event)
{
    set_to(gate_of(event), 0, "strand_event_clear");
}

bool strand_event_is_set(const strand_event *event)
{
    (void)must_be_strand("strand_event_is_set");
    must_be_there(event, "event", "strand_event_is_set");
    return gate_value(gate_read(gate_of(event))) == SET;
}

/* ---- counting down to 0 ---------------------------------------------------------------------------------- */

static COLD void too_low(const struct gate *gate, const char *noun, uint64_t word, uint32_t n, const char *function)
{
    MISUSE_AT(function, noun, (const void *)gate,
              "counting down by %u from %llu would go below 0: count up first, and down once for each", n,
              (unsigned long long)word);
}

static NOINLINE void down_slowly(struct thread *thread, struct gate *gate, const char *noun, uint32_t n,
                                 const char *function)
{
    struct batch batch;
    must_not_escape_object(thread, gate, noun, function);
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate);
    if (UNLIKELY(value < n)) {
        gate_unlock(gate, value); /* a misuse hook may read the object */
        too_low(gate, noun, value, n, function);
    }
    value -= n;
    gate_unlock(gate, gate_settle(thread, gate, value, &count_rules, &batch));
    batch_deliver(thread, &batch);
}

static inline void down(struct gate *gate, const char *noun, uint32_t n, const char *function)
{
    struct thread *thread = must_be_strand(function);
    must_be_there(gate, noun, function);
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
    while (!(word & GATE_BITS)) {
        if (UNLIKELY(word < n))
            too_low(gate, noun, word, n, function);
        if (LIKELY(gate_give(thread, gate, &word, word - n)))
            return;
    }
    down_slowly(thread, gate, noun, n, function);
}

void strand_group_add(strand_group *group, uint32_t n)
{
    struct gate *gate = gate_of(group);
    struct thread *thread = must_be_strand("strand_group_add");
    must_be_there(group, "group", "strand_group_add");
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
    if (UNLIKELY(gate_value(word) > COUNT_MOST))
        MISUSE_AT("strand_group_add", "group", (const void *)group, "the count is %llu, and %u more are too many",
                  (unsigned long long)gate_value(word), n);
    while (!(word & GATE_BITS))
        if (LIKELY(gate_give(thread, gate, &word, word + n)))
            return;
    must_not_escape_object(thread, gate, "group", "strand_group_add");
    gate_change(thread, gate, n, &count_rules);
}

void strand_group_done(strand_group *group)
{
    down(gate_of(group), "group", 1, "strand_group_done");
}

void strand_group_wait(strand_group *group)
{
    wait_for(gate_of(group), "group", BLOCKED_GROUP, &count_rules, "strand_group_wait");
}

uint64_t strand_group_count(const strand_group *group)
{
    (void)must_be_strand("strand_group_count");
    must_be_there(group, "group", "strand_group_count");
    return gate_value(gate_read(gate_of(group)));
}

void strand_latch_count_down(strand_latch *latch, uint32_t n)
{
    down(gate_of(latch), "latch", n, "strand_latch_count_down");
}

void strand_latch_wait(strand_latch *latch)
{
    wait_for(gate_of(latch), "latch", BLOCKED_GROUP, &count_rules, "strand_latch_wait");
}

/* ---- as cases of a select -------------------------------------------------------------------------------- */

static enum answer event_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return gate_stand_case(thread, me, c, node, 0, &event_rules);
}

static enum answer event_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    return gate_over_case(thread, c, node, won, &event_rules);
}

static bool event_is_set(struct thread *thread, const strand_case *c)
{
    (void)thread;
    return gate_value(gate_read(gate_of((void *)(uintptr_t)c->object[0]))) == SET;
}

static enum answer count_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return gate_stand_case(thread, me, c, node, 0, &count_rules);
}

static enum answer count_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    return gate_over_case(thread, c, node, won, &count_rules);
}

static const struct strand_source_ source_event = {.stand = event_stand,
                                                   .ready = event_is_set,
                                                   .over = event_over,
                                                   .blocked = BLOCKED_EVENT},
                                   source_count = {.stand = count_stand, .over = count_over, .blocked = BLOCKED_GROUP};

strand_case strand_on_event(strand_event *event)
{
    must_be_there(event, "event", "strand_on_event");
    return (strand_case){.source = &source_event, .object = {(uint64_t)(uintptr_t)event}};
}

strand_case strand_on_group(strand_group *group)
{
    must_be_there(group, "group", "strand_on_group");
    return (strand_case){.source = &source_count, .object = {(uint64_t)(uintptr_t)group}};
}

strand_case strand_on_latch(strand_latch *latch)
{
    must_be_there(latch, "latch", "strand_on_latch");
    return (strand_case){.source = &source_count, .object = {(uint64_t)(uintptr_t)latch}};
}
