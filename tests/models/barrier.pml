/*
 * A barrier: the last strand to arrive claims the waits of all others or of none, against cancels of the waiters.
 *
 * MODELS    src/sync/barrier.c: hold_all, claim_all, release_all, come, strand_barrier_wait
 *           src/strand/wait.h: wait_reserve, wait_reserved_claim, wait_reserved_release, wait_retract, wait_over
 *           src/sync/gate.c: gate_stand, gate_leave, gate_park
 *           Labels [W1] [W2] [W4].
 * ABSTRACTS the gate's word to a number and a lock (see gate.pml); epochs away: each strand arrives once, and a node
 *           that it leaves behind is recognised; the queue of a thread to one bit. Spinning is a guard.
 * PARTIES   three strands arrive, and three are needed; a fourth arrives when strands 0 and 1 have ended. A canceller
 *           cancels these two at any time and, when they have ended, the others. All strands end only because of these
 *           cancels.
 * CHECKED   either three strands pass together or none does. A cancelled strand is not one of the three. [W1] one claim
 *           for each arming. [W4] a cancel that comes while the wait is reserved is not lost: all end.
 * MACROS    NOHOLD       the last strand claims one wait after the other, and finds too late that one is over
 *           NOCOUNT      waits that are over still count
 *           NOGOOD       releasing a reserved wait does not check for an interruption meanwhile
 *           NORELEASE    reserved waits are not released
 *           NOLINKED     a leaving strand counts itself out although another strand has done so
 */
/* contract 5.1 */
/* must hold */
/* must stall: -DNOGOOD */
/* must stall: -DNORELEASE */
/* must fail: -DNOHOLD */
/* must fail: -DNOCOUNT */
/* must fail: -DNOLINKED */

#define STRANDS 4
#define NEEDED 3
#define NOBODY STRANDS

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3
#define TRYING 4

bit lock;
byte value; /* how many have come and stand in the queue */
byte queue[STRANDS] = NOBODY, queued;

byte tag[STRANDS];
bit due[STRANDS], runnable[STRANDS], linked[STRANDS];
bit running[STRANDS], ended[STRANDS];
byte passed;

/* In a d_step: takes the strand at this place out of the queue. */
inline take_out(place)
{
    linked[queue[place]] = 0;
    k = place;
    do
    :: k + 1 < queued -> queue[k] = queue[k + 1]; k++
    :: else -> break
    od;
    queued--;
    queue[queued] = NOBODY;
    k = 0
}

inline hold_all()
{
    all = 1;
    i = 0;
    do
    :: i < queued ->
        d_step {
            assert(running[queue[i]]); /* [W2] */
            if
            :: tag[queue[i]] == ARMED ->
#ifdef NOHOLD
                tag[queue[i]] = WON;
                passed++;
                batch = batch | (1 << queue[i]);
                take_out(i);
                v--
#else
                tag[queue[i]] = TRYING;
                i++
#endif
            :: else ->
                take_out(i);
#ifndef NOCOUNT
                v--;
#endif
                all = 0
            fi
        }
    :: else -> break
    od;
    i = 0
}

inline claim_all()
{
    do
    :: queued ->
        d_step {
            batch = batch | (1 << queue[0]);
            assert(tag[queue[0]] == TRYING); /* [W1] */
            tag[queue[0]] = WON;
            passed++;
            take_out(0)
        }
    :: else -> break
    od;
    skip
}

inline release_all()
{
    i = 0;
    do
    :: i < queued ->
#ifndef NORELEASE
        tag[queue[i]] = ARMED;
#ifndef NOGOOD
        d_step {
            if
            :: due[queue[i]] && tag[queue[i]] == ARMED ->
                tag[queue[i]] = INTERRUPTED; /* [W4] */
                batch = batch | (1 << queue[i])
            :: else
            fi
        }
#endif
#endif
        i++
    :: else -> break
    od;
    i = 0
}

inline wake(who)
{
    if
    :: batch & (1 << who) -> assert(!runnable[who]); runnable[who] = 1 /* [W1] */
    :: else
    fi
}

inline come()
{
    atomic { !lock -> lock = 1; v = value }
    last = (v + 1 >= NEEDED);
    if
    :: last ->
        hold_all();
        if
        :: !all -> release_all(); last = 0
        :: else
        fi
    :: else
    fi;
    if
    :: last ->
        claim_all();
        d_step { passed++; assert(passed == NEEDED); lock = 0; value = 0; v = 0 }
    :: else ->
        tag[me] = ARMED;
        d_step { queue[queued] = me; queued++; linked[me] = 1; assert(v + 1 == queued) }
        d_step { value = v + 1; lock = 0; v = 0 }
    fi;
    d_step { wake(0); wake(1); wake(2); wake(3); batch = 0 }
}

inline leave()
{
    atomic { !lock -> lock = 1; v = value }
    d_step {
        if
        :: linked[me] ->
            do
            :: queue[i] != me -> i++
            :: else -> break
            od;
            take_out(i);
            i = 0;
            v--
        :: else
#ifdef NOLINKED
            -> v--
#endif
        fi
    }
    d_step { assert(v == queued); value = v; lock = 0; v = 0 }
}

proctype strand(byte me)
{
    byte v, i, k, batch;
    bit last, all, got;
    if
    :: me == 3 -> ended[0] && ended[1]
    :: else
    fi;
    running[me] = 1;
    come();
    if
    :: last
    :: else ->
        if
        :: d_step { due[me] && tag[me] == ARMED -> tag[me] = IDLE } /* [W4] */
        :: !(due[me] && tag[me] == ARMED) ->
            atomic { runnable[me] -> runnable[me] = 0; got = (tag[me] == WON); tag[me] = IDLE }
        fi;
        if
        :: got
        :: else -> assert(due[me]); leave()
        fi
    fi;
    running[me] = 0;
    ended[me] = 1
}

inline cancel(who)
{
    due[who] = 1;
    d_step {
        if
        :: tag[who] == ARMED -> tag[who] = INTERRUPTED; assert(!runnable[who]); runnable[who] = 1
        :: else
        fi
    }
}

proctype canceller()
{
    cancel(0);
    cancel(1);
    ended[0] && ended[1];
    cancel(2);
    cancel(3)
}

init
{
    atomic {
        run strand(0);
        run strand(1);
        run strand(2);
        run strand(3);
        run canceller()
    }
    _nr_pr == 1;
    assert((passed == 0 || passed == NEEDED) && !queued && !value && !lock)
}
