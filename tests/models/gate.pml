/*
 * A gate: permits that are handed over, against cancels and other sources of the waiters.
 *
 * MODELS    src/sync/gate.h: gate_pass, gate_give, gate_lock, gate_unlock, gate_link, gate_unlink, gate_is_gone,
 *           gate_claim_first
 *           src/sync/gate.c: gate_settle, gate_change, gate_stand, gate_leave, gate_park, gate_enter, pass_or_link,
 *           gate_over_case
 *           src/sync/semaphore.c: take_free, admit, release, release_slowly
 *           Labels [G1] [G2] [G3] [SM1] [W1] [W2] [W4] [X1].
 * ABSTRACTS a strand's epochs away: each waits once, and a node that it left behind is recognised. A compare-and-swap
 *           of the word to one step that is taken where it would succeed. The queue of a thread to one bit. Spinning is
 *           a guard, so a deadlock is an invalid end state. WAIT_TRYING is in select.pml and barrier.pml.
 * PARTIES   strand 0 wants both permits, strand 1 one of them. The holder has both. It releases one or none, cancels
 *           strand 0, waits until that has ended and, if one permit is free, until strand 1 has ended; then it releases
 *           the rest. So if strand 1 is queued behind strand 0, strand 0 has to let it pass when it leaves. A canceller
 *           may cancel strand 1.
 * CHECKED   [SM1] the number of permits stays the same: a cancelled strand takes none. [G1] all end, because every
 *           waiter that can pass is let pass. [G2] no strand overtakes an earlier waiter. [G3] a releasing strand does
 *           not touch the gate after the step by which others see the release. [W1] one claim for each arming; a strand
 *           either passes or is interrupted.
 * MACROS    SELECT       strand 1 selects between this gate and another source
 *           LAST         both strands want the only permit, which is a lock, and the last holder frees the gate
 *           TAKEGONE     a claim that fails takes its permits all the same
 *           NOWAITERS    releasing the lock does not keep the mark of waiters
 *           NOSETTLE     a strand that leaves the queue does not let those behind it pass
 *           NORECHECK    due is not read after arming
 *           NOUNLINK     an interrupted strand leaves its node in the queue
 *           NOBACK       an operation that is ready happens without retracting the select's wait
 *           TWOSTORES    the value is published before the lock is released, as if the lock were a separate word
 */
/* contract 5.1 */
/* must hold */
/* must hold: -DSELECT */
/* must hold: -DLAST */
/* must stall: -DNOSETTLE */
/* must stall: -DNORECHECK */
/* must fail: -DTAKEGONE */
/* must fail: -DNOWAITERS */
/* must fail: -DNOUNLINK */
/* must fail: -DSELECT -DNOBACK */
/* must fail: -DLAST -DTWOSTORES */

#define STRANDS 2
#define NOBODY STRANDS

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3
#define OTHER 4 /* won by the select's other source */

#ifdef LAST
#define PERMITS 1
byte want[STRANDS] = 1;
byte value = 1, held;
byte refs = STRANDS;
#else
#define PERMITS 2
byte want[STRANDS] = 1;
byte value, held = 2;
#endif

/* The word: value, and these. */
bit lock, waiters;
byte queue[STRANDS] = NOBODY, queued;
bit freed;

byte tag[STRANDS];
bit due[STRANDS], runnable[STRANDS], linked[STRANDS];
bit running[STRANDS], ended[STRANDS];
bit elsewhere; /* the select's other source has won */

#define TOUCH assert(!freed) /* [G3] */
#ifdef TWOSTORES
#define FREE (!waiters)
#else
#define FREE (!lock && !waiters)
#endif

/* What gives back without a look at the word first (gate_change) takes the lock in any case. */
#ifdef LAST
#define SLOW true
#else
#define SLOW !FREE
#endif

inline passes(who)
{
    held = held + want[who];
    assert(held <= PERMITS) /* [SM1] */
}

inline gate_lock()
{
    atomic { !lock -> TOUCH; lock = 1; v = value }
}

inline gate_unlock()
{
#ifdef TWOSTORES
    d_step { TOUCH; value = v; waiters = (queued > 0) }
    d_step { TOUCH; lock = 0; v = 0 }
#else
    d_step {
        TOUCH;
        value = v;
#ifndef NOWAITERS
        waiters = (queued > 0);
#endif
        lock = 0;
        v = 0
    }
#endif
}

/* In a d_step. */
inline unlink(who)
{
    if
    :: queue[0] == who -> queue[0] = queue[1]
    :: else
    fi;
    queue[1] = NOBODY;
    queued--;
    linked[who] = 0
}

