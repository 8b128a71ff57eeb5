/*
 * What happens before a spawn is seen by the child; what the child did is seen after its join. The variables here are
 * plain on purpose: TSan says when an order is missing.
 */
#define SUITE memory_model
#include "test.h"

#include "strand/pool.h"
#include "strand/port.h"
#include "strand/sync.h"

#include <errno.h>
#include <limits.h>

#define MANY 16

/* On four threads, whatever the environment says: on one there is nothing to prove. */
static void *run_on_four(strand_fn *fn, void *arg)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    return strand_run(&options, fn, arg);
}

struct cell {
    long in, out;
    char text[64];
};

/* Yields, so that the cell is read and written on more than one thread. */
static void *square(void *arg)
{
    struct cell *cell = arg;
    long in = cell->in;
    strand_yield();
    cell->out = in * in;
    strand_yield();
    snprintf(cell->text, sizeof cell->text, "%ld", cell->out);
    return arg;
}

static void check_cell(const struct cell *cell, long in)
{
    char text[64];
    snprintf(text, sizeof text, "%ld", in * in);
    CHECK_EQ(cell->out, in * in);
    CHECK_STR(cell->text, text);
}

static void *square_and_join_each(void *arg)
{
    for (long round = 0; round < test_scale(200); round++) {
        struct cell cells[MANY];
        strand children[MANY];
        STRAND_SCOPE(scope);
        for (int i = 0; i < MANY; i++) {
            cells[i].in = round + i;
            children[i] = strand_spawn(scope, square, &cells[i]);
        }
        for (int i = 0; i < MANY; i++) {
            CHECK_PTR(strand_join(children[i]), &cells[i]);
            check_cell(&cells[i], round + i);
        }
    }
    return arg;
}

/* V-39, contract 8.1 */
TEST(a_child_sees_what_was_done_before_its_spawn_and_its_joiner_sees_what_it_did)
{
    run_on_four(square_and_join_each, NULL);
}

static void *square_and_join_all(void *arg)
{
    for (long round = 0; round < test_scale(200); round++) {
        struct cell cells[MANY];
        STRAND_SCOPE(scope);
        for (int i = 0; i < MANY; i++) {
            cells[i].in = round + i;
            strand_spawn(scope, square, &cells[i]);
        }
        strand_scope_join(scope);
        for (int i = 0; i < MANY; i++)
            check_cell(&cells[i], round + i);
    }
    return arg;
}

/* V-39, contract 8.1 */
TEST(the_join_of_a_scope_shows_what_all_its_children_did)
{
    run_on_four(square_and_join_all, NULL);
}

static void leave_with_children(struct cell *cells)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < MANY; i++)
        strand_spawn(scope, square, &cells[i]);
    strand_scope_cancel(scope, NULL);
}

/* Cancelled children have touched their cells at most until the scope was left. */
static void *leave_and_write(void *arg)
{
    for (long round = 0; round < test_scale(200); round++) {
        struct cell cells[MANY] = {0};
        leave_with_children(cells);
        for (int i = 0; i < MANY; i++) {
            cells[i].in++;
            cells[i].out++;
            cells[i].text[0]++;
        }
    }
    return arg;
}

/* contract 8.1 */
TEST(after_leaving_a_scope_its_memory_belongs_to_the_owner_again)
{
    run_on_four(leave_and_write, NULL);
}

static void *square_the_copy(void *copy)
{
    struct cell *cell = copy;
    strand_yield();
    cell->out = cell->in * cell->in;
    return (void *)(intptr_t)cell->out;
}

static void *reuse_the_argument(void *arg)
{
    for (long round = 0; round < test_scale(200); round++) {
        struct cell cell = {0};
        strand children[MANY];
        STRAND_SCOPE(scope);
        for (int i = 0; i < MANY; i++) {
            cell.in = i;
            children[i] = strand_spawn_with(scope, NULL, square_the_copy, &cell, sizeof cell);
        }
        for (long i = 0; i < MANY; i++)
            CHECK_EQ((intptr_t)strand_join(children[i]), i * i);
    }
    return arg;
}

