/*
 * How long the strands of each thread wait until they run, and how threads even that out. Page:
 * docs/protocols/balance.md.
 *
 * A thread that always has something to run never steals. So one may have a few strands, which run again and again, and
 * another one a thousand, each of which runs once in a thousand times (S-66). A thread's interval is the average time
 * between two strands that it takes from its queue while strands wait there. Queue length times interval estimates how
 * long a strand waits. Neither costs anything at a switch.
 *
 * PARTIES   the thread, which records its own times at its passes; readers: threads that even out, and strands that ask
 *           for the pool's figures.
 * STATE     thread.balance: sums over the last hundred milliseconds or so, older ones fading; only the thread writes
 *           them. A reader adds what has happened since the thread's last record.
 * PROTOCOL  none: a reader may see the sums of two records mixed. It is a measure: a thread that acts on it may gain
 *           nothing, but does no harm.
 * EVENING   a busy thread evens out in a pass for which it has the role of the seeker, at most once in a millisecond.
 *           It examines some other threads, and chooses the one whose strands wait longest. If they wait much longer
 *           than its own, it takes as many of them as make both wait equally long: from the far ends of the lists,
 *           where they would wait longest. If a thread has made no pass for a hundred milliseconds, and for four times
 *           the taker's longest recent time between two passes, one strand occupies it: the strands in its slot and its
 *           inbox then count as waiting, too.
 * INVARIANTS [LB1] a thread that takes has the role: no other thread steals or evens out meanwhile.
 *           [LB2] after that the taker's wait is not longer than the victim's, by the same measure: two threads don't
 *           take from each other alternately, and no strand waits longer for having been moved.
 *           [LB3] what was taken is in the taker's queue before it gives the role back: the next thread with the role
 *           finds in the queues all that is runnable.
 * NOT DONE  giving strands to threads that have fewer (S-50): a thread that has little looks for itself, as a thread
 *           that has nothing does. Comparing how many wait: ten strands that compute for a millisecond each are not
 *           less to do than a thousand that compute for a microsecond. A thread of its own for it: it would wake up
 *           though all is well. A time stamp on each queued fibre: a store and a clock for each push, for what two
 *           counters say. Processor time: a thread that has half of a processor serves its strands half as often,
 *           whatever the reason. Taking from the front, as thieves do: those are about to be served, and would wait
 *           again behind the taker's queue.
 * TESTED BY tests/spec/balance.c, tests/unit/sched_balance.c, tests/sim/balance.c, the model of the seeker; the mutants
 *           balance-*.
 */
#ifndef SCHED_BALANCE_H
#define SCHED_BALANCE_H

#include "../base/base.h"

struct pool;
struct thread;

struct balance_sums {    /* of a thread; in ticks */
    uint64_t recorded;   /* when the thread made its last record, or began to be busy */
    uint32_t served;     /* runq.served then */
    uint64_t time;       /* the time in which strands waited */
    uint64_t dispatched; /* how many were served in that time, in 256ths */
    uint64_t slowest;    /* the longest time between two records, which fades too */
    uint64_t evened_out; /* when the thread last compared itself with others */
};

/* What a pool does about threads whose strands wait longer than others: the values of enum strand_balance. */
enum balance { BALANCE_EVEN, BALANCE_STIR, BALANCE_NONE };

/* How long the strands of a thread wait at one moment. Times in ticks. */
struct balance_sample {
    uint64_t length;   /* how many fibres wait */
    uint64_t interval; /* the time between two that are served; 0: unknown */
    bool occupied;     /* one strand has occupied the thread for long */
};

OWN_INLINE uint64_t balance_sample_wait(const struct balance_sample *sample)
{
    return sample->length * sample->interval;
}

/* Begins the first record of a thread that becomes busy. */
void balance_begin(struct thread *thread, uint64_t now);
/* Adds the time since the last record to the sums. Called when the thread makes a pass. ms: the ticks of a
 * millisecond. */
void balance_record(struct thread *thread, uint64_t now, uint64_t ms);
/* Returns the sample of any thread at this moment. by: the caller's thread, whose own delays say how long threads are
 * kept from their passes. */
struct balance_sample balance_sample_of(const struct thread *by, struct thread *thread, uint64_t now, uint64_t ms);
/* Returns how many of their fibres should move to the caller's queue. */
uint64_t balance_excess(const struct balance_sample *theirs, const struct balance_sample *mine, uint64_t ms);

/* wait_ns: the longest estimated wait in any queue. unequal: the ratio of the longest to the shortest wait of the
 * pool's threads, at least 1. */
struct balance_figures {
    int64_t wait_ns;
    double unequal;
};
struct balance_figures balance_figures_of(struct thread *by, struct pool *pool);

#endif
