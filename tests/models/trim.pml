/*
 * A shared fibre in the list of those that may be trimmed: when it is recorded, trimmed, and gone.
 *
 * MODELS    src/sched/trim.c: trim_record_, trim_forget, must_be_trimmed, take_idle, begin_round, go_on, trim_continue_, arm
 *           src/sched/shared_fibre.c: shared_fibre_trim_idle
 *           src/sched/shared_open.c: shared_fibre_keep_if_known
 *           Labels [SF7].
 * ABSTRACTS the fibre's mail to whether a thread holds it (residency.pml has it), the list to whether the one fibre is in
 *           it, what its lock covers and each compare-and-swap to single steps, the timer to a bit that fires at any
 *           time, rounds to their number modulo 4: nothing is older than 2. There is memory for the timer.
 * PARTIES   two users of the fibre, which run on it, one of them twice, and then let go of it; its opener, which lets go
 *           at any time; the seeker, which makes rounds.
 * CHECKED   no party touches a fibre that was given back, which happens once. When no more round comes nothing is left
 *           that was used and not trimmed. Rounds come to an end.
 * MACROS    KEEPS        a round keeps a fibre without references
 *           STAYS        the thread that gives a fibre back leaves it in the list
 *           ONCE         the timer is started by the first record only
 *           UNSEEN       a thread that comes to run does not look at the round
 *           FOREVER      a round starts the timer again though the list is empty
 */
/* must hold */
/* must fail: -DKEEPS */
/* must fail: -DSTAYS */
/* must fail: -DONCE */
/* must fail: -DUNSEEN */
/* must stall: -DFOREVER */

#define USERS 2

byte round = 1, used;
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
        d_step { TOUCH; listed = 0 } /* trim_forget */
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
        new = (used != round);
#endif
        if
        :: new ->
            d_step {
                used = round;
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
    bit found, last, idle;
end:
    do
    :: armed ->
        round = (round + 1) % 4;
        d_step {
            idle = 0;
            if
            :: listed -> TOUCH; idle = (used != round && used != (round + 3) % 4)
            :: else
            fi;
            if
            :: idle && held -> used = round
#ifdef KEEPS
            :: idle && !held -> found = 1
#else
            :: idle && !held && refs > 0 -> found = 1
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
