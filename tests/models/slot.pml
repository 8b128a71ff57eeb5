/*
 * The slot of a run queue: its newest fibre is left to the owner for a moment, and then stolen, although it is never
 * announced.
 *
 * MODELS    src/sched/stealing.c: slot_is_stale, steal_from, rob, take_slot
 *           src/sched/stealing.h: stealing_put, stealing_push, stealing_pick, stealing_take
 *           src/sched/seek.c: seek
 *           src/sched/idle.c: pool_park, waiting_time
 *           Invariant [K3].
 * ABSTRACTS the lists of the queue, and announced work, away (see seeker.pml); the queue's lock to one (see runq.pml);
 *           the time for which a slot has to rest, and that of a watch, to any time; thieves to one thread.
 * CHECKED   a fibre runs once. [K3] a fibre that stays in the slot while the owner computes is stolen, although the
 *           seeker has to see it twice and is not notified. The owner may run it itself. All end.
 * MACROS    NOLOCK       the slot is taken without breaking into the queue
 *           NOWATCH      the seeker waits without a limit while a thread is busy
 *           NONOTE       the seeker does not record what it has seen
 *           ONENOTE      it records what it has seen only once
 */
/* must hold */
/* must stall: -DNOWATCH */
/* must stall: -DNONOTE */
/* must stall: -DONENOTE */
/* must fail: -DNOLOCK */
/* fair */

#define FIBRES 3

byte slot, stale; /* 0: none */
bit locked, busy = 1, token;
bit runs[4];

inline lock()
{
    atomic { !locked -> locked = 1 }
}

inline run_it(which)
{
    d_step { assert(!runs[which]); runs[which] = 1 }
}

active proctype owner()
{
    byte i = 1, mine;
    do
    :: i <= FIBRES ->
        lock();
        slot = i;
        locked = 0;
        if
        :: lock(); /* it joins, and runs the child itself if that is there */
            mine = slot;
            if
            :: mine -> slot = 0; run_it(mine)
            :: else
            fi;
            locked = 0
        :: skip
        fi;
        runs[i]; /* else it computes, for as long as that takes */
        i++
    :: else -> break
    od;
    busy = 0;
    token = 1 /* the end of the run */
}

active proctype seeker()
{
    byte seen;
    bit limited;
    do
    :: seen = slot;
        if
        :: !seen || seen != stale ->
#if defined(ONENOTE)
            stale = (stale -> stale : seen)
#elif defined(NONOTE)
            skip
#else
            stale = seen
#endif
        :: else ->
#ifndef NOLOCK
            lock();
#endif
            seen = slot;
            if
            :: seen -> slot = 0; run_it(seen)
            :: else
            fi;
            stale = 0
#ifndef NOLOCK
            ;
            locked = 0
#endif
        fi;
#ifdef NOWATCH
        limited = 0;
#else
        limited = busy;
#endif
        if
        :: limited
        :: atomic { token -> token = 0 } break
        fi
    od
}
