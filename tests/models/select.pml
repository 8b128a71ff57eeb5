/*
 * Two selects with sends and receives against each other over two channels, an interruption, and perhaps a third party,
 * which does one plain operation or selects as well.
 *
 * MODELS    src/strand/wait.h: wait_arm, wait_try, wait_tried, wait_claim_as, wait_retract, wait_over
 *           src/sync/chan_transfer.c: match, settle, send_locked, receive_locked, receive_from_ring, wait_in,
 *           do_or_link src/sync/chan_case.c: over
 *           src/sync/select.c: attempt, stand_with_all, park, leave_all
 *           Labels [W1] [W4] [W5] [H1] [H2] [X1] [X2].
 * ABSTRACTS a queue to a set that is walked in the order of the strands (the order of service is for the tests); the
 *           strands' addresses to their numbers; epochs away (each strand has one operation: a node that was left
 *           behind is found as such); a channel's memory to a count; spinning to a guard; a claimed partner's value to
 *           the moment in which it is moved. Closing is in close.pml; instants are left to the tests.
 * CHECKED   [X1] at most one case of each strand happens, and none if it was interrupted; both sides of a transfer
 *           happen or neither. [X2] [H1] no lost wake-up: when no process can continue, no two strands wait for each
 *           other, none waits to receive a value that is there, or to send where there is room, and no interrupted
 *           strand waits. [W5] trying does not end in a cycle. [W2] no strand is in a queue when its operation is over.
 *           To yield counts as progress: two strands could do so for ever, but in the code only if they miss each
 *           other's few instructions again and again.
 * MACROS    ALONE         a third party sends or receives on one of the channels
 *           BUFFERED      one of the channels has room for one value
 *           THIRD         the third party selects too, on one channel both ways
 *           NOTRYING      a select claims a partner while it may be claimed itself
 *           NOGIVEWAY     no strand yields
 *           NOSKIP        a select treats its own nodes as those of others
 *           NORECHECK     due is not read after arming
 *           NOUNLINK      nodes that did not win are not taken out
 *           LINKLATE      a node is linked after the lock was let go
 *           TWOCLAIMS     a claim does not look whether the wait is still armed
 *           NORETRACT     an operation that is ready happens without retracting the wait
 *           NOREFILL      room that a receive makes is not filled from waiting senders
 */
/* H-07, X-01, X-02, X-05, X-06, X-10, X-12, X-13, X-15, X-17, X-18, contract 5.1 */
/* must hold */
/* must hold: -DALONE */
/* must hold: -DBUFFERED -DALONE */
/* must hold: -DTHIRD */
/* must stall: -DNOGIVEWAY */
/* must fail: -DNOTRYING */
/* must fail: -DTHIRD -DNOSKIP */
/* must fail: -DALONE -DNORECHECK */
/* must fail: -DALONE -DNOUNLINK */
/* must fail: -DALONE -DLINKLATE */
/* must fail: -DTWOCLAIMS */
/* must fail: -DBUFFERED -DALONE -DNORETRACT */
/* must fail: -DBUFFERED -DALONE -DNOREFILL */
/* depth: 100000 */

#define STRANDS 3
#define NOBODY 3
#define FREE 255

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3
#define TRYING 4

#define SEND 0
#define RECEIVE 1

/* wait.state. */
byte tag[STRANDS];
bit due[STRANDS], runnable[STRANDS];
/* Node of strand p on channel c to send or receive (d). */
#define NODE(p, c, d) ((p) * 4 + (c) * 2 + (d))
bit linked[12];
/* A channel: which strand has its lock, how many values there are. */
byte locked[2] = FREE;
byte values[2];
#ifdef BUFFERED
#define ROOM(c) ((c) == 1 && values[1] == 0)
#else
#define ROOM(c) 0
#endif

#ifdef NOSKIP
#define PASSED(q, me, armed) 0
#else
#define PASSED(q, me, armed) (armed && q == me)
#endif
#ifdef NOGIVEWAY
#define CLAIMABLE(q, me) (tag[q] != TRYING || q == me)
#else
#define CLAIMABLE(q, me) (tag[q] != TRYING || q == me || (trying && me > q))
#endif

bit running[STRANDS];  /* its operation is under way */
bit happened[STRANDS]; /* a case of it has */
bit waits[STRANDS];    /* parked */

#define FULL(c) (values[c] > 0)

inline happens(whose)
{
    assert(running[whose] && !happened[whose]); /* [X1] */
    happened[whose] = 1
}

