/*
 * A join that links no node: an owner that waits for the end of a child which it has started, against the child's end,
 * against interrupters, and against an unrelated strand that waits for the same end.
 *
 * MODELS    src/strand/end.h: end_strand, end_joiner, end_joiner_wins, end_wake_joiner
 *           src/strand/end.c: publish, wake_all
 *           src/strand/wait.h: wait_arm_for_child, wait_retract, wait_over
 *           src/strand/join.c: await_child, await_not, await_more
 *           src/strand/interrupt.c: interrupt_raise, keep_awaited, part_from_child
 *           src/strand/end_wait.c: ends_lock, ends_link_slow_
 *           Labels [E6] [E7] [E8] [W4].
 * ABSTRACTS the list of nodes to two bits, for the owner, which links a node when it joins again, and for the unrelated
 *           strand; serials to one bit: once a control block is freed, every handle of it is stale; the unrelated
 *           strand's interruption, which end.pml has. A child runs on from where it is whichever thread runs it, so
 *           switches and thieves make no difference. The owner joins one child after the other. Spinning is a guard.
 * CHECKED   [E6] each wait of the owner is ended once, by the end of the child that it waits for or by a source that is
 *           not put off; [E8] no process touches a control block once its memory may serve another strand; [W4] a child
 *           that ends only after the owner was interrupted does end; [E7] all processes end.
 * MACROS    SIBLING    the interrupter is the end of a failed sibling, which holds the lock of the scope
 *           NOPARTED   an interrupter unlocks the end to the value before
 *           NOLOCK     an interrupter does not lock the child's end
 *           NOREF      an interrupter takes no reference to the child
 *           WOKENLATE  a failed child wakes its joiner after it has raised the scope
 *           STAYS      an interrupter that holds the scope's lock waits for ENDS_LOCK although the wait is over
 *           REFSTAYS   an interrupter waits for a reference although the wait is over
 *           NORECHECK  due is not read after arming
 *           JOINERKEPT an owner that retracts leaves has_joiner set
 *           EPOCHBLIND an interrupter does not compare the epoch
 */
/* contract 4.10, 5.1 */
/* must hold */
/* must hold: -DSIBLING */
/* must fail: -DNOPARTED */
/* must fail: -DNOLOCK */
/* must fail: -DNOREF */
/* must stall: -DSIBLING -DWOKENLATE */
/* must stall: -DSIBLING -DSTAYS */
/* must stall: -DSIBLING -DREFSTAYS */
/* must stall: -DNORECHECK */
/* must fail: -DJOINERKEPT */
/* must fail: -DEPOCHBLIND */

#define CHILDREN 2
#define NOBODY 2
#define REFS 1 /* 63 in the library */

#define IDLE 0
#define ARMED 1
#define INTERRUPTED 2
#define WON 3
#define CHILD 5

/* The owner: its wait, and what others may do to it. */
byte tag = IDLE, epoch;
byte awaited = NOBODY;
bit floor; /* put off: the one source that there is */
bit due;
bit runnable;
bit scope_lock;

/* Children. */
bit begun[CHILDREN], cancelled[CHILDREN];
bit has_joiner[CHILDREN];
bit locked[CHILDREN], over[CHILDREN], parted[CHILDREN];
bit node[CHILDREN];  /* the owner's */
bit other[CHILDREN]; /* the unrelated strand's */
byte refs[CHILDREN];
bit dead[CHILDREN], freed[CHILDREN];

bit other_woken;
bit quiet; /* no interruption comes */

#define TOUCH(k) assert(!freed[k])

inline made_runnable()
{
    assert(!runnable);
    runnable = 1
}

inline unref(k)
{
    d_step {
        TOUCH(k);
        assert(refs[k]);
        refs[k]--;
        if
        :: dead[k] && !refs[k] -> freed[k] = 1
        :: else
        fi
    }
}

#ifdef EPOCHBLIND
#define STILL (tag == CHILD)
#else
#define STILL (tag == CHILD && epoch == seen)
#endif

/* interrupt_raise. `mine`: the caller has to make the owner runnable. */
inline raise()
{
    due = 1;
    if
    :: atomic { tag == ARMED && !floor -> tag = INTERRUPTED; mine = 1 }
    :: atomic { tag == CHILD && !floor -> seen = epoch }
        part()
    :: atomic { tag != ARMED && tag != CHILD || floor }
    fi
}

inline part()
{
    k = awaited;
    if
#ifdef NOREF
    :: true ->
#else
    :: atomic { !freed[k] && !dead[k] && refs[k] < REFS -> refs[k]++ } /* [E8] */
#endif
#ifdef NOLOCK
        atomic {
            if
            :: STILL && !over[k] -> tag = INTERRUPTED; mine = 1
            :: else
            fi
        }
        parted[k] = parted[k] | mine;
#else
        if
        :: STILL ->
            if
            :: atomic { !over[k] && !locked[k] -> TOUCH(k); locked[k] = 1 } /* [E6] the wait may have ended meanwhile */
                d_step {
                    if
                    :: STILL -> assert(!floor && k == awaited); tag = INTERRUPTED; mine = 1
                    :: else
                    fi
                }
                d_step {
                    TOUCH(k);
                    locked[k] = 0;
#ifndef NOPARTED
                    parted[k] = parted[k] | mine
#endif
                }
            :: d_step { over[k] -> TOUCH(k) }
#ifndef STAYS
            :: !STILL /* [E7] */
#endif
            fi
        :: !STILL
        fi;
#endif
#ifndef NOREF
        unref(k)
    :: freed[k] || dead[k]
#ifndef REFSTAYS
    :: !STILL /* [E7] */
#endif
#endif
    fi
}

