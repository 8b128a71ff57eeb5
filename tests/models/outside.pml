/*
 * How many waits for the outside there are: threads read the counts of all threads of a pool, while strands begin waits
 * on some threads and end them on others.
 *
 * MODELS    src/sched/quiescent.c: awaits_nothing, run_awaits_nothing, quiescent_is_near
 *           src/sched/quiescent.h: quiescent_outside_begin, quiescent_outside_end
 *           Labels [Q2] [Q6].
 * ABSTRACTS the pool to two threads and two strands, each of which waits a few times; a strand to the thread that it
 *           runs on, which may change while it waits. When a strand has done its waits its thread becomes idle, and
 *           reads. Another thread reads at any time.
 * CHECKED   [Q6] a reader counts no more ends than begins. If the numbers are equal, there was a moment while it read
 *           when no strand waited. [Q2] the last thread to become idle finds that no strand waits.
 * MACROS    BEGUNFIRST   the reader reads the begins before the ends
 *           COUNTLATE    a strand counts a wait when it waits already
 *           ENDLOST      a strand does not count the end of its last wait
 */
/* must hold */
/* must fail: -DBEGUNFIRST */
/* must fail: -DCOUNTLATE */
/* must stall: -DENDLOST */

#define WAITS 2
#define READERS 3 /* the threads of the strands, and another one */

byte begun[2], ended[2]; /* of each thread */
byte waiting;
bit none[READERS]; /* since the reader has begun there was a moment without a wait */
bit near;

inline begin_wait(t)
{
#ifdef COUNTLATE
    waiting++;
    begun[t]++
#else
    begun[t]++; /* [Q6] */
    waiting++
#endif
}

inline end_wait(t)
{
    d_step {
        waiting--;
        if
        :: !waiting -> none[0] = 1; none[1] = 1; none[2] = 1
        :: else
        fi
    }
#ifdef ENDLOST
    if
    :: waits == WAITS - 1
    :: else -> ended[t]++
    fi
#else
    ended[t]++ /* [Q6] */
#endif
}

inline read_counts(me)
{
    none[me] = !waiting;
#ifdef BEGUNFIRST
    begins = begun[0];
    begins = begins + begun[1];
#endif
    ends = ended[0]; /* [Q6] */
    ends = ends + ended[1];
#ifndef BEGUNFIRST
    begins = begun[0]; /* [Q6] */
    begins = begins + begun[1];
#endif
    assert(ends <= begins); /* [Q6] */
    assert(begins != ends || none[me]) /* [Q6] */
}

proctype user(byte me)
{
    byte waits, begins, ends;

    do
    :: waits < WAITS ->
        if
        :: begin_wait(0)
        :: begin_wait(1)
        fi;
        if
        :: end_wait(0)
        :: end_wait(1)
        fi;
        waits++
    :: else -> break
    od;
    read_counts(me);
    near = near || begins == ends /* [Q2] */
}

proctype other(byte me)
{
    byte begins, ends;

    read_counts(me)
}

init {
    atomic {
        run user(0);
        run user(1);
        run other(2)
    }
    _nr_pr == 1;
    near
}
