/*
 * Shared fibres that nobody has run on for a while give memory back by themselves. Trimming on request is in fibre.c.
 */
#define SUITE fibre_trim
#include "test.h"

#include "strand/sim.h"
#include "strand/sync.h"

#include <sys/mman.h>
#include <unistd.h>

#define KIB ((size_t)1024)

enum { WORDS = 100, MUCH = 600 * 1024, PAGE = 4096 };

static strand_fibre shared;
static strand_event go_on;
static _Atomic int parked;

static strand_fibre_info ask(strand_fibre fibre)
{
    strand_fibre_info info = {.size = sizeof info};
    strand_fibre_info_get(fibre, 0, &info);
    return info;
}

/* Its frames are as it left them. */
static void *park(void *arg)
{
    volatile uint64_t mine[WORDS];
    for (uint64_t i = 0; i < WORDS; i++)
        mine[i] = (uintptr_t)arg * 1000003 + i;
    ++parked;
    strand_event_wait(&go_on);
    for (uint64_t i = 0; i < WORDS; i++)
        CHECK_EQ(mine[i], (uintptr_t)arg * 1000003 + i);
    return NULL;
}

static void park_some(strand_scope scope, strand_fibre fibre, int many)
{
    parked = 0;
    strand_event_clear(&go_on);
    for (intptr_t i = 0; i < many; i++)
        test_spawn_on_fibre(scope, fibre, park, TEST_PTR(i));
    test_yield_until(&parked, many);
}

/* ---- stacks ---------------------------------------------------------------------------------------------- */

static _Atomic uintptr_t deep; /* the low end of what was touched */

static NOINLINE void *touch_much(void *arg)
{
    volatile char much[MUCH];
    for (size_t i = 0; i < sizeof much; i += 512)
        much[i] = 1;
    deep = (uintptr_t)much;
    return arg;
}

/* As the system sees it. */
static size_t resident(uintptr_t low, size_t bytes)
{
    unsigned char pages[MUCH / PAGE];
    size_t there = 0;
    low = (low + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    CHECK_EQ(mincore((void *)low, bytes & ~(size_t)(PAGE - 1), pages), 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        there += pages[i] & 1 ? PAGE : 0;
    return there;
}

/* V-16, contract 3.4 */
TEST_INSIDE(a_fibre_that_nobody_runs_on_gives_back_what_a_deep_strand_has_used)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    park_some(scope, fibre, 20);
    size_t shallow = ask(fibre).stack_resident;
    strand_join(test_spawn_on_fibre(scope, fibre, touch_much, NULL));
    size_t deepest = ask(fibre).stack_deepest;
    while (ask(fibre).stack_resident > shallow + 16 * KIB)
        strand_sleep(20 * STRAND_MS);
    CHECK(resident(deep, MUCH - 64 * KIB) == 0);
    CHECK_EQ(ask(fibre).stack_deepest, deepest); /* the figure was not reset meanwhile */
    strand_event_set(&go_on);
    strand_scope_join(scope); /* all have found their frames as they were */
}

/* Rounds come and go meanwhile, on other threads. */
static NOINLINE void *touch_much_and_keep_the_thread(void *arg)
{
    touch_much(NULL);
    usleep(1000 * 1000);
    CHECK(ask(shared).stack_resident >= MUCH);
    return arg;
}

/* contract 3.4 */
TEST_REAL_RACE(a_fibre_that_was_in_use_without_a_pause_is_trimmed_when_it_rests)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    strand_join(test_spawn_on_fibre(scope, shared, touch_much_and_keep_the_thread, NULL));
    while (ask(shared).stack_resident > 64 * KIB)
        strand_sleep(20 * STRAND_MS);
}

/* In virtual time, as nobody knows how long a machine keeps a thread waiting. */
static strand_sim_report played = {.size = sizeof played};

static void play(strand_fn *fn)
{
    strand_sim sim = {.size = sizeof sim, .report = &played};
    strand_options options = test_options();
    options.has_seed = true;
    options.seed = 1;
    options.sim = &sim;
    strand_run(&options, fn, NULL);
}

static NOINLINE void *touch_much_and_stay(void *arg)
{
    touch_much(NULL);
    for (int i = 0; i < 40; i++)
        strand_sleep(50 * STRAND_MS);
    CHECK(ask(shared).stack_resident >= MUCH);
    return arg;
}

static void *use_it_all_the_time(void *arg)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    strand_join(test_spawn_on_fibre(scope, shared, touch_much_and_stay, NULL));
    return arg;
}

/* contract 3.4 */
TEST_REAL(a_fibre_that_is_run_on_every_now_and_then_keeps_its_memory)
{
    play(use_it_all_the_time);
}

#define LONG (1000 * 3600 * STRAND_S)

static void *use_it_and_sleep(void *arg)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    for (int i = 0; i < 3; i++) { /* used again, it is trimmed again */
        strand_join(test_spawn_on_fibre(scope, shared, touch_much, NULL));
        CHECK(ask(shared).stack_resident >= MUCH);
        strand_sleep(LONG);
        CHECK(ask(shared).stack_resident <= 64 * KIB);
    }
    return arg;
}

/* A thread that woke up every second would take ten million steps. */
/* contract 3.4 */
TEST_REAL(the_process_wakes_a_few_times_while_a_strand_sleeps_for_hours_after_using_a_fibre)
{
    play(use_it_and_sleep);
    CHECK(played.time_ns > 3 * LONG);
    CHECK(played.steps < (played.atomic_steps ? 100000 : 1000));
}

/* More than are trimmed in one go. */
static void *use_many(void *arg)
{
    enum { MANY = 300 };
    STRAND_SCOPE(scope);
    strand_fibre group = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = MANY, .stack_size = 1024 * KIB));
    strand_fibre_info info = {.size = sizeof info};
    for (int i = 0; i < MANY; i++)
        test_spawn_on_fibre(scope, group, touch_much, NULL);
    strand_scope_join(scope);
    strand_sleep(2 * STRAND_S);
    for (int i = 0; i < MANY; i++) {
        strand_fibre_info_get(group, i, &info);
        CHECK(info.stack_resident <= 64 * KIB);
    }
    return arg;
}

/* contract 3.4 */
TEST_REAL(all_fibres_of_a_large_group_give_their_memory_back)
{
    play(use_many);
}

/* ---- saved stacks ---------------------------------------------------------------------------------------------- */

/* contract 3.4 */
TEST_REAL_INSIDE(the_memory_of_unused_saved_stacks_goes_back_to_the_system)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    int many = (int)test_scale(10000) + 1000;
    park_some(scope, fibre, many);
    test_spawn_on_fibre(scope, fibre, test_return, NULL); /* the last of them is copied out too */
    while (ask(fibre).saved_bytes < (size_t)(many - 1) * WORDS * sizeof(uint64_t))
        strand_yield();
    size_t saved = ask(fibre).saved_bytes, before = test_resident_bytes();
    strand_event_set(&go_on);
    while (ask(fibre).strands)
        strand_sleep(STRAND_MS);
    while (!TEST_TSAN && test_resident_bytes() + saved / 2 > before) /* what TSan knows of it stays resident */
        strand_sleep(20 * STRAND_MS);
    strand_scope_join(scope);
}
