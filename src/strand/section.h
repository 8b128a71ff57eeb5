/*
 * No-suspend sections: while section_file is set, every operation that may block is misuse (may_block). Two things make
 * a section: blocks (STRAND_NO_SUSPEND, a monitor), which nest; and checked mutexes of the C library (strand/check.h),
 * which are released in any order. Reports name the innermost block, or else the newest mutex. A function of the user
 * that must not suspend is a block too (hook.h): then section_line is SECTION_OF_HOOK and section_file points to its
 * record.
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

/* Call this outside of blocks. */
static inline void section_by_mutex(struct cb *me)
{
    struct own *own = own_of(me);
    struct checked *newest = own->checked;
    own->section_file = newest ? newest->file : NULL;
    own->section_line = newest ? newest->line : 0;
    me->section_by_mutex = newest != NULL;
}

/* Enters a block. Bits 0 and 1 of its guard keep the enclosing section. */
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
void mutex_check_at_end_(struct cb *c);

#if defined(__clang__)
#define NO_ANALYSIS __attribute__((no_thread_safety_analysis)) /* the declarations' annotations are for callers */
#else
#define NO_ANALYSIS
#endif

#endif
