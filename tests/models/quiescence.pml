/*
 * Whether a run is quiescent: seekers decide while threads of several pools fall idle, are woken, and hand work to
 * each other.
 *
 * MODELS    src/sched/quiescent.c: quiescent_run, all_still, scan, is_empty, quiescent_is_near, quiescent_stir
 *           src/sched/idle.c: pool_is_still, get_busy, thread_to_idle, thread_from_idle, thread_to_polling,
 *           thread_to_busy, pool_park, decide, pool_settle
 *           src/sched/idle.h: pool_set_seeker
 *           src/sched/kick.c: unpark
 *           src/sched/seek.c: pool_find_work
 *           src/run/quiescence.c: quiescence_comes
 *           Labels [Q1] [Q2] [Q3].
 * ABSTRACTS work to tokens: each is in a queue, pinned to a thread, in a post, or held by a thread; a thread that holds
 *           one passes it on or puts it down. Two pools: one of two threads, to the second of which some are pinned,
 *           and one of one thread. `stirs` to a bit for each pool, which the first reading clears: one seeker decides
 *           at a time. Wake-ups (see seeker.pml and pinned.pml) to the reasons for them: a thread that makes work
 *           notifies a parked seeker afterwards; a sleeping thread continues when its inbox is filled, or the role is
 *           free. A step that only its thread can see is merged with the next.
 * CHECKED   the run is never quiescent while there is a token [Q1] (S-62, S-63, S-65): neither for a strand that waits
 *           for quiescence, and is woken on some thread, nor, afterwards, for the run. In the end the run is quiescent
 *           [Q2].
 * MACROS    DRIVEN       the second pool runs on an outside thread, which leaves while pinned work is left
 *           BUSYLATE     a thread takes pinned work before it becomes busy
 *           BUSYBLIND    the decision does not check whether threads are busy
 *           ONEREADING   there is no second reading
 *           NOSUM        the second reading does not check whether threads have moved
 *           UNPARKSILENT a seeker that continues does not count as moved
 *           NOQUEUES     the scan skips queues
 *           NOINBOX       it skips pinned work
 *           NOPOSTS      it skips posts
 *           NOLEFT       it skips work that an outside thread has left
 *           NOSTIR       a seeker that still counts as parked hands out the strand that a decision wakes
 *           NOLAST       the last thread to become idle does not notify its seeker
 */
/* S-33, S-35, S-62, S-63, S-64, S-65 */
/* must hold */
/* must hold: -DDRIVEN */
/* must fail: -DBUSYLATE */
/* must fail: -DBUSYBLIND */
/* must fail: -DONEREADING */
/* must fail: -DNOSUM */
/* must fail: -DUNPARKSILENT */
/* must fail: -DNOQUEUES */
/* must fail: -DNOINBOX */
/* must fail: -DNOPOSTS */
/* must fail: -DDRIVEN -DNOLEFT */
/* must fail: -DNOSTIR */
/* must stall: -DNOLAST */

#define THREADS 3
#define POOLS 2
#define PINNED 1     /* the thread that tokens are pinned to */
#define P(t) (t == 2) /* its pool */

byte queue[POOLS], posts[POOLS];
byte inbox;   /* of PINNED */
byte left;   /* pinned to the driven thread, and taken out of its inbox */
byte busy[POOLS];
byte seeker[POOLS]; /* 1 + the thread; 0: the role is free */
bit parked[POOLS], moved[POOLS];
bit deciding; /* quiescent_lock */
byte tokens = 1, hops = 3;
byte waiters = 1;
bit quiescent;

#define anything(t) (queue[P(t)] || posts[P(t)] || (t == PINNED && inbox) || (t == 2 && left))

inline unpark(p)
{
    parked[p] = 0;
#ifndef UNPARKSILENT
    moved[p] = 1
#endif
}

inline get_busy(t)
{
    busy[P(t)]++;
    moved[P(t)] = 1
}

/* pool_kick_, pool_rouse */
inline kick(p)
{
    d_step {
        if
        :: parked[p] -> unpark(p)
        :: else
        fi
    }
}

/* ---- what a busy thread does with a token -------------------------------------------------------- */

inline carry(t)
{
    if
    :: hops == 0 -> d_step { tokens--; hand = 0 }
    :: hops > 0 ->
        hops--;
        if
        :: d_step { queue[0]++; hand = 0 } kick(0)
        :: d_step { queue[1]++; hand = 0 } kick(1)
        :: d_step { posts[1]++; hand = 0 } kick(1)
        :: d_step { inbox++; hand = 0 }
            d_step {
                if
                :: parked[0] && seeker[0] == PINNED + 1 -> unpark(0)
                :: else
                fi
            }
#ifdef DRIVEN
        :: t == 2 -> d_step { left++; hand = 0 }
#endif
        fi
    fi
}

/* ---- the decision: by a seeker that is parked --------------------------------------------------------- */

