/*
 * A shared fibre: its holder, the active strand of its stack, strands that become runnable meanwhile, requests to trim it,
 * and the release of its last reference.
 *
 * MODELS    src/sched/shared_mail.c: shared_mail_up, shared_mail_take_more_
 *           src/sched/shared_mail.h: shared_mail_take, shared_mail_go_idle
 *           src/sched/shared_fibre.c: leave_idle, shared_fibre_give_up, shared_fibre_trim, let_go,
 *           shared_fibre_enter, shared_fibre_left
 *           src/stack/shared_enter.h: shared_move_out, shared_move_in, shared_move_in_new
 *           src/sched/shared_open.c: shared_fibre_keep, shared_fibre_release
 *           Labels [SF1] [SF2] [SF6].
 * ABSTRACTS mail and `ready` to sets (their order matters for fairness only), run queues to the number of queues that
 *           the fibre is in, a strand's wait to one bit (see wait.pml), frames to their owner. A compare-and-swap in a
 *           loop is one step that is taken where it succeeds; one that may fail has both ways.
 * PARTIES   two threads; two strands, each of which yields or parks before it ends; a joiner for each, which wakes it
 *           and later reads the fibre from its control block; the opener, which requests one trim at any time, and then
 *           closes the fibre, before or after its strands' ends.
 * CHECKED   [SF1] the fibre has one holder at most, and is in one queue at most. A strand continues with its own
 *           frames, on a stack that no other thread's stack pointer is in. No strand is lost: all end. A holder serves
 *           each request to trim. [SF6] a freed fibre is not touched; it is freed once.
 * MACROS    NOIDLE       making a strand runnable queues the fibre whether it is idle or not
 *           ALLIDLE      making a strand runnable never queues the fibre, once it has run
 *           FORGETS      going idle does not check for mail
 *           EARLY        the fibre is released before its stack has been left
 *           NOCOPY       the active strand's frames are not copied out
 *           RESIDES      the ended strand stays the active strand
 *           DEAF         taking the mail does not take the request to trim
 *           APART        the request has a word of its own, which is checked again after going idle
 *           UNKNOWN      a control block has no reference to the fibre
 *           HASTY        the strand's reference is released before the holder releases the fibre
 */
/* V-12, V-21 */
/* must hold */
/* must fail: -DNOIDLE */
/* must stall: -DALLIDLE */
/* must stall: -DFORGETS */
/* must fail: -DEARLY */
/* must fail: -DNOCOPY */
/* must fail: -DRESIDES */
/* must fail: -DDEAF */
/* must fail: -DAPART */
/* must fail: -DUNKNOWN */
/* must fail: -DHASTY */
/* large */

#define THREADS 2
#define STRANDS 2
#define NONE STRANDS
#define IDLE 4 /* in mail, beside the strands' bits */
#define TRIM 8

byte mail = IDLE, ready;
byte queued;
bit held, stack_used;
byte active_strand = NONE, frames = NONE;
bit begun[STRANDS], saved[STRANDS];
bit armed[STRANDS], ended[STRANDS];
bit wish;      /* the holder has taken one */
bit wished;    /* one has not been followed by a trim */
byte refs;
bit freed;

#define TOUCH assert(!freed) /* [SF6] */

inline hold()
{
    assert(!held); /* [SF1] */
    held = 1
}

inline push()
{
    d_step { TOUCH; assert(held && queued == 0); held = 0; queued++ }
}

/* Make s runnable. */
inline up(s)
{
    d_step {
        TOUCH;
        was_idle = (mail == IDLE);
        mail = (mail & ~IDLE) | (1 << s)
    }
    if
#ifdef NOIDLE
    :: true -> queued++
#else
#ifdef ALLIDLE
    :: was_idle && !begun[s] -> d_step { assert(!queued); queued++ }
    :: !(was_idle && !begun[s])
#else
    :: was_idle -> d_step { assert(!queued); queued++ } /* [SF1] */
    :: !was_idle
#endif
#endif
    fi
}

inline take_mail()
{
    d_step {
        TOUCH;
        assert(held && !(mail & IDLE));
        ready = ready | (mail & 3);
#ifndef DEAF
        wish = wish || (mail & TRIM);
#endif
        mail = 0
    }
}

