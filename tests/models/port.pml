/*
 * A port: a sender never waits, no receiver is forgotten, and no message is lost.
 *
 * MODELS    src/sync/port.c: ref_port, unref_port, notify_receiver, claim, publish, put, strand_port_send,
 *           strand_port_close, arrive, box_drop, await_senders, port_end
 *           src/sync/port_receive.c: give_back, port_take_arrived, hand_over, port_end_waits, wants, port_settle,
 *           examine, strand_port_receive, receive_ready, receive_handed
 *           Labels [PT1] [PT2] [PT3] [PT4] [PT5].
 * ABSTRACTS a message to its number; the pool's posts to a number, of which a thread of the pool takes one at a time
 *           (see seeker.pml, posts.pml); the serial to one bit: once the port's memory is freed, every handle is stale;
 *           interruptions of waiters away (see wait.pml); spinning to a guard.
 * PARTIES   a thread that sends a message; a handler that interrupts it anywhere, sends one, and returns; the thread of
 *           the pool that takes posts; a strand that receives until the port is over; a closer. Two slots. Each macro
 *           adds one thing, because all of them together would have too many states.
 * CHECKED   [PT1] the handler ends wherever it interrupts; a slot has one user at a time. [PT2] every message is
 *           received or dropped, once; those of one thread in order. [PT3] all end, although the port is closed only
 *           when all messages have been received. [PT4] when a receive returns that the port is over, all messages have
 *           been received, and no more come. [PT5] no process touches the port, or its box, once the memory may have
 *           another use.
 * MACROS    OTHER        the second sender is another thread instead of a handler
 *           TWICE        each sender sends two messages
 *           PAIR         there are two receivers
 *           EARLY        the port is closed at any time
 *           LEFT         its scope is left at any time, without a close; the receiver belongs to no scope
 *           LOCKED       slots are claimed under a lock
 *           NOTAG        a slot is claimed without checking that the first one still has the same successor
 *           TELLEARLY    a sender notifies before it publishes
 *           WANTSBLIND   a receiver that is about to wait does not check again
 *           OVERBLIND    it does not check whether the port is over
 *           WAKESTAYS    a notified receiver does not allow the next notification
 *           WAKELATE     it allows that after it has checked
 *           LASTSILENT   the party that makes the port over notifies nobody
 *           OVEREARLY    the port is over as soon as it is closed, even while a sender is inside
 *           OVERLATE     whether the port is over is read after the arrived messages are taken
 *           CLOSEDIN     a closed port takes messages
 *           NOREFWAIT    the end does not wait for senders
 *           NOREFPOST    a post on its way has no reference to the box
 *           NOREFSLOT    a receiver's slot has no reference to the box
 */
/* contract 1.3 */
/* must hold */
/* must hold: -DOTHER */
/* must hold: -DEARLY */
/* must hold: -DLEFT */
/* must hold in states: -DTWICE */
/* must hold in states: -DPAIR */
/* must hold in states: -DEARLY -DOTHER */
/* must hold in states: -DLEFT -DOTHER */
/* must stall: -DLOCKED */
/* must stall: -DTELLEARLY */
/* must stall: -DWANTSBLIND */
/* must stall: -DEARLY -DOVERBLIND */
/* must stall: -DWAKESTAYS */
/* must stall: -DWAKELATE */
/* must stall: -DLASTSILENT */
/* must fail: -DTWICE -DNOTAG */
/* must fail: -DEARLY -DOVEREARLY */
/* must fail: -DEARLY -DOVERLATE */
/* must fail: -DEARLY -DCLOSEDIN */
/* must fail: -DLEFT -DNOREFWAIT */
/* must fail: -DLEFT -DNOREFPOST */
/* must fail: -DLEFT -DNOREFSLOT */
/* large */

#define SLOTS 2
#define MESSAGES 4 /* the thread sends 1 and 2, the other sender 3 and 4 */

#ifdef PAIR
#define RECEIVERS 2
#else
#define RECEIVERS 1
#endif

#define NONE 0
#define WANTED 1
#define POSTED 2

#define OVER 1
#define MESSAGE 2

/* The port. */
bit freed, closed, over;
byte handle_refs;
bit locked;
byte first, last; /* the ready slots */
byte waiting;     /* a set */

/* The box. */
bit lost; /* its memory */
byte refs = 1;
byte free = 1, tag;
byte next[SLOTS + 1];
byte content[SLOTS + 1];
byte arrived;
byte wake;

byte travelling; /* posts of the pool */
byte given[2], why[2];
bit runnable[2];

bit handling;
byte senders = 2;
byte receivers = RECEIVERS;
bit closing; /* the closer has left */

bit taken[SLOTS + 1], came[MESSAGES + 1];
byte sent, received, dropped;
bit reported; /* a receive has reported the end of the port */

#define HAS(set, k) ((set >> (k)) & 1)
#define TOUCH assert(!freed)
#define TOUCH_BOX assert(!lost)

