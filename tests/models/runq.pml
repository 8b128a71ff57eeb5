/*
 * The lock of a run queue, which costs its owner no atomic operation: the owner against thieves.
 *
 * MODELS    src/sched/runq.h: runq_enter, runq_try_enter, runq_leave
 *           src/sched/runq.c: runq_enter_slow_, runq_break_in, runq_break_out
 *           Invariant [R1].
 * MEMORY    the owner's stores go through a FIFO store buffer, which `memory` empties at any moment; the
 *           owner reads its own stores from it. A fence waits until it is empty, a membarrier empties it. Thieves have
 *           none: each of their stores that matters is an exchange, or is followed by a release that the owner waits
 *           for.
 * ABSTRACTS the lists to the number of fibres in them, which both sides read and then write; spinning to waiting; the
 *           number of entries (the owner's) and of break-ins (one by each of two thieves, which exclude each other);
 *           a runq_try_enter that succeeds to runq_enter, and one that fails to nothing: its two stores are those of an
 *           entry and a leave, with nothing done inside.
 * CHECKED   one party is inside at a time; no change is lost; all end. Spinning is a guard, so a deadlock is an invalid
 *           end state.
 * MACROS    FENCE         the owner pays for a fence, and thieves for no membarrier (kernels without it)
 *           NOBARRIER     neither pays
 *           NOWAIT        the owner goes in although it met a thief
 *           NOLOOK        the owner waits for the thief to leave, and does not check again
 *           NOTHIEFWAIT   the thief goes in while the owner is inside
 *           NOSTEP        the owner does not step back while it waits for the thief to leave
 */
/* S-61, contract 9.10 */
/* must hold */
/* must hold: -DFENCE */
/* must stall: -DNOSTEP */
/* must fail: -DNOBARRIER */
/* must fail: -DNOWAIT */
/* must fail: -DNOLOOK */
/* must fail: -DNOTHIEFWAIT */

#define ENTRIES 3
#define THIEVES 2

#define BUSY 0
#define COUNT 1

bit busy, thief; /* in memory */
byte count;
chan buffer = [6] of { bit, byte }; /* the owner's stores: which, value */
byte buffered;                      /* how many of them are count's */
byte newest;                        /* the last one of those */

byte inside, taken, added, ended;

inline apply_one()
{
    if
    :: buffer?BUSY, value -> busy = value
    :: buffer?COUNT, value -> count = value; buffered--
    fi
}

active proctype memory()
{
    byte value;
end:
    do
    :: d_step { nempty(buffer) -> apply_one(); value = 0 }
    od
}

inline membarrier()
{
    d_step {
        do
        :: nempty(buffer) -> apply_one()
        :: empty(buffer) -> break
        od;
        value = 0
    }
}

inline enter_slowly()
{
#ifdef NOWAIT
    skip
#else
    do
#ifndef NOSTEP
    :: buffer!BUSY, 0;
#else
    :: skip;
#endif
       thief == 0;
       buffer!BUSY, 1;
       empty(buffer); /* the fence */
#ifdef NOLOOK
       break
#else
       if
       :: thief == 0 -> break
       :: else
       fi
#endif
    od;
    skip
#endif
}

active proctype owner()
{
    byte i, seen;
    do
    :: i < ENTRIES ->
        buffer!BUSY, 1;
#ifdef FENCE
        empty(buffer);
#endif
        if
        :: thief == 0
        :: else -> enter_slowly()
        fi;
        d_step { inside++; assert(inside == 1); seen = (buffered -> newest : count) }
        atomic { newest = seen + 1; seen = 0; added++; buffered++; buffer!COUNT, newest }
        atomic { inside--; buffer!BUSY, 0 }
        i++
    :: else -> break
    od;
    ended++
}

active [THIEVES] proctype stealer()
{
    byte value, seen;
    if
    :: atomic { thief == 0 -> thief = 1 }
#if !defined(NOBARRIER) && !defined(FENCE)
        membarrier();
#endif
#ifndef NOTHIEFWAIT
        busy == 0;
#endif
        d_step { inside++; assert(inside == 1); seen = count }
        if
        :: seen -> d_step { count = seen - 1; taken++ }
        :: else
        fi;
        d_step { inside--; seen = 0 }
        thief = 0
    :: thief == 1 /* another is there */
    fi;
    ended++
}

active proctype watch()
{
    ended == 1 + THIEVES && empty(buffer);
    assert(count + taken == added)
}
