/*
 * The threads of a pool and the role of the seeker: no thread sleeps while there is work.
 *
 * MODELS    src/sched/idle.c: thread_to_idle, thread_to_polling, thread_to_busy, thread_to_asleep,
 *           thread_from_asleep, pool_park, recheck
 *           src/sched/seek.c: pool_find_work, seek, pool_pass, judge_loot, sleep_a_while, spin_for_role
 *           src/sched/kick.c: pool_give_role, pool_kick_, pool_post, pool_retime, pool_stop
 *           src/sched/idle.h: pool_show_kick
 *           src/sched/kick.h: pool_is_waited_for, pool_notify, pool_fence
 *           src/sched/stealing.c: steal, work, even_out, pull_piece
 *           Invariants [K1] [K2] [K4], [LB1] and [LB3] of src/sched/balance.h, and of [K3] that a seeker waits without
 *           a limit only while no thread is busy; slot.pml has slots.
 * MEMORY    a producer's stores (one more fibre in its queue, an earlier timer) lie in a store buffer until `memory` or
 *           a locked instruction of that thread empties it; a membarrier empties all of them. Its load of kick may come
 *           before that. Kick itself, posts, and what the lock covers are changed by locked instructions.
 * ABSTRACTS sections under the lock to atomic steps; a fibre to one of a number; a strand to pushing, starting a timer,
 *           making a pass, and computing as long as any other thread has something to do; the slot away; spinning for
 *           the role to a guard; the seeker's waits for a while (others are busy) to waits without a limit, so that
 *           nothing here depends on them.
 * CHECKED   [K1] strands compute until no other thread can do anything and there is no work, no post, and no due timer,
 *           unless no thread sleeps. So a thread that sleeps while there is work makes an invalid end state. [K2] one
 *           seeker. In the end all work is done, and all threads see stop.
 * MACROS    LOOK           a busy thread makes a pass
 *           EVEN           and takes over some fibres of another thread
 *           POST           a post comes from outside; and a pass
 *           TIMER          a strand starts a timer; and a pass
 *           WATCH          a strand starts a timer; and two sleepers time out
 *           POOR           a thread's last steal may not have paid: then it first waits without checking for work
 *           FENCE          no membarrier; producers have a fence
 *           NORECHECK      the seeker parks without a check after it has set kick
 *           NOBARRIER      it checks, but without a barrier before, here or in recheck
 *           NOSHOW         kick does not show that a seeker is parked
 *           NOAGAIN        a thread that leaves sleepers without a seeker does not check again
 *           WORKONLY       it does, but only for work
 *           NOWATCH        a seeker that becomes busy leaves the role free, although no sleeper wakes soon
 *           NORETIME       a parked seeker is not woken for an earlier timer
 *           ROLEFIRST      the role is free before busy is announced
 *           NOSTOP         the stop wakes no thread
 *           EVENLATE       a thread evens out after it has released the role
 *           UNTILEARLY     the time of the next timer is read before the barrier only
 */
/* must hold */
/* must hold: -DLOOK */
/* must hold in states: -DLOOK -DEVEN */
/* must hold in states: -DFENCE */
/* must hold in states: -DPOOR */
/* must hold: -DPOST */
/* must hold: -DTIMER */
/* must hold in states: -DWATCH */
/* must stall: -DNORECHECK */
/* must stall: -DNOBARRIER */
/* must stall: -DNOSHOW */
/* must stall: -DNOAGAIN */
/* must stall: -DLOOK -DNOAGAIN */
/* must stall: -DLOOK -DEVEN -DNOAGAIN */
/* must stall: -DLOOK -DEVEN -DEVENLATE */
/* must stall: -DPOST -DWORKONLY */
/* must stall: -DWATCH -DNOWATCH */
/* must stall: -DTIMER -DNORETIME */
/* must stall: -DTIMER -DUNTILEARLY */
/* must stall: -DNOSTOP */
/* must fail: -DROLEFIRST */
/* large */

#define THREADS 3
#define NONE 3

#define KICK_SEEKER 1
#define KICK_PUSH 2
#define KICK_SLEEPER 4

