/*
 * A supervisor that asks the child of its child, which fails, while the parent between them escalates the failure.
 *
 * MODELS    src/actor/deadlock.c: deadlock_break, deadlock_escalate, deadlock_escalated_late, deadlock_check,
 *           deadlock_refuse, supervisor_of, walk_up, still_holds, what_it_waits_for, end_waits, check_below
 *           Labels [A6] [A10].
 * ABSTRACTS a critical section to one step, and a failure to its number. A request to an actor, and its failures, to
 *           flags that its next turn takes together, as life_calls does. A turn is never cancelled, an actor never
 *           stops, and there is always memory. Waits for room and for an end are waits for an answer.
 * PARTIES   the supervisor asks the child once, and waits. The child fails up to twice. Its parent either resumes it or
 *           escalates the failure, and so fails, too; the supervisor would have to decide then. Other strands may
 *           resume the child and the parent, once each, at any time.
 * CHECKED   [A6] the supervisor's wait ends. [A10] it ends by -EDEADLK only if the child and the parent both await the
 *           supervisor's decision at one instant.
 * MACROS    PUBLISHLATE  the supervisor publishes its wait after it has walked up
 *           NOWALK       it does not walk up
 *           ABOVELATE    the parent sets decided_above after it has failed
 *           NOLOOK       the parent, when it fails, does not make the child look
 *           LATEBLIND    the parent, when it has failed before, does not make the child look
 *           WALKBLIND    a walk counts although a decision was made meanwhile
 *           ENDBLIND     the child ends the wait although a decision was made since its walk
 *           COUNTLATE    a decision is counted after others can see it
 *           TAKETORN     the child takes a decision, and is undecided for a while after that
 */
/* must hold */
/* must stall: -DPUBLISHLATE */
/* must stall: -DNOWALK */
/* must stall: -DABOVELATE */
/* must stall: -DNOLOOK */
/* must stall: -DLATEBLIND */
/* must fail: -DWALKBLIND */
/* must fail: -DENDBLIND */
/* must fail: -DCOUNTLATE */
/* must fail: -DTAKETORN */

#define CHILD 0
#define PARENT 1

#define WAITS 0
#define ANSWERED 1
#define DEADLOCK 2

bit undecided[2], decided[2]; /* decided: a request that makes it go on is pending */
bit above;                    /* decided_above of the child */
byte why;                     /* the number of the failure for which the child is suspended; 0: it is not */
bit listed[3];                /* the failures of which the parent is notified */
bit look;                     /* the child has to look */
byte decisions;

bit waits; /* what the supervisor has published */
bit asked; /* its question is in the child's queue */
byte result = WAITS;
bit over;

#define AWAITS(who) (undecided[who] && !decided[who])
#define DEADLOCKED (AWAITS(CHILD) && above && AWAITS(PARENT))

inline settle(how)
{
    d_step {
        if
        :: result == WAITS -> result = how
        :: else
        fi
    }
}

inline make_look(number)
{
    d_step {
        if
        :: why == number -> look = 1
        :: else
        fi
    }
}

/* Request that an actor goes on, if that holds. */
inline decide(who, holds)
{
#ifdef COUNTLATE
    d_step {
        counts = 0;
        if
        :: holds -> counts = undecided[who]; decided[who] = 1
        :: else
        fi
    }
    decisions = decisions + counts
#else
    d_step {
        if
        :: holds -> decisions = decisions + undecided[who]; decided[who] = 1 /* [A10] */
        :: else
        fi
    }
#endif
}

/* supervisor_of for the child. found: that is the supervisor; otherwise the parent, which waits for nothing, or none.
 * acts: the caller acts on it without a further look. */
inline walk(acts)
{
    do
    :: d_step { since = decisions; found = (AWAITS(CHILD) && above) }
        if
        :: found -> found = AWAITS(PARENT)
        :: else
        fi;
        if
        :: !found -> break
#ifdef WALKBLIND
        :: found -> assert(!acts || DEADLOCKED); break
#else
        :: d_step { found && decisions == since -> assert(!acts || DEADLOCKED) } /* [A10] */
            break
        :: found && decisions != since
#endif
        fi
    od
}

