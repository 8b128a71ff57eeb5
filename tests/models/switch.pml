/*
 * The switch: a strand is claimable before it has left its stack, and goes on where its context was left.
 *
 * MODELS    src/sched/switch.h: switch_park, switch_leave, switch_context, switch_jump, switch_arrive
 *           src/sched/switch.c: thread_park
 *           src/sched/thread.c: run, await_context, thread_loop
 *           The claims are those of wait.pml, the queues those of a scheduler. Labels [S1] to [S4].
 * ABSTRACTS a wait to one bit (armed), a queue to a set from which its thread takes any member, stealing to taking from
 *           somebody else's set (only from the loop, as the code does), what strands do to claiming each other; and
 *           what comes from outside (a timer, a post) to a process that claims and puts into the queue of the thread
 *           that ran it last.
 * CHECKED   a stack is in use by one thread at a time; a strand goes on only after it was claimed; all strands end (no
 *           cycle of threads, each on a strand's stack, that wait for each other's strand). Spinning is a guard, so a
 *           deadlock is a state that has no end.
 * MACROS    GLOBAL    one queue for all threads (src/sched/global.c)
 *           SPIN      [S4] removed: a thread that is on a strand's stack waits there for the context of the next one.
 *                     With a queue per thread that is harmless: what the strand's own thread can take lay in the queue
 *                     before the strand was armed. With one queue it is a deadlock.
 *           NOWAIT    [S1] removed: the runner does not wait for the context
 *           NOSELF    [S3] removed: a strand that finds itself in its queue is treated as any other
 */
/* S-05 */
/* must hold */
/* must hold: -DGLOBAL */
/* must hold: -DSPIN */
/* must stall: -DSPIN -DGLOBAL */
/* must stall: -DSPIN -DNOSELF */
/* must fail: -DNOWAIT */

#define THREADS 3
#define STRANDS 3
#define PARKS 1
#define NONE 7

bit armed[STRANDS];
bit context[STRANDS];      /* it can be gone on with */
byte on[STRANDS] = NONE;   /* whose stack pointer is in this stack */
byte home[STRANDS];
byte queue[THREADS];       /* a set of strands */
byte parks[STRANDS];
byte ended;

#define HAS(set, s) ((set >> s) & 1)
#ifdef GLOBAL
#define QUEUE(t) 0
#else
#define QUEUE(t) t
#endif

/* Make s runnable: claimed by the strand that runs on thread t, or from outside for its home. */
inline claim(s, t)
{
    armed[s] && (s != current);
    armed[s] = 0;
    queue[QUEUE(t)] = queue[QUEUE(t)] | (1 << s)
}

inline take_from(t)
{
    if
    :: HAS(queue[t], 0) -> next = 0
    :: HAS(queue[t], 1) -> next = 1
    :: HAS(queue[t], 2) -> next = 2
    fi;
    queue[t] = queue[t] & ~(1 << next)
}

/* The stack pointer moves to the stack of `next` (NONE: the loop's), and what was left can be gone on with [S2]. */
inline jump()
{
    d_step {
        if
        :: next != NONE ->
            assert(on[next] == NONE); /* somebody is still on it */
            on[next] = me;
            context[next] = 0;
            home[next] = me
        :: else
        fi;
        if
        :: current != NONE -> on[current] = NONE
        :: else
        fi;
        left = current;
        current = next;
        next = NONE
    }
    if
    :: left != NONE -> d_step { context[left] = 1; left = NONE } /* arrive */
    :: else
    fi
}

inline park()
{
    if
    :: atomic { queue[QUEUE(me)] -> take_from(QUEUE(me)) }
    :: atomic { !queue[QUEUE(me)] } /* nothing: to the loop */
    fi;
    if
#ifndef NOSELF
    :: next == current -> next = NONE /* [S3] it goes on */
#endif
    :: else ->
        if
#ifndef NOWAIT
#ifdef SPIN
        :: next != NONE -> context[next] /* [S1] */
#else
        :: next != NONE && !context[next] -> late = next; next = NONE /* [S4] the loop waits for it */
#endif
#endif
        :: else
        fi;
        jump()
    fi
}

/* What runs on the stack of `current`: anything that a strand does between two switches. */
inline strand()
{
    assert(on[current] == me && !armed[current]);
    do
    :: atomic { claim(0, me) }
    :: atomic { claim(1, me) }
    :: atomic { claim(2, me) }
    :: parks[current] < PARKS -> atomic { parks[current]++; armed[current] = 1 } park(); break
    :: parks[current] == PARKS -> /* it ends: its stack is nobody's, and no thread goes on without having left it */
        d_step { on[current] = NONE; current = NONE; ended++ } break
    od
}

/* The thread's own stack: nobody waits for it. */
inline loop()
{
    if
    :: late != NONE -> next = late; late = NONE
    :: else ->
        if
        :: atomic { queue[0] -> take_from(0) }
#ifndef GLOBAL
        :: atomic { queue[1] -> take_from(1) } /* its own, or stolen */
        :: atomic { queue[2] -> take_from(2) }
#endif
        :: ended == STRANDS -> break
        fi
    fi;
#ifndef NOWAIT
    context[next]; /* [S1] */
#endif
    jump()
}

proctype thread(byte me)
{
    byte current, next = NONE, left = NONE, late = NONE;
    current = me; /* each starts on a strand of its own */
    on[current] = me;
    home[current] = me;
    do
    :: current != NONE -> strand()
    :: current == NONE -> loop()
    od
}

/* Timers and posts: they claim whatever is armed. */
proctype outside()
{
    byte current = NONE;
end:
    do
    :: atomic { claim(0, home[0]) }
    :: atomic { claim(1, home[1]) }
    :: atomic { claim(2, home[2]) }
    od
}

init
{
    atomic {
        run thread(0);
        run thread(1);
        run thread(2);
        run outside()
    }
}