TEST(copied_arguments_are_the_childs_own)
{
    run_on_four(reuse_the_argument, NULL);
}

static void free_cell(struct cell **cell)
{
    free(*cell);
}

/* A value goes down a chain of strands and comes back changed by each. */
static void *add_on_the_way_back(void *arg)
{
    struct cell *cell = arg;
    struct cell *below __attribute__((cleanup(free_cell))) = calloc(1, sizeof *below);
    below->in = cell->in - 1;
    if (cell->in > 0) {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, add_on_the_way_back, below));
        strand_yield();
    }
    cell->out = below->out + cell->in;
    return arg;
}

static void *run_chains(void *arg)
{
    for (long round = 0; round < test_scale(100); round++) {
        struct cell cells[8];
        STRAND_SCOPE(scope);
        for (int i = 0; i < 8; i++) {
            cells[i].in = 20;
            strand_spawn(scope, add_on_the_way_back, &cells[i]);
        }
        strand_scope_join(scope);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(cells[i].out, 210);
    }
    return arg;
}

/* contract 8.1 */
TEST(joins_carry_what_grandchildren_did_to_their_grandparents)
{
    run_on_four(run_chains, NULL);
}

static void *throw_with_a_payload(void *arg)
{
    struct cell *cell = arg;
    strand_throw_info info = {.size = sizeof info, .payload = cell};
    strand_yield();
    cell->out = cell->in + 1;
    strand_throw_with(&STRAND_ERROR, &info, "done");
}

static void *join_failures(void *arg)
{
    for (long round = 0; round < test_scale(200); round++) {
        struct cell cell = {.in = round};
        STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
        strand_spawn(scope, throw_with_a_payload, &cell);
        strand_scope_wait_next(scope);
        strand_exception *e = strand_scope_failure(scope, NULL);
        CHECK(e != NULL);
        CHECK_PTR(strand_exception_payload(e), &cell);
        CHECK_EQ(((struct cell *)strand_exception_payload(e))->out, round + 1);
        strand_exception_release(e);
    }
    return arg;
}

/* contract 8.1, 8.3 */
TEST(the_catcher_of_an_exception_sees_what_its_thrower_did)
{
    run_on_four(join_failures, NULL);
}

static void *add_one(void *number)
{
    ++*(long *)number;
    return number;
}

static void *add_in_turn(void *arg)
{
    STRAND_SCOPE(scope);
    for (long i = 0; i < test_scale(1000); i++) {
        add_one(arg);
        CHECK_PTR(strand_join(strand_spawn(scope, add_one, arg)), arg);
        strand_yield();
        add_one(arg);
    }
    return arg;
}

/* contract 3.6 */
TEST(a_strand_and_its_children_see_one_variable_whatever_threads_they_wake_on)
{
    long number = 0;
    run_on_four(add_in_turn, &number);
    CHECK_EQ(number, 3 * test_scale(1000));
}

/* ---- from one strand to another, on one pool or on two ----------------------------------------------- */

/* What is plain is written by one and read by the other, each time by another means of letting go and getting. */
struct handing {
    long by_permit, by_event, by_group, by_message, by_once, by_lock;
    strand_semaphore permits;
    strand_event event;
    strand_group group;
    strand_once once;
    strand_rwlock lock;
};

enum { HANDINGS = 32 };
static struct {
    struct handing each[HANDINGS];
    strand_mutex mutex;
    long under_mutex;
    strand_barrier barrier;
    long at_barrier[2];
    strand_port port;
} hands;

static void *write_once(void *arg)
{
    struct handing *handing = arg;
    handing->by_once = 5;
    strand_yield();
    return arg;
}

static void come_to_the_barrier(int me, long round)
{
    hands.at_barrier[me] = round;
    strand_barrier_wait(&hands.barrier);
    CHECK_EQ(hands.at_barrier[!me], round);
    strand_barrier_wait(&hands.barrier);
}

static void count_under_lock(void)
{
    strand_mutex_lock(&hands.mutex);
    hands.under_mutex++;
    strand_mutex_unlock(&hands.mutex);
}

