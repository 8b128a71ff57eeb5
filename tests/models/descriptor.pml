/*
 * One side of a descriptor: readers, events, and the baton that they pass on.
 *
 * MODELS    src/io/operation.c: operation_ready, operation_drained, operation_short, operation_leave, wait_for_side,
 *           wait_armed, descriptor_fire, side_pass_on, claim_first
 *           Labels [D2], [D3].
 * ABSTRACTS the socket to a number of messages, each of which one read takes; the poller's edge to a bit; parking to a
 *           blocked step (see switch.pml and wait.pml); critical sections to d_steps. What is read without the lock,
 *           `waited`, `ready` and `events`, is read in steps of its own.
 * CHECKED   there are as many messages as readers, and all readers end, so no message stays while a reader waits.
 *           Readers may be interrupted while they wait. One reader at a time has the baton.
 * MACROS    NORECHECK    `ready` is cleared although an event came since the call began
 *           LATESEEN     `events` is read after the call
 *           NOPASS       a leaving reader does not pass the baton on
 *           NOPASSOUT    a reader that gets the baton and is interrupted does not pass it on
 *           NOTURN       an event does not check whether a reader has the baton
 *           SHORTCLEARS  a read that did not fill its buffer clears `ready`, although a message may have come
 */
/* V-23, contract 5.1 */
/* must hold */
/* must stall: -DNORECHECK */
/* must stall: -DLATESEEN */
/* must stall: -DNOPASS */
/* must stall: -DNOPASSOUT */
/* must stall: -DSHORTCLEARS */
/* must fail: -DNOTURN */
/* large */

#define READERS 3
#define NOBODY READERS

byte messages, edge, interruptions = 1;

/* The side. */
byte events;
bit ready = 1, turn;
byte queue[READERS] = NOBODY, queued; /* FIFO queue of the waiters */
bit claimed[READERS];
bit gone[READERS];           /* an interruption has claimed it; it may still be in the queue */

inline take_first(who)
{
    who = queue[0];
    queue[0] = queue[1];
    queue[1] = queue[2];
    queue[2] = NOBODY;
    queued--
}

/* In a d_step. */
inline pass_on(who)
{
    do
#ifdef NOTURN
    :: ready && queued > 0 ->
#else
    :: !turn && ready && queued > 0 ->
#endif
        take_first(who);
        if
        :: gone[who]
        :: else -> assert(!turn); claimed[who] = 1; turn = 1 /* [D3] */
        fi
    :: else -> break
    od;
    who = NOBODY
}

inline cut_out(who, i)
{
    i = 0;
    do
    :: i < queued && queue[i] != who -> i++
    :: else -> break
    od;
    if
    :: i < queued ->
        queued--;
        do
        :: i < queued -> queue[i] = queue[i + 1]; i++
        :: else -> break
        od;
        queue[queued] = NOBODY
    :: else
    fi;
    i = 0
}

inline append(who, in_front)
{
    if
    :: in_front -> queue[2] = queue[1]; queue[1] = queue[0]; queue[0] = who
    :: else -> queue[queued] = who
    fi;
    queued++
}

inline clear_ready()
{
    d_step {
        if
#ifdef NORECHECK
        :: true -> ready = 0
#else
        :: events == seen -> ready = 0 /* [D2] */
        :: else
#endif
        fi
    }
}

inline leave()
{
    d_step {
        if
        :: mine ->
            turn = 0;
            mine = 0;
#ifndef NOPASS
            pass_on(other) /* [D3] */
#endif
        :: else
        fi
    }
}

active [READERS] proctype reader()
{
    byte me = _pid, other = NOBODY, seen, i;
    bit mine, waits, got;

again:
#ifndef LATESEEN
    seen = events;
#endif
    waits = (turn || queued > 0) && !mine;
    if
    :: !waits && ready -> goto call
    :: else
    fi;
    d_step { /* wait_for_side */
        if
        :: ready && (mine || !(turn || queued > 0)) -> waits = 0
        :: else -> append(me, mine); waits = 1; claimed[me] = 0;
            if
            :: mine -> turn = 0; mine = 0
            :: else
            fi
        fi
    }
    if
    :: !waits -> goto again
    :: else
    fi;
    if
    :: claimed[me] -> mine = 1;
        if
        :: goto again
        :: interruptions > 0 -> interruptions--; goto interrupted /* before its next call */
        fi
    :: d_step { !claimed[me] && interruptions > 0 -> interruptions--; gone[me] = 1 };
        d_step { cut_out(me, i) };
        goto done
    fi;

call:
    atomic {
        got = messages > 0;
        messages = messages - got
    }
#ifdef LATESEEN
    seen = events;
#endif
    if
    :: got ->
#ifdef SHORTCLEARS
        clear_ready();
#endif
        leave();
        goto done
    :: else -> clear_ready(); goto again
    fi;

interrupted:
    skip;
#ifdef NOPASSOUT
    d_step { turn = (mine -> 0 : turn); mine = 0 }
#else
    leave();
#endif
    /* A message that it does not want is for others. */
done:
    skip
}

/* As many as there are readers, at any time. */
active proctype sender()
{
    byte sent;
    do
    :: sent < READERS -> atomic { messages++; edge = 1; sent++ }
    :: else -> break
    od
}

/* The thread that passes on the poller's events. */
active proctype poller()
{
    byte other = NOBODY;
end:
    do
    :: edge -> edge = 0;
        d_step { events++; ready = 1; pass_on(other) }
    od
}
