/*
 * One offloaded call: the return of its function, the post, and an interruption of its caller against each other.
 *
 * MODELS    src/io/offload.c: do_job, interrupted_call, stop_and_leave, take_result
 *           src/io/crew.c: crew_await, arrive, arrive_by_post, next_job, run, hand_over, discard_left, job_discard
 *           Labels [O4] [O5] [O6] [W1] [W4].
 * ABSTRACTS the crew to one thread, which takes the job up at any time or never (see crew.pml); a section under the
 *           crew's lock to one step; making a fibre runnable to a bit; the post to a bit that the pool's thread finds.
 * PARTIES   the caller; the crew's thread; the pool's thread; an interrupter, which interrupts once.
 * CHECKED   [O4] the function runs once, or the job is taken back. [O5] [O6] the job is freed once, by the caller or by
 *           the thread, and not touched afterwards; a result is taken or dropped, once; the arguments are released if
 *           the call throws. A function that borrows runs while its caller waits. [W1] the caller is made runnable once
 *           for each time it parks. The call ends: by the result, or [W4] by the interruption if no thread takes the
 *           job up.
 * MACROS    NOLOOK       after arming its wait the caller does not check whether the job is over
 *           NORECHECK    it does not check for an interruption
 *           NOEPOCH      the second wait does not set its epoch
 *           NOLEFT       the thread posts whether the job was left or not
 *           NOHELD       the thread does not check whether the caller is calling `stop`
 *           NOMINE       after calling `stop` the caller does not check whether the function has returned
 *           NOTAKEN      an interrupted caller takes the job back whether it runs or not
 *           NOBORROWS    the caller also leaves a job that borrows
 */
/* contract 4.20 */
/* must hold */
/* must stall: -DNOLOOK */
/* must stall: -DNORECHECK */
/* must stall: -DNOEPOCH */
/* must fail: -DNOLEFT */
/* must fail: -DNOHELD */
/* must fail: -DNOMINE */
/* must fail: -DNOTAKEN */
/* must fail: -DNOBORROWS */

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3

#define QUEUED 1
#define RUNNING 2
#define RETURNED 3
#define BACK 4

/* The caller's wait. */
byte tag, epoch;
bit floored; /* interruptions are deferred */
bit due;
bit runnable;

/* The job. */
byte state, node_epoch;
bit over, left, held, borrows, stops;
bit posted, freed;
byte ran, taken, dropped, released;
bit threw, caller_gone, thread_gone;

#define TOUCH assert(!freed)

/* In a d_step: the claimer makes the caller runnable, once. */
inline claim(how)
{
    assert(!runnable); /* [W1] */
    tag = how;
    runnable = 1
}

inline discard(has_run)
{
    d_step {
        TOUCH;
        freed = 1; /* [O6] */
        dropped = dropped + has_run;
        released++
    }
}

/* `done`: the job is over. */
inline await(uninterruptibly, says_epoch)
{
    d_step { epoch++; floored = uninterruptibly; tag = ARMED }
    d_step {
        TOUCH;
        node_epoch = (says_epoch -> epoch : node_epoch);
#ifdef NOLOOK
        seen = 0
#else
        seen = over
#endif
    }
#ifdef NORECHECK
    leaves = seen;
#else
    leaves = seen || (due && !floored); /* [W4] */
#endif
    if
    :: d_step { leaves && tag == ARMED -> tag = IDLE } done = seen
    :: d_step { !leaves || tag != ARMED -> skip }
        atomic { runnable -> runnable = 0 }
        done = (tag == WON || seen);
        tag = IDLE
    fi
}

inline take()
{
    d_step {
        TOUCH;
        assert(state == RETURNED && over && ran == 1);
        taken++;
        freed = 1
    }
}

proctype caller()
{
    byte was;
    bit seen, leaves, done, mine;
    state = QUEUED;
    await(0, 1);
    if
    :: done -> take()
    :: else ->
        d_step {
            TOUCH;
            was = state;
#ifdef NOTAKEN
            was = (was == RUNNING -> QUEUED : was);
#endif
#ifdef NOBORROWS
            leaves = (was == RUNNING);
#else
            leaves = (was == RUNNING && !borrows);
#endif
            state = (was == QUEUED -> BACK : state); /* [O4] */
            left = leaves;                            /* [O5] */
            held = leaves && stops
        }
        if
        :: was == QUEUED -> threw = 1; discard(0)
        :: leaves ->
            threw = 1;
            if
            :: stops ->
                TOUCH; /* stop(arg) */
                d_step {
                    TOUCH;
                    held = 0;
#ifdef NOMINE
                    mine = 0
#else
                    mine = (state == RETURNED)
#endif
                }
                if
                :: mine -> discard(1)
                :: else
                fi
            :: else
            fi
        :: else ->
            if
            :: stops && was == RUNNING -> TOUCH /* stop(arg) */
            :: else
            fi;
#ifdef NOEPOCH
            await(1, 0);
#else
            await(1, 1);
#endif
            assert(done);
            take()
        fi
    fi;
    caller_gone = 1
}

proctype thread()
{
    bit was_left, was_held;
    if
    :: skip /* the thread never takes this job */
    :: d_step { state == QUEUED -> state = RUNNING }
        d_step { TOUCH; ran++; assert(!borrows || !caller_gone) }
        d_step { TOUCH; assert(!borrows || !caller_gone) } /* the function uses its arguments */
        d_step {
            TOUCH;
            state = RETURNED;
            was_left = left;
            was_held = held
        }
        if
#ifdef NOLEFT
        :: true -> posted = 1
#else
        :: !was_left -> posted = 1
#ifdef NOHELD
        :: was_left -> discard(1)
#else
        :: was_left && !was_held -> discard(1)
        :: was_left && was_held
#endif
#endif
        fi
    :: state == BACK
    fi;
    thread_gone = 1
}

active proctype pool()
{
end:
    atomic { posted -> posted = 0 }
    d_step {
        TOUCH;
        over = 1;
        if
        :: tag == ARMED && epoch == node_epoch -> claim(WON)
        :: else
        fi
    }
}

active proctype interrupter()
{
    due = 1;
    d_step {
        if
        :: tag == ARMED && !floored -> claim(INTERRUPTED)
        :: else
        fi
    }
}

init
{
    atomic {
        if
        :: borrows = 0
        :: borrows = 1
        fi;
        if
        :: stops = 0
        :: stops = 1
        fi;
        run caller();
        run thread()
    }
    caller_gone && thread_gone;
    assert(freed && ran <= 1 && taken + dropped == ran);
    assert(released == threw && taken + threw == 1)
}