/* What strands may do, all together; and how often posts come. */
#if defined(POST)
byte pushes, looks = 1, starts, posters = 1;
#elif defined(TIMER)
byte pushes, looks = 1, starts = 1, posters;
#elif defined(WATCH)
byte pushes = 1, looks, starts = 1, posters;
#elif defined(LOOK)
byte pushes = 1, looks = 1, starts, posters;
#else
byte pushes = 2, looks, starts, posters;
#define FRESH /* the third thread is awake */
#endif

byte queue[THREADS];  /* fibres, as others see it */
byte buffered[THREADS];
bit timer, due, timer_buffered[THREADS];
bit post;

#ifdef FRESH
byte kick, busy = THREADS, sleepers;
#else
byte kick = KICK_SLEEPER, busy = 2, sleepers = 4; /* it sleeps, for a while, and nobody seeks */
#endif
byte timed = 4; /* the set of sleepers that wake by themselves soon */
byte expiries; /* how often at most a sleeper times out although nothing is due */
byte seeker = NONE;
bit parked, eager, limited;
bit looking; /* the seeker is busy */

bit wake[THREADS], token; /* futexes; the poller's */
byte computing;           /* a set */
bit stop;
byte ended;

#define HAS(set, t) ((set >> t) & 1)
#define WORK (queue[0] || queue[1] || queue[2])
#define ALL_WORK (WORK || buffered[0] || buffered[1] || buffered[2])
#define OWN (queue[me] + buffered[me])
/* A timer needs a thread, and no thread is going to serve it by itself. */

inline flush(t)
{
    queue[t] = queue[t] + buffered[t];
    buffered[t] = 0;
    if
    :: timer_buffered[t] -> timer = 1; timer_buffered[t] = 0
    :: else
    fi
}

inline barrier()
{
    d_step {
        flush(me);
#if !defined(NOBARRIER) && !defined(FENCE)
        flush(0);
        flush(1);
        flush(2)
#endif
    }
}

/* Under the lock, as all of the following that say nothing else. */
inline show_kick()
{
    if
#ifndef NOSHOW
    :: parked -> kick = KICK_SEEKER | (eager -> KICK_PUSH : 0)
#endif
    :: !parked && seeker == NONE && sleepers -> kick = KICK_SLEEPER
    :: else -> kick = 0
    fi
}

inline give_role()
{
    heir = NONE;
    if
    :: sleepers & timed & 1 -> heir = 0
    :: sleepers & timed & 2 -> heir = 1
    :: sleepers & timed & 4 -> heir = 2
    :: !(sleepers & timed) && HAS(sleepers, 0) -> heir = 0
    :: !(sleepers & timed) && HAS(sleepers, 1) -> heir = 1
    :: !(sleepers & timed) && HAS(sleepers, 2) -> heir = 2
    :: !sleepers
    fi;
    if
    :: heir != NONE ->
        assert(seeker == NONE);
        seeker = heir;
        sleepers = sleepers & ~(1 << heir)
    :: else
    fi
}

inline wake_heir()
{
    if
    :: heir != NONE -> atomic { wake[heir] = 1; heir = NONE }
    :: else
    fi
}

/* Not under the lock. */
inline kick_somebody()
{
    atomic {
        was_parked = parked;
        parked = 0;
        if
        :: !was_parked && seeker == NONE -> give_role()
        :: else
        fi;
        show_kick()
    }
    if
    :: was_parked -> atomic { token = 1; was_parked = 0 }
    :: else
    fi;
    wake_heir()
}

/* The last step of the lock: finds the thread that must be notified. */
inline unlock_exposed()
{
    show_kick();
    exposed = (kick == KICK_SLEEPER)
}

inline recheck()
{
#ifndef NOAGAIN
    if
    :: exposed ->
        barrier();
        if
#if defined(WORKONLY)
        :: WORK || OWN -> kick_somebody()
#else
        :: WORK || OWN || post || (timer && due) -> kick_somebody()
#endif
        :: else
        fi
    :: else
    fi;
#endif
    exposed = 0
}

/* Whether work is left for others: a look without a barrier. What it counts is the scheduler's business, and nothing
 * depends on what it misses. */
inline see_what_is_left()
{
    if
    :: left = WORK || OWN
    :: left = 0
    fi
}

/* ---- a busy thread ---- */

inline push()
{
    atomic { pushes > 0 -> pushes--; buffered[me]++ }
#ifdef FENCE
    d_step { flush(me) }
#endif
    if
    :: kick & (KICK_PUSH | KICK_SLEEPER) -> d_step { flush(me) } kick_somebody()
    :: else
    fi
}

