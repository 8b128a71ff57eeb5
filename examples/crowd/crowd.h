/*
 * crowd: a million machines that break down, and mechanics that mend them; a strand for each machine.
 *
 *     at work --breaks down--> in the queue --a mechanic comes--> in repair, part by part, deeper and deeper --> at
 * work
 *
 * What it shows: very many strands that wait with shallow stacks, any of which recurses deeply from time to time. A
 * repair is a recursion: behind one part in eight there is another one to take out, and the record of how to put it
 * back, 8 KiB, lies in the frame while the strand waits. With stacks of their own the strands take a page or more each,
 * and keep what the deepest repair of each has touched; on a few shared fibres they take what they use now. Both ways
 * are the same program (run_crowd has the one place that differs), and have the same result, bit by bit.
 *
 * The model is the classic machine-repair problem, M/M/c//N: lives are exponential, mechanics are few, the queue is
 * first come, first served. It was chosen because its mean is known exactly for every number of machines (known.c), and
 * holds for a recursion, too: the time of a part is exponential, the number of parts is geometric, and so the sum is
 * exponential again. The shop starts in its average state, so no warm-up is needed.
 *
 * Time is simulated: no strand sleeps. An agent that waits for an instant puts it into the clock's heap and acquires a
 * semaphore of its own. The last agent to wait turns the clock, which releases the semaphore of the agent whose instant
 * comes next (clock.c). The program runs on one thread, because events have an order.
 *
 * Where to begin: agents.c, what a machine goes through; then clock.c. main.c has the command line and the figures.
 */
#ifndef CROWD_H
#define CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strand.h>
#include <strand/pool.h>
#include <strand/sync.h>

/* ---- the model ------------------------------------------------------------------------------- */

/* The unit of time is a machine's mean life. Mechanics are so many per machine, and always too few: about a fifth of
 * all machines are in the queue, another sixth in repair. */
#define REPAIR_MEAN 0.25
#define MECHANICS_PER_AGENT 0.16
#define DEEPER 0.125 /* how often there is another part behind a part */
#define PART_MEAN (REPAIR_MEAN * (1 - DEEPER))
enum { NOTES = 8192, STACK = 128 * 1024, AGENTS_LEAST = 1000, AGENTS_MOST = 100000000 };

/* The mean of what is measured, and its standard error. */
struct known {
    double mean, error;
};
struct forecast {
    struct known down, repairs, parts;
};
/* What has to come out for so many machines over so long a time, if down machines are as many at the start as they are
 * on average. */
struct forecast forecast(long agents, double time);

/* What a run has come to. Equal ways have equal ones. */
struct outcome {
    double down;                     /* machines that do not work, on average over time */
    uint64_t repairs, parts, events; /* that were finished; how often the clock was turned */
    uint64_t trail;                  /* a hash of the agents and the times of their wake-ups */
    int deepest;                     /* parts behind parts */
};

/* ---- the clock ------------------------------------------------------------------------------- */

struct agent {
    struct crowd *crowd;
    strand_semaphore turn; /* released when its instant has come, or its mechanic */
    struct agent *next;    /* in the queue */
    uint64_t chance;       /* its own generator, so that what it draws does not depend on others */
};

struct instant {
    double at;
    struct agent *agent;
};

struct clock {
    struct instant *heap; /* of those who wait, the next one first; room for all agents */
    long waiting;
    long awake; /* agents that do not wait for anything */
    double now, end;
    bool over;       /* the end has come; what is waited for still comes, at once */
    strand_event up; /* it is over, and the clock stands until somebody turns it */
};

/* An agent that is about to wait counts itself out. The last one turns the clock. */
void clock_turn(struct crowd *crowd);
/* Wait for so long. Returns false if it is over. */
STRAND_BLOCKS bool clock_wait(struct agent *self, double time);

/* ---- the agents ------------------------------------------------------------------------------ */

struct crowd {
    const char *way; /* for the output */
    long agents;
    int fibres;       /* 0: stacks of their own */
    int64_t progress; /* ns between two lines; 0: none */

    struct clock clock;
    struct agent *crew;               /* all agents */
    long free;                        /* mechanics */
    struct agent *queue, **queue_end; /* of agents that wait for one */
    long down;
    double down_since; /* the instant up to which the outcome has the sum of down machines */
    struct outcome outcome;

    int64_t resident; /* bytes of memory, with all strands at the end of the time, more than before */
    int64_t images;   /* of saved stacks, of them */
    int64_t taken;    /* ns, from the first spawn to the last end */
};

/* A run of the crowd, the function of a root strand. */
strand_fn run_crowd;
/* One machine. */
strand_fn live;
/* The sum of down machines up to now is brought up to date. */
void note_down(struct crowd *crowd);

/* A step of splitmix64. */
uint64_t draw(uint64_t *chance);

#endif
