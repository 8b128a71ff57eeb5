/*
 * A priority semaphore of one permit: releases against cancels and a pruning of the waiters.
 *
 * MODELS    src/sync/prio.c: hand_over, serve, prio_give, wait_in_queue, take_or_wait
 *           src/sync/prio_queue.c: prio_queue_add, prio_queue_remove, prio_queue_best
 *           src/sync/prio_prune.c: still_waits, may_go, is_gone, prune, prio_prune_one
 *           Labels [PS1] [PS2] [PS3] [PS4] [W1] [W4].
 * ABSTRACTS the order to the numbers of the strands: the lowest goes first. Epochs: each strand waits once. Spinning is a
 *           guard. The limit of the queue and `priority` are left out.
 * PARTIES   a holder of the permit, which releases it. Two strands that acquire and release it; strand 1 may be in a
 *           shield. A canceller of strand 0, and a pruner of the worst waiter.
 * CHECKED   [PS1] one strand at most has the permit, and in_flight counts it. [PS2] [PS3] each strand ends; so no strand
 *           waits while the permit is free, and a strand that is pruned is interrupted. [PS4] a strand either gets the
 *           permit or is interrupted.
 * MACROS    CLAIMBLIND   the permit goes to the best ticket, whether or not its wait was claimed
 *           LOST         a permit that no waiter takes counts as taken
 *           UNCANCELLED  a pruned strand is not cancelled
 *           SHIELDBLIND  the pruner takes out a waiter in a shield
 *           NORECHECK    due is not read after arming
 *           NOUNLINK     an interrupted strand leaves its ticket in the tree
 *           TRYBLIND     a strand takes the permit without reading in_flight
 */
/* must hold */
/* must stall: -DCLAIMBLIND */
/* must stall: -DLOST */
/* must stall: -DUNCANCELLED */
/* must stall: -DSHIELDBLIND */
/* must stall: -DNORECHECK */
/* must fail: -DNOUNLINK */
/* must fail: -DTRYBLIND */

#define STRANDS 2
#define NOBODY STRANDS

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3

bit lock;
byte in_flight = 1, holders = 1;
bit linked[STRANDS], due[STRANDS], shield[STRANDS], ended[STRANDS];
byte tag[STRANDS];

#define LOCK atomic { !lock -> lock = 1 }
#define CHECK assert(holders <= 1 && in_flight >= holders) /* [PS1] */

/* Interrupt a strand that is not in a shield. */
inline cancel(who)
{
    due[who] = 1;
    d_step {
        if
        :: tag[who] == ARMED && !shield[who] -> tag[who] = INTERRUPTED /* [W1] */
        :: else
        fi
    }
}

inline remove(who)
{
    d_step { assert(!ended[who]); linked[who] = 0 }
}

/* Under the lock, which it releases. */
inline serve()
{
    won = 0;
    do
    :: in_flight == 0 && !won && (linked[0] || linked[1]) ->
        best = (linked[0] -> 0 : 1);
        remove(best);
        d_step {
            won = (tag[best] == ARMED);
            if
            :: won -> tag[best] = WON /* [PS4] */
            :: else
            fi;
#ifdef CLAIMBLIND
            won = 1;
#endif
            in_flight = in_flight + won
        }
#ifdef LOST
        if
        :: !won -> in_flight++
        :: else
        fi
#endif
    :: else -> break
    od;
    lock = 0
}

inline release()
{
    LOCK;
    d_step { holders--; in_flight-- }
    serve()
}

proctype holder()
{
    byte best;
    bit won;

    release()
}

proctype acquirer(byte who)
{
    byte best;
    bit won, mine;

    LOCK;
#ifdef TRYBLIND
    if
    :: true ->
#else
    if
    :: in_flight == 0 ->
#endif
        d_step { in_flight++; holders++; CHECK }
        lock = 0;
        mine = 1
#ifndef TRYBLIND
    :: else ->
        tag[who] = ARMED;
        linked[who] = 1;
        lock = 0;
        mine = 0;
#ifndef NORECHECK
        d_step {
            if
            :: due[who] && !shield[who] && tag[who] == ARMED -> tag[who] = INTERRUPTED /* [W4] */
            :: else
            fi
        }
#endif
        tag[who] != ARMED;
        if
        :: tag[who] == WON -> d_step { holders++; CHECK; mine = 1 }
        :: else ->
#ifndef NOUNLINK
            LOCK;
            if
            :: linked[who] -> remove(who)
            :: else
            fi;
            lock = 0
#else
            skip
#endif
        fi
#endif
    fi;
    if
    :: mine -> release()
    :: else
    fi;
    ended[who] = 1
}

proctype canceller()
{
    cancel(0)
}

#define STILL_WAITS(who) (tag[who] == ARMED)

proctype pruner()
{
    byte worst;
    bit gone;

    LOCK;
    worst = NOBODY;
#ifdef SHIELDBLIND
    if
    :: linked[1] -> worst = 1
    :: !linked[1] && linked[0] -> worst = 0
    :: else
    fi;
#else
    if
    :: linked[1] && (!STILL_WAITS(1) || !shield[1]) -> worst = 1 /* [PS3] */
    :: else ->
        if
        :: linked[0] -> worst = 0
        :: else
        fi
    fi;
#endif
    if
    :: worst != NOBODY ->
        gone = !STILL_WAITS(worst) || due[worst];
        remove(worst);
        if
        :: !gone ->
#ifndef UNCANCELLED
            cancel(worst);
#endif
            skip
        :: else
        fi
    :: else
    fi;
    lock = 0
}

init {
    atomic {
        if
        :: shield[1] = 1
        :: skip
        fi;
        run holder();
        run acquirer(0);
        run acquirer(1);
        run canceller();
        run pruner()
    }
}
