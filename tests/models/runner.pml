/*
 * The memory of an idle runner in a list: the owner of the list unlinks it, another thread takes it out of turn, and a
 * third one frees runners that have ended.
 *
 * MODELS    src/actor/runners.c: claim, seize, idle_again, pop_own, take_any, release_idle, reap
 *           Labels [T1] [T2].
 * ABSTRACTS the list to one runner, and a runner's turns and end to one step of the party that has taken it. The lock of
 *           the system is left out: take_any sees a runner until it ends. A runner that has no list, after release_idle,
 *           does not enter one.
 * CHECKED   [T1] one party takes the runner. [T2] no party reads or writes a runner that is freed. A runner that has
 *           ended is freed.
 * MACROS    REAPBLIND    reap frees a runner that is LISTED
 *           NEXTLATE     pop_own reads `next` after it has cleared LISTED
 *           CLAIMKEEPS   claim leaves LISTED set if the runner is in use
 *           SEIZETORN    seize reads `idle` and clears IDLE in two steps
 */
/* must hold */
/* must fail: -DREAPBLIND */
/* must fail: -DNEXTLATE */
/* must stall: -DCLAIMKEEPS */
/* must fail: -DSEIZETORN */

bit idle = 1, listed = 1; /* RUNNER_IDLE, RUNNER_LISTED: one word */
bit taken, ended, freed;
byte done; /* parties that have finished */

#define TOUCH assert(!freed) /* [T2] */

inline take()
{
    d_step { assert(!taken); taken = 1 } /* [T1] */
}

/* It works, and then its strand ends. */
inline work_and_end()
{
    TOUCH;
    d_step { taken = 0; ended = 1 }
}

/* pop_own */
proctype owner()
{
    bit was_idle;

#ifndef NEXTLATE
    TOUCH; /* next */
#endif
    d_step {
        TOUCH;
        was_idle = idle;
#ifdef CLAIMKEEPS
        listed = !idle;
#else
        listed = 0;
#endif
        idle = 0
    }
#ifdef NEXTLATE
    TOUCH;
#endif
    if
    :: was_idle ->
        take();
        work_and_end()
    :: else
    fi;
    done++
}

/* take_any, with a need for the runner or, as it turns out, without */
proctype other()
{
    bit mine;

#ifdef SEIZETORN
    mine = idle && !ended;
    if
    :: mine -> idle = 0
    :: else
    fi;
#else
    d_step { mine = idle && !ended; idle = idle && !mine } /* [T1] */
#endif
    if
    :: mine ->
        take();
        if
        :: work_and_end()
        :: taken = 0; /* release_idle */
            d_step { TOUCH; idle = 1 }
        fi
    :: else
    fi;
    done++
}

proctype reaper()
{
    do
#ifdef REAPBLIND
    :: ended -> freed = 1; break
#else
    :: ended && !listed -> freed = 1; break /* [T2] */
#endif
    :: done == 3 && !ended -> break
    od
}

init {
    atomic {
        run owner();
        run other();
        run other();
        run reaper()
    }
}