inline read_first(p)
{
    d_step {
#ifdef BUSYBLIND
        still = still && parked[p];
#else
        still = still && parked[p] && !busy[p];
#endif
        moved[p] = 0
    }
}

inline scan(p)
{
#ifndef NOQUEUES
    still = still && !queue[p];
#endif
#ifndef NOPOSTS
    still = still && !posts[p];
#endif
#ifndef NOINBOX
    still = still && !(p == 0 && inbox);
#endif
#ifndef NOLEFT
    still = still && !(p == 1 && left)
#endif
}

inline read_again(p)
{
#ifndef ONEREADING
    d_step {
#ifndef BUSYBLIND
        still = still && !busy[p];
#endif
#ifndef NOSUM
        still = still && !moved[p];
#endif
        still = still && parked[p]
    }
#else
    skip
#endif
}

inline decide(t)
{
    atomic { !deciding -> deciding = 1; still = 1 }
    read_first(0);
    read_first(1);
    scan(0);
    scan(1);
    read_again(0);
    read_again(1);
    if
    :: still ->
        assert(!tokens); /* [Q1] */
        if
        :: waiters ->
            d_step { waiters--; tokens++; hops = 1; hand = 1 }
#ifndef NOSTIR
            d_step { unpark(P(t)) } /* [Q3] */
#endif
        :: !waiters -> quiescent = 1
        fi
    :: !still
    fi;
    d_step { deciding = 0; still = 0 }
    if
    :: hand ->
        if
        :: d_step { queue[0]++; hand = 0 } kick(0)
        :: d_step { queue[1]++; hand = 0 } kick(1)
        :: d_step { inbox++; hand = 0 } kick(0)
        fi
    :: !hand
    fi
}

/* ---- a thread -------------------------------------------------------------------------------------------- */

proctype thread(byte t)
{
    bit hand, last, lull, still;
work:
    if
    :: atomic { queue[P(t)] -> queue[P(t)]--; hand = 1 } carry(t); goto work
    :: atomic { t == PINNED && inbox -> inbox--; hand = 1 } carry(t); goto work
    :: atomic { t == 2 && left -> left--; hand = 1 } carry(t); goto work
#ifdef DRIVEN
    :: left && t == 2 -> /* the thread that drives it leaves, and comes back some time: pool_settle, pool_unsettle */
progress_left:
        d_step { busy[1]--; seeker[1] = 3; parked[1] = 1; moved[1] = 1 }
        d_step { unpark(1); seeker[1] = 0; get_busy(2) }
        goto work
#endif
    :: !queue[P(t)] && !(t == PINNED && inbox) && !(t == 2 && left)
    fi;
    d_step { busy[P(t)]--; last = !busy[P(t)] && parked[P(t)] } /* thread_to_idle */
#ifndef NOLAST
    if
    :: last && !queue[P(t)] && !(P(t) == 0 && inbox) -> kick(P(t)) /* [Q2] */
    :: else
    fi;
#endif
    last = 0;
idle:
end_asleep:
    if
    :: atomic { !seeker[P(t)] -> seeker[P(t)] = t + 1; moved[P(t)] = 1 }
    :: t == PINNED && seeker[P(t)] && inbox ->
#ifdef BUSYLATE
        inbox--;
        hand = 1;
        d_step { get_busy(t) }
        carry(t);
#else
        d_step { get_busy(t) }
#endif
        goto work
    fi;
seek:
    if
    :: posts[P(t)] -> /* to the other pool */
        d_step { posts[P(t)]--; hand = 1 }
        d_step { queue[1 - P(t)]++; hand = 0 }
        kick(1 - P(t));
        goto seek
    :: atomic { queue[P(t)] -> queue[P(t)]--; hand = 1 }
    :: atomic { t == PINNED && inbox -> inbox--; hand = 1 }
    :: atomic { t == 2 && left -> left--; hand = 1 }
    :: !anything(t) -> goto wait
    fi;
    d_step { get_busy(t); seeker[P(t)] = 0; moved[P(t)] = 1 } /* S-54 */
    carry(t);
    goto work;
wait:
    !parked[P(t)];
    d_step { parked[P(t)] = 1; lull = !busy[P(t)] }
    if
    :: anything(t) -> d_step { unpark(P(t)); lull = 0 } goto seek
    :: !anything(t)
    fi;
    if
    :: lull && !queue[P(t)] && !posts[P(t)] && !(P(t) == 0 && inbox) && !(P(t) == 1 && left) -> /* quiescent_is_near */
        decide(t) /* [Q2] */
    :: else
    fi;
    lull = 0;
end_parked:
    !parked[P(t)] -> goto seek
}

init
{
    byte t;
    atomic {
        queue[0] = 1;
        busy[0] = 2;
        busy[1] = 1;
        run thread(0);
        run thread(1);
        run thread(2)
    }
    quiescent /* [Q2] */
}
