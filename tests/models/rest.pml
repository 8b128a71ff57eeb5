/*
 * A shared fibre in the list of those that may rest: who is noted, who is trimmed, and who is gone.
 *
 * MODELS    src/sched/rest.c: rest_note_, rest_forget, has_rested, take_rested, begin_round, go_on, rest_look_, arm
 *           src/sched/shared_fibre.c: shared_fibre_rest
 *           src/sched/shared_open.c: shared_fibre_keep_if_known
 *           Labels [SF7].
 * ABSTRACTS the fibre's mail to whether somebody holds it (residency.pml has it), the list to whether the one fibre is in
 *           it, what its lock covers and each compare-and-swap to single steps, the timer to a bit that fires at any time, eras to
 *           their number modulo 4: nothing is older than 2. There is memory for the timer.
 * PARTIES   two users of the fibre, who run on it, one twice, and then let go of it; whoever opened it, who lets go at any
 *           time; the seeker, which makes rounds.
 * CHECKED   nobody touches a fibre that was given back, which happens once. When no round is to come any more nothing
 *           is left that was used and not trimmed. Rounds come to an end.
 * MACROS    KEEPS        a round keeps a fibre that nobody knows any more
 *           STAYS        who gives a fibre back leaves it in the list
 *           ONCE         the timer is started by the first note only
 *           UNSEEN       who comes to run does not look at the era
 *           FOREVER      a round starts the timer again though the list is empty
 */
/* must hold */
/* must fail: -DKEEPS */
/* must fail: -DSTAYS */
/* must fail: -DONCE */
/* must fail: -DUNSEEN */
/* must stall: -DFOREVER */

#define USERS 2

byte era = 1, used;
bit listed, armed, ever_armed;
bit held;    /* mail is not SHARED_IDLE */
bit dirty;   /* it has memory that it does not need, or will have */
bit freed;
byte refs = USERS + 1;
byte users = USERS;

#define TOUCH assert(!freed)

/* The last one gives it back. */
inline release()
{
    d_step { TOUCH; refs--; last = (refs == 0) }
    if
    :: last ->
#ifndef STAYS
        d_step { TOUCH; listed = 0 } /* rest_forget */
#endif
        d_step { TOUCH; freed = 1 }
    :: else
    fi;
    last = 0
}

proctype user(byte uses)
{
    bit new, last;
    do
    :: uses > 0 ->
        atomic { !held -> TOUCH; held = 1 }
#ifdef UNSEEN
        new = (used == 0);
#else
        new = (used != era);
#endif
        if
        :: new ->
            d_step {
                used = era;
                listed = 1;
#ifdef ONCE
                if
                :: !ever_armed -> armed = 1; ever_armed = 1
                :: else
                fi
#else
                armed = 1
#endif
            }
        :: else
        fi;
        new = 0;
        dirty = 1;
        d_step { TOUCH; held = 0 }
        uses--
    :: uses == 0 -> break
    od;
    release();
    users--
}

proctype opener()
{
    bit last;
    release()
}

proctype seeker()
{
    bit found, last, rested;
end:
    do
    :: armed ->
        era = (era + 1) % 4;
        d_step {
            rested = 0;
            if
            :: listed -> TOUCH; rested = (used != era && used != (era + 3) % 4)
            :: else
            fi;
            if
            :: rested && held -> used = era
#ifdef KEEPS
            :: rested && !held -> found = 1
#else
            :: rested && !held && refs > 0 -> found = 1
#endif
            :: else
            fi;
            if
            :: found -> refs++; listed = 0
            :: else
            fi
        }
        if
        :: found ->
            if
            :: atomic { !held -> TOUCH; held = 1 }
                dirty = 0;
                d_step { TOUCH; held = 0 }
            :: atomic { held -> TOUCH }
            fi;
            found = 0;
            release()
        :: else
        fi;
#ifdef FOREVER
        armed = 1
#else
        d_step { armed = listed }
progress:
        skip
#endif
    od
}

init
{
    run user(2);
    run user(1);
    run opener();
    run seeker();
    users == 0 && !armed;
    assert(refs == 0 || !dirty)
}
