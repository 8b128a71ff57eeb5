/*
 * A sanitizer played by the test: for the unit tests of what an ordinary build announces (src/arch/san.h). The
 * test defines the functions of the sanitizer, and the library takes them for the tool that watches the program. What a
 * real sanitizer says is for `make user-tools`.
 */
#ifndef ARCH_UNDER_H
#define ARCH_UNDER_H

#include "arch_co.h"

enum { UNDER_FRAMES = 4096, UNDER_BESIDE = 64, UNDER_KNOWN = UNDER_FRAMES / 8 };

/* Memory that may be copied out: below the guard page of a stack nothing is. */
static inline char *under_frames(const struct co *co)
{
    return co->low + CO_STACK - CO_ABOVE - UNDER_FRAMES;
}

static inline void under_yield_once(struct co *co)
{
    co_yield (co);
}

/* A context that is entered, left, gone on with and ended. */
static inline void under_switch(void)
{
    struct co co;
    co_make(&co, under_yield_once, NULL);
    co_resume(&co);
    CHECK(!co.ended);
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
}

#endif
