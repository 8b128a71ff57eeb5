/*
 * Closing channels, against senders and receivers, and against a select whose cases drop out.
 *
 * MODELS    src/sync/chan.c: strand_chan_close, wake_all
 *           src/sync/chan.h: chan_is_over
 *           src/sync/chan_transfer.c: send_locked, receive_locked, receive_from_ring, match, settle, wait_in,
 *           do_or_link src/sync/select.c: attempt, stand_with_all, count_out, select_drop_out, park, leave_all
 *           Labels [H1] [H2] [H3] [W1] [W2] [X1] [X2].
 * ABSTRACTS the strands' epochs away, as in select.pml; a queue to a set that is walked in the order of the strands;
 *           what is handed over to a count, moved in the step that claims the partner; spinning to a guard. Posts are
 *           in post.pml, interruptions and selects against each other in select.pml.
 * PARTIES   senders 0 and 1 send once each, on channel 0; receivers 2 and 3 receive until it is closed; a closer closes
 *           it at any time. Nothing else ends the receivers. With SELECT sender 0 sends on channel 0 or not at all, and
 *           strand 2 selects: a value of channel 0, or of channel 1; both cases drop out. The closer closes both
 *           channels, in either order.
 * CHECKED   [H2] every sent value is received. [H3] when a receive returns that the channel is closed, the channel has
 *           no value and no waiting sender. [H1] no strand waits if its operation can happen: all end. [X1] either the
 *           select receives, or all its cases have dropped out.
 * MACROS    ROOM         the channel has room for one value
 *           SELECT       a select, see above
 *           NOWAKE       closing wakes nobody
 *           LINKLATE     a receiver enters the queue after it has released the lock
 *           EARLY        a receive returns closed although senders wait
 *           SENDSON      a send does not check whether the channel is closed
 *           NOEXTRA      the select does not count itself while it still enters the queues
 *           NOLAST       the last case that drops out does not end the wait
 *           ANYDROP      any case that drops out ends the wait
 */
/* H-04 */
/* must hold */
/* must hold: -DROOM */
/* must hold: -DSELECT */
/* must stall: -DNOWAKE */
/* must stall: -DLINKLATE */
/* must stall: -DSELECT -DNOEXTRA */
/* must stall: -DSELECT -DNOLAST */
/* must fail: -DEARLY */
/* must fail: -DROOM -DSENDSON */
/* must fail: -DSELECT -DANYDROP */

#define STRANDS 4
#define NOBODY STRANDS
#define SELECTOR 2

#define IDLE 0
#define ARMED 1
#define WON 3
#define TRYING 4

/* What a wait was won by. */
#define VALUE 1
#define CLOSED 2

bit locked[2], closed[2];
byte count; /* of values in channel 0 */
byte senders, receivers[2]; /* sets */
#ifdef ROOM
#define CAPACITY 1
#else
#define CAPACITY 0
#endif

byte tag[STRANDS], result[STRANDS];
bit runnable[STRANDS], running[STRANDS];
byte live; /* of the select */
byte sent, received;

#define HAS(set, k) ((set >> (k)) & 1)
#define LOWEST(set) (HAS(set, 0) -> 0 : (HAS(set, 1) -> 1 : (HAS(set, 2) -> 2 : 3)))
#ifdef SELECT
#define DROPS(k) ((k) == SELECTOR)
#else
#define DROPS(k) 0
#endif

inline lock(c)
{
    atomic { !locked[c] -> locked[c] = 1 }
}

/* In a d_step: claims a strand if it is armed, and makes it runnable. */
inline claim(who, why)
{
    assert(running[who]); /* [W2] */
    if
    :: tag[who] == ARMED ->
        tag[who] = WON;
        result[who] = why;
        assert(!runnable[who]); /* [W1] */
        runnable[who] = 1;
        claimed = 1
    :: else -> claimed = 0
    fi
}

/* Claims a waiter in the queue that is still armed, and moves the value in the same step. Sets `claimed`. */
inline match(set)
{
    claimed = 0;
    do
    :: set && !claimed ->
        atomic {
            tag[LOWEST(set)] != TRYING;
            d_step {
                who = LOWEST(set);
                set = set & ~(1 << who);
                claim(who, VALUE);
                who = 0
            }
        }
    :: else -> break
    od;
    skip
}

inline park()
{
    atomic { runnable[me] -> runnable[me] = 0; tag[me] = IDLE }
}

proctype sender(byte me)
{
    byte who;
    bit claimed, done;
    running[me] = 1;
    lock(0);
    if
#ifndef SENDSON
    :: closed[0] -> done = 1 /* -EPIPE */
#endif
    :: else ->
        match(receivers[0]);
        if
        :: claimed -> d_step { sent++; received++; done = 1 }
        :: !claimed && count < CAPACITY -> d_step { count++; sent++; done = 1 }
        :: else -> d_step { tag[me] = ARMED; senders = senders | (1 << me) }
        fi
    fi;
    locked[0] = 0;
    if
    :: done
    :: else -> park(); sent++; assert(result[me] == VALUE) /* [H3] */
    fi;
    running[me] = 0
}

