/*
 * A crew's threads, from their start over sleep and wake-up to their end; and the end of the crew.
 *
 * MODELS    src/io/crew.c: sleep_until_called, next_job, hand_over, go, crew_is_last, crew_notify_end, is_short,
 *           take_sleeper, wake, make_thread, crew_turn_away, grow, crew_submit, crew_wake_all, crew_join_all
 *           src/io/crew_open.c: crew_enter, crew_leave, end_with_scope
 *           Labels [O1] [O2] [O3].
 * ABSTRACTS a job to its state (offload.pml has the waiting call); the queue to its length; the lock to steps; the
 *           futex to `woken`, which is set before the wake-up; the time of a sleep to a choice.
 * PARTIES   CALLERS callers make a call each, and try again if asked to; the first may take its call back at any time.
 *           At most THREADS threads run jobs, and sleep for ever or exit after a while; the start of each may fail. A
 *           closer ends the crew, when all callers have left it or while they are inside.
 * CHECKED   [O1] [O2] every call ends: it is run or refused. [O3] the closer is woken once, and no thread or caller is
 *           inside afterwards.
 * MACROS    SLEEPERSLOOK  a caller counts sleeping threads among those that are about to examine the queue
 *           NOAGAIN       if no thread can be started, callers that count on it are not notified
 *           OWNAGAIN      they are notified only if the call of the failed starter still waits
 *           NOREWAKE      no sleeping thread is woken for them
 *           NOQUEUELOOK   a thread goes to sleep without checking for a job
 *           NOCALLERS     only the number of threads decides which party is the last
 *           NOTHREADS     only the number of callers decides that
 *           WAKEONE       the end wakes one thread
 */
/* large */
/* must hold */
/* must stall: -DSLEEPERSLOOK */
/* must stall: -DNOAGAIN */
/* must stall: -DOWNAGAIN */
/* must stall: -DNOREWAKE */
/* must stall: -DNOQUEUELOOK */
/* must fail: -DNOCALLERS */
/* must fail: -DNOTHREADS */
/* must stall: -DWAKEONE */

#define CALLERS 3
#define THREADS 2
#define REFUSALS 2 /* so many threads are refused at most */

#define NONE 0
#define QUEUED 1
#define RUNNING 2
#define RETURNED 3
#define AGAIN 4
#define REFUSED 5

byte job[CALLERS];
byte queued, threads, running, sleeping;
byte callers = CALLERS; /* all have entered */
bit closing, freed, notified; /* notified: the closer */
byte refusals;
bit unrelated, goes; /* the crew ends while callers are inside; threads do not sleep for ever */

/* Threads by their number: made; in the list of those that sleep; to wake up. */
bit made[THREADS], asleep[THREADS], woken[THREADS];

#define TOUCH assert(!freed)
#ifdef SLEEPERSLOOK
#define LOOKING (threads - running)
#else
#define LOOKING (threads - running - sleeping)
#endif
#ifdef NOCALLERS
#define LAST (closing && !threads)
#else
#ifdef NOTHREADS
#define LAST (closing && !callers)
#else
#define LAST (closing && !threads && !callers)
#endif
#endif

/* In a d_step. */
inline take_sleeper()
{
    if
    :: asleep[0] -> asleep[0] = 0; woken[0] = 1; sleeping--
    :: !asleep[0] && asleep[1] -> asleep[1] = 0; woken[1] = 1; sleeping--
    fi
}

inline turn_away_one(k, why)
{
    if
    :: job[k] == QUEUED -> job[k] = why; queued--
    :: else
    fi
}

inline turn_away(why)
{
    turn_away_one(0, why);
    turn_away_one(1, why);
    turn_away_one(2, why)
}

proctype thread(byte me)
{
    bit late, last;
    byte mine;
    do
    :: d_step {
#ifdef NOQUEUELOOK
            queued && !late ->
#else
            queued ->
#endif
            TOUCH;
            if
            :: job[0] == QUEUED -> mine = 0
            :: job[0] != QUEUED && job[1] == QUEUED -> mine = 1
            :: job[0] != QUEUED && job[1] != QUEUED -> mine = 2
            fi;
            assert(job[mine] == QUEUED);
            job[mine] = RUNNING;
            queued--;
            running++;
            late = 0
        }
        d_step { TOUCH; running--; job[mine] = RETURNED; mine = 0 }
#ifdef NOQUEUELOOK
    :: d_step { !late && !closing ->
#else
    :: d_step { !queued && !late && !closing ->
#endif
            TOUCH; woken[me] = 0; asleep[me] = 1; sleeping++ }
        if
        :: woken[me]
        :: goes /* its time is over */
        fi;
        d_step {
            TOUCH;
            if
            :: asleep[me] -> asleep[me] = 0; sleeping--; late = 1
            :: else
            fi
        }
    :: d_step { !queued && (late || closing) -> TOUCH; threads--; made[me] = 0; last = LAST }
        if
        :: last -> TOUCH; assert(!notified); notified = 1
        :: else
        fi;
        break
    od
}

proctype caller(byte me)
{
    bit grows, last, alone;
    do
    :: d_step {
            TOUCH;
            grows = 0;
            if
            :: closing -> job[me] = REFUSED
            :: else ->
                job[me] = QUEUED;
                queued++;
                if
                :: queued > LOOKING && sleeping -> take_sleeper()
                :: queued > LOOKING && !sleeping && threads < THREADS -> threads++; grows = 1
                :: else
                fi
            fi
        }
        if
        :: grows ->
            if
            :: atomic { made[0] && !made[1] -> made[1] = 1; run thread(1) }
            :: atomic { !made[0] -> made[0] = 1; run thread(0) }
            :: d_step { refusals < REFUSALS ->
                    refusals++;
                    TOUCH;
                    threads--;
#ifndef NOAGAIN
                    alone = (threads == 0);
#ifdef OWNAGAIN
                    alone = alone && job[me] == QUEUED;
#endif
                    if
                    :: alone && job[me] == QUEUED -> job[me] = REFUSED; queued--
                    :: else
                    fi;
                    if
                    :: alone -> turn_away(AGAIN)
#ifndef NOREWAKE
                    :: !alone && queued > LOOKING && sleeping -> take_sleeper()
#endif
                    :: else
                    fi
#else
                    if
                    :: threads == 0 && job[me] == QUEUED -> job[me] = REFUSED; queued--
                    :: else
                    fi
#endif
                }
            fi
        :: else
        fi;
        d_step { grows = 0; alone = 0 }
        if
        :: job[me] == RETURNED || job[me] == REFUSED -> break
        :: job[me] == AGAIN
        :: d_step { me == 0 && job[me] == QUEUED -> TOUCH; job[me] = REFUSED; queued-- } break /* interrupted */
        fi
    od;
    skip;
    d_step { TOUCH; callers--; last = LAST }
    if
    :: last -> TOUCH; assert(!notified); notified = 1
    :: else
    fi
}

active proctype owner()
{
    bit waits;
    unrelated || !callers;
    d_step {
        closing = 1;
        turn_away(REFUSED);
        waits = threads || callers
    }
    do
    :: d_step { sleeping -> take_sleeper() }
#ifdef WAKEONE
        break
#endif
    :: !sleeping -> break
    od;
    if
    :: waits -> notified
    :: else
    fi;
    assert(!threads && !callers && !queued && !sleeping);
    freed = 1
}

init
{
    atomic {
        if
        :: unrelated = 1
        :: unrelated = 0
        fi;
        if
        :: goes = 1
        :: goes = 0
        fi;
        run caller(0);
        run caller(1);
        run caller(2)
    }
}