inline start_timer()
{
    atomic { starts > 0 -> starts--; timer_buffered[me] = 1 }
    if
#ifndef NORETIME
    :: kick & KICK_SEEKER ->
        if
        :: !until -> d_step { flush(me) } kick_somebody()
        :: else /* it wakes in time */
        fi
#endif
    :: else
    fi
}

/* Takes half of another thread's fibres. */
inline take_half(victim)
{
    flush(me);
    flush(victim); /* breaking in is a membarrier */
    some = (queue[victim] + 1) / 2;
    queue[victim] = queue[victim] - some
}

inline take_events()
{
    d_step {
        if
        :: post -> post = 0; buffered[me]++
        :: else
        fi;
        if
        :: timer && due -> timer = 0; due = 0; buffered[me]++
        :: else
        fi
    }
}

#ifdef EVEN
/* What has been taken out of one queue is not in the other yet. */
inline even_out()
{
    atomic {
        if
        :: me != 0 && queue[0] + buffered[0] -> take_half(0)
        :: me != 1 && queue[1] + buffered[1] -> take_half(1)
        :: me != 2 && queue[2] + buffered[2] -> take_half(2)
        :: some = 0
        fi
    }
    d_step { buffered[me] = buffered[me] + some; some = 0 }
}
#endif

inline look()
{
    atomic { looks > 0 -> looks-- }
    if
    :: atomic { seeker == NONE -> flush(me); seeker = me; looking = 1; show_kick() }
        take_events();
#ifndef EVENLATE
#ifdef EVEN
        even_out();
#endif
#endif
        atomic {
            flush(me);
            assert(seeker == me); /* [K2] */
            seeker = NONE;
            looking = 0;
            unlock_exposed()
        }
        recheck();
#ifdef EVENLATE
#ifdef EVEN
        even_out()
#endif
#endif
    :: seeker != NONE /* it looks */
    fi
}

inline compute()
{
    computing = computing | (1 << me);
    !HAS(computing, me)
}

/* ---- a seeker ---- */

inline steal_from(victim)
{
    take_half(victim);
    queue[me] = queue[me] + some;
    some = 0
}

/* Events, then its own queue, then what can be seen of one of the others'. */
inline find_some()
{
    atomic {
        take_events();
        if
        :: OWN
        :: !OWN && me != 0 && queue[0] -> steal_from(0)
        :: !OWN && me != 1 && queue[1] -> steal_from(1)
        :: !OWN && me != 2 && queue[2] -> steal_from(2)
        :: else
        fi
    }
}

inline park()
{
    atomic {
        flush(me);
        assert(seeker == me); /* [K2] */
        parked = 1;
        eager = !kicked;
        limited = (busy > 0);
        until = timer;
        show_kick()
    }
    barrier();
#ifndef UNTILEARLY
    until = timer;
#endif
    if
#ifndef NORECHECK
    :: (eager && WORK) || post || stop || (timer && due)
#endif
    :: else ->
        if
        :: atomic { token -> token = 0 }
        :: until && due
        :: !eager /* it waits for a moment only */
        fi
    fi;
    atomic {
        flush(me);
        kicked = (!parked && eager);
        until = 0;
        limited = 0;
        eager = 0;
        parked = 0;
        show_kick()
    }
}

inline seek()
{
#ifdef POOR
    if
    :: kicked = 0
    :: kicked = 1 /* what it stole last was not worth it */
    fi;
#else
    kicked = 0;
#endif
    do
    :: stop -> break
    :: else ->
        find_some();
        if
        :: atomic { queue[me] -> queue[me]--; found = 1 } break
        :: atomic { !queue[me] && buffered[me] -> buffered[me]--; found = 1 } break
        :: !OWN -> park()
        fi
    od;
    kicked = 0
}

inline thread_to_busy()
{
    see_what_is_left();
    atomic {
        flush(me);
        assert(seeker == me); /* [K2] */
        seeker = NONE;
#ifndef ROLEFIRST
        busy++;
#endif
        if
        :: left -> give_role()
#ifndef NOWATCH
        :: !left && !(sleepers & timed) -> give_role()
#endif
        :: else
        fi;
        left = 0;
        unlock_exposed();
#ifndef NOWATCH
        assert(seeker != NONE || !sleepers || (sleepers & timed)) /* [K4] */
#endif
    }
#ifdef ROLEFIRST
    busy++;
#endif
    assert(!(parked && eager && !limited)); /* [K3] */
    wake_heir();
    recheck()
}