inline lock()
{
    atomic { !locked -> TOUCH; locked = 1 }
}

/* In a d_step. */
inline drop_box()
{
    TOUCH_BOX;
    refs--;
    lost = (refs == 0)
}

/* ---- sending ---- */

inline claim()
{
    slot = 0;
    d_step { TOUCH_BOX; f = free; t = tag }
    do
    :: f ->
        rest = next[f];
        d_step {
            TOUCH_BOX;
            if
#ifdef NOTAG
            :: free == f ->
#else
            :: free == f && tag == t ->
#endif
                assert(!taken[f]); /* [PT1] */
                taken[f] = 1;
                free = rest;
                tag++;
                slot = f
            :: else -> f = free; t = tag
            fi
        }
        if
        :: slot -> break
        :: else
        fi
    :: !f -> break
    od
}

inline publish()
{
    d_step { TOUCH_BOX; f = arrived; rest = slot }
    do
    :: rest ->
        next[slot] = f;
        d_step {
            TOUCH_BOX;
            if
            :: arrived == f -> arrived = slot; rest = 0; sent++; assert(!reported) /* [PT4] */
            :: else -> f = arrived
            fi
        }
    :: else -> break
    od
}

inline notify_receiver()
{
    if
    :: d_step { wake == WANTED -> TOUCH_BOX; f = 1 }
        d_step {
            TOUCH_BOX;
            if
            :: wake == WANTED -> wake = POSTED
            :: else -> f = 0
            fi
        }
        if
#ifdef NOREFPOST
        :: f -> d_step { TOUCH_BOX; travelling++ }
#else
        :: f -> d_step { TOUCH_BOX; refs++; travelling++ }
#endif
        :: else
        fi
    :: wake != WANTED
    fi;
    f = 0
}

inline unref()
{
    t = 1;
    do
    :: t ->
        d_step {
            TOUCH;
            assert(handle_refs);
            if
            :: handle_refs == 1 && closed && !over -> over = 1
            :: else -> handle_refs--; t = 0
            fi
        }
        if
        :: !t -> break
#ifndef LASTSILENT
        :: t -> notify_receiver()
#endif
        :: else
        fi
    od
}

inline send(message)
{
    if
#ifdef CLOSEDIN
    :: d_step { freed -> slot = 0 }
    :: d_step { !freed -> handle_refs++ }
#else
    :: d_step { freed || closed -> slot = 0 }
    :: d_step { !freed && !closed -> handle_refs++ }
#endif
#ifdef LOCKED
        atomic { !claiming -> claiming = 1 }
#endif
        claim();
#ifdef LOCKED
        claiming = 0;
#endif
        if
        :: slot ->
            content[slot] = message;
#ifdef TELLEARLY
            notify_receiver();
            publish()
#else
            publish();
            notify_receiver()
#endif
        :: else /* -EAGAIN */
        fi;
        unref()
    fi;
    atomic { slot = 0; f = 0; t = 0; rest = 0 }
}

#ifdef LOCKED
bit claiming;
#endif

proctype thread()
#ifndef OTHER
    provided (!handling)
#endif
{
    byte slot, f, t, rest;
    send(1);
#ifdef TWICE
    send(2);
#endif
    senders--
}

/* Another thread, or a handler that interrupts the first. */
proctype other()
{
    byte slot, f, t, rest;
#ifndef OTHER
    handling = 1;
#endif
    send(3);
#ifdef TWICE
    send(4);
#endif
    d_step { handling = 0; senders-- }
}

/* ---- under the lock ---- */

inline take_arrived()
{
    d_step {
        TOUCH_BOX;
        f = arrived;
        arrived = 0;
        rest = f;
        t = 0;
        do
        :: f -> n = next[f]; next[f] = t; t = f; f = n
        :: else -> break
        od;
        if
        :: rest && last -> next[last] = t
        :: rest && !last -> first = t
        :: else
        fi;
        last = (rest -> rest : last);
        do
        :: t ->
            n = content[t];
            assert(!came[n]); /* [PT2] */
            came[n] = 1;
            assert((n != 1 || !came[2]) && (n != 3 || !came[4]));
            t = next[t]
        :: else -> break
        od;
        rest = 0;
        n = 0
    }
}

/* In a d_step. */
inline take(who)
{
    given[who] = first;
    first = next[first];
    last = (first -> last : 0);
    received++
}

/* In a d_step. */
inline claim_waiter(who, what)
{
    waiting = waiting & ~(1 << who);
    why[who] = what;
    if
    :: what == MESSAGE ->
        take(who);
#ifndef NOREFSLOT
        refs++
#endif
    :: else
    fi;
    runnable[who] = 1
}

inline end_waits()
{
    d_step {
        if
        :: HAS(waiting, 0) -> claim_waiter(0, OVER)
        :: else
        fi;
        if
        :: HAS(waiting, 1) -> claim_waiter(1, OVER)
        :: else
        fi
    }
}

