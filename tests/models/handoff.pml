/*
 * Hand-offs against each other: each checks that the new owner is not below the child, while the tree above changes.
 *
 * MODELS    src/strand/join.c: strand_hand_off, hand_off, is_below, move
 *           src/strand/scope_ends.c: scope_expect
 *           end.pml and scope.pml have the effect of a single hand-off on the child and on the two scopes.
 * ABSTRACTS the tree to five strands: the root 0, its children 1 and 2, and the child 3 of 1, the child 4 of 2, each
 *           with one scope, which is open. 1 hands 3 off to 4's scope, 2 hands 4 off to 3's: the second hand-off is
 *           misuse, because its scope is then below the child. A strand ends when nothing is anchored to it or expected
 *           by it.
 * CHECKED   from every strand the path upwards leads to the root; the path is never read from a strand that may have
 *           been freed.
 * MACROS    NOLOCK       hand-offs do not exclude each other
 *           LATEEXPECT   the check comes before the scope is made to stay open
 *           NOBACK       after a misuse the scope still expects a child
 */
/* must hold */
/* must stall: -DNOBACK */
/* must fail: -DNOLOCK */
/* must fail: -DLATEEXPECT */

#define STRANDS 5
#define ROOT 0

byte up[STRANDS];  /* the owner of the scope that it is anchored to */
bit gone[STRANDS];
byte expected[STRANDS];
bit handing; /* the lock */
byte busy = 2;

#define BELOW(k, s) (up[k] == s && !gone[k])

inline expect()
{
    if
    :: d_step { !gone[to] -> expected[to]++ } open = 1
    :: gone[to] /* refused: closed */
    fi
}

/* Whether the owner of the new scope is the child, or below it. */
inline look()
{
    at = to;
    do
    :: at == ROOT || at == k -> break
    :: else -> d_step { assert(!gone[at]); at = up[at] }
    od;
    below = (at == k);
    at = 0
}

/* Strand `me` hands its child k off to the scope of `to`; then it leaves its own scope and ends. */
proctype hand_off(byte me; byte k; byte to)
{
    byte at;
    bit open, below;
#ifndef NOLOCK
    atomic { !handing -> handing = 1 }
#endif
#ifdef LATEEXPECT
    look();
    expect();
#else
    expect();
    if
    :: open -> look()
    :: else
    fi;
#endif
    if
    :: open && !below -> up[k] = to
    :: else
    fi;
#ifndef NOBACK
    if
    :: open -> expected[to]--
    :: else
    fi;
#endif
    handing = 0;
    busy--;
    d_step { !expected[me] && !BELOW(3, me) && !BELOW(4, me) -> gone[me] = 1 }
}

/* One that is handed off ends at any time, when it has no children. */
proctype handed(byte me)
{
    d_step { !expected[me] && !BELOW(3, me) && !BELOW(4, me) -> gone[me] = 1 }
}

/* When both are done: up from s, at most four steps. */
inline reaches_root(s)
{
    atomic {
        at = s;
        do
        :: at != ROOT && steps < STRANDS -> at = up[at]; steps++
        :: else -> break
        od;
        assert(at == ROOT);
        steps = 0
    }
}

init
{
    byte at, steps;
    atomic {
        up[3] = 1;
        up[4] = 2;
        run hand_off(1, 3, 4);
        run hand_off(2, 4, 3);
        run handed(3);
        run handed(4)
    }
    busy == 0;
    reaches_root(3);
    reaches_root(4);
}