inline trim()
{
    d_step { TOUCH; assert(held && !stack_used); wish = 0; wished = 0 }
}

/* What APART reads once more. */
inline look_again()
{
#ifdef APART
    TOUCH
#else
    skip
#endif
}

inline give_up()
{
    do
    :: take_mail();
        if
        :: wish -> trim()
        :: else
        fi;
        if
        :: ready -> push(); break
        :: else ->
            if
#ifdef FORGETS
            :: d_step { TOUCH; held = 0; mail = IDLE } break
#else
            :: d_step { mail == 0 -> TOUCH; held = 0; mail = IDLE } look_again(); break
            :: mail != 0
#endif
            fi
        fi
    od;
    skip
}

inline release()
{
    d_step {
        TOUCH;
        assert(refs > 0);
        refs--;
        if
        :: refs == 0 -> assert(mail == IDLE && !held && !queued && active_strand == NONE); freed = 1
        :: else
        fi
    }
}

inline enter()
{
    take_mail();
    if
    :: ready & 1 -> me = 0
    :: ready & 2 -> me = 1
    fi;
    ready = ready & ~(1 << me);
    if
    :: active_strand != me ->
        if
        :: active_strand != NONE ->
            d_step {
                assert(held && !stack_used);
                assert(frames == active_strand);
#ifndef NOCOPY
                saved[active_strand] = 1;
#endif
                active_strand = NONE
            }
        :: else
        fi;
        d_step {
            assert(held && !stack_used);
            assert(!begun[me] || saved[me]);
            begun[me] = 1;
            saved[me] = 0;
            frames = me;
            active_strand = me
        }
    :: else
    fi
}

/* The strand itself runs on the stack. why: 0 it yields, 1 it parks, 2 it ends. */
inline be_active()
{
    d_step { assert(!stack_used && frames == me && held); stack_used = 1 }
    if
    :: more[me] -> more[me] = 0; why = 0
    :: more[me] -> more[me] = 0; why = 1; armed[me] = 1
    :: !more[me] -> why = 2; ended[me] = 1
    fi;
#ifdef EARLY
    give_up();
    d_step { assert(frames == me); stack_used = 0 }
#else
    d_step { assert(frames == me && held); stack_used = 0 }
#endif
}

bit more[STRANDS] = 1;

/* On the stack that was switched to. */
inline left()
{
    if
    :: why == 0 -> take_mail(); ready = ready | (1 << me)
    :: why == 1
    :: why == 2 ->
#ifndef RESIDES
        d_step { active_strand = NONE; frames = NONE }
#else
        skip
#endif
    fi;
#ifdef HASTY
    if
    :: why == 2 -> release()
    :: else
    fi;
#endif
#ifndef EARLY
    give_up();
#endif
#ifndef HASTY
    if
    :: why == 2 -> release()
    :: else
    fi
#endif
}

active [THREADS] proctype thread()
{
    byte me, why;
end:
    do
    :: atomic { queued > 0 -> TOUCH; queued--; hold() }
        enter();
        be_active();
        left();
        d_step { me = 0; why = 0 }
    od
}

/* Wakes a strand, then joins it. */
proctype joiner(byte s)
{
    bit was_idle;
    do
    :: atomic { armed[s] -> armed[s] = 0 } up(s); was_idle = 0
    :: ended[s] && !armed[s] -> break
    od;
    TOUCH; /* handle_ref_cb */
#ifndef UNKNOWN
    release()
#endif
}

proctype opener()
{
    bit was_idle;
#ifdef UNKNOWN
    refs = 1 + STRANDS;
#else
    refs = 1 + 2 * STRANDS;
#endif
    up(0);
    was_idle = 0;
    run joiner(0);
    up(1);
    was_idle = 0;
    run joiner(1);
    if
    :: d_step { mail == IDLE -> TOUCH; wished = 1; mail = 0; hold() }
        trim();
        give_up()
    :: d_step { mail != IDLE -> TOUCH; wished = 1; mail = mail | TRIM }
    fi;
    release()
}

init
{
    run opener();
    freed;
    assert(ended[0] && ended[1] && !wished && !queued)
}
