/*
 * A strand that sleeps for ever, in a function that traces show. Include test.h before.
 */
#ifndef SPEC_DOZING_H
#define SPEC_DOZING_H

static _Atomic int dozing; /* how many strands doze, or are about to */

static NOINLINE void doze_off(void)
{
    dozing++;
    strand_sleep(FOREVER);
    __asm__ volatile("");
}

static inline void *sleeper(void *arg)
{
    doze_off();
    return arg;
}

#endif