proctype supervisor()
{
    byte since;
    bit found, awaits;

#ifndef PUBLISHLATE
    waits = 1;
#endif
    d_step { asked = 1; awaits = AWAITS(CHILD) }
#ifndef NOWALK
    if
    :: awaits ->
        walk(true);
        if
        :: found -> settle(DEADLOCK)
        :: else
        fi
    :: else
    fi;
#endif
#ifdef PUBLISHLATE
    waits = 1;
#endif
    result != WAITS;
    over = 1
}

proctype child()
{
    byte since, failures;
    bit found, got_decided, got_look;

    do
    :: why == 0 && failures < 2 ->
        d_step { failures++; why = failures }
        d_step { undecided[CHILD] = 1; above = 0 } /* [A6] */
        listed[failures] = 1
    :: atomic { why == 0 && asked -> asked = 0 }
        settle(ANSWERED)
    :: atomic {
            decided[CHILD] || look ->
            got_decided = decided[CHILD];
            got_look = look;
            decided[CHILD] = 0;
            look = 0
#ifndef TAKETORN
            ;
            if
            :: got_decided -> undecided[CHILD] = 0
            :: else
            fi
#endif
        }
        if
        :: got_decided ->
#ifdef TAKETORN
            undecided[CHILD] = 0;
#endif
            why = 0
        :: else
        fi;
        if
        :: got_look ->
            walk(false);
            if
            :: found && waits ->
                d_step {
                    if
#ifdef ENDBLIND
                    :: AWAITS(CHILD) && asked ->
#else
                    :: AWAITS(CHILD) && asked && decisions == since ->
#endif
                        assert(DEADLOCKED); /* [A10] */
                        if
                        :: result == WAITS -> result = DEADLOCK
                        :: else
                        fi
                    :: else
                    fi
                }
                if
                :: decisions != since -> look = 1
                :: else
                fi
            :: else
            fi
        :: else
        fi
    :: over -> break
    od
}

inline set_above(number)
{
    d_step {
        if
        :: undecided[CHILD] && why == number -> above = 1 /* [A6] */
        :: else
        fi
    }
}

inline handle(number)
{
    if
    :: decide(CHILD, why == number)
    :: escalated[number] = 1;
#ifndef ABOVELATE
        set_above(number);
#endif
        if
        :: failed ->
#ifndef LATEBLIND
            make_look(number);
#endif
            skip
        :: !failed ->
            failed = 1;
            undecided[PARENT] = 1; /* [A6] */
            if
#ifndef NOLOOK
            :: waits -> make_look(number)
#endif
            :: else
            fi
        fi
#ifdef ABOVELATE
        ;
        set_above(number)
#endif
    fi
}

proctype parent()
{
    bit failed, got_decided, counts;
    bit taken[3], escalated[3];

    do
    :: atomic {
            decided[PARENT] || listed[1] || listed[2] ->
            got_decided = decided[PARENT];
            decided[PARENT] = 0;
            taken[1] = listed[1];
            taken[2] = listed[2];
            listed[1] = 0;
            listed[2] = 0;
            if
            :: got_decided -> undecided[PARENT] = 0
            :: else
            fi
        }
        if
        :: taken[1] -> handle(1)
        :: else
        fi;
        if
        :: taken[2] -> handle(2)
        :: else
        fi;
        if
        :: got_decided ->
            failed = 0;
            if
            :: escalated[1] -> escalated[1] = 0; decide(CHILD, why == 1)
            :: else
            fi;
            if
            :: escalated[2] -> escalated[2] = 0; decide(CHILD, why == 2)
            :: else
            fi
        :: else
        fi
    :: over -> break
    od
}

/* strand_actor_resume, or not */
proctype other(byte who)
{
    bit counts;

    if
    :: decide(who, true)
    :: skip
    fi
}

init {
    atomic {
        run supervisor();
        run child();
        run parent();
        run other(CHILD);
        run other(PARENT)
    }
}
