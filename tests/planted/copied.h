/*
 * For bugs in strands of a shared fibre: their frames are copied out and in before the bug happens.
 */
#ifndef PLANTED_COPIED_H
#define PLANTED_COPIED_H

#include "noinline.h"

#include "strand.h"
#include "strand/pool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t copies_of(strand_fibre fibre)
{
    strand_fibre_info info = {.size = sizeof info};
    strand_fibre_info_get(fibre, 0, &info);
    return info.copies;
}

static _Atomic int over;

/* Another strand of a fibre, in whose favour those with bugs are copied out. */
static void *is_there(void *arg)
{
    while (!atomic_load_explicit(&over, memory_order_relaxed)) /* it announces no order */
        strand_yield();
    return arg;
}

/* The child runs to its end, on a fibre with another strand. */
static inline void run_beside_another(strand_scope scope, strand_fibre fibre, void *(*body)(void *), void *arg)
{
    strand other = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), is_there, NULL, 0);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), body, arg, 0));
    over = 1;
    strand_join(other);
}

/* The caller's frames go to an image, and so do those of the strand that runs meanwhile. A program whose strands are
 * not copied ends as if it had no bug. */
static inline void be_copied(strand_fibre fibre)
{
    uint64_t before = copies_of(fibre);
    for (int i = 0; i < 10; i++)
        strand_yield();
    if (copies_of(fibre) < before + 10) {
        fprintf(stderr, "planted: nothing was copied\n");
        _Exit(0);
    }
}

#endif
