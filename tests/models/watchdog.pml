/*
 * The watchdog's sleep: threads that move are seen, and long episodes are reported, although it sleeps while all
 * threads rest.
 *
 * MODELS    src/debug/watchdog.c: watch, all_parked, sleep_while_all_parked, sleep_until, wake, watchdog_moved,
 *           watchdog_close
 *           src/debug/watch_episodes.c: watch_episodes_due, record_late, inspect_one
 *           src/sched/hold.c: pool_move, pool_mark_parked
 *           src/strand/episode.c: episode_begins_, episode_ends_
 *           Labels [WD1], [WD2].
 * ABSTRACTS times to any: a strand that holds its thread does so until the watchdog sees it; a strand that unwinds does
 *           so until it is reported, or for a shorter time. It continues on the thread where it began. All is seq_cst
 *           in the code.
 * PARTIES   two threads, which move twice and rest in between; one of them or both hold a strand, or leave one behind
 *           that unwinds; the watchdog.
 * CHECKED   all end, the watchdog too. A strand that is reported has not ended.
 * MACROS    BLIND        after the watchdog has set drowsy it does not check again whether all rest
 *           EARLY        a thread checks whether the watchdog is drowsy before it shows that it moves
 *           UNWOUND      the watchdog checks for unwindings before it sees that all rest
 *           DEAF         the watchdog checks for its stop before it clears old wake-ups
 *           SILENT       a thread that moves does not wake the watchdog
 *           UNLOCKED     the watchdog reads an unwinding after releasing the lock
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
bit locked, listed[THREADS], alive[THREADS], reported[THREADS];
byte left = THREADS;

inline lock()
{
    atomic { !locked -> locked = 1 }
}

inline notify_watchdog()
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
    notify_watchdog();
#else
    moves[me] = 1;
#ifndef SILENT
    was = drowsy;
    notify_watchdog();
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
    :: true -> reported[me] /* it takes long */
    :: true
    fi;
    move();
    lock();
    listed[me] = 0;
    locked = 0;
    atomic { alive[me] = 0; reported[me] = 0 }
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
        :: listed[i] && !reported[i] ->
#ifdef UNLOCKED
            locked = 0;
#endif
            assert(alive[i]);
            reported[i] = 1
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
    due = (listed[0] && !reported[0]) || (listed[1] && !reported[1]);
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
