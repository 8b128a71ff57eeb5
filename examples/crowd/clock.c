/*
 * Simulated time. Some agents wait for an instant (they are in the heap), some for a mechanic, and the others are
 * awake. When none is awake, the agent with the earliest instant continues. All run on one thread, and only one runs
 * between two waits, so nothing here needs a lock.
 */
#include "crowd.h"

#include <string.h>

/* Whether a comes first. At the start all wait for the same instant; then their order in the crew decides. */
static bool before(const struct instant *a, const struct instant *b)
{
    return a->at != b->at ? a->at < b->at : a->agent < b->agent;
}

static void push(struct clock *clock, struct instant instant)
{
    long i = clock->waiting++;
    for (long up; i > 0 && before(&instant, &clock->heap[up = (i - 1) / 2]); i = up)
        clock->heap[i] = clock->heap[up];
    clock->heap[i] = instant;
}

static struct instant pop(struct clock *clock)
{
    struct instant first = clock->heap[0], last = clock->heap[--clock->waiting];
    long i = 0;
    for (long down = 1; down < clock->waiting; down = 2 * i + 1) {
        if (down + 1 < clock->waiting && before(&clock->heap[down + 1], &clock->heap[down]))
            down++;
        if (!before(&clock->heap[down], &last))
            break;
        clock->heap[i] = clock->heap[down];
        i = down;
    }
    clock->heap[i] = last;
    return first;
}

static void leave_trail(struct crowd *crowd, const struct instant *instant)
{
    uint64_t at;
    memcpy(&at, &instant->at, sizeof at);
    crowd->outcome.trail ^= at + (uint64_t)(instant->agent - crowd->crew);
    crowd->outcome.trail = draw(&crowd->outcome.trail);
    crowd->outcome.events++;
}

void clock_turn(struct crowd *crowd)
{
    struct clock *clock = &crowd->clock;
    if (--clock->awake > 0 || clock->waiting == 0)
        return;
    clock->awake = 1;
    if (!clock->over && clock->heap[0].at > clock->end) {
        clock->now = clock->end;
        note_down(crowd);
        clock->over = true;
        strand_event_set(&clock->up);
        return;
    }
    struct instant next = pop(clock);
    if (!clock->over) {
        clock->now = next.at;
        leave_trail(crowd, &next);
    }
    strand_semaphore_release(&next.agent->turn);
}

bool clock_wait(struct agent *self, double time)
{
    struct crowd *crowd = self->crowd;
    push(&crowd->clock, (struct instant){crowd->clock.now + time, self});
    clock_turn(crowd);
    strand_semaphore_acquire(&self->turn);
    return !crowd->clock.over;
}