static void *give(void *arg)
{
    for (int i = 0; i < HANDINGS; i++) {
        struct handing *handing = &hands.each[i];
        long message = i;
        handing->by_permit = 1;
        strand_semaphore_release(&handing->permits);
        handing->by_event = 2;
        strand_event_set(&handing->event);
        count_under_lock();
        handing->by_group = 3;
        strand_group_done(&handing->group);
        handing->by_message = 4;
        CHECK_EQ(strand_port_send(hands.port, &message, sizeof message), 0);
        strand_rwlock_write(&handing->lock);
        handing->by_lock = 6;
        strand_rwlock_write_done(&handing->lock);
        CHECK_PTR(strand_once_run(&handing->once, write_once, handing), handing);
        CHECK_EQ(handing->by_once, 5);
        come_to_the_barrier(0, i);
    }
    return arg;
}

static long read_under_lock(struct handing *handing)
{
    strand_rwlock_read(&handing->lock);
    long value = handing->by_lock;
    strand_rwlock_read_done(&handing->lock);
    return value;
}

static void *take(void *arg)
{
    for (int i = 0; i < HANDINGS; i++) {
        struct handing *handing = &hands.each[i];
        long message = -1;
        strand_semaphore_acquire(&handing->permits);
        CHECK_EQ(handing->by_permit, 1);
        strand_event_wait(&handing->event);
        CHECK_EQ(handing->by_event, 2);
        count_under_lock();
        strand_group_wait(&handing->group);
        CHECK_EQ(handing->by_group, 3);
        CHECK_EQ(strand_port_receive(hands.port, &message, sizeof message), sizeof message);
        CHECK_EQ(message, i);
        CHECK_EQ(handing->by_message, 4);
        CHECK_PTR(strand_once_run(&handing->once, write_once, handing), handing);
        CHECK_EQ(handing->by_once, 5);
        while (read_under_lock(handing) != 6)
            strand_yield();
        come_to_the_barrier(1, i);
    }
    return arg;
}

static void *hand_over(void *arg)
{
    for (long round = 0; round < test_scale(40); round++) {
        memset(&hands, 0, sizeof hands);
        for (int i = 0; i < HANDINGS; i++)
            strand_group_add(&hands.each[i].group, 1);
        hands.barrier = (strand_barrier)STRAND_BARRIER_INIT(2);
        STRAND_SCOPE(scope);
        strand_pool pools[2] = {strand_pool_self(), strand_pool_self()};
        if (arg)
            for (int i = 0; i < 2; i++)
                pools[i] = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + i));
        hands.port = strand_port_open(scope, sizeof(long), 2, NULL);
        strand giver = strand_spawn_with(scope, STRAND_ATTR(.pool = pools[0]), give, NULL, 0);
        strand taker = strand_spawn_with(scope, STRAND_ATTR(.pool = pools[1]), take, NULL, 0);
        strand_join(taker);
        strand_join(giver);
        CHECK_EQ(hands.under_mutex, 2 * HANDINGS);
    }
    return arg;
}

/* contract 8.2 */
TEST(the_next_holder_of_an_object_sees_what_was_done_before_its_release)
{
    run_on_four(hand_over, NULL);
}

/* V-02, contract 8.2 */
TEST(the_next_holder_on_another_pool_sees_what_was_done_before_the_release)
{
    run_on_four(hand_over, &hands);
}

/* ---- what belongs to the thread ----------------------------------------------------------------- */

/* A function of its own: a compiler may keep the address of errno across a switch to another thread. */
static NOINLINE void set_errno(void)
{
    errno = 0;
    CHECK_EQ(strtol("99999999999999999999", NULL, 10), LONG_MAX);
    CHECK_EQ(errno, ERANGE);
}

static void *set_errno_again_and_again(void *arg)
{
    for (int i = 0; i < 10; i++) {
        set_errno();
        strand_yield();
    }
    return arg;
}

TEST_RACE(strands_of_a_thread_set_errno_without_a_race)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < MANY; i++)
        strand_spawn(scope, set_errno_again_and_again, NULL);
    strand_scope_join(scope);
}