inline settle()
{
    do
    :: queued > 0 && v >= want[queue[0]] ->
        d_step {
            first = queue[0];
            assert(running[first]); /* [W2] */
            unlink(first);
            if
            :: tag[first] == ARMED -> tag[first] = WON; v = v - want[first]; passes(first); batch = batch | (1 << first)
            :: else
#ifdef TAKEGONE
                -> v = v - want[first]
#endif
            fi;
            first = 0
        }
    :: queued > 0 && v < want[queue[0]] && tag[queue[0]] != ARMED -> d_step { first = queue[0]; unlink(first); first = 0 }
    :: queued > 0 && v < want[queue[0]] && tag[queue[0]] == ARMED -> break
    :: queued == 0 -> break
    od
}

inline deliver()
{
    d_step {
        if
        :: batch & 1 -> assert(!runnable[0]); runnable[0] = 1 /* [W1] */
        :: else
        fi;
        if
        :: batch & 2 -> assert(!runnable[1]); runnable[1] = 1
        :: else
        fi;
        batch = 0
    }
}

inline give(n)
{
    if
    :: d_step { FREE -> TOUCH; held = held - (n); value = value + (n) }
    :: atomic { SLOW -> TOUCH; skip }
        gate_lock();
        d_step { held = held - (n); v = v + (n) }
        settle();
        gate_unlock();
        deliver()
    fi
}

inline leave()
{
    gate_lock();
    if
    :: linked[me] ->
#ifndef NOUNLINK
        d_step { unlink(me) }
#endif
#ifndef NOSETTLE
        settle()
#endif
    :: else
    fi;
    gate_unlock();
    deliver()
}

inline park()
{
    if
#ifndef NORECHECK
    :: d_step { due[me] && tag[me] == ARMED -> tag[me] = IDLE } /* [W4] */
    :: !(due[me] && tag[me] == ARMED) ->
#else
    :: true ->
#endif
        atomic { runnable[me] -> runnable[me] = 0; got = (tag[me] == WON); other = (tag[me] == OTHER); tag[me] = IDLE }
    fi
}

/* Under the lock, and it has been settled. */
inline stand_in_queue()
{
    d_step { queue[queued] = me; queued++; linked[me] = 1 }
}

proctype strand(byte me)
{
    byte v, first, batch;
    bit got, other, lost;
    running[me] = 1;
#ifdef SELECT
    if
    :: me == 1 -> tag[me] = ARMED /* it stands with the other source already */
    :: else
    fi;
#endif
    if
    :: d_step {
        FREE && value >= want[me] && tag[me] == IDLE ->
        TOUCH;
        value = value - want[me];
        assert(!queued); /* [G2] */
        passes(me);
        got = 1
       }
    :: atomic { !(FREE && value >= want[me] && tag[me] == IDLE) -> TOUCH; skip }
        gate_lock();
        settle();
        if
        :: !queued && v >= want[me] ->
#ifdef SELECT
            d_step {
                if
#ifdef NOBACK
                :: me == 1 -> tag[me] = IDLE
#else
                :: me == 1 && tag[me] == ARMED -> tag[me] = IDLE
                :: me == 1 && tag[me] != ARMED -> lost = 1
#endif
                :: me != 1
                fi
            }
#endif
            if
            :: lost
            :: else -> d_step { v = v - want[me]; passes(me); got = 1 }
            fi
        :: else -> d_step { tag[me] = (tag[me] == IDLE -> ARMED : tag[me]) } stand_in_queue()
        fi;
        gate_unlock();
        deliver();
        if
        :: got
        :: else ->
            park();
            if
            :: got
            :: else -> leave()
            fi
        fi
    fi;
    assert(got || due[me] || other);
    assert(!(got && me == 1 && elsewhere)); /* [X1] */
    running[me] = 0;
    if
    :: got ->
#ifdef LAST
        refs--; /* what the lock protects */
        lost = (refs == 0);
        give(want[me]);
        if
        :: lost -> freed = 1
        :: else
        fi
#else
        give(want[me])
#endif
    :: else
    fi;
    ended[me] = 1
}

/* The select's other source, or never. */
proctype source()
{
    if
    :: d_step { tag[1] == ARMED -> tag[1] = OTHER; elsewhere = 1; assert(!runnable[1]); runnable[1] = 1 }
    :: true
    fi
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

proctype holder()
{
    byte v, first, batch;
    bit one;
    if
    :: give(1); one = 1
    :: skip
    fi;
    cancel(0);
    ended[0];
    if
    :: one -> ended[1] /* one is enough for it */
    :: else
    fi;
    give(2 - one)
}

proctype canceller()
{
    if
    :: cancel(1)
    :: true
    fi
}

init
{
    atomic {
#ifndef LAST
        want[0] = 2;
        run holder();
        run canceller();
#endif
        run strand(0);
        run strand(1);
#ifdef SELECT
        run source()
#endif
    }
    _nr_pr == 1;
    assert(value == PERMITS && !held && !lock && !waiters && !queued) /* [SM1] */
}