/* ---- a thread without anything to run ---- */

inline sleep_a_while()
{
    limit = 1;
    do
    :: atomic { seeker != NONE && seeker != me && !looking && !stop ->
        wake[me] = 0;
        sleepers = sleepers | (1 << me);
        timed = (limit -> timed | (1 << me) : timed & ~(1 << me));
        show_kick()
       }
        if
        :: wake[me]
        :: limit && due
        :: atomic { limit && expiries > 0 -> expiries-- }
        fi;
        atomic {
            sleepers = sleepers & ~(1 << me);
            show_kick()
        }
        limit = 0;
        if
        :: seeker == NONE || seeker == me -> break
        :: else
        fi
    :: seeker == NONE || seeker == me || stop -> break
    od;
    limit = 0
}

inline find_work()
{
    found = 0;
    do
    :: stop -> break
    :: else ->
        if
        :: atomic { seeker == NONE -> seeker = me; show_kick() } mine = 1
        :: seeker == me -> mine = 1
        :: else -> sleep_a_while()
        fi;
        if
        :: mine -> mine = 0; seek(); thread_to_busy(); break
        :: else
        fi
    od
}

proctype thread(byte me)
{
    byte heir = NONE, some;
    bit was_parked, left, kicked, until, exposed, limit, mine, found;
    if
    :: me != 2 -> goto strand /* two of them start with a strand */
    :: else
#ifndef FRESH
        ->
        if
        :: wake[me]
        :: due
        :: atomic { expiries > 0 -> expiries-- }
        fi;
        atomic { sleepers = sleepers & ~(1 << me); show_kick() } goto idle
#endif
    fi;
pick:
    if
    :: atomic { queue[me] -> queue[me]-- } goto strand
    :: atomic { !queue[me] && buffered[me] -> buffered[me]-- } goto strand
    :: atomic { !OWN && !stop -> flush(me); busy-- } goto idle
    :: !OWN && stop -> goto out
    fi;
idle:
    find_work();
    if
    :: found -> found = 0
    :: else -> goto pick
    fi;
strand:
    if
    :: push(); goto strand
    :: start_timer(); goto strand
    :: look(); goto strand
    :: compute(); goto strand
    :: goto pick
    fi;
out:
    ended++
}

active proctype memory()
{
end:
    do
    :: atomic { buffered[0] || timer_buffered[0] -> flush(0) }
    :: atomic { buffered[1] || timer_buffered[1] -> flush(1) }
    :: atomic { buffered[2] || timer_buffered[2] -> flush(2) }
    od
}

/* Time passes. */
active proctype clock()
{
end:
    do
    :: timer && !due -> due = 1
    od
}

active proctype outside()
{
    byte heir = NONE;
    bit was_parked;
end:
    do
    :: atomic { posters > 0 -> posters--; post = 1 }
        if
        :: kick -> kick_somebody()
        :: else
        fi
    od
}

/* Nobody can do anything. */
init
{
    byte heir = NONE;
    atomic {
#ifdef WATCH
        expiries = 2;
#else
        select(expiries : 0 .. 1);
#endif
        run thread(0);
        run thread(1);
        run thread(2)
    }
    do
    :: timeout ->
progress_computed:
        atomic {
            busy == THREADS || !(ALL_WORK || post || due); /* [K1] else they compute for ever */
            if
            :: computing -> computing = 0
            :: else -> break
            fi
        }
    od;
    stop = 1; /* pool_stop */
#ifndef NOSTOP
    do
    :: atomic {
        if
        :: parked -> parked = 0; token = 1
        :: else
        fi;
        if
        :: HAS(sleepers, 0) -> heir = 0
        :: HAS(sleepers, 1) -> heir = 1
        :: HAS(sleepers, 2) -> heir = 2
        :: !sleepers -> heir = NONE
        fi;
        if
        :: heir != NONE -> sleepers = sleepers & ~(1 << heir)
        :: else
        fi;
        show_kick()
       }
        if
        :: heir != NONE -> wake[heir] = 1
        :: else -> break
        fi
    od;
#endif
    ended == THREADS;
    assert(!ALL_WORK)
}
