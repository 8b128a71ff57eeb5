/*
 * The memory of a run after a peak: it is kept for the next one, and given back when the run ends. docs/model.md lists
 * what is kept.
 */
#define SUITE peak
#include "test.h"

#include "strand/actor.h"
#include "strand/pool.h"
#include "strand/sync.h"

enum { MANY = 50000 };

STRAND_MESSAGE(number, { int n; });

static strand_event go_on;

static void *wait_to_go_on(void *arg)
{
    strand_event_wait(&go_on);
    return arg;
}

static void have_many_strands(void)
{
    go_on = (strand_event){0};
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < MANY; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), wait_to_go_on, NULL, 0);
    strand_yield();
    strand_event_set(&go_on);
    strand_scope_join(scope);
}

static void ignore(void *state, strand_message *message)
{
    (void)state, (void)message;
}

static const strand_actor_class ignoring = {.size = sizeof ignoring, .name = "ignoring", .receive = ignore};

static void have_many_messages(void)
{
    STRAND_ACTORS(system, NULL);
    strand_actor actor = strand_actor_spawn(system, NULL, &ignoring, NULL, 0);
    for (int i = 0; i < 4 * MANY; i++)
        CHECK_EQ(strand_tell(actor, STRAND_MSG(number, i)), 0);
    strand_actors_join(system);
}

static void have_many_actors(void)
{
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 2 * MANY; i++)
        CHECK_EQ(strand_actor_stop(strand_actor_spawn(system, NULL, &ignoring, NULL, 0), STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
}

struct peaks {
    void (*have_many)(void);
    size_t before, first, second;
};

static void *have_two_peaks(void *arg)
{
    struct peaks *peaks = arg;
    peaks->before = test_resident_bytes();
    peaks->have_many();
    peaks->first = test_resident_bytes();
    peaks->have_many();
    peaks->second = test_resident_bytes();
    return arg;
}

/* A sanitizer, and valgrind, have memory of their own for each. */
static void check_peaks(void (*have_many)(void))
{
    struct peaks peaks = {.have_many = have_many};
    strand_run(STRAND_OPTIONS(.threads = 1), have_two_peaks, &peaks);
    size_t after = test_resident_bytes();
    if (TEST_ASAN || TEST_TSAN || test_under_valgrind())
        return;
    size_t kept = peaks.first - peaks.before;
    CHECK(peaks.first > peaks.before);
    CHECK(peaks.second < peaks.first + kept / 2);
    CHECK(after < peaks.before + kept / 2);
}

TEST_REAL(a_second_peak_of_strands_takes_the_memory_of_the_first_and_the_run_gives_it_back)
{
    check_peaks(have_many_strands);
}

TEST_REAL(a_second_peak_of_messages_takes_the_memory_of_the_first_and_the_run_gives_it_back)
{
    check_peaks(have_many_messages);
}

TEST_REAL(a_second_peak_of_actors_takes_the_memory_of_the_first_and_the_run_gives_it_back)
{
    check_peaks(have_many_actors);
}
