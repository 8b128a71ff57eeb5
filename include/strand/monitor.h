/*
 * Monitors: a structure that is reached only through functions in which nothing suspends, so that each of them is one
 * step for all others: on one thread because nobody else runs meanwhile, on several because others wait for its few
 * instructions.
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
 * In a header that others see, `struct account;` and the functions are enough. What blocks inside of them is misuse,
 * reported with the place of the STRAND_MONITOR_ENTER; clang (18 or later, -Wthread-safety) reports it at compile time.
 * So is leaving a scope to which strands are anchored.
 * To wait for a state of the monitor is the business of who calls it, outside: by an event, or a channel.
 */
#ifndef STRAND_MONITOR_H
#define STRAND_MONITOR_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Define struct `type` with the members in braces, which only STRAND_MONITOR_ENTER reaches. A monitor is zero at
 * first, as its members are; it owns no memory; it must not lie on the stack of an opened fibre. */
#define STRAND_MONITOR(type, ...)                                                                                      \
    struct type##_inside_ __VA_ARGS__;                                                                                 \
    struct type {                                                                                                      \
        struct strand_monitor_ strand_monitor_;                                                                        \
        struct type##_inside_ strand_inside_;                                                                          \
    }

/**
 * Until the end of the block nobody else is in the monitor, nothing may block, and `in` points to the members. Any
 * strand. To enter a monitor again that the strand is in is misuse. Two monitors, one inside the other, are entered in
 * the same order everywhere. A few ns.
 */
#define STRAND_MONITOR_ENTER(type, in, monitor)                                                                        \
    struct type *const STRAND_PASTE_(strand_entered_, in) = (monitor);                                                 \
    struct strand_guard_ STRAND_PASTE_(strand_within_, in) STRAND_CLEANUP_(strand_monitor_leave_) =                    \
        strand_monitor_enter_(strand_monitor_of_(STRAND_PASTE_(strand_entered_, in)), __FILE__, __LINE__);             \
    struct type##_inside_ *const in = &STRAND_PASTE_(strand_entered_, in)->strand_inside_

/* ---- behind the macros ----------------------------------------------------------------------------------- */

struct strand_monitor_ {
    uint64_t bits[2];
};
static inline struct strand_monitor_ *strand_monitor_of_(void *monitor)
{
    return (struct strand_monitor_ *)monitor; /* its first member */
}
struct strand_guard_ strand_monitor_enter_(struct strand_monitor_ *monitor, const char *file,
                                           int line) STRAND_SECTION_ENTERS_;
void strand_monitor_leave_(struct strand_guard_ *guard) STRAND_SECTION_LEAVES_;

#ifdef __cplusplus
}
#endif
#endif
