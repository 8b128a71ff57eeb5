/*
 * Channels that note which values they drop: those with the attributes `dropping`.
 */
#ifndef SPEC_DROPS_H
#define SPEC_DROPS_H

#include "channels.h"

static _Atomic long dropped[64];
static _Atomic int drops;

static inline void note_drop(void *element)
{
    int n = drops;
    dropped[n] = *(long *)element; /* before it is counted */
    drops = n + 1;
}

static const strand_chan_attr dropping = {.size = sizeof dropping, .drop = note_drop};

#endif
