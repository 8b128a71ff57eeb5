/*
 * Raising an interruption against lowering: a strand leaves a deadline that has passed while others raise.
 *
 * MODELS    src/strand/interrupt.c: interrupt_raise, block_raise, interrupt_lower, highest
 *           src/strand/interrupt.h: block_leave
 *           src/strand/cancel.c: cancel_strand
 *           src/strand/scope_ends.c: record_end, scope_forget
 *           Only the flag of a scope with a failed child. Label [I1].
 * ABSTRACTS the blocks to three sources, numbered from the outermost: 0 the strand's own cancel, 1 a scope whose child
 *           fails, 2 a deadline inside of it. Each has its flag; `due` is one more than the number of the highest that
 *           holds. Compare-and-swap loops are the loads and swaps that they are made of. Sequentially consistent: the
 *           flags and `due` are changed by locked instructions.
 * CHECKED   when all processes are done, `due` agrees with the flags: no interruption is lost, and none is left over. A
 *           strand that waits only for its own cancel continues; all loops end.
 * MACROS    NOAGAIN       the strand does not read the flags again after it has lowered `due`: a raiser that found
 *                         `due` high enough has not changed it, so the swap succeeds although the flag was set after
 *                         the first reading
 *           RAISEFIRST    a raiser raises before it sets its flag
 *           NORELOAD      after a failed swap the same swap is tried again
 */
/* contract 4.19 */
/* must hold */
/* must stall: -DNOAGAIN */
/* must stall: -DNORELOAD */
/* must fail: -DNOAGAIN */
/* must fail: -DRAISEFIRST */

#define SOURCES 3

byte due;
bit flag[SOURCES];
byte depth = 2;      /* how many blocks are open */
bit fired, stopped;  /* the deadline's timer */
bit over;            /* the child's end can be seen */
byte raisers;

inline raise(index)
{
    seen = due;
    do
    :: seen <= index ->
        if
        :: atomic { due == seen -> due = index + 1 } break
        :: atomic { due != seen -> seen = due }
        fi
    :: else -> break
    od
}

inline flag_and_raise(index)
{
#ifdef RAISEFIRST
    raise(index);
    flag[index] = 1
#else
    flag[index] = 1;
    raise(index)
#endif
}

proctype canceller()
{
    byte seen;
    flag_and_raise(0);
    raisers--
}

/* A child fails. Its owner sees the end, and may forget the failure, only after it was raised. */
proctype child()
{
    byte seen;
    flag_and_raise(1);
    raisers--;
    over = 1
}

/* Under the lock of the timers: after the timer is stopped it does not fire any more, and is not at it. */
proctype timer()
{
    byte seen;
    if
    :: atomic { !stopped -> fired = 1 } flag_and_raise(2)
    :: stopped
    fi;
    raisers--;
    fired = 0
}

/* 1 + the number of the highest source that holds, or 0. From the inside outwards, one load after the other. */
inline highest()
{
    if
    :: depth == 2 && flag[2] -> now = 3
    :: else ->
        if
        :: depth >= 1 && flag[1] -> now = 2
        :: else ->
            if
            :: flag[0] -> now = 1
            :: else -> now = 0
            fi
        fi
    fi
}

inline lower()
{
    seen = due;
    do
    :: highest();
        if
#ifdef NOAGAIN
        :: now >= seen -> break
#else
        :: now == seen -> break
#endif
        :: else ->
            if
            :: atomic { due == seen -> due = now; seen = now }
#ifdef NOAGAIN
                break
#endif
#ifdef NORELOAD
            :: due != seen
#else
            :: atomic { due != seen -> seen = due }
#endif
            fi
        fi
    od
}

inline leave_block()
{
    depth--;
    if
    :: due > depth -> lower()
    :: else
    fi
}

active proctype strand()
{
    byte seen, now;
    atomic {
        raisers = 3;
        run canceller();
        run child();
        run timer()
    }
    atomic { !fired -> stopped = 1 } /* timer_stop */
    leave_block();
    if
    :: over -> flag[1] = 0; lower() /* the owner joins the child, and so sees its failure */
    :: skip
    fi;
    raisers == 0;
    highest();
    assert(due == now);
    leave_block();
    due; /* waits for the cancel only */
    assert(due == 1)
}