inline receive()
{
    lock(0);
    if
    :: count ->
        d_step { count--; received++; done = 1 }
        match(senders);
        if
        :: claimed -> count++ /* [H1] */
        :: else
        fi
    :: !count ->
        match(senders);
        if
        :: claimed -> d_step { received++; done = 1 }
        :: !claimed && closed[0] -> over = 1
        :: else ->
#ifdef LINKLATE
            tag[me] = ARMED;
            locked[0] = 0;
            receivers[0] = receivers[0] | (1 << me)
#else
            d_step { tag[me] = ARMED; receivers[0] = receivers[0] | (1 << me) }
#endif
        fi
    fi;
#ifdef LINKLATE
    if
    :: done || over -> locked[0] = 0
    :: else
    fi;
#else
    locked[0] = 0;
#endif
    if
    :: done -> done = 0
    :: over
    :: else -> park(); over = (result[me] == CLOSED) /* the claimer has counted the value */
    fi
}

proctype receiver(byte me)
{
    byte who;
    bit claimed, done, over;
    running[me] = 1;
    do
    :: !over -> receive()
    :: over -> break
    od;
    assert(closed[0] && !count && !senders); /* [H3] */
    running[me] = 0
}

/* The last of the cases to drop out: in a d_step. */
inline drop_out(who)
{
    live--;
    if
#ifdef ANYDROP
    :: true ->
#elif defined(NOLAST)
    :: false ->
#else
    :: live == 0 ->
#endif
        claim(who, CLOSED)
    :: else
    fi
}

inline close(c)
{
    lock(c);
    closed[c] = 1;
#ifdef EARLY
    do
    :: c == 0 && senders -> d_step { who = LOWEST(senders); senders = senders & ~(1 << who); claim(who, CLOSED); who = 0 }
    :: else -> break
    od;
#endif
#ifndef NOWAKE
    do
    :: receivers[c] ->
        atomic {
            tag[LOWEST(receivers[c])] != TRYING;
            d_step {
                who = LOWEST(receivers[c]);
                receivers[c] = receivers[c] & ~(1 << who);
                if
                :: DROPS(who) -> drop_out(who)
                :: else -> claim(who, CLOSED)
                fi;
                who = 0
            }
        }
    :: else -> break
    od;
#endif
    locked[c] = 0
}

proctype closer()
{
    byte who;
    bit claimed;
#ifdef SELECT
    if
    :: close(0); close(1)
    :: close(1); close(0)
    fi
#else
    close(0)
#endif
}

/* Stand with the case of a channel, armed; or try it, unarmed (`linking` 0). */
inline stand(c, linking)
{
    lock(c);
    dropped = 0;
    if
    :: c == 0 && senders ->
        d_step {
            if
            :: linking && tag[me] == ARMED -> tag[me] = TRYING
            :: linking && tag[me] != ARMED -> lost = 1
            :: else
            fi
        }
        if
        :: lost
        :: else ->
            match(senders);
            d_step {
                if
                :: claimed -> received++; done = 1
                :: else
                fi;
                if
                :: linking -> tag[me] = (done -> IDLE : ARMED)
                :: else
                fi
            }
        fi
    :: else
    fi;
    if
    :: done || lost
    :: else ->
        if
        :: closed[c] -> dropped = 1
        :: else ->
            d_step {
                if
                :: linking -> receivers[c] = receivers[c] | (1 << me)
                :: else
                fi
            }
        fi
    fi;
    locked[c] = 0
}

inline let_go(c)
{
    lock(c);
    d_step { receivers[c] = receivers[c] & ~(1 << me); locked[c] = 0 }
}

proctype selects(byte me)
{
    byte who, left;
    bit claimed, done, lost, dropped, over;
    running[me] = 1;
    stand(0, 0);
    if
    :: done -> goto out
    :: else -> left = !dropped
    fi;
    stand(1, 0);
    left = left + !dropped;
    if
    :: !left -> over = 1; goto out
    :: else
    fi;
#ifdef NOEXTRA
    d_step { tag[me] = ARMED; live = 2 }
#else
    d_step { tag[me] = ARMED; live = 3 }
#endif
    stand(0, 1);
    if
    :: dropped -> live--
    :: else
    fi;
    if
    :: done || lost
    :: else ->
        stand(1, 1);
        d_step {
            if
            :: dropped -> live--
            :: else
            fi
        }
#ifndef NOEXTRA
        d_step {
            if
            :: !lost ->
                live--;
                if
                :: live == 0 && tag[me] == ARMED -> tag[me] = IDLE; over = 1
                :: else
                fi
            :: else
            fi
        }
#endif
    fi;
    if
    :: done || over
    :: else -> park(); over = (result[me] == CLOSED)
    fi;
    let_go(0);
    let_go(1);
out:
    assert(!(done && over)); /* [X1] */
    assert(!over || (closed[0] && closed[1]));
    running[me] = 0
}

init
{
    atomic {
#ifdef SELECT
        run selects(SELECTOR);
        if
        :: run sender(0)
        :: skip
        fi;
#else
        run sender(0);
        run sender(1);
        run receiver(2);
        run receiver(3);
#endif
        run closer()
    }
#ifdef SELECT
    /* A further receiver takes the values of senders that still wait. */
    do
    :: _nr_pr == 1 -> break
    :: timeout ->
        atomic {
            assert(senders && !running[SELECTOR] && !locked[0]);
            tag[0] == ARMED;
            senders = 0;
            tag[0] = WON;
            result[0] = VALUE;
            runnable[0] = 1;
            received++
        }
    od;
#else
    _nr_pr == 1;
#endif
    assert(sent == received && !count) /* [H2] */
}
