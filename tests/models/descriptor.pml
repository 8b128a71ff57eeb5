/*
 * One side of a descriptor: readers, events, and turns that are passed on.
 *
 * MODELS    src/io/operation.c: operation_ready, operation_drained, operation_short, operation_leave, wait_for_side,
 *           wait_armed, descriptor_fire, side_pass_on, claim_first
 *           Labels [D2], [D3].
 * ABSTRACTS the socket to a number of messages, each of which one read takes; the poller's edge to a bit; parking to a
 *           blocked step (see switch.pml and wait.pml); critical sections to d_steps. What is read without the lock,
 *           `waited`, `ready` and `events`, is read in steps of its own.
 * CHECKED   there are as many messages as readers: all readers end, but for those that are interrupted while they wait.
 *           Else it is a state without end. A message is never left lying while somebody waits for it. One at
 *           a time has the turn.
 * MACROS    NORECHECK    `ready` is cleared although an event came since the call began
 *           LATESEEN     `events` is read after the call
 *           NOPASS       who leaves does not pass its turn on
 *           NOPASSOUT    nor does who was given it and was interrupted
 *           NOTURN       an event does not look whether somebody has the turn
 *           SHORTCLEARS  a read that took less than there was room for clears `ready`, as if there were no messages
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
byte queue[READERS] = NOBODY, queued; /* who waits, the first first */
bit claimed[READERS];
bit gone[READERS];           /* an interruption has claimed it: it may stand in the queue still */

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

/* Whoever passes on the poller's events. */
active proctype poller()
{
    byte other = NOBODY;
end:
    do
    :: edge -> edge = 0;
        d_step { events++; ready = 1; pass_on(other) }
    od
}
