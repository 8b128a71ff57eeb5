/*
 * A thread that leaves its pool, is called back, or starts again, while others post to its inbox.
 *
 * MODELS    src/sched/resize.c: thread_goes_, send_away, call_back, add_thread, grow, shrink, pool_resize, pool_pin,
 *           pool_unpin
 *           src/sched/inbox.c: pool_post_fibre, pool_pass_on, has_queue
 *           Labels [Z1] [Z2].
 * ABSTRACTS the pool to two threads: thread 0, which stays, and thread 1, which leaves and comes back. Inboxes to
 *           numbers: a thread runs the fibres that it has taken at once, or hands them over if it must leave first. No
 *           stealing, as under full load. Resizing and pinning hold the pool's lock of resizing, so each is one step
 *           for the other. An idle thread sleeps until its inbox is not empty (see seeker.pml for the wake-ups), or
 *           until it is roused.
 * CHECKED   each fibre runs. A record has one thread at a time. No fibre is pinned to a thread that leaves. In the end
 *           the number of threads is the wanted one.
 * MACROS    REFUSED      the system has no second thread for the record
 *           NOPASS       then the fibres posted to it meanwhile stay there
 *           NOLOOK       a poster does not check whether the thread has left
 *           INBOXFIRST   the thread hands its inbox over before it publishes that it has left
 *           NOINBOX      it does not hand it over
 *           KEEPS        a poster leaves its fibre in the inbox of a thread that has left
 *           CALLBLIND    a thread is called back without checking whether it has left
 *           TWOLIVES     a thread starts in a record before the previous one has ended
 *           NOROUSE      a sleeping thread is not roused to leave
 *           SLEEPSBLIND  a thread goes to sleep without checking whether it must leave
 *           PINBLIND     pinning does not check whether the thread stays
 *           SHRINKBLIND  resizing does not check for pinned strands
 */
/* V-10, contract 2.14 */
/* must hold */
/* must hold: -DREFUSED */
/* must stall: -DREFUSED -DNOPASS */
/* must stall: -DNOLOOK */
/* must stall: -DINBOXFIRST */
/* must stall: -DNOINBOX */
/* must stall: -DKEEPS */
/* must stall: -DCALLBLIND */
/* must fail: -DTWOLIVES */
/* must stall: -DNOROUSE */
/* must stall: -DSLEEPSBLIND */
/* must fail: -DPINBLIND */
/* must fail: -DSHRINKBLIND */

#define FIBRES 2

#define NONE 0
#define HERE 1
#define LEAVING 2
#define GONE 3

byte life = HERE; /* of the thread that goes and comes */
bit leave;        /* SWITCH_LEAVE */
byte inbox[2];
byte size = 2;
byte alive = 1; /* threads of the system in its record */
byte ran, posters;
byte pins; /* pinned.strands */
bit resizing;
bit lock, asleep, wake;
byte shrinks = 2, pinners = 1;
bit over; /* nobody resizes any more */

/* ---- a thread that makes a fibre runnable that the thread ran last ---- */

proctype poster()
{
    byte missed;
    bit has_queue;
    inbox[1]++; /* [Z1] */
#ifndef NOLOOK
    has_queue = (life == HERE);
    if
    :: !has_queue -> has_queue = (life == LEAVING)
    :: else
    fi;
    if
    :: !has_queue ->
#ifndef KEEPS
        d_step { missed = inbox[1]; inbox[1] = 0 }
        inbox[0] = inbox[0] + missed;
        missed = 0
#endif
    :: has_queue
    fi;
#endif
    posters--
}

/* ---- threads ---- */

active proctype stays()
{
end:
    do
    :: atomic { inbox[0] > 0 -> inbox[0]--; ran++ }
    od
}

inline hand_over()
{
#ifdef NOINBOX
    skip
#else
    if
    :: inbox[1] -> d_step { taken = inbox[1]; inbox[1] = 0 } inbox[0] = inbox[0] + taken; taken = 0
    :: !inbox[1]
    fi
#endif
}

proctype goes()
{
    byte taken;
loop:
    assert(alive == 1);
    if
    :: leave ->
#ifdef INBOXFIRST
        hand_over();
#endif
        if
        :: atomic { life == LEAVING -> life = GONE } goto out
        :: life != LEAVING -> /* called back: it continues, and the resizer is about to publish that */
            !leave || life == LEAVING || inbox[1] > 0
        fi
    :: !leave
    fi;
    if
    :: atomic { inbox[1] > 0 -> assert(life != NONE); inbox[1]--; ran++ } goto loop
    :: !inbox[1] && !leave
    :: !inbox[1] && leave -> goto loop
    fi;
    atomic { !lock -> lock = 1 } /* thread_to_asleep */
#ifdef SLEEPSBLIND
    d_step { asleep = 1; wake = 0; lock = 0 }
#else
    d_step {
        if
        :: !leave -> asleep = 1; wake = 0
        :: leave
        fi;
        lock = 0
    }
#endif
end_asleep:
    if
    :: !asleep && !wake -> goto loop
    :: wake
    :: inbox[1] > 0
    fi;
    d_step { asleep = 0; wake = 0 }
    goto loop;
out:
#ifndef INBOXFIRST
    hand_over();
#endif
    alive--
}

/* ---- who resizes ---- */

inline shrink()
{
    if
#ifndef SHRINKBLIND
    :: pins /* [Z2] */
#endif
    :: else ->
        size = 1;
        life = LEAVING;
        assert(!pins); /* [Z2] */
        leave = 1;
#ifndef NOROUSE
        atomic {
            !lock ->
            if
            :: asleep -> wake = 1; asleep = 0
            :: else
            fi
        }
#endif
    fi
}

inline join()
{
#ifndef TWOLIVES
    alive == 0;
#endif
    life = NONE
}

inline grow()
{
#ifdef CALLBLIND
    if
    :: life == LEAVING -> life = HERE; leave = 0
#else
    if
    :: atomic { life == LEAVING -> life = HERE } leave = 0
#endif
    :: life == GONE ->
        join();
#ifdef REFUSED
        d_step { leave = 0; life = HERE }
        life = NONE;
#ifndef NOPASS
        d_step { missed = inbox[1]; inbox[1] = 0 } /* [Z1] */
        inbox[0] = inbox[0] + missed;
        missed = 0;
#endif
        goto refused
#else
        d_step { leave = 0; life = HERE; alive++; assert(alive == 1) }
        run goes()
#endif
    fi;
    size = 2
}

active proctype resizer()
{
    byte missed;
    do
    :: shrinks > 0 ->
        shrinks--;
        atomic { !resizing -> resizing = 1 }
        if
        :: size == 2 -> shrink()
        :: size == 1 -> grow()
        fi;
refused:
        resizing = 0
    :: shrinks == 0 -> break
    od;
    over = 1
}

/* A strand that is pinned to the thread, and ends. */
active proctype pinner()
{
    atomic { !resizing -> resizing = 1 }
    if
#ifdef PINBLIND
    :: true
#else
    :: size == 2 ->
#endif
        pins++;
        resizing = 0;
        assert(life == HERE); /* [Z2] */
        pins--
#ifndef PINBLIND
    :: size == 1 -> resizing = 0
#endif
    fi;
    pinners--
}

init
{
    atomic {
        posters = FIBRES;
        run goes();
        run poster();
        run poster()
    }
    over && !posters && !pinners;
    ran == FIBRES; /* [Z1] */
    (size == 2 -> life == HERE && alive == 1 : (life == GONE || life == NONE) && alive == 0)
}