inline lock(on)
{
    atomic { locked[on] == FREE -> locked[on] = _pid }
}

inline unlock(on)
{
    atomic { assert(locked[on] == _pid); locked[on] = FREE }
}

/* Takes the first strand that can be claimed out of channel c's queue in direction d. partner: that strand, or NOBODY.
 * `armed`: `me` may be claimed meanwhile. lost: it was. */
inline match(own, at, way, risky)
{
    q = 0;
    partner = NOBODY;
    lost = 0;
    trying = 0;
    do
    :: gave ->
progress_yielded:
        gave = 0
    :: atomic {
        !gave && q < STRANDS && partner == NOBODY && !lost ->
        do
        :: q < STRANDS && (!linked[NODE(q, at, way)] || PASSED(q, own, risky)) -> q++
        :: else -> break
        od;
        if
#ifndef NOTRYING
        :: q < STRANDS && risky && !trying && tag[own] == ARMED -> tag[own] = TRYING; trying = 1
        :: q < STRANDS && risky && !trying && tag[own] != ARMED -> lost = 1
#endif
        :: else
        fi
       }
       atomic {
        if
        :: q == STRANDS || lost
        :: else ->
            CLAIMABLE(q, own);
            assert(running[q]); /* [W2] */
            if
            :: tag[q] == TRYING && q != own -> tag[own] = ARMED; trying = 0; gave = 1 /* [W5] */
            :: else -> d_step {
                if
#ifdef TWOCLAIMS
                :: true ->
#else
                :: tag[q] == ARMED || (tag[q] == TRYING && q == own) ->
#endif
                    assert(q != own);
                    tag[q] = WON;
                    linked[NODE(q, at, way)] = 0;
                    partner = q
#ifndef TWOCLAIMS
                :: tag[q] != ARMED && tag[q] != TRYING -> linked[NODE(q, at, way)] = 0; q++
#endif
                fi
               }
            fi
        fi
       }
    :: else -> break
    od;
    skip;
    d_step {
        if
        :: partner != NOBODY && risky -> tag[own] = IDLE
        :: partner == NOBODY && trying -> tag[own] = ARMED
        :: else
        fi;
        trying = 0;
        q = 0
    }
}

/* Under no lock any more: both have it now. */
inline hand_over(giver)
{
    d_step { happens(giver); happens(partner) }
    d_step {
        assert(!runnable[partner]); /* [W1] */
        runnable[partner] = 1;
        partner = NOBODY
    }
}

/* The wait is taken back, for something that can happen at once; lost: it was claimed. */
inline settle(taker, stands)
{
    d_step {
        if
#ifdef NORETRACT
        :: stands -> tag[taker] = IDLE
#else
        :: stands && tag[taker] == ARMED -> tag[taker] = IDLE
        :: stands && tag[taker] != ARMED -> lost = 1
#endif
        :: else
        fi
    }
}

/* Do it, if that can be done without waiting: done, lost, or neither, and then the node is linked if `link`. */
inline operation(self, where, kind, exposed, linking)
{
    lock(where);
    lost = 0;
    partner = NOBODY;
    if
    :: kind == RECEIVE && FULL(where) ->
        settle(self, exposed);
        if
        :: lost
        :: else ->
            d_step { values[where]--; happens(self); done = 1 } /* [H2] */
#ifndef NOREFILL
            match(self, where, SEND, 0);
            if
            :: partner != NOBODY -> d_step { values[where]++; happens(partner); runnable[partner] = 1; partner = NOBODY }
            :: else
            fi
#endif
        fi;
        unlock(where)
    :: !(kind == RECEIVE && FULL(where)) ->
        match(self, where, 1 - kind, exposed);
        if
        :: lost -> unlock(where)
        :: !lost && partner != NOBODY -> unlock(where); hand_over(self); done = 1
        :: !lost && partner == NOBODY && kind == SEND && ROOM(where) ->
            settle(self, exposed);
            if
            :: lost
            :: else -> d_step { values[where]++; happens(self); done = 1 }
            fi;
            unlock(where)
        :: else ->
#ifdef LINKLATE
            unlock(where);
            if
            :: linking -> linked[NODE(self, where, kind)] = 1
            :: else
            fi
#else
            d_step {
                if
                :: linking -> linked[NODE(self, where, kind)] = 1
                :: else
                fi
            }
            unlock(where)
#endif
        fi
    fi
}

