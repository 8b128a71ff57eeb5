/*
 * Channels that note which values they drop: those with the attributes `dropping`.
 */
#ifndef SPEC_DROPS_H
#define SPEC_DROPS_H

#include "channels.h"

static _Atomic long dropped[64];
static _Atomic int drops;

static atomic_flag noting = ATOMIC_FLAG_INIT;

/* The channel's end and the arrival of a post that comes too late may be on two threads. */
static inline void note_drop(void *element)
{
    while (atomic_flag_test_and_set(&noting))
        continue;
    int n = drops;
    dropped[n] = *(long *)element; /* before it is counted */
    drops = n + 1;
    atomic_flag_clear(&noting);
}

static const strand_chan_attr dropping = {.size = sizeof dropping, .drop = note_drop};

#endif
