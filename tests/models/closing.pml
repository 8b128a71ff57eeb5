/*
 * Closing a pool while others spawn onto it and wake its strands; its record then serves the next pool.
 *
 * MODELS    src/sched/closing.c: pool_close_begin, pool_close_check, pool_live, pool_record_end_, pool_arrive,
 *           pool_turn_back
 *           src/sched/pool.c: pool_close
 *           src/sched/records.c: pool_record_unref, pool_take_record
 *           src/sched/kick.c: unpark, unpoll, pool_await_kickers, pool_kick_, pool_stop
 *           src/sched/idle.c: pool_park
 *           src/sched/deliver.c: pool_send
 *           src/strand/pool.c: await_finders, pool_handle_leave, pool_cancels_
 *           src/run/pool_close.c: close_first, cancel_one, is_topmost, finish, gone
 *           src/strand/spawn.c: spawn_planned, anchor_and_launch
 *           Labels [L1] [L2] [L5] [K6].
 * MEMORY    the count of a strand that ends lies in a store buffer until a locked instruction of its thread empties it,
 *           or the closer's barrier does, or it comes out by itself. The rest of the protocol is sequentially
 *           consistent.
 * ABSTRACTS the pool to one thread, which is its seeker, and its lock to single steps. A strand ends at once, or waits
 *           until it is cancelled; if it is cancelled before it begins, it ends at once. The handle to a number of the
 *           pool and a count of references; the next pool in the record has another number. tests/sim/closings.c has
 *           several closers, seeker.pml the role and sleepers, resize.pml threads that come and go.
 * CHECKED   [L1] the pool stops when none of its strands lives, and no strand is spawned onto it afterwards. [L2] each
 *           strand ends, and so does the pool. [K6] no closed poller is kicked. [L5] no thread uses a pool when its
 *           record serves another one. Every runnable strand runs.
 * MACROS    LOOKFIRST    a spawner reads the state before it counts the strand in
 *           TURNSILENT   a refused spawner does not check whether the pool is empty
 *           ENDSILENT    an ending strand does not
 *           CLOSESILENT  the closer does not
 *           ANCHORBLIND  a spawner does not read the state after the strand is anchored
 *           WALKFIRST    the closer cancels strands before it publishes that it closes
 *           NOBARRIER    it has no barrier
 *           INFIRST      strands are counted in before they are counted out
 *           SENDSILENT   making a strand runnable does not notify the thread
 *           PARKBLIND    the thread parks without a last check
 *           NOKICKERS    the closer does not wait for threads that are about to kick
 *           NOFINDERS    the closer does not wait for references to the handle
 */
/* must hold */
/* must fail: -DLOOKFIRST */
/* must stall: -DTURNSILENT */
/* must stall: -DENDSILENT */
/* must stall: -DCLOSESILENT */
/* must stall: -DANCHORBLIND */
/* must stall: -DWALKFIRST */
/* must stall: -DNOBARRIER */
/* must fail: -DINFIRST */
/* must stall: -DSENDSILENT */
/* must stall: -DPARKBLIND */
/* must fail: -DNOKICKERS */
/* must fail: -DNOFINDERS */
/* large */

#define STRANDS 2

#define NONE 0
#define OPEN 1
#define CLOSING 2
#define CLOSED 3

/* States of a strand. */
#define UNBORN 0
#define QUEUED 1
#define WAITING 2
#define CLAIMED 3 /* its claimer is about to queue it */
#define ENDED 4
#define REFUSED 5

byte state = NONE, pool = 1; /* of the record; which pool it is */
bit slow, stop, poller = 1, token, parked, kick;
byte kickers, handle_refs;
bit dead; /* the handle does not lead to the record any more */
byte arrived, refused, ended;
byte ending; /* counts of `ended` that are in the buffer of the pool's thread */
bit gone, alive = 1; /* gone: the closer sees that the thread has left its record for good */
byte timers = 1; /* so often the seeker wakes up by itself */

byte strands[STRANDS];
bit anchored[STRANDS], cancelled[STRANDS];
bit begun[STRANDS]; /* it waits, or has */

#define LIVES(i) (strands[i] != UNBORN && strands[i] < ENDED)

inline flush()
{
    atomic { ended = ended + ending; ending = 0 }
}

/* Under the pool's lock: whether the caller is to kick. */
inline unpark()
{
    atomic {
        mine = parked;
        parked = 0;
        kick = 0;
        if
        :: mine -> kickers++ /* [K6] */
        :: else
        fi
    }
}

