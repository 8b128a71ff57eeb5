/*
 * The end of a strand, against its owner (which joins, is interrupted, leaves, or hands it off) and against an
 * unrelated strand that waits.
 *
 * MODELS    src/strand/end.h: end_strand, ends_link, end_consume
 *           src/strand/end.c: publish, wake_waiters, end_wake
 *           src/strand/end_wait.c: ends_lock, ends_link_slow_, ends_unlink, end_wait
 *           src/strand/join.c: await_slowly, interrupted_by_it, recheck, strand_wait, move
 *           src/strand/leave.c: drain
 *           src/strand/handle.c: handle_ref_take, handle_ref_release, handle_ref_cb, handle_unref_cb
 *           src/strand/scope_ends.c: record_end, scope_child_ended, scope_receive, scope_forget, scope_ends_consume_slow_
 *           Labels [E1] [E2] [E3] [C1] [C2].
 * ABSTRACTS the list of wait nodes to a set; serials to one bit: once the control block is freed, every handle is
 *           stale; a scope's lock to d_step; `expected` (see scope.pml) to the new owner's waiting until it has the
 *           child; the interruptions of owner and unrelated strand to one each, which may come at any time or never.
 *           Spinning is a guard.
 * CHECKED   [E1] no process touches the control block once its memory may serve another strand; [E2] every linked node
 *           is released once, while its operation is still under way; [E3] [C2] when the end of a failed child can be
 *           seen, its scope has been raised; [C1] a child never ends into a scope that has been left; a woken waiter
 *           finds the end; all processes end.
 * MACROS    HANDOFF        the owner hands the child off to another one instead of joining it
 *           NOTIFY         the scope that the child ends in is notified of every end (STRAND_COLLECT). With HANDOFF
 *                          only the new one is
 *           NOUNLINKWAIT   an interrupted waiter does not wait for the end that is under way
 *           RAISELATE      the failure is raised after OVER
 *           UNLOCKLATE     OVER and the lock's release are two stores
 *           WAKEEARLY      a waiter runs before OVER
 *           NOREF          the unrelated strand takes no reference to the strand that it waits for
 *           NOHANDLOCK     a hand-off does not lock the child's end
 *           NOLETGO        the end releases only nodes whose waits it has won
 *           NOOVER         linking does not check whether the end has come
 */
/* contract 4.10, 4.17 */
/* must hold */
/* must hold: -DNOTIFY */
/* must hold: -DHANDOFF */
/* must hold: -DHANDOFF -DNOTIFY */
/* must stall: -DNOLETGO */
/* must stall: -DNOOVER */
/* must fail: -DNOUNLINKWAIT */
/* must fail: -DRAISELATE */
/* must fail: -DUNLOCKLATE */
/* must fail: -DWAKEEARLY */
/* must fail: -DNOREF */
/* must fail: -DHANDOFF -DNOHANDLOCK */
/* large */

#define OWNER 0
#define UNRELATED 1
#define HEIR 2 /* the owner after a hand-off */
#define NOBODY 3

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3

/* The child's word and ends. */
bit freed, dead;
byte handle_refs;
bit locked, over;
#ifndef NOTIFY
#define NOTIFIES(w) 0
#elif defined(HANDOFF)
#define NOTIFIES(w) (w == HEIR)
#else
#define NOTIFIES(w) 1
#endif
bit notify = NOTIFIES(OWNER);
byte waiting;        /* a set of waiters: whose nodes are in the list */
bit failed;          /* its outcome */
byte anchor = OWNER; /* whose scope */

/* Scopes, by owner. */
bit left[3];
byte listed[3]; /* ended children that are listed */
byte raised[3];

/* Waiters. */
byte tag[3];
bit masked[3], due[3], cancelled[3], runnable[3], linked[3];
bit now[3]; /* an operation is under way */

#define HAS(set, w) ((set >> w) & 1)
#define TOUCH assert(!freed)

/* The scope's side of an end, under its lock. */
inline notify_scope(failing)
{
    d_step {
        TOUCH;
        assert(!left[anchor]); /* [C1] */
        listed[anchor]++;
        if
        :: failing && !NOTIFIES(anchor) -> raised[anchor] = 1; due[anchor] = 1
        :: else
        fi;
        if
        :: due[anchor] && !masked[anchor] && tag[anchor] == ARMED ->
            tag[anchor] = INTERRUPTED;
            batch = batch | (1 << anchor)
        :: else
        fi
    }
}

inline deliver()
{
    d_step {
        if
        :: HAS(batch, 0) -> assert(!runnable[0]); runnable[0] = 1
        :: else
        fi;
        if
        :: HAS(batch, 1) -> assert(!runnable[1]); runnable[1] = 1
        :: else
        fi;
        if
        :: HAS(batch, 2) -> assert(!runnable[2]); runnable[2] = 1
        :: else
        fi;
        batch = 0
    }
}

inline wake_one(w)
{
    if
    :: HAS(mine, w) ->
        d_step {
            assert(now[w] && linked[w]); /* [E2] */
            if
            :: tag[w] == ARMED -> tag[w] = WON; batch = batch | (1 << w)
            :: else
            fi
        }
#ifdef NOLETGO
        d_step {
            if
            :: HAS(batch, w) -> linked[w] = 0
            :: else
            fi
        }
#else
        d_step { assert(now[w] && linked[w]); linked[w] = 0 }
#endif
    :: else
    fi
}

inline wake_waiters()
{
    wake_one(0);
    wake_one(1);
    wake_one(2)
#ifdef WAKEEARLY
    ; deliver()
#endif
}