inline wants()
{
#ifdef WANTSBLIND
    d_step {
        wake = (wake == NONE -> WANTED : wake);
        quiet = 1
    }
#else
    wake = (wake == NONE -> WANTED : wake);
    quiet = (arrived == 0);
#ifndef OVERBLIND
    quiet = quiet && !over
#endif
#endif
}

inline settle()
{
    do
    :: quiet = 0;
#ifndef OVERLATE
        was_over = over;
#endif
        take_arrived();
#ifdef OVERLATE
        was_over = over;
#endif
        d_step {
            if
            :: first && HAS(waiting, 0) -> claim_waiter(0, MESSAGE)
            :: else
            fi;
            if
            :: first && HAS(waiting, 1) -> claim_waiter(1, MESSAGE)
            :: else
            fi
        }
        if
        :: was_over && waiting ->
            d_step { assert(received == sent); reported = 1 } /* [PT4] */
            end_waits()
        :: else
        fi;
        if
        :: waiting -> wants()
        :: else -> quiet = 1
        fi;
        if
        :: quiet -> break
        :: else
        fi
    od
}

/* ---- the receivers, and the thread that takes posts ---- */

inline give_back()
{
    d_step { TOUCH_BOX; f = free; t = tag; n = 1 }
    do
    :: n ->
        next[slot] = f;
        d_step {
            TOUCH_BOX;
            if
            :: free == f && tag == t -> free = slot; taken[slot] = 0; n = 0
            :: else -> f = free; t = tag
            fi
        }
    :: else -> break
    od
}

proctype receiver(byte me)
{
    byte slot, f, t, n, rest;
    bit quiet, was_over, seen_over, done;
    do
    :: done -> break
    :: else ->
#ifdef LEFT
        if
        :: atomic { freed -> done = 1 } goto next_one /* its handle is stale */
        :: atomic { !freed && !locked -> locked = 1 }
        fi;
#else
        lock();
#endif
        do
        :: seen_over = over;
            settle();
            if
            :: first -> break
            :: !first && seen_over -> break
            :: else -> wants();
                if
                :: quiet -> break
                :: else
                fi
            fi
        od;
        if
        :: first ->
            d_step {
                take(me);
                slot = given[me];
#ifndef NOREFSLOT
                refs++;
#endif
                locked = 0
            }
        :: !first && seen_over -> d_step { assert(received == sent); reported = 1; done = 1; locked = 0 } /* [PT4] */
        :: !first && !seen_over ->
            d_step { waiting = waiting | (1 << me); locked = 0 }
            d_step {
                runnable[me] ->
                runnable[me] = 0;
                done = (why[me] == OVER);
                slot = (done -> 0 : given[me]);
                why[me] = 0
            }
        fi;
        if
        :: slot ->
            give_back();
#ifndef NOREFSLOT
            atomic { drop_box() }
#endif
        :: else
        fi;
next_one:
        atomic { slot = 0; f = 0; t = 0; n = 0; quiet = 0; was_over = 0; seen_over = 0; given[me] = 0 }
    od;
    receivers--
}

proctype pool()
{
    byte f, t, n, rest;
    bit quiet, was_over;
    do
    :: d_step { travelling -> travelling--; TOUCH_BOX }
        if
        :: atomic { !freed && !locked -> locked = 1 }
#if !defined(WAKESTAYS) && !defined(WAKELATE)
            wake = NONE;
#endif
            settle();
#ifdef WAKELATE
            wake = NONE;
#endif
            locked = 0
        :: freed
        fi;
#ifndef NOREFPOST
        d_step { drop_box() }
#endif
    :: !travelling && !senders && !receivers && closing -> break
    od
}

/* ---- its end ---- */

proctype closer()
{
    byte slot, f, t, rest;
#if defined(LEFT)
    skip;
#else
#if !defined(EARLY)
    !senders && received == sent;
#endif
    if
    :: d_step { !closed -> handle_refs++ }
#ifdef OVEREARLY
        d_step { closed = 1; over = 1 }
        notify_receiver();
#else
        closed = 1;
#endif
        unref()
    fi;
#endif
    closing = 1
}

proctype owner()
{
    byte f, t, n, rest;
    bit quiet, was_over;
#ifndef LEFT
    !receivers && closing;
#endif
    lock();
    closed = 1;
    settle();
    end_waits();
    atomic {
#ifndef NOREFWAIT
        !handle_refs ->
#endif
        freed = 1
    }
    take_arrived();
    d_step {
        locked = 0;
        do
        :: first -> dropped++; first = next[first]
        :: else -> break
        od
    }
    d_step { drop_box() }
}

init
{
    atomic {
        next[1] = 2;
        run thread();
        run other();
        run pool();
        run receiver(0);
#ifdef PAIR
        run receiver(1);
#endif
        run closer();
        run owner()
    }
    _nr_pr == 1;
    assert(received + dropped == sent); /* [PT2] */
    assert(lost && refs == 0)
}
