/*
 * Leaving an open scope while others spawn into it, hand a child off to it, and cancel it.
 *
 * MODELS    src/strand/leave.c: drain, close_scope, leave_slowly
 *           src/strand/spawn.c: anchor_shared, scope_of_other_strand
 *           src/strand/scope_ends.c: scope_expect, scope_receive
 *           src/strand/scope.c: strand_scope_cancel, take_over
 *           src/strand/join.c: strand_hand_off, move
 *           src/strand/handle.c: handle_ref_scope, handle_unref_scope, handle_retire_slow_
 *           Objects that a scope owns (take_over) check it as a spawn does. Label [C1].
 * ABSTRACTS a scope's lock to d_step; a child's end to a notification of its scope, under its lock, and OVER (see
 *           end.pml); the reason of a cancel to a bit; waiting for a child to a guard. The scope has one child from the
 *           start, which spawns a second one; an unrelated strand spawns a third one; another one hands a child of
 *           its own off, or joins it if that is refused.
 * CHECKED   no child is lost or in two scopes; no child is anchored to a scope that has been left, or ends in one; each
 *           child is consumed once, by the owner of its scope; the record of the scope is not touched once it may have
 *           another use; no reason is left in it; all end.
 * MACROS    NOCLOSED      spawning does not check whether the scope is closed
 *           NOEXPECTED    a hand-off that is under way does not keep the scope open
 *           CLOSEBLIND    the scope is closed if it was empty before
 *           NOREF         no reference to the record is taken
 *           NOENDLOCK     a hand-off does not lock the child's end
 *           CANCELCLOSED  a cancel does not check whether the scope is closed: its reason stays in the freed record
 *           NORECEIVED    a finished hand-off still keeps the scope open
 */
/* must hold */
/* must stall: -DNORECEIVED */
/* must fail: -DNOCLOSED */
/* must fail: -DNOEXPECTED */
/* must fail: -DCLOSEBLIND */
/* must fail: -DNOREF */
/* must fail: -DNOENDLOCK */
/* must fail: -DCANCELCLOSED */
/* fair */
/* large */

/* 0: in the open scope from the start; 1: spawned by 0; 2: spawned by an unrelated strand; 3: handed off */
#define CHILDREN 4
#define SCOPE 1
#define OTHER 2 /* the scope of the strand that hands off */

/* The open scope. */
byte children; /* a set */
byte expected, handle_refs;
bit closed, dead, freed, left, note;
/* The other one. */
byte others;
bit other_left;

bit locked[CHILDREN], over[CHILDREN];
byte anchor[CHILDREN];
byte consumed[CHILDREN];

#define HAS(set, k) ((set >> k) & 1)
#define TOUCH assert(!freed)

inline add(k)
{
    assert(!left && !HAS(others, k));
    children = children | (1 << k);
    anchor[k] = SCOPE
}

#ifdef NOREF
#define REF true
#define UNREF skip
#else
#define REF atomic { !freed && !dead -> handle_refs++ }
#define UNREF unref()
#endif

inline unref()
{
    d_step {
        TOUCH;
        assert(handle_refs);
        handle_refs--;
        if
        :: dead && !handle_refs -> freed = 1
        :: else
        fi
    }
}

/* strand_spawn by somebody who is not the owner. */
inline spawn(k)
{
    if
    :: REF;
        atomic {
            TOUCH;
            if
#ifdef NOCLOSED
            :: true ->
#else
            :: !closed ->
#endif
                add(k);
                run child(k)
            :: else /* -ECANCELED */
            fi
        }
        UNREF
#ifndef NOREF
    :: freed || dead
#endif
    fi
}

proctype child(byte k)
{
    byte where;
    if
    :: k == 0 -> spawn(1)
    :: else
    fi;
    atomic { !locked[k] -> locked[k] = 1 }
    where = anchor[k];
    assert(where == SCOPE -> !left : !other_left); /* [C1] it notifies its scope */
    d_step { over[k] = 1; locked[k] = 0 }
}

inline take_one(set, k)
{
    HAS(set, k) && over[k];
    set = set & ~(1 << k);
    consumed[k]++
}

proctype owner()
{
    do
    :: atomic { take_one(children, 0) }
    :: atomic { take_one(children, 1) }
    :: atomic { take_one(children, 2) }
    :: atomic { take_one(children, 3) }
    :: !children ->
#ifdef CLOSEBLIND
        closed = 1; break
#else
        if
        :: atomic { !children && !expected -> closed = 1 } break
        :: children || expected
        fi
#endif
    od;
    atomic { assert(!children); left = 1; note = 0 }
    d_step {
        if
        :: handle_refs -> dead = 1
        :: else -> freed = 1
        fi
    }
}

proctype unrelated()
{
    spawn(2)
}

inline hand_off(k)
{
#ifndef NOENDLOCK
    atomic { !locked[k] -> locked[k] = 1 }
#endif
    d_step { assert(HAS(others, k)); others = others & ~(1 << k) } /* take_out */
    d_step {
        TOUCH;
        add(k);
#if !defined(NOEXPECTED) && !defined(NORECEIVED)
        assert(expected);
        expected--
#endif
    }
#ifndef NOENDLOCK
    locked[k] = 0
#endif
}

proctype other()
{
    bit handed;
    if
    :: REF;
        d_step {
            TOUCH;
            if
            :: !closed ->
#ifndef NOEXPECTED
                expected++;
#endif
                handed = 1
            :: else /* -EINVAL */
            fi
        }
        if
        :: handed -> hand_off(3)
        :: else
        fi;
        UNREF
#ifndef NOREF
    :: freed || dead
#endif
    fi;
    if
    :: !handed -> atomic { take_one(others, 3) }
    :: else
    fi;
    d_step { assert(!others); other_left = 1 }
}

proctype canceller()
{
    if
    :: REF;
        d_step {
            TOUCH;
            if
#ifdef CANCELCLOSED
            :: true -> note = 1
#else
            :: !closed -> note = 1
            :: else
#endif
            fi
        }
        UNREF
#ifndef NOREF
    :: freed || dead
#endif
    fi
}

init
{
    atomic {
        children = 1;
        anchor[0] = SCOPE;
        others = 8;
        anchor[3] = OTHER;
        run child(0);
        run child(3);
        run owner();
        run unrelated();
        run other();
        run canceller()
    }
    _nr_pr == 1;
    assert(!note && consumed[0] == 1 && consumed[3] == 1 && consumed[1] <= 1 && consumed[2] <= 1);
    assert(over[1] == consumed[1] && over[2] == consumed[2])
}