/* Only one of the two, as ends is one word. */
inline publish_over()
{
    d_step {
        TOUCH;
        over = 1;
        waiting = 0;
#ifndef UNLOCKLATE
        locked = 0
#endif
    }
#ifdef UNLOCKLATE
    d_step { TOUCH; locked = 0 }
#endif
}

proctype child()
{
    byte mine, batch;
    if
    :: failed = 1
    :: skip
    fi;
    if
    :: atomic { !failed && !notify && !locked -> TOUCH; over = 1; mine = waiting; waiting = 0 }
        wake_waiters()
    :: atomic { (failed || notify) && !locked -> TOUCH; locked = 1; mine = waiting }
        wake_waiters();
#ifdef RAISELATE
        publish_over();
        notify_scope(failed)
#else
        if
        :: failed || notify -> notify_scope(failed) /* [E3] */
        :: else
        fi;
        publish_over()
#endif
    fi;
    deliver() /* [E1] nodes and fibres of others, from here on */
}

inline unref()
{
    d_step {
        TOUCH;
        assert(handle_refs);
        handle_refs--;
        if
        :: dead && !handle_refs -> freed = 1
        :: else
        fi
    }
}

/* After an interrupted wait. */
inline unlink()
{
    if
    :: atomic { !freed && !dead -> handle_refs++ }
        atomic { !locked -> TOUCH; locked = 1 }
        d_step {
            TOUCH;
            if
            :: HAS(waiting, me) -> waiting = waiting & ~(1 << me); assert(linked[me]); linked[me] = 0
            :: else
            fi;
            locked = 0
        }
        unref()
    :: freed || dead
    fi;
#ifndef NOUNLINKWAIT
    !linked[me] /* [E2] */
#endif
}

/* end_wait: `won` says whether the end was seen. */
inline end_wait(has_ref)
{
    d_step { assert(tag[me] == IDLE); tag[me] = ARMED; now[me] = 1; linked[me] = 1 }
    if
#ifdef NOOVER
    :: d_step { !locked -> TOUCH; waiting = waiting | (1 << me); mine = 1 }
#else
    :: d_step { over -> TOUCH; linked[me] = 0; mine = 0 }
    :: d_step { !over && !locked -> TOUCH; waiting = waiting | (1 << me); mine = 1 }
#endif
    fi;
    if
    :: has_ref -> unref()
    :: else
    fi;
    if
    :: atomic { (!mine || (due[me] && !masked[me])) && tag[me] == ARMED -> tag[me] = IDLE; won = !mine } /* retracted */
    :: else -> atomic { runnable[me] -> runnable[me] = 0; won = (tag[me] == WON); tag[me] = IDLE }
    fi;
    if
    :: mine && !won -> unlink()
    :: else
    fi;
    d_step { now[me] = 0; mine = 0 }
}

/* Until it has ended; an interruption ends the join, and then the scope is left. */
inline see_it_end()
{
    do
    :: TOUCH; over -> break
    :: !over ->
        end_wait(0);
        if
        :: !won && due[me] ->
            if
            :: raised[me] && !cancelled[me] -> over /* interrupted_by_it */
            :: else -> masked[me] = 1 /* thrown: the scope is left */
            fi
        :: else
        fi
    od;
    assert(!failed || raised[me] || NOTIFIES(me)); /* [E3] */
    assert(listed[me] == (failed || NOTIFIES(me)))
}

inline consume()
{
    d_step {
        assert(anchor == me && over && !freed && !dead);
        if
        :: handle_refs -> dead = 1
        :: else -> freed = 1
        fi
    }
    left[me] = 1
}

inline hand_off()
{
#ifndef NOHANDLOCK
    atomic { !locked -> TOUCH; locked = 1 }
#endif
    if
    :: over ->
#ifndef NOHANDLOCK
        locked = 0;
#endif
        d_step { assert(listed[me] == failed); listed[me] = 0; raised[me] = 0 } /* scope_forget */
        atomic {
            anchor = HEIR;
            if
            :: failed || NOTIFIES(HEIR) -> notify_scope(failed)
            :: else
            fi
        }
        deliver()
    :: else ->
        skip; /* take_out */
        d_step { TOUCH; anchor = HEIR }
#ifndef NOHANDLOCK
        d_step { TOUCH; locked = 0; notify = NOTIFIES(HEIR) }
#endif
    fi;
    left[me] = 1
}

proctype owner(byte me)
{
    bit mine, won;
    byte batch;
#ifdef HANDOFF
    if
    :: me == OWNER -> hand_off()
    :: me == HEIR -> anchor == HEIR; masked[me] = 1; see_it_end(); consume()
    fi
#else
    see_it_end();
    consume()
#endif
}

proctype unrelated(byte me)
{
    bit mine, won;
    if
#ifdef NOREF
    :: !freed && !dead -> end_wait(0)
#else
    :: atomic { !freed && !dead -> handle_refs++ } end_wait(1)
#endif
        assert(!won || over)
    :: freed || dead
    fi
}

proctype interrupter(byte w)
{
    if
    :: atomic { cancelled[w] = 1; due[w] = 1 }
        if
        :: atomic { !masked[w] && tag[w] == ARMED -> tag[w] = INTERRUPTED; assert(!runnable[w]); runnable[w] = 1 }
        :: else
        fi
    :: skip
    fi
}

init
{
    atomic {
        run child();
        run owner(OWNER);
        run unrelated(UNRELATED);
        run interrupter(UNRELATED);
#ifdef HANDOFF
        run owner(HEIR)
#else
        run interrupter(OWNER)
#endif
    }
}
