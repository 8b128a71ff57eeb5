/*
 * Monitors: structures whose members are only reachable inside short functions that exclude each other and never
 * suspend. Each such function is atomic for all strands.
 *
 *     STRAND_MONITOR(account, {
 *         int balance, movements;
 *     });
 *
 *     int account_withdraw(struct account *account, int sum)
 *     {
 *         STRAND_MONITOR_ENTER(account, in, account);
 *         if (in->balance < sum)
 *             return -1;
 *         in->balance -= sum;
 *         in->movements++;
 *         return in->balance;
 *     }
 *
 * A public header needs only `struct account;` and the functions. Blocking inside a monitor is misuse, and so is
 * leaving a scope with anchored children; the report names the STRAND_MONITOR_ENTER, and clang (18 or later, with
 * -Wthread-safety) warns at compile time. A caller that has to wait for a state of the monitor waits outside it, by an
 * event or a channel.
 *
 * Which callers:
 *
 *   strands of one run at a time      STRAND_MONITOR_ENTER
 *   plain threads, signal handlers    none
 *
 * Suspension: entering and leaving a monitor never suspend, and are no cancellation points.
 *
 * Cost: a few nanoseconds, unless the macro says otherwise.
 */
#ifndef STRAND_MONITOR_H
#define STRAND_MONITOR_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Define a monitor as `struct type`. The members stand in braces and are reached by STRAND_MONITOR_ENTER only. A
 * zeroed monitor is ready for use. It owns no memory. It must not lie on the stack of a shared fibre. */
#define STRAND_MONITOR(type, ...)                                                                                      \
    struct type##_inside_ __VA_ARGS__;                                                                                 \
    struct type {                                                                                                      \
        struct strand_monitor_ strand_monitor_;                                                                        \
        struct type##_inside_ strand_inside_;                                                                          \
    }

/**
 * Enter a monitor until the end of the enclosing block. The macro declares `in`, a pointer to the members. Until the
 * block ends no other strand is in the monitor, and blocking is misuse. Entering a monitor that the strand has entered
 * already is misuse. Enter nested monitors in the same order everywhere. Any strand may use it. Cost: a few ns; if
 * another thread is in the monitor, the caller spins until it has left.
 */
#define STRAND_MONITOR_ENTER(type, in, monitor)                                                                        \
    STRAND_BLOCK_BEGINS_ struct type *const STRAND_PASTE_(strand_entered_, in) = (monitor);                            \
    struct strand_guard_ STRAND_PASTE_(strand_within_, in) STRAND_CLEANUP_(strand_monitor_leave_) =                    \
        strand_monitor_enter_(strand_monitor_of_(STRAND_PASTE_(strand_entered_, in)), __FILE__, __LINE__);             \
    struct type##_inside_ *const in = &STRAND_PASTE_(strand_entered_, in)->strand_inside_

/* ---- behind the macros ----------------------------------------------------------------------------------- */

struct strand_monitor_ {
    uint64_t bits[2];
};
static inline struct strand_monitor_ *strand_monitor_of_(void *monitor)
{
    return STRAND_CAST_(struct strand_monitor_ *, monitor); /* its first member */
}
struct strand_guard_ strand_monitor_enter_(struct strand_monitor_ *monitor, const char *file,
                                           int line) STRAND_SECTION_ENTERS_;
void strand_monitor_leave_(struct strand_guard_ *guard) STRAND_SECTION_LEAVES_;

#ifdef __cplusplus
}
#endif
#endif