inline deliver()
{
    if
    :: mine -> d_step { made_runnable(); mine = 0 }
    :: else
    fi
}

/* A cancel by anybody. */
proctype interrupter()
{
    byte k, seen;
    bit mine;
    if
    :: raise(); deliver()
    :: quiet = 1
    fi
}

/* The end of a failed sibling raises the owner under the lock of the scope. */
proctype sibling()
{
    byte k, seen;
    bit mine;
    if
    :: atomic { !scope_lock -> scope_lock = 1 }
        raise();
        scope_lock = 0;
        deliver()
    :: quiet = 1
    fi
}

inline wake_joiner()
{
    if
    :: joiner ->
        assert(tag == CHILD && awaited == me); /* [E6] */
        tag = WON;
        mine = 1
    :: else
    fi
}

inline wake_nodes()
{
    if
    :: nodes ->
        if
        :: atomic { tag == ARMED -> tag = WON; mine = 1 }
        :: atomic { tag != ARMED }
        fi
    :: else
    fi;
    if
    :: others -> other_woken = 1; others = 0
    :: else
    fi
}

/* What the end reads before it swaps. */
inline look()
{
    d_step {
        TOUCH(me);
        was_locked = locked[me];
        was_parted = parted[me];
        nodes = node[me];
        others = other[me]
    }
    joiner = has_joiner[me] && !was_parted
}

proctype child(byte me)
{
    byte k, seen;
    bit mine, joiner, was_locked, was_parted, nodes, others, failed, done;
    begun[me];
    if
    :: skip
    :: failed = 1
    :: true -> cancelled[me] || quiet || floor /* it ends only after the owner was interrupted, if the owner can be */
    fi;
    if
    :: !failed ->
        do
        :: done -> break
        :: else ->
            look();
            if
            :: was_locked -> !locked[me]
            :: else ->
                atomic {
                    TOUCH(me);
                    if
                    :: locked[me] == was_locked && parted[me] == was_parted && node[me] == nodes &&
                       other[me] == others ->
                        over[me] = 1;
                        node[me] = 0;
                        other[me] = 0;
                        done = 1
                    :: else
                    fi
                }
            fi
        od;
        wake_joiner();
        wake_nodes()
    :: else ->
        atomic { !locked[me] -> TOUCH(me); locked[me] = 1 }
        look();
#ifndef WOKENLATE
        wake_joiner();
        wake_nodes();
#endif
        atomic { !scope_lock -> scope_lock = 1 }
        raise();
        scope_lock = 0;
#ifdef WOKENLATE
        if
        :: tag == CHILD -> wake_joiner()
        :: else
        fi;
        wake_nodes();
#endif
        d_step { TOUCH(me); over[me] = 1; locked[me] = 0; node[me] = 0; other[me] = 0 }
    fi;
    deliver()
}

proctype unrelated()
{
    bit waits;
    if
    :: atomic { !freed[0] && !dead[0] && refs[0] < REFS -> refs[0]++ }
        if
        :: d_step { over[0] -> TOUCH(0) }
        :: d_step { !over[0] && !locked[0] -> TOUCH(0); other[0] = 1; waits = 1 }
        fi;
        unref(0);
        if
        :: waits -> other_woken; assert(over[0] || locked[0])
        :: else
        fi
    :: freed[0] || dead[0]
    :: skip
    fi
}

inline sleep()
{
    d_step { runnable -> runnable = 0; assert(tag == WON || tag == INTERRUPTED); how = tag; tag = IDLE }
}

/* The child has been interrupted, or is left: it ends, and the owner waits uninterruptibly, by a node. */
inline leave(me)
{
    floor = 1;
    cancelled[me] = 1;
    d_step { epoch++; tag = ARMED }
    if
    :: d_step { over[me] -> TOUCH(me); tag = IDLE }
    :: d_step { !over[me] && !locked[me] -> TOUCH(me); node[me] = 1 }
        sleep();
        assert(how == WON)
    fi;
    over[me]
}

inline join(me)
{
    awaited = me;
    has_joiner[me] = 1;
    d_step { epoch++; tag = CHILD }
#ifdef NORECHECK
    if
    :: false
#else
    if
    :: due && !floor -> /* [W4] */
        if
        :: atomic { tag == CHILD -> tag = IDLE }
#ifndef JOINERKEPT
            has_joiner[me] = 0;
#endif
            begun[me] = 1 /* from the queue */
        :: atomic { tag != CHILD }
            begun[me] = 1;
            sleep();
            assert(how == INTERRUPTED)
        fi;
        leave(me)
#endif
    :: else ->
        begun[me] = 1;
        sleep();
        if
        :: how == WON -> assert(over[me] || locked[me])
        :: else -> assert(due && !floor); leave(me)
        fi
    fi;
    d_step {
        over[me] && !locked[me] ->
        TOUCH(me);
        assert(!dead[me]);
        if
        :: refs[me] -> dead[me] = 1
        :: else -> freed[me] = 1
        fi
    }
}

proctype owner()
{
    byte how;
    join(0);
    if
    :: skip
    :: floor = 1 /* shielded */
    fi;
    if
    :: due && !floor -> begun[1] = 1; leave(1) /* thrown before the join begins */
    :: else -> join(1)
    fi
}

init
{
    atomic {
        run owner();
        run child(0);
        run child(1);
        run unrelated();
#ifdef SIBLING
        run sibling()
#else
        run interrupter()
#endif
    }
}
