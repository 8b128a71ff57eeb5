/*
 * Two readers of a strand's saved stack, and a thread that replaces and frees that stack.
 *
 * MODELS    src/stack/readers.h: readers_defer
 *           src/stack/readers.c: readers_enter, readers_leave, defer_again
 *           Labels [V1].
 * ABSTRACTS the Treiber stack to a step for each push, and for the exchange that empties it. Two pieces of memory: the
 *           thread makes one unreachable after the other. Memory that stays deferred is freed at the end of the run.
 * CHECKED   [V1] no reader reads memory that is freed, and no memory is freed twice. No memory is lost.
 * MACROS    LEAVEFIRST  a leaving reader decrements the count before it takes the memory
 *           FREEBLIND   the thread frees the memory without reading the count
 *           ASKFIRST    the thread reads the count before it makes the memory unreachable
 *           FINDFIRST   a reader finds the memory before it increments the count
 *           NOTLAST     a reader that is not the last one drops what it has taken
 */
/* must hold */
/* must fail: -DLEAVEFIRST */
/* must fail: -DFREEBLIND */
/* must fail: -DASKFIRST */
/* must fail: -DFINDFIRST */
/* must stall: -DNOTLAST */

#define PIECES 2
#define NONE PIECES

byte count;            /* readers.count */
byte current;          /* the piece that a reader finds; NONE: the strand has ended */
bit deferred[PIECES];  /* it is in readers.deferred */
bit freed[PIECES];

inline free(piece)
{
    d_step { assert(!freed[piece]); freed[piece] = 1 } /* [V1] */
}

inline take()
{
    d_step {
        taken[0] = deferred[0];
        taken[1] = deferred[1];
        deferred[0] = 0;
        deferred[1] = 0
    }
}

inline leave()
{
    d_step { count--; last = (count == 0) }
}

proctype reader()
{
    byte piece;
    bit last;
    bit taken[PIECES];

#ifdef FINDFIRST
    piece = current;
    count++;
#else
    count++; /* [V1] */
    piece = current;
#endif
    if
    :: piece < NONE -> assert(!freed[piece]) /* [V1] */
    :: else
    fi;
#ifdef LEAVEFIRST
    leave();
    if
    :: last -> take()
    :: else
    fi;
#else
    take(); /* [V1] */
    leave();
#endif
    if
    :: last ->
        if
        :: taken[0] -> free(0)
        :: else
        fi;
        if
        :: taken[1] -> free(1)
        :: else
        fi
#ifdef NOTLAST
    :: else
#else
    :: else ->
        d_step {
            deferred[0] = deferred[0] || taken[0];
            deferred[1] = deferred[1] || taken[1]
        }
#endif
    fi
}

inline give_back(piece)
{
#ifdef ASKFIRST
    watched = (count > 0);
    current = piece + 1;
#else
    current = piece + 1;
    watched = (count > 0); /* [V1] */
#endif
#ifdef FREEBLIND
    watched = 0;
#endif
    if
    :: watched -> deferred[piece] = 1
    :: !watched -> free(piece)
    fi
}

proctype owner()
{
    bit watched;

    give_back(0);
    give_back(1)
}

init {
    atomic {
        run reader();
        run reader();
        run owner()
    }
    (_nr_pr == 1);
    freed[0] || deferred[0];
    freed[1] || deferred[1]
}