inline unpoll()
{
    if
    :: mine ->
        assert(poller); /* [K6] */
        atomic { token = 1; mine = 0 }
        kickers--
    :: !mine
    fi
}

inline do_stop()
{
    atomic {
        assert(!LIVES(0) && !LIVES(1)); /* [L1] */
        stop = 1
    }
    unpark();
    unpoll()
}

/* pool_close_check */
inline look()
{
    if
    :: state == CLOSING ->
        if
        :: ending -> flush() /* it has come out of the buffer */
        :: true
        fi;
#ifdef INFIRST
        into = arrived;
        out = refused + ended;
#else
        out = refused + ended;
        into = arrived;
#endif
        if
        :: out == into -> do_stop()
        :: else
        fi;
        atomic { out = 0; into = 0 }
    :: else
    fi
}

/* pool_send: the caller has claimed the strand. */
inline send(i)
{
    strands[i] = QUEUED;
#ifndef SENDSILENT
    if
    :: kick -> unpark(); unpoll()
    :: !kick
    fi
#endif
}

/* ---- the pool's thread ---- */

inline end_of(i)
{
    atomic { ending++; strands[i] = ENDED }
    if
    :: slow ->
        flush()
#ifndef ENDSILENT
        look()
#endif
    :: !slow
    fi
}

#define IS_NEXT(i) (strands[i] == QUEUED)
#define SOME (IS_NEXT(0) || IS_NEXT(1))

inline serve(i)
{
    if
    :: atomic { !begun[i] && !cancelled[i] -> begun[i] = 1; strands[i] = WAITING }
    :: end_of(i)
    fi
}

proctype thread()
{
    bit mine;
    byte out, into;
loop:
    if
    :: IS_NEXT(0) -> serve(0); goto loop
    :: IS_NEXT(1) -> serve(1); goto loop
    :: !SOME && stop -> goto leaves
    :: !SOME && !stop
    fi;
    atomic { flush(); parked = 1; kick = 1 }
#ifndef PARKBLIND
    if
    :: SOME || stop
    :: !SOME && !stop ->
#endif
end_parked:
        if
        :: token
        :: timers > 0 -> timers--
        fi
#ifndef PARKBLIND
    fi
#endif
    ;
    atomic { token = 0; parked = 0; kick = 0 }
    goto loop;
leaves:
    atomic { flush(); gone = 1 }
    alive = 0
}

/* ---- who spawns, from elsewhere ---- */

proctype spawner(byte i)
{
    bit mine, open;
    byte out, into, found;
    if
    :: atomic { state != NONE && !dead -> handle_refs++; found = pool }
    :: goto home /* it comes too late, or never */
    fi;
#ifdef LOOKFIRST
    open = (state == OPEN);
    arrived++;
#else
    arrived++;
    open = (state == OPEN); /* [L1] */
#endif
    if
    :: open ->
        atomic { anchored[i] = 1; strands[i] = CLAIMED }
#ifndef ANCHORBLIND
        if
        :: state != OPEN -> cancelled[i] = 1 /* [L2] */
        :: else
        fi;
#endif
        send(i)
    :: !open ->
        strands[i] = REFUSED;
        refused++;
#ifndef TURNSILENT
        look()
#endif
    fi;
    atomic { assert(pool == found); handle_refs--; open = 0; found = 0 }
home:
    skip
}

/* ---- who opens and closes ----- */

inline cancel(i)
{
    if
    :: anchored[i] && strands[i] < ENDED && !cancelled[i] ->
        atomic {
            cancelled[i] = 1;
            if
            :: strands[i] == WAITING -> strands[i] = CLAIMED; claimed = 1
            :: else
            fi
        }
        if
        :: claimed -> claimed = 0; send(i)
        :: !claimed
        fi
    :: else
    fi
}

inline walk()
{
    cancel(0);
    cancel(1)
}

active proctype closer()
{
    bit mine, claimed;
    byte out, into;
    atomic { state = OPEN; run thread() }
#ifdef WALKFIRST
    walk();
#endif
    atomic { state = CLOSING; slow = 1 }
#ifndef NOBARRIER
    flush();
#endif
#ifndef WALKFIRST
    walk();
#endif
#ifndef CLOSESILENT
    look();
#endif
    gone && !alive;
#ifndef NOKICKERS
    !kickers; /* [K6] */
#endif
    atomic { state = CLOSED; poller = 0; dead = 1 }
#ifndef NOFINDERS
    !handle_refs; /* [L5] */
#endif
    assert(!LIVES(0) && !LIVES(1));
    pool++ /* the next one has the record */
}

init
{
    atomic {
        run spawner(0);
        run spawner(1)
    }
    pool == 2
}
