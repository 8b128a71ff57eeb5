/*
 * A strand that waits for quiescence or for the end of a system of actors, against that end. Another strand keeps the
 * run from becoming quiescent until the first one returns.
 *
 * MODELS    src/run/quiescence.c: quiescence_wait_or, wait_for, link_waiter, unlink_waiter, wake, quiescence_wake
 *           Labels [Q7] [W1] [W4].
 * ABSTRACTS the list of waiters to a bit. Interruptions are left out. end_system (src/actor/life.c) is the only thread
 *           that ends the wait.
 * CHECKED   [Q7] the strand returns. No thread uses its node afterwards.
 * MACROS    SLOTLATE   the strand publishes itself after it has read the flag for the last time
 *           LOOKONCE   it does not read the flag after it is linked
 *           ASKFIRST   the ending thread reads the slot before it sets the flag
 *           NOUNLINK   the strand leaves its node in the list
 */
/* must hold */
/* must stall: -DSLOTLATE */
/* must stall: -DLOOKONCE */
/* must stall: -DASKFIRST */
/* must fail: -DNOUNLINK */

#define IDLE 0
#define ARMED 1
#define WON 2

bit has_ended, slot, lock, linked, returned;
byte tag = IDLE;

#define LOCK atomic { !lock -> lock = 1 }

proctype joiner()
{
    bit happened;

#ifndef SLOTLATE
    slot = 1; /* [Q7] */
#endif
    if
    :: has_ended -> goto over /* [Q7] */
    :: else
    fi;
    tag = ARMED;
    LOCK;
    linked = 1;
    lock = 0;
#ifndef LOOKONCE
    happened = has_ended; /* [Q7] */
#endif
#ifdef SLOTLATE
    slot = 1;
#endif
    d_step {
        if
        :: happened && tag == ARMED -> tag = IDLE /* wait_retract [W4] */
        :: else
        fi
    }
    tag != ARMED;
#ifndef NOUNLINK
    LOCK;
    linked = 0;
    lock = 0;
#endif
over:
    returned = 1
}

/* end_system */
proctype ender()
{
    bit joins;

#ifdef ASKFIRST
    joins = slot;
    has_ended = 1;
#else
    has_ended = 1; /* [Q7] */
    joins = slot;  /* [Q7] */
#endif
    if
    :: joins ->
        LOCK;
        if
        :: linked ->
            assert(!returned);
            linked = 0;
            d_step {
                if
                :: tag == ARMED -> tag = WON /* [W1] */
                :: else
                fi
            }
        :: else
        fi;
        lock = 0
    :: else
    fi
}

init {
    atomic {
        run joiner();
        run ender()
    }
}
