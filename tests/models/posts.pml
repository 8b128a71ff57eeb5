/*
 * The queue of a pool's posts: many put in, one takes.
 *
 * MODELS    src/sched/posts.c: posts_put, posts_take, is_the_last
 *           Labels [N1] [N2].
 * ABSTRACTS posts to numbers; a post that was taken to one whose memory is gone; what the taker does beside, to nothing:
 *           while the queue is not empty it looks again (see seeker.pml). Memory is sequentially consistent here: each
 *           relaxed store is ordered by an exchange, or by a compare-and-swap, of `last`.
 * PARTIES   two producers, each of which puts in two posts; the thread that takes them.
 * CHECKED   each post is taken once, those of a producer in their order. [N1] nobody writes to a post that was taken. [N2]
 *           while the queue is empty nothing that was put in is left; all end.
 * MACROS    BLIND        the taker takes the newest post without asking whether a successor is about to be linked
 *           CLEARLATE    the taker clears `first` after it has emptied `last`
 *           KEEPFIRST    the taker does not put the post back that it could not take
 */
/* must hold */
/* must fail: -DBLIND */
/* must stall: -DCLEARLATE */
/* must stall: -DKEEPFIRST */
/* fair */

#define POSTS 4 /* 1 and 2 are the first producer's, 3 and 4 the second one's */

byte first, last;
byte next[POSTS + 1];
bit taken[POSTS + 1];
byte count;

proctype producer(byte from)
{
    byte post = from, before;
    do
    :: post < from + 2 ->
        next[post] = 0;
        atomic { before = last; last = post }
        if
        :: before -> atomic { assert(!taken[before]); next[before] = post } /* [N1] */
        :: else -> first = post
        fi;
        post++
    :: else -> break
    od
}

active proctype taker()
{
    byte post, then;
    bit mine;
    run producer(1);
    run producer(3);
    do
    :: count == POSTS -> break
    :: count < POSTS && last -> /* [N2] the queue is not empty: it looks again */
        atomic { post = first; mine = 0 }
        if
        :: post ->
            then = next[post];
            if
            :: then -> first = then; mine = 1
            :: else ->
#ifdef BLIND
                first = 0; last = 0; mine = 1
#else
#ifdef CLEARLATE
                atomic { if :: last == post -> last = 0; mine = 1 :: else fi }
                if :: mine -> first = 0 :: else fi
#else
                first = 0;
                atomic { if :: last == post -> last = 0; mine = 1 :: else fi }
#ifndef KEEPFIRST
                if :: !mine -> first = post :: else fi
#endif
#endif
#endif
            fi
        :: else
        fi;
        if
        :: mine ->
progress:   atomic {
                assert(!taken[post]);
                assert(post % 2 || taken[post - 1]);
                taken[post] = 1;
                count++
            }
        :: else
        fi
    od;
    assert(!last && !first)
}