/* Park, unless interrupted: done, or not. */
inline park(sleeper)
{
#ifdef NORECHECK
    retracted = 0;
#else
    d_step {
        if
        :: !lost && due[sleeper] && tag[sleeper] == ARMED -> tag[sleeper] = IDLE; retracted = 1 /* [W4] */
        :: else
        fi
    }
#endif
    if
    :: retracted
    :: else ->
        waits[sleeper] = 1;
end_parked:
        atomic { runnable[sleeper] -> runnable[sleeper] = 0; waits[sleeper] = 0 }
        d_step { done = (tag[sleeper] == WON); tag[sleeper] = IDLE }
    fi
}

inline let_go(leaver, there, sort)
{
#ifdef NOUNLINK
    skip
#else
    lock(there);
    linked[NODE(leaver, there, sort)] = 0;
    unlock(there)
#endif
}

inline leave(goer)
{
    d_step {
        assert(done == happened[goer]); /* [X1] */
        assert(done || due[goer]);
        running[goer] = 0
    }
}

/* Two cases. (That each is tried by itself first is as a plain operation, see below.) */
proctype selects(byte me; byte c0; byte d0; byte c1; byte d1)
{
    byte q, partner = NOBODY;
    bit lost, trying, gave, done, retracted, stood0, stood1;
    running[me] = 1;
    tag[me] = ARMED;
    operation(me, c0, d0, 1, 1);
    stood0 = !done && !lost;
    if
    :: stood0 -> operation(me, c1, d1, 1, 1); stood1 = !done && !lost
    :: else
    fi;
    if
    :: !done -> park(me)
    :: else
    fi;
    if
    :: stood0 -> let_go(me, c0, d0)
    :: else
    fi;
    if
    :: stood1 -> let_go(me, c1, d1)
    :: else
    fi;
    leave(me)
}

/* A plain send or receive. */
proctype alone(byte me)
{
    byte q, partner = NOBODY, c, d;
    bit lost, trying, gave, done, retracted;
    if
    :: c = 0
    :: c = 1
    fi;
    if
    :: d = SEND
    :: d = RECEIVE
    fi;
    running[me] = 1;
    lock(c);
    if
    :: d == RECEIVE && FULL(c) ->
        d_step { values[c]--; happens(me); done = 1 }
#ifndef NOREFILL
        match(me, c, SEND, 0);
        if
        :: partner != NOBODY -> d_step { values[c]++; happens(partner); runnable[partner] = 1; partner = NOBODY }
        :: else
        fi;
#endif
        unlock(c)
    :: else ->
        match(me, c, 1 - d, 0);
        if
        :: partner != NOBODY -> unlock(c); hand_over(me); done = 1
        :: partner == NOBODY && d == SEND && ROOM(c) -> d_step { values[c]++; happens(me); done = 1 } unlock(c)
        :: else ->
            tag[me] = ARMED;
            linked[NODE(me, c, d)] = 1;
            unlock(c);
            park(me);
            let_go(me, c, d)
        fi
    fi;
    leave(me)
}

proctype interrupter(byte victim)
{
    if
    :: true ->
        due[victim] = 1;
        d_step {
            if
            :: tag[victim] == ARMED -> tag[victim] = INTERRUPTED; assert(!runnable[victim]); runnable[victim] = 1
            :: else
            fi
        }
    :: true /* never */
    fi
}

#define MEET(p, r, c) (waits[p] && waits[r] && (p) != (r) && linked[NODE(p, c, SEND)] && linked[NODE(r, c, RECEIVE)])
#define MEETING(c) (MEET(0, 1, c) || MEET(0, 2, c) || MEET(1, 0, c) || MEET(1, 2, c) || MEET(2, 0, c) || MEET(2, 1, c))
#define WAITING(c, d) (linked[NODE(0, c, d)] || linked[NODE(1, c, d)] || linked[NODE(2, c, d)])

active proctype watch()
{
    atomic {
        run selects(0, 0, SEND, 1, RECEIVE);
        run selects(1, 1, SEND, 0, RECEIVE);
#ifdef THIRD
        run selects(2, 0, RECEIVE, 0, SEND);
#endif
#ifdef ALONE
        run alone(2);
#endif
        run interrupter(0)
    }
end:
    timeout ->
    d_step {
        assert(!MEETING(0) && !MEETING(1)); /* [X2] */
        assert(!(FULL(0) && WAITING(0, RECEIVE)) && !(FULL(1) && WAITING(1, RECEIVE))); /* [H1] */
        assert(!(ROOM(1) && WAITING(1, SEND)));
        assert(!(waits[0] && due[0]) && !(waits[1] && due[1])) /* [W4] */
    }
}
