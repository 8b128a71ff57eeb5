/*
 * Fibres that are pinned to a thread: the thread notices when one becomes runnable, whether it runs others or sleeps.
 *
 * MODELS    src/sched/pinned.c: pinned_ready, pinned_pick
 *           src/sched/pinned.h: pinned_doze, pinned_wake, pinned_inbox_filled
 *           src/sched/kick.c: pool_rouse
 *           src/sched/idle.c: pool_park, thread_to_asleep, thread_from_asleep
 *           src/sched/seek.c: pool_find_work
 *           src/sched/idle.h: thread_has_own
 *           Labels [P1] [P2].
 * MEMORY    the thread's clearing of PICK_PINNED lies in a store buffer until `memory` or a locked instruction of the
 *           thread empties it, unless it is one itself. A poster's store to PICK_PINNED may come after its load of
 *           dozes, but is over before it takes the lock.
 * ABSTRACTS the inbox and the list of ready fibres to numbers; all other work of the pool to strands that keep the
 *           thread busy until all pinned ones have run (BUSY), or none; wake-ups for other work to at most two, at any
 *           time; the role to a choice of how the thread sleeps.
 * CHECKED   each fibre that was made runnable runs, once. In the end the thread sleeps with an empty inbox.
 * MACROS    BUSY         the thread has other strands to run until all pinned ones have run: it never sleeps
 *           NODOZE       the thread does not publish that it sleeps
 *           NOLOOK       it publishes that, and does not check afterwards
 *           NOROUSE      the thread is not woken
 *           ROUSESEEKER  it is woken only if it is the seeker
 *           ROUSESLEEPER it is woken only if it is not
 *           CLEARLATE    PICK_PINNED is cleared after the inbox was taken
 *           CLEARLAZY    PICK_PINNED is cleared by a plain store
 *           TAKETWICE    reading and emptying the inbox are two steps
 */
/* S-41 */
/* must hold */
/* must hold: -DBUSY */
/* must stall: -DNODOZE */
/* must stall: -DNOLOOK */
/* must stall: -DNOROUSE */
/* must stall: -DROUSESEEKER */
/* must stall: -DROUSESLEEPER */
/* must stall: -DBUSY -DCLEARLATE */
/* must stall: -DBUSY -DCLEARLAZY */
/* must fail: -DTAKETWICE */
/* fair */

#define POSTERS 2
#define FIBRES 3 /* the first poster has two */

byte inbox, ready, ran, posted, done; /* fibres */
bit flag;                             /* PICK_PINNED */
bit clearing;                         /* a store of zero to it is in the thread's buffer */
bit dozes;
bit lock;
bit parked, asleep; /* under the lock */
bit token, wake;    /* the poller's; the futex */
byte others = 2;    /* wake-ups for other work */

inline flush()
{
    if
    :: clearing -> flag = 0; clearing = 0
    :: else
    fi
}

/* ---- the posters ---- */

inline rouse()
{
    atomic {
        !lock ->
        was_parked = parked;
        was_asleep = asleep;
#ifndef ROUSESLEEPER
        parked = 0;
#endif
#ifndef ROUSESEEKER
        asleep = 0
#endif
    }
#ifdef ROUSESLEEPER
    was_parked = 0;
#endif
#ifdef ROUSESEEKER
    was_asleep = 0;
#endif
    if
    :: was_parked -> token = 1
    :: was_asleep && !was_parked -> wake = 1
    :: else
    fi;
    d_step { was_parked = 0; was_asleep = 0 }
}

proctype poster(byte fibres)
{
    bit sleeps, was_parked, was_asleep;
    do
    :: fibres > 0 ->
        fibres--;
        d_step { inbox++; posted++ }
        if
        :: flag = 1; sleeps = dozes /* [P1] */
        :: sleeps = dozes; flag = 1
        fi;
#ifndef NOROUSE
        if
        :: sleeps -> rouse() /* [P2] */
        :: else
        fi;
#endif
        sleeps = 0
    :: fibres == 0 -> break
    od;
    done++
}

/* Wake-ups for other work. */
active proctype other()
{
    bit was_parked, was_asleep;
end:
    do
    :: others > 0 -> others--; rouse()
    od
}

active proctype memory()
{
end:
    do
    :: atomic { clearing -> flush() }
    od
}

/* ---- the thread ---- */

inline take_inbox()
{
#ifdef TAKETWICE
    some = inbox;
    inbox = 0;
    ready = ready + some;
    some = 0
#else
    d_step { flush(); ready = ready + inbox; inbox = 0 } /* skipped if the inbox is empty */
#endif
}

inline clear_flag()
{
#ifdef CLEARLAZY
    clearing = 1
#else
    d_step { flush(); flag = 0 } /* [P1] */
#endif
}

inline pinned_pick()
{
#ifdef CLEARLATE
    if
    :: inbox -> take_inbox()
    :: !inbox
    fi;
    clear_flag();
#else
    clear_flag();
    if
    :: inbox -> take_inbox()
    :: !inbox
    fi;
#endif
    d_step {
        if
        :: ready > 1 -> flush(); flag = 1
        :: else
        fi
    }
    if
    :: ready ->
progress_ran:
        d_step { ready--; ran++; assert(ran + ready + inbox == posted) }
    :: !ready
    fi
}

inline doze()
{
#ifndef NODOZE
    d_step { flush(); dozes = 1 }
#endif
#ifdef NOLOOK
    filled = 0
#else
    filled = (inbox > 0) /* [P2] */
#endif
}

/* The thread has the role. */
inline wait_as_seeker()
{
    atomic { !lock -> flush(); parked = 1 }
    doze();
    if
    :: !filled ->
end_as_seeker:
        atomic { token -> token = 0 }
    :: filled
    fi;
    atomic { !lock -> flush(); parked = 0 }
    dozes = 0
}

/* The thread does not have the role. */
inline wait_as_sleeper()
{
    atomic { !lock -> flush(); lock = 1 }
    doze();
    d_step {
        if
        :: !filled -> asleep = 1; wake = 0
        :: filled
        fi;
        flush();
        lock = 0
    }
    if
    :: !filled ->
end_as_sleeper:
        atomic { wake -> wake = 0 }
        atomic { !lock -> flush(); asleep = 0 }
    :: filled
    fi;
    dozes = 0
}

active proctype thread()
{
    byte some;
    bit filled;
pick:
    if
    :: flag -> pinned_pick(); goto pick
    :: !flag ->
#ifdef BUSY
        if
        :: ran < FIBRES -> goto pick /* another strand has its turn */
        :: ran == FIBRES
        fi;
#endif
        if
        :: wait_as_seeker(); goto pick
        :: inbox -> pinned_pick(); goto pick
        :: !inbox ->
            wait_as_sleeper();
            if
            :: inbox -> pinned_pick()
            :: !inbox
            fi;
            goto pick
        fi
    fi
}

init
{
    atomic {
        run poster(2);
        run poster(1)
    }
    done == POSTERS;
    ran == FIBRES;
    assert(!inbox && !ready)
}
