/*
 * Values that plain threads post into a channel: against its closing, and its end.
 *
 * MODELS    src/sync/chan_post.c: strand_chan_post, post, ref_chan, accept, arrive, place, give_up
 *           src/sync/chan.c: strand_chan_close, chan_end, drop_all
 *           src/sync/chan.h: chan_is_over, chan_find
 *           Labels [H1] [H2] [H3] [W1].
 * ABSTRACTS the pool's posts to a number, of which any thread of the pool takes one at a time (see seeker.pml); the
 *           channel's serial to one bit: once its memory is freed, every handle is stale; only a value or the closing
 *           wakes a receiver; spinning to a guard.
 * PARTIES   two plain threads post once each; the thread of the pool that takes posts; two strands that receive until
 *           the channel is closed; a closer that closes it at any time. When these have ended, which may be before a
 *           post has arrived or begun, the scope is left and the channel ends.
 * CHECKED   [H2] an accepted value is received or dropped, once; a refused one is neither. [H3] a receive returns
 *           closed only when no value is on its way, and afterwards none is accepted. The channel's memory is not
 *           touched once it may have another use. All end, also a receiver that waits while the last value on its way
 *           arrives for another one.
 * MACROS    ROOM         the channel has room for one value
 *           GIVENUP      there are no receivers, and the channel is not closed before its scope is left
 *           NOREF        the poster takes no reference to the channel
 *           NOREFWAIT    the end does not wait for references
 *           NOCOUNT      the closing does not check whether values are on their way
 *           COUNTLATE    a value is counted when it has been posted
 *           NOSTALE      the thread that takes a post does not check whether the channel has ended
 *           NOCLOSED     a closed channel accepts a value
 *           NOLAST       the last value that arrives wakes its receiver only
 *           NOROOM       a value that finds no room is not queued
 */
/* must hold */
/* must hold: -DROOM */
/* must hold: -DGIVENUP */
/* must stall: -DNOLAST */
/* must fail: -DNOREF */
/* must fail: -DNOREFWAIT */
/* must fail: -DNOCOUNT */
/* must fail: -DCOUNTLATE */
/* must fail: -DGIVENUP -DNOSTALE */
/* must fail: -DNOROOM */
/* must fail: -DNOCLOSED */

#define POSTERS 2
#define RECEIVERS 2

#define IDLE 0
#define ARMED 1
#define WON 3

#define VALUE 1
#define CLOSED 2

#ifdef ROOM
#define CAPACITY 1
#else
#define CAPACITY 0
#endif

/* The channel. */
bit locked, closed, freed;
byte handle_refs;
byte posts;       /* accepted, and not in it yet; */
bit posts_closed; /* the same word */
byte count, queued;
byte waiting; /* the set of waiting receivers */

byte travelling; /* posts of the pool */
byte accepted, received, dropped;

byte tag[RECEIVERS], result[RECEIVERS];
bit runnable[RECEIVERS], gone[RECEIVERS];
bit closer_left;
bit reported; /* a receive has returned closed */
byte posters = POSTERS;

#define HAS(set, k) ((set >> (k)) & 1)
#define TOUCH assert(!freed)
#ifdef NOCOUNT
#define OVER closed
#else
#define OVER (closed && posts_closed && posts == 0)
#endif

inline lock()
{
    atomic { !locked -> TOUCH; locked = 1 }
}

/* In a d_step. */
inline claim(who, why)
{
    waiting = waiting & ~(1 << who);
    assert(tag[who] == ARMED && !runnable[who]); /* [W1] */
    reported = (why == CLOSED -> 1 : reported);
    tag[who] = WON;
    result[who] = why;
    runnable[who] = 1
}

inline wake_receivers()
{
    d_step {
        if
        :: HAS(waiting, 0) -> claim(0, CLOSED)
        :: else
        fi;
        if
        :: HAS(waiting, 1) -> claim(1, CLOSED)
        :: else
        fi
    }
}

proctype poster()
{
    bit taken;
#ifndef NOREF
    if
    :: atomic { !freed -> handle_refs++ }
#else
    if
    :: !freed
#endif
#ifdef COUNTLATE
        d_step {
            TOUCH;
            if
            :: posts_closed
            :: else -> accepted++; taken = 1
            fi
        }
#else
        d_step {
            TOUCH;
            if
#ifdef NOCLOSED
            :: false
#else
            :: posts_closed
#endif
            :: else -> posts++; accepted++; taken = 1; assert(!reported) /* [H3] */
            fi
        }
#endif
        if
        :: taken -> travelling++
        :: else /* -EPIPE */
        fi;
#ifdef COUNTLATE
        d_step { TOUCH; posts = posts + taken }
#endif
#ifndef NOREF
        d_step { TOUCH; assert(handle_refs); handle_refs-- }
#endif
    :: freed /* -EPIPE */
    fi;
    posters--
}

/* The thread that takes posts. */
inline arrive()
{
    if
#ifndef NOSTALE
    :: freed -> dropped++
    :: atomic { !freed && !locked -> locked = 1 }
#else
    :: atomic { !locked -> locked = 1; TOUCH }
#endif
        d_step {
            if
            :: HAS(waiting, 0) -> claim(0, VALUE); received++
            :: !HAS(waiting, 0) && HAS(waiting, 1) -> claim(1, VALUE); received++
            :: !waiting && count < CAPACITY -> count++
#ifdef NOROOM
            :: !waiting && count == CAPACITY
#else
            :: !waiting && count == CAPACITY -> queued++
#endif
            fi
        }
        d_step { TOUCH; posts-- }
#ifndef NOLAST
        if
        :: OVER && !count && !queued -> wake_receivers()
        :: else
        fi;
#endif
        d_step { TOUCH; locked = 0 }
    fi
}

proctype pool()
{
    do
    :: atomic { travelling -> travelling-- } arrive()
    :: !travelling && !posters -> break
    od
}

proctype receiver(byte me)
{
    bit over;
    do
    :: !over ->
        lock();
        if
        :: d_step { count -> count--; received++;
            if
            :: queued -> queued--; count++ /* [H1] */
            :: else
            fi }
            locked = 0
        :: d_step { !count && queued -> queued--; received++ } locked = 0
        :: d_step { !count && !queued && OVER ->
            assert(received == accepted); /* [H3] */
            over = 1; reported = 1 }
            locked = 0
        :: d_step { !count && !queued && !(OVER) -> tag[me] = ARMED; waiting = waiting | (1 << me) } locked = 0;
            atomic { runnable[me] -> runnable[me] = 0; tag[me] = IDLE }
            over = (result[me] == CLOSED)
        fi
    :: over -> break
    od;
    gone[me] = 1
}

proctype closer()
{
    lock();
    d_step { closed = 1; posts_closed = 1 }
    if
    :: OVER -> wake_receivers()
    :: else
    fi;
    d_step { TOUCH; locked = 0 }
    closer_left = 1
}

/* The scope is left: no strand of the run uses the channel afterwards. */
proctype owner()
{
#ifndef GIVENUP
    gone[0] && gone[1] && closer_left;
#endif
    lock();
    d_step { closed = 1; posts_closed = 1 }
    atomic {
#ifndef NOREFWAIT
        !handle_refs ->
#endif
        freed = 1;
        locked = 0;
        dropped = dropped + count + queued
    }
}

init
{
    atomic {
        run poster();
        run poster();
        run pool();
#ifndef GIVENUP
        run receiver(0);
        run receiver(1);
        run closer();
#endif
        run owner()
    }
    _nr_pr == 1;
    assert(received + dropped == accepted) /* [H2] */
}
