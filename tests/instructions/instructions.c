/*
 * Operations whose instructions tools/check-instructions.sh counts under valgrind, on one thread.
 *
 *     instructions ROW ROUNDS
 *
 * It prints how many operations it has done. Without arguments it prints the names of the rows. More rounds cost more
 * instructions, and the start and the end of the process the same, so the difference of two runs is the cost of the
 * operations alone.
 */
#include "../../src/sched/thread.h"

#include <strand/actor.h>
#include <strand/chan.h>
#include <strand/pool.h>
#include <strand/select.h>
#include <strand/sync.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long rounds;

static void *leaf(void *arg)
{
    return arg;
}

/* ---- strands ---------------------------------------------------------------------------------------------------- */

static void *yield_often(void *arg)
{
    for (long i = 0; i < rounds; i++)
        strand_yield();
    return arg;
}

static long switch_strands(void)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, yield_often, NULL);
    strand_spawn(scope, yield_often, NULL);
    strand_scope_join(scope);
    return 2 * rounds;
}

static long spawn_and_join(void)
{
    STRAND_SCOPE(scope);
    for (long i = 0; i < rounds; i++)
        strand_join(strand_spawn(scope, leaf, NULL));
    return rounds;
}

static long spawn_a_batch(void)
{
    enum { BATCH = 100 };
    for (long i = 0; i < rounds; i++) {
        STRAND_SCOPE(scope);
        for (int n = 0; n < BATCH; n++)
            strand_spawn(scope, leaf, NULL);
        strand_scope_join(scope);
    }
    return rounds * BATCH;
}

static long enter_a_scope(void)
{
    for (long i = 0; i < rounds; i++) {
        STRAND_SCOPE(scope);
        __asm__ volatile("" ::"r"(scope.bits[0]));
    }
    return rounds;
}

static long strands_of_fib;

static void *fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    strands_of_fib++;
    if (n < 2)
        return arg;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fib, (void *)(n - 1));
    intptr_t called = (intptr_t)fib((void *)(n - 2));
    return (void *)((intptr_t)strand_join(child) + called);
}

/* A call in two is a strand. */
static long fork_and_join(void)
{
    for (long i = 0; i < rounds; i++)
        fib((void *)10);
    return strands_of_fib / 2;
}

static void *sleep_for_long(void *arg)
{
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static long cancel_a_sleeper(void)
{
    for (long i = 0; i < rounds; i++) {
        STRAND_SCOPE(scope);
        strand sleeper = strand_spawn(scope, sleep_for_long, NULL);
        strand_yield();
        strand_cancel(sleeper, NULL);
    }
    return rounds;
}

/* ---- exceptions ---------------------------------------------------------------------------------------------------
 */

static void count(long **cleaned)
{
    ++**cleaned;
}

static __attribute__((noinline)) void throw_below(int depth, long *cleaned)
{
    long *counted __attribute__((cleanup(count), unused)) = cleaned;
    if (depth > 1)
        throw_below(depth - 1, cleaned);
    else if (*cleaned >= 0) /* it is, but the compiler would see a recursion without an end */
        strand_throw(&STRAND_ERROR, "below");
}

static long throw_from(int depth)
{
    long cleaned = 0;
    for (long i = 0; i < rounds; i++) {
        STRAND_TRY {
            throw_below(depth, &cleaned);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            (void)e;
        }
        STRAND_END
    }
    return cleaned / depth;
}

static long throw_1(void)
{
    return throw_from(1);
}

static long throw_10(void)
{
    return throw_from(10);
}

/* ---- channels and locks -------------------------------------------------------------------------------------------
 */

static strand_chan chans[4];

static void open_channels(strand_scope scope, size_t capacity)
{
    for (int i = 0; i < 4; i++)
        chans[i] = strand_chan_open(scope, sizeof(long), capacity, NULL);
}

static void *send_often(void *arg)
{
    for (long i = 0; i < rounds; i++)
        STRAND_IGNORE(strand_chan_send(chans[i % (arg ? 4 : 1)], &i));
    return arg;
}

static long receive_all(size_t capacity)
{
    long value, received = 0;
    STRAND_SCOPE(scope);
    open_channels(scope, capacity);
    strand_spawn(scope, send_often, NULL);
    for (long i = 0; i < rounds; i++)
        received += strand_chan_receive(chans[0], &value) == 0;
    strand_scope_join(scope);
    return received;
}

static long hand_over(void)
{
    return receive_all(0);
}

static long buffer(void)
{
    return receive_all(64);
}

static long select_of_four(void)
{
    long value, selected = 0;
    STRAND_SCOPE(scope);
    open_channels(scope, 0);
    strand_spawn(scope, send_often, &value);
    for (long i = 0; i < rounds; i++) {
        strand_case cases[4];
        for (int n = 0; n < 4; n++)
            cases[n] = strand_on_receive(chans[n], &value);
        selected += strand_select(cases, 4, 0) >= 0;
    }
    strand_scope_join(scope);
    return selected;
}

static long lock_a_mutex(void)
{
    static strand_mutex mutex;
    for (long i = 0; i < rounds; i++) {
        strand_mutex_lock(&mutex);
        strand_mutex_unlock(&mutex);
    }
    return rounds;
}

/* ---- actors -------------------------------------------------------------------------------------------------------
 */

STRAND_MESSAGE(ping, { long number; });

static long received;

static void receive(void *state, strand_message *message)
{
    (void)state, (void)message;
    received++;
}

static long tell_an_actor(void)
{
    static const strand_actor_class counting = STRAND_ACTOR_CLASS(.name = "counting", .receive = receive);
    STRAND_ACTORS(system, NULL);
    strand_actor actor = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    for (long i = 0; i < rounds; i++) {
        STRAND_IGNORE(strand_tell(actor, STRAND_MSG(ping, .number = i)));
        if (i % 64 == 63)
            strand_yield();
    }
    strand_actor_stop(actor, STRAND_STOP_LAST);
    strand_actors_join(system);
    return received;
}

static const struct row {
    const char *name;
    long (*run)(void);
} rows[] = {
    {"switch", switch_strands}, {"spawn_join", spawn_and_join}, {"spawn_batch", spawn_a_batch},
    {"scope", enter_a_scope},   {"fib", fork_and_join},         {"cancel", cancel_a_sleeper},
    {"throw1", throw_1},        {"throw10", throw_10},          {"chan_rendezvous", hand_over},
    {"chan_buffer", buffer},    {"select4", select_of_four},    {"mutex", lock_a_mutex},
    {"tell", tell_an_actor},
};

/* Valgrind only counts, so the library need not announce its switches. */
static void *run(void *row)
{
    arch_tool = ARCH_TOOL_NONE;
    atomic_fetch_and_explicit(&thread_self()->slow_switch.any, ~(uint32_t)SWITCH_CHECK, memory_order_relaxed);
    printf("%ld\n", ((const struct row *)row)->run());
    return row;
}

int main(int argc, char **argv)
{
    rounds = argc > 2 ? atol(argv[2]) : 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (argc == 1)
            puts(rows[i].name);
        else if (strcmp(rows[i].name, argv[1]) == 0)
            strand_run(STRAND_OPTIONS(.threads = 1), run, (void *)(uintptr_t)&rows[i]);
    return 0;
}
