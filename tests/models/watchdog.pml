/*
 * The watchdog's sleep: who moves is seen, and who unwinds for long is reported, though it sleeps while all rest.
 *
 * MODELS    src/debug/watchdog.c: watch, rests, sleep_while_all_rest, sleep_until, wake, watchdog_moved, watchdog_close
 *           src/debug/watch_unwinding.c: watch_unwinding_due, record_late, inspect_one
 *           src/sched/hold.c: pool_move, pool_rest
 *           src/strand/unwinding.c: unwinding_begins_, unwinding_ends_
 *           Labels [WD1], [WD2].
 * ABSTRACTS times to any: whoever holds its thread does so until it was seen; whoever unwinds, until it was told of, or
 *           not so long. A strand that unwinds goes on on the thread where it began. All is seq_cst in the code.
 * PARTIES   two threads, which move twice and rest in between; one of them or both hold a strand, or leave one behind
 *           that unwinds; the watchdog.
 * CHECKED   all come to their end, the watchdog too. Nobody who is told of has ended.
 * MACROS    BLIND        it does not look once more, when it has said that it is drowsy, whether all rest
 *           EARLY        a thread looks whether the watchdog is drowsy before it shows that it moves
 *           UNWOUND      whether somebody unwinds is looked at before it is seen that all rest
 *           DEAF         that it is to stop is looked at before old wake-ups are forgotten
 *           SILENT       a thread that moves tells nobody
 *           UNLOCKED     who unwinds is looked at after the lock
 */
/* contract 4.50, 4.71 */
/* must hold */
/* must fail: -DUNLOCKED */
/* must stall: -DBLIND */
/* must stall: -DEARLY */
/* must stall: -DUNWOUND */
/* must stall: -DDEAF */
/* must stall: -DSILENT */

#define THREADS 2

bit moves[THREADS], seen[THREADS];
bit drowsy, wake, stop;
bit locked, listed[THREADS], alive[THREADS], told[THREADS];
byte left = THREADS;

inline lock()
{
    atomic { !locked -> locked = 1 }
}

inline tell()
{
    if
    :: was ->
        atomic { was = drowsy; drowsy = 0 } /* an exchange */
        if
        :: was -> wake = 1
        :: else
        fi
    :: else
    fi
}

inline move()
{
#ifdef EARLY
    was = drowsy;
    moves[me] = 1;
    tell();
#else
    moves[me] = 1;
#ifndef SILENT
    was = drowsy;
    tell();
#endif
#endif
    was = 0
}

/* A strand on it throws, and waits in a clean-up. */
inline unwind()
{
    alive[me] = 1;
    lock();
    listed[me] = 1;
    locked = 0;
    moves[me] = 0;
    if
    :: true -> told[me] /* it takes long */
    :: true
    fi;
    move();
    lock();
    listed[me] = 0;
    locked = 0;
    atomic { alive[me] = 0; told[me] = 0 }
}

proctype thread(byte me)
{
    byte times = 2;
    bit was;
    do
    :: times > 0 ->
        move();
        if
        :: skip
        :: seen[me] = 0; seen[me] /* it holds its thread */
        :: unwind()
        fi;
        moves[me] = 0;
        times--
    :: times == 0 -> break
    od;
    atomic { left--; was = (left == 0) }
    if
    :: was -> stop = 1; wake = 1
    :: else
    fi
}

inline all_rest()
{
    i = 0;
    rest = 1;
    do
    :: i < THREADS -> rest = rest && !moves[i]; i++
    :: i == THREADS -> break
    od;
    i = 0
}

inline look()
{
    i = 0;
    do
    :: i < THREADS ->
        if
        :: moves[i] -> seen[i] = 1
        :: else
        fi;
        lock();
        if
        :: listed[i] && !told[i] ->
#ifdef UNLOCKED
            locked = 0;
#endif
            assert(alive[i]);
            told[i] = 1
        :: else
        fi;
        locked = 0;
        i++
    :: i == THREADS -> break
    od;
    i = 0
}

inline look_for_late()
{
    lock();
    due = (listed[0] && !told[0]) || (listed[1] && !told[1]);
    locked = 0
}

active proctype watchdog()
{
    byte i;
    bit rest, due;
    do
    :: stop -> break
    :: else ->
        look();
#ifdef DEAF
        if
        :: stop -> break
        :: else
        fi;
        wake = 0;
#else
        wake = 0;
        if
        :: stop -> break
        :: else
        fi;
#endif
        all_rest();
        if
        :: rest ->
#ifdef UNWOUND
            look_for_late();
#endif
            drowsy = 1;
#ifndef BLIND
            all_rest();
#endif
            if
            :: rest ->
#ifndef UNWOUND
                look_for_late();
#endif
                (wake || due)
            :: else
            fi;
            due = 0;
            drowsy = 0
        :: else ->
progress:   skip /* for a quarter of the limit */
        fi;
        rest = 0
    od
}

init
{
    atomic { run thread(0); run thread(1) }
}
