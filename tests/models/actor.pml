/*
 * An actor's messages: every queued message is handled, one at a time, although the actor becomes dormant meanwhile and
 * its activation serves another actor.
 *
 * MODELS    src/actor/actor.h: cell_lock, cell_unlock; src/actor/cell.c: cell_wake, activation_retire;
 *           src/actor/cell.h: activation_schedule; src/actor/message.c: deliver; src/actor/turn.c: refill. Labels [A1]
 *           [A2] [A3] [A4] [A5].
 * ABSTRACTS a message to its number, of which a runner takes all that are queued; the slab of activations to the first
 *           that is free; the idle runners, and the queues of threads, to a channel; spinning to another attempt.
 * PARTIES   three senders with a message each, to two actors, one of which gets two; two runners; four activations,
 *           because two may be about to be freed.
 * CHECKED   [A1] one runner at a time has the turn of an actor. [A2] [A3] [A5] all messages have been handled when no
 *           process can continue. [A4] no valid reference is taken for a stale one.
 * MACROS    THREE   all send to the same actor
 *           HASTY   as THREE, and a reference counts as stale by a check without the lock, if the word is the same
 *                   after it
 *           LOOSE   whether the queue is empty is read before the lock is taken
 *           TWICE   a sender that finds an activation scheduled schedules it again
 */
/* S-05, S-07, S-08, S-09, S-11, S-13, S-14, S-15, S-17, S-18, A-19, contract 6.1 */
/* must hold */
/* must hold: -DTHREE */
/* must fail: -DHASTY */
/* must fail: -DTWICE */
/* must stall: -DLOOSE */

#define ACTORS 2
#define TASKS 4
#define SENDERS 3

byte word[ACTORS]; /* 0: dormant; else the activation + 1 */
bit locked[ACTORS];
byte serial[TASKS]; /* of the actor, + 1; 0: it is free */
bit used[TASKS], scheduled[TASKS];
byte queued[TASKS];
byte handled, over;
byte inside[ACTORS];
chan ready = [SENDERS] of { byte };

proctype sender(byte a)
{
    byte w, t;
again:
    w = word[a];
#ifdef HASTY
    if
    :: w > 0 && serial[w - 1] != a + 1 ->
        if
        :: word[a] == w -> assert(false) /* [A4] */
        :: else -> goto again
        fi
    :: else
    fi;
#endif
    if
    :: atomic { word[a] == w && !locked[a] -> locked[a] = 1 }
    :: atomic { word[a] != w -> goto again }
    fi;
    assert(w == 0 || serial[w - 1] == a + 1); /* [A4] */
    if
    :: w == 0 ->
        atomic {
            t = 0;
            do
            :: used[t] -> t++
            :: else -> break
            od;
            used[t] = 1
        };
        queued[t] = 0;
        scheduled[t] = 0;
        serial[t] = a + 1;
        word[a] = t + 1
    :: else -> t = w - 1
    fi;
    queued[t]++;
    if
#ifdef TWICE
    :: true -> scheduled[t] = 1; ready ! t
#else
    :: !scheduled[t] -> scheduled[t] = 1; ready ! t /* [A3] */
    :: else
#endif
    fi;
    locked[a] = 0;
    over++
}

active [2] proctype runner()
{
    byte t, a, n;
end:
    do
    :: ready ? t ->
        a = serial[t] - 1;
        inside[a]++;
        assert(inside[a] == 1); /* [A1] */
        do
        :: true ->
#ifdef LOOSE
            n = queued[t];
#endif
            atomic { !locked[a] -> locked[a] = 1 };
#ifndef LOOSE
            n = queued[t];
#endif
            if
            :: n > 0 ->
                queued[t] = queued[t] - n;
                locked[a] = 0;
                handled = handled + n
            :: else ->
                scheduled[t] = 0;
                inside[a]--;
                atomic { word[a] = 0; locked[a] = 0 }; /* [A2] */
                serial[t] = 0;
                used[t] = 0;
                break
            fi
        od
    od
}

init
{
    atomic {
        run sender(0);
        run sender(0);
#if defined(THREE) || defined(HASTY)
        run sender(0)
#else
        run sender(1)
#endif
    };
    over == SENDERS && handled == SENDERS /* [A5] */
}
