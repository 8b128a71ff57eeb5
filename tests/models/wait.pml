/*
 * The one way to block: a value, a time limit and interruptions against each other, over two operations of one strand.
 *
 * MODELS    src/strand/wait.h: wait_arm, wait_claim_as, wait_claim, wait_retract, wait_over
 *           src/strand/wait.c: until, wait_time_comes
 *           src/strand/interrupt.c: interrupt_raise
 *           src/strand/end.h: ends_link
 *           src/strand/end_wait.c: ends_link_slow_, ends_unlink, end_wait, end_wait_undo
 *           Only the nodes of end.h and end_wait.c. Labels [W1] to [W4], [E2].
 * ABSTRACTS the source of the value to a list of one node that is changed under a lock (a d_step) and released outside
 *           of it, as for `ends`; the timer to a bit that is fired and stopped under a lock; making a fibre runnable to
 *           a bit; the switch (see switch.pml). An operation here waits for both sources at once. Sequentially
 *           consistent, since the words in question are written by locked instructions; NOSEQ is what a plain store
 *           would do.
 * CHECKED   [W1] one claim for each arming; [W2] no source touches the node, or fires the timer, of an operation that
 *           has returned; [W3] sources outside of a shield leave a shielded wait alone; [W4] no interruption is lost:
 *           without value and time limit the deadline ends the wait, or the end state is invalid. An operation either
 *           got the value or was interrupted, not both.
 * MACROS    NORECHECK     due is not read after arming
 *           NOSEQ         due is read before the arming is visible
 *           NOUNLINKWAIT  a node that the source has taken off its list is not waited for
 *           NOTIMERSTOP   the timer is not stopped when something else has won
 *           NOFLOOR       an interrupter does not check the floor
 *           NORETRACT     a strand that need not wait continues without retracting
 *           TWOCLAIMS     a claim does not check whether the wait is still armed
 */
/* contract 5.1 */
/* must hold */
/* must stall: -DNORECHECK */
/* must stall: -DNOSEQ */
/* must fail: -DNOUNLINKWAIT */
/* must fail: -DNOTIMERSTOP */
/* must fail: -DNOFLOOR */
/* must fail: -DNORETRACT */
/* must fail: -DTWOCLAIMS */

#define OPERATIONS 2

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3

/* wait.state: one word in the code. */
byte tag, epoch, floor;
byte due;
bit runnable; /* claimed, and made runnable: the strand goes on */

/* The wait node, and the source of the value. */
byte node_epoch;
bit listed;  /* in the source's list */
bit linked;  /* from the linking until the source has released it */
bit over;    /* the source has the value: linking finds it */
bit pending; /* the timer */

byte now;       /* the operation that is under way; 0: none */
byte node_of;   /* the one that the node was linked for */
bit given;      /* the source's claim has won it */

#ifdef TWOCLAIMS
#define CLAIMABLE (epoch == node_epoch)
#else
#define CLAIMABLE (epoch == node_epoch && tag == ARMED)
#endif

inline made_runnable()
{
    assert(!runnable); /* [W1] */
    runnable = 1
}

proctype source()
{
    bit mine;
    if
    :: d_step { over = 1; mine = listed; listed = 0 }
    :: skip /* it never has one */
    fi;
    if
    :: mine ->
        d_step {
            assert(now && now == node_of); /* [W2] */
            if
            :: CLAIMABLE -> tag = WON; given = 1; made_runnable()
            :: else
            fi
        }
        d_step { assert(now && now == node_of); linked = 0 }
    :: else
    fi
}

proctype clock()
{
end:
    do
    :: d_step {
        pending ->
        assert(now); /* [W2] */
        pending = 0;
        if
        :: CLAIMABLE -> tag = WON; made_runnable()
        :: else
        fi
       }
    od
}

/* Source number `index` holds from now on. */
proctype interrupter(byte index)
{
    byte seen = due;
    do
    :: seen <= index ->
        if
        :: d_step { due == seen -> due = index + 1 } break
        :: d_step { due != seen -> seen = due }
        fi
    :: else -> break
    od;
    atomic {
        if
#ifdef NOFLOOR
        :: tag == ARMED ->
#else
        :: tag == ARMED && index >= floor -> /* [W3] */
#endif
            assert(index >= floor);
            tag = INTERRUPTED;
            made_runnable()
        :: else
        fi
    }
}

/* Nobody holds node or timer afterwards [W2]. */
inline let_go()
{
    d_step {
        if
        :: listed -> listed = 0; linked = 0
        :: else
        fi
    }
#ifndef NOUNLINKWAIT
    !linked; /* [E2] */
#endif
#ifndef NOTIMERSTOP
    pending = 0
#endif
}

inline retract()
{
    d_step {
        if
#ifdef NORETRACT
        :: true -> tag = IDLE; retracted = 1
#else
        :: tag == ARMED -> tag = IDLE; retracted = 1
        :: else
#endif
        fi
    }
}

inline resume()
{
    runnable;
    d_step { runnable = 0; how = tag; tag = IDLE }
    let_go()
}

inline operation(below)
{
#ifdef NOSEQ
    seen = due;
#endif
    d_step { epoch++; tag = ARMED; floor = below; node_epoch = epoch }
    d_step { node_of = now; linked = 1 }
    d_step {
        if
        :: over -> linked = 0; found = 1
        :: else -> listed = 1
        fi
    }
    if
    :: pending = 1
    :: skip /* no time limit */
    fi;
#ifndef NOSEQ
    seen = due; /* [W4] */
#endif
#ifdef NORECHECK
    seen = 0;
#endif
    if
    :: found || seen > below -> retract()
    :: else
    fi;
    if
    :: retracted -> let_go(); how = (found -> WON : INTERRUPTED)
    :: else -> resume()
    fi
}

active proctype strand()
{
    byte i, below, seen, how;
    bit found, retracted;
    run source();
    run clock();
    run interrupter(0); /* a cancel, outside of the shield */
    run interrupter(1); /* a deadline inside of it */
    do
    :: i < OPERATIONS ->
        i++;
        if
        :: below = 0
        :: below = 1 /* shielded */
        fi;
        now = i;
        if
        :: due > below /* thrown before anything is done */
        :: else ->
            operation(below);
            assert(how == WON || how == INTERRUPTED);
            assert(how == WON || (due > below && !given));
        fi;
        d_step { now = 0; seen = 0; how = 0; found = 0; retracted = 0; given = 0 }
    :: else -> break
    od
}
