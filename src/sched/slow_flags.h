/*
 * Why a thread's next switch, or its next pick, takes the slow path. Some bits also send other operations to their
 * slow paths: SWITCH_CHECK the entry of a scope and the end of a strand, SWITCH_SHARED a spawn, PICK_FAIR and PICK_SIM
 * the lock of a mutex and the wake-up by an end.
 *
 * STATE     two words for each of the two, by the party that writes them. any: bits that other threads set, too. own:
 *           bits that the thread alone reads and writes. The fast path loads both, and tests them at once.
 *             switch   any: SWITCH_CHECK, SWITCH_CANARIES, SWITCH_LEAVE   own: SWITCH_SHARED
 *             pick     any: PICK_PINNED                                  own: PICK_FAIR, PICK_SIM
 * OWNERSHIP SWITCH_CHECK and SWITCH_CANARIES: any thread sets them; they stay until the thread's record serves the next
 *           thread of the system. SWITCH_LEAVE: the resizer sets and clears it (resize.c); a thread that is driven does
 *           so itself, and no resizer sends that one away. These three share a word, so each change is a
 *           read-modify-write. PICK_PINNED: any thread sets it, the thread itself clears it (pinned.h). It is alone in
 *           its word, so a store changes it. thread_prepare clears all words before the thread begins.
 * ORDERING  each bit has that of its protocol: SWITCH_CHECK [S5] [L4], SWITCH_CANARIES [GD1], SWITCH_LEAVE [Z3],
 *           PICK_PINNED [P1]. The fast path's loads are relaxed; the slow path loads the bit again with its own order.
 * NOT DONE  one word for all bits: the thread changes SWITCH_SHARED at every switch to and from a shared fibre, and
 *           PICK_FAIR at every pass; each change would be a locked instruction. Deriving SWITCH_SHARED from the current
 *           fibre: a switch would test a second condition. A bool for each bit, in a union with a word that the fast
 *           path loads: accesses of different sizes, which no memory model orders.
 */
#ifndef SCHED_SLOW_FLAGS_H
#define SCHED_SLOW_FLAGS_H

#include "../base/atomic.h"
#include "../base/base.h"

#include <stdint.h>

struct slow_flags {
    _Atomic uint32_t any;
    uint32_t own;
};

enum {
    SWITCH_CHECK =
        1, /* C++, census, the second platform, a tool, a stack budget, a closing pool, a fork, no membarrier */
    SWITCH_CANARIES = 2, /* stacks without guard pages exist; with SWITCH_CHECK */
    SWITCH_LEAVE = 4,    /* the thread returns to its loop: it ends, or goes back to its driver */
    SWITCH_SHARED = 8    /* the current fibre is a shared one */
};
enum {
    PICK_PINNED = 1, /* there may be pinned fibres to run */
    PICK_FAIR = 2,   /* a pass was made: the next pick takes from the queues' other end */
    PICK_SIM = 4     /* the second platform is in use */
};

OWN_INLINE bool slow_flags_any(const struct slow_flags *flags)
{
    return atomic_load_explicit(&flags->any, memory_order_relaxed) | flags->own;
}

/* Returns whether one of these bits of `any` is set. */
OWN_INLINE bool slow_flags_has(const struct slow_flags *flags, uint32_t bits)
{
    return atomic_load_explicit(&flags->any, memory_order_relaxed) & bits;
}

#endif
