/*
 * No-suspend sections: while section_file is set, whatever may block is misuse (may_block). There are two reasons for
 * it: blocks (STRAND_NO_SUSPEND, a monitor), which nest; and mutexes of the system's that are checked
 * (strand/check.h), which are released in any order. The innermost block counts, else the newest mutex. A function of
 * the user's that may not suspend is a block too (hook.h): section_file is its record then, section_line says so.
 */
#ifndef STRAND_SECTION_H
#define STRAND_SECTION_H

#include "core.h"

enum { SECTION_OF_HOOK = -1 };

/* A mutex that the strand holds. */
struct checked {
    struct checked *outer;
    const void *mutex;
    const char *file;
    int line;
};

/* Outside of blocks. */
static inline void section_by_mutex(struct cb *me)
{
    struct own *own = own_of(me);
    struct checked *newest = own->checked;
    own->section_file = newest ? newest->file : NULL;
    own->section_line = newest ? newest->line : 0;
    me->section_by_mutex = newest != NULL;
}

/* Into a block; what it is inside of goes to bits 0 and 1 of its guard. */
static inline struct strand_guard_ section_enter(struct cb *me, const char *file, int line,
                                                 void (*leave)(struct strand_guard_ *guard))
{
    struct own *own = own_of(me);
    bool outermost = me->section_by_mutex;
    struct strand_guard_ guard = {
        {outermost ? 0 : (uint64_t)(uintptr_t)own->section_file, (uint64_t)(unsigned)own->section_line, 0}, leave};
    me->section_by_mutex = false;
    own->section_file = file;
    own->section_line = line;
    return guard;
}

static inline void section_leave(struct cb *me, const struct strand_guard_ *guard)
{
    struct own *own = own_of(me);
    own->section_file = (const char *)(uintptr_t)guard->bits[0];
    own->section_line = (int)guard->bits[1];
    if (UNLIKELY(own->checked != NULL && !own->section_file))
        section_by_mutex(me);
}

/* The strand ends: misuse if it holds a mutex. */
void check_at_end_(struct cb *c);

#if defined(__clang__)
#define NO_ANALYSIS __attribute__((no_thread_safety_analysis)) /* what callers are told is no lock in here */
#else
#define NO_ANALYSIS
#endif

#endif
