/*
 * A run that plain threads and signal handlers shut down, while it may end by itself.
 *
 * MODELS    src/run/shutdown.c: say_why, ask, strand_run_stop, begin, start_timer, arrive, shutdown_comes,
 *           shutdown_reason
 *           src/run/ending.c: ending_cancel_root
 *           src/run/stopping.c: link_waiter, strand_wait_stopping
 *           Labels [SD1] [SD2] [SD3] [SD4] [PB1].
 * ABSTRACTS an instant to one of three: past, later, never. A timer for a later instant fires at any time. The handle
 *           to a bit and a count of references. A waiter's claim to one step. A run out of work, and a forked child,
 *           are left out.
 * PARTIES   two askers, each with any of the three instants: a handler is an asker, and the thread that it interrupts
 *           one that stands still. The thread of the first pool. A strand that waits for the shut-down. The root either
 *           ends by itself at any time, or waits until it is cancelled; if no asker wants that, it waits for the other
 *           strand. The thread of the pool frees the run after the root's end.
 * CHECKED   [SD1] the root is cancelled if an asker wants it, and the post is never in the list twice. [SD2] the waiter
 *           is woken if an asker has asked. [SD3] no asker uses a run that is freed. [SD4] a root that ends by the
 *           shut-down knows it: its interruption is no failure. [PB1] the reason is read when it is complete.
 * MACROS    LOWERLATE    an asker posts before it lowers the instant
 *           CLEARLATE    the post clears `posted` after it has read the instant
 *           BEGUNBARE    `begun` is set after the lock is released
 *           LINKBLIND    a waiter registers without reading `begun`
 *           NOREF        an asker takes no reference
 *           NOAWAIT      the run ends without waiting for references
 *           CANCELFIRST  the root is cancelled before the run says why
 *           WHYEARLY     the reason is read while an asker writes it
 */
/* must hold */
/* must stall: -DLOWERLATE */
/* must stall: -DCLEARLATE */
/* must stall: -DBEGUNBARE */
/* must stall: -DLINKBLIND */
/* must fail: -DNOREF */
/* must fail: -DNOAWAIT */
/* must fail: -DCANCELFIRST */
/* must fail: -DWHYEARLY */
/* large */

#define ASKERS 2

#define PAST 0
#define LATER 1
#define NEVER 2

#define NO 0
#define BEING 1
#define YES 2

byte by = NEVER, asked = NO;
bit posted, begun, timer, lock;
bit torn;   /* an asker writes the reason */
byte posts; /* how often the post is in the pool's list */
bit end_requested, cancelled, stops;
bit waits, woken, waiter_cancelled, waiter_ended;

byte refs;
bit dead, freed;

/* What the askers want, and how many have returned. */
byte wanted = NEVER, returned;
bit accepted; /* an asker has asked */

#define TOUCH assert(!freed) /* [SD3] */

/* ---- asking ---- */

inline lower()
{
    d_step {
        TOUCH;
        if
        :: instant < by -> by = instant
        :: else
        fi
    }
}

inline post()
{
    d_step {
        TOUCH;
        old = posted;
        posted = 1
    }
    if
    :: !old ->
        d_step {
            TOUCH;
            assert(posts == 0); /* [SD1] */
            posts++
        }
    :: else
    fi
}

proctype asker()
{
    byte instant;
    bit old, mine;

    if
    :: instant = PAST
    :: instant = LATER
    :: instant = NEVER
    fi;
#ifndef NOREF
    atomic {
        if
        :: dead -> goto over
        :: else -> refs++
        fi
    }
#else
    if
    :: dead -> goto over
    :: else
    fi;
#endif
    d_step {
        TOUCH;
        mine = (asked == NO);
        if
        :: mine -> asked = BEING
        :: else
        fi
    }
    if
    :: mine ->
        torn = 1;
        torn = 0;
        d_step { TOUCH; asked = YES }
    :: else
    fi;
#ifdef LOWERLATE
    post();
    lower();
#else
    lower();
    post();
#endif
    d_step {
        TOUCH;
#ifndef NOREF
        refs--;
#endif
        accepted = 1;
        if
        :: instant < wanted -> wanted = instant
        :: else
        fi
    }
over:
    returned++
}

/* ---- the thread of the first pool ---- */

inline cancel_root()
{
    if
#ifdef WHYEARLY
    :: asked != NO -> assert(!torn) /* [PB1] */
#else
    :: asked == YES -> assert(!torn) /* [PB1] */
#endif
    :: else
    fi;
#ifdef CANCELFIRST
    cancelled = 1;
    end_requested = 1
#else
    end_requested = 1;
    cancelled = 1
#endif
}

inline begin()
{
    if
    :: !begun ->
        atomic { !lock -> lock = 1 }
#ifndef BEGUNBARE
        begun = 1;
#endif
        d_step {
            if
            :: waits -> waits = 0; woken = 1
            :: else
            fi;
            lock = 0
        }
#ifdef BEGUNBARE
        begun = 1
#endif
    :: else
    fi
}

proctype first_pool()
{
    byte now_by;

    do
    :: atomic { posts > 0 -> posts-- }
#ifndef CLEARLATE
        posted = 0;
#endif
        if
        :: stops -> skip
        :: else ->
            begin();
#ifdef CLEARLATE
            now_by = by;
            posted = 0;
#else
            now_by = by;
#endif
            if
            :: now_by == NEVER
            :: now_by == LATER -> timer = 1
            :: now_by <= LATER -> cancel_root()
            fi
        fi
    :: atomic { timer -> timer = 0 }
        cancel_root()
    :: stops -> break
    od;
    dead = 1;
#ifndef NOAWAIT
    refs == 0;
#endif
    freed = 1
}

/* ---- strands ---- */

proctype waiter()
{
    atomic { !lock -> lock = 1 }
#ifndef LINKBLIND
    if
    :: begun -> woken = 1
    :: else -> waits = 1
    fi;
#else
    waits = 1;
#endif
    lock = 0;
    woken || waiter_cancelled;
    atomic { !lock -> waits = 0 }
    waiter_ended = 1
}

proctype root()
{
    bit interrupted;

    if
    :: skip /* it ends by itself */
    :: skip ->
        if
        :: cancelled -> interrupted = 1
        :: returned == ASKERS && wanted == NEVER && (waiter_ended || !accepted)
        fi
    fi;
    waiter_cancelled = 1;
    waiter_ended;
    assert(!interrupted || end_requested); /* [SD4] */
    stops = 1
}

init {
    atomic {
        run asker();
        run asker();
        run first_pool();
        run waiter();
        run root()
    }
}
