/*
 * Holding threads still: a thread that was found held does not move until it is released, not even one that is started
 * meanwhile, and none stays held.
 *
 * MODELS    src/sched/hold.c: pool_hold, pool_release, pool_hold_new, pool_move, pool_mark_parked, pool_stand_still
 *           Labels [HD1] [HD2].
 * ABSTRACTS the time limit: the holder waits for every thread. One record of a thread, which is
 *           counted before its thread is started. All is seq_cst in the code.
 * PARTIES   a holder, which holds and releases twice; a thread that starts another; that other one, which moves twice
 *           and parks in between.
 * CHECKED   the thread does not move while it is held. All come to their end: the thread does not stay held.
 * MACROS    BLIND        a thread that begins to move does not look whether it has to stand still
 *           EARLY        it looks before it says that it moves
 *           NOTHELD       a thread that is started is not held
 *           STAYS        the starting thread does not look whether the hold is over
 *           ONCE         it looks once, and so may undo the next hold
 */
/* must hold */
/* must fail: -DBLIND */
/* must fail: -DEARLY */
/* must fail: -DNOTHELD */
/* must stall: -DSTAYS */
/* must fail: -DONCE */

bit holding, asked, counted, started;
bit held = 1; /* it is parked until it has begun */
bit frozen;   /* the holder has found the thread held, and has not begun to release it */

active proctype holder()
{
    byte times;
    do
    :: times < 2 ->
        holding = 1;
        if
        :: counted -> asked = 1
        :: else
        fi;
        if
        :: counted -> held; frozen = 1
        :: else
        fi;
        frozen = 0;
        holding = 0;
        if
        :: counted -> asked = 0
        :: else
        fi;
        times++
    :: else -> break
    od
}

active proctype starter()
{
    bit is;
    counted = 1;
#ifndef NOTHELD
    if
    :: holding ->
#if defined(ONCE) || defined(STAYS)
        asked = 1;
#ifdef ONCE
        if
        :: !holding -> asked = 0
        :: else
        fi
#endif
#else
        do
        :: is = holding;
            asked = is;
            if
            :: holding == is -> break
            :: else
            fi
        od
#endif
    :: else
    fi;
#endif
    started = 1
}

inline stand_still()
{
    do
    :: asked ->
        held = 1;
        !asked;
        held = 0
    :: else -> break
    od
}

active proctype thread()
{
    byte times;
    bit was;
    started;
    do
    :: times < 2 ->
#ifdef EARLY
        was = asked;
        held = 0;
        if
        :: was -> stand_still()
        :: else
        fi;
#else
        held = 0;
#ifndef BLIND
        stand_still();
#endif
#endif
        assert(!frozen); /* it moves [HD1] */
        held = 1;        /* it parks */
        times++
    :: else -> break
    od
}
