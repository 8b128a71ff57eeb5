/*
 * Tasks that wait for a runner, beside runners that fall idle, begin, or cannot begin. Memory is scarce: a strand gets
 * no new runner, and finds an idle one of another thread only by take_any.
 *
 * MODELS    src/actor/runners.c: runners_starve, feed_idle, take_any, seize, release_idle, update_slow_idle,
 *           runners_wakes_itself_, runners_starved, runners_relay_, runners_begun, runners_refused, runners_go. Labels
 *           [T1] [T3] [T4].
 * MEMORY    the store of `idle` by a runner that falls idle stays in its store buffer until a locked instruction of the
 *           runner empties it, or a barrier of runners_starve or runners_relay, or the store comes out by itself.
 *           Everything else is sequentially consistent.
 * ABSTRACTS an activation that a runner gets blocks for ever: only the turns with which the runners begin end. The
 *           lists to one: take_any finds each idle runner. The lock of the runners and that of the system to single
 *           steps. A new runner, where there is memory for it, to the activation that it gets.
 * CHECKED   [T1] no runner gets two activations. [T3] [T4] when no party can go on, no activation starves while a
 *           runner is idle.
 * MACROS    NOBARRIER   runners_starve passes no barrier for runners that fall idle
 *           ASKFIRST    it reads `unbegun` before it publishes the activation
 *           FEEDONCE    it does not look again when it has released a runner
 *           WAKEONCE    nor does a runner that has released itself
 *           WOKENBLIND  a runner that is woken does not call runners_relay
 *           BEGUNBLIND  nor does one that begins
 *           RELAYBARE   runners_relay passes no barrier for runners that fall idle
 *           GOSILENT    runners_go is left out
 *           SLOWOUTSIDE update_slow_idle clears slow_idle without the lock of the place
 *           SEIZETORN   seize reads `idle` and clears it in two steps
 */
/* must hold */
/* must fail: -DNOBARRIER */
/* must fail: -DASKFIRST */
/* must fail: -DFEEDONCE */
/* must fail: -DWAKEONCE */
/* must fail: -DWOKENBLIND */
/* must fail: -DBEGUNBLIND */
/* must fail: -DRELAYBARE */
/* must stall: -DGOSILENT */
/* must fail: -DSLOWOUTSIDE */
/* must fail: -DSEIZETORN */

#define RUNNERS 2

byte starved; /* activations in the list */
bit slow;     /* slow_idle */
byte unbegun = 1;
bit idle[RUNNERS], buffered[RUNNERS]; /* RUNNER_IDLE in memory, and in the runner's store buffer */
bit activation[RUNNERS], woken[RUNNERS];    /* it has one; it is runnable */
bit works[RUNNERS] = 1;                     /* it serves an activation, or looks for one */

#define IS_IDLE(i) (idle[i] || buffered[i])

inline flush(i)
{
    atomic {
        if
        :: buffered[i] -> idle[i] = 1; buffered[i] = 0
        :: else
        fi
    }
}

inline assign(i)
{
    atomic { assert(!activation[i] && !works[i]); activation[i] = 1 } /* [T1] */
#ifndef GOSILENT
    woken[i] = 1
#endif
}

inline barrier()
{
    atomic { flush(0); flush(1) }
}

/* take_any: found is the runner, or RUNNERS. */
inline take_any()
{
    atomic {
        if
        :: idle[0] -> idle[0] = 0; found = 0
        :: !idle[0] && idle[1] -> idle[1] = 0; found = 1
        :: else -> found = RUNNERS
        fi
    }
}

/* runners_starved: whether it has got an activation. */
inline take_task()
{
    atomic {
        got = (starved > 0);
        starved = (got -> starved - 1 : 0)
    }
}

/* feed_idle, and runners_go for the runner. Sets fed. */
inline feed_idle()
{
    fed = 0;
    do
    :: starved && !fed ->
        take_any();
        if
        :: found == RUNNERS -> break
        :: found < RUNNERS ->
            take_task();
            if
            :: got -> assign(found); fed = 1
            :: !got -> idle[found] = 1
#ifdef FEEDONCE
                ; break
#endif
            fi
        fi
    :: !starved || fed -> break
    od;
    found = RUNNERS
}

inline starve()
{
    atomic {
#ifdef ASKFIRST
        asked = unbegun;
#endif
        skip
    }
    atomic { starved++; slow = 1 } /* [T4] */
#ifndef ASKFIRST
    asked = unbegun; /* [T3] */
#endif
    if
    :: asked -> fed = 0
    :: !asked ->
#ifndef NOBARRIER
        barrier();
#endif
        feed_idle()
    fi;
    asked = 0
}

inline relay()
{
    if
    :: starved && !unbegun ->
#ifndef RELAYBARE
        barrier();
#endif
        feed_idle()
    :: else
    fi
}

/* ---- a strand that needs runners for two activations ---- */

proctype starver()
{
    byte found = RUNNERS, asked;
    bit got, fed;
    starve();
    starve()
}

/* ---- runners ---- */

proctype runner(byte i)
{
    byte found = RUNNERS;
    bit got, fed;
    goto serves;
falls_idle:
    if
    :: slow -> /* update_slow_idle */
#ifdef SLOWOUTSIDE
        if
        :: !starved -> slow = 0
        :: starved
        fi;
#else
        slow = (starved > 0); /* [T4] */
#endif
        atomic { buffered[i] = 1; works[i] = 0 }
    :: !slow -> atomic { buffered[i] = 1; works[i] = 0 }
    fi;
    if
    :: slow ->
        do
        :: starved ->
            flush(i);
#ifdef SEIZETORN
            if
            :: idle[i]
            :: !idle[i] -> goto parks
            fi;
            atomic { idle[i] = 0; works[i] = 1 }
#else
            atomic { /* seize [T1] */
                if
                :: idle[i] -> idle[i] = 0; works[i] = 1
                :: !idle[i] -> goto parks
                fi
            }
#endif
            take_task();
            if
            :: got -> goto blocks
            :: !got -> atomic { idle[i] = 1; works[i] = 0 }
#ifdef WAKEONCE
                ; goto parks
#endif
            fi
        :: !starved -> break
        od
    :: !slow
    fi;
parks:
    got = 0;
end_parked:
    do
    :: activation[i] -> break
    :: buffered[i] -> flush(i)
    od;
    atomic { woken[i]; woken[i] = 0; activation[i] = 0; works[i] = 1 }
#ifndef WOKENBLIND
    relay();
#endif
    goto blocks;
serves:
    if
    :: goto blocks
    :: take_task();
        if
        :: got -> goto blocks
        :: !got -> goto falls_idle
        fi
    fi;
blocks:
    skip
}

/* One that has not begun. It has an activation of its own. */
proctype newcomer()
{
    byte found = RUNNERS, asked;
    bit got, fed;
    if
    :: /* runners_begun */
        unbegun--;
        take_task();
        if
        :: got ->
            if
            :: skip          /* a new runner has it */
            :: starve()
            fi;
#ifndef BEGUNBLIND
            relay()
#endif
        :: !got
        fi
    :: /* runners_refused */
        unbegun--;
        starve()
    fi
}

active proctype monitor()
{
end_quiet:
    timeout;
    assert(!starved || (!IS_IDLE(0) && !IS_IDLE(1))) /* [T3] */
}

init
{
    atomic {
        run runner(0);
        run runner(1);
        run newcomer();
        run starver()
    }
}
