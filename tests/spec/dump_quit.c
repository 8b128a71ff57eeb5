/*
 * SIGQUIT has a run print its strands, if that was asked for at its start.
 */
#define _GNU_SOURCE
#define SUITE dump_quit
#include "test.h"

#include "dozing.h"

#include "strand/debug.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic int started, released, handled; /* started: how many strands compute, or come and go */
static int dumped = -1;                        /* what stands in the place of standard error */
static int standard_error;
static char text[1 << 16];

static void catch_standard_error(void)
{
    dumped = memfd_create("dump", MFD_CLOEXEC);
    standard_error = dup(2);
    CHECK(dumped >= 0 && standard_error >= 0 && dup2(dumped, 2) == 2);
}

/* What came so far; from a plain thread. */
static const char *read_dumped(void)
{
    ssize_t length = pread(dumped, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    return text;
}

static bool was_dumped(const char *words, size_t count)
{
    return test_count(read_dumped(), words) >= count;
}

/* For what must not come. */
static void check_not_dumped(void)
{
    usleep(200000);
    bool right = !was_dumped("strands: ", 1);
    dup2(standard_error, 2);
    if (!right)
        test_fail(__FILE__, __LINE__, "nothing should have been dumped:\n%s", text);
}

/* One of two runs may be left out: then this raises the signal again, as a user at a keyboard would. */
static void await_dumped(size_t runs)
{
    for (int ms = 1; !was_dumped("strands: ", runs); ms++) {
        usleep(1000);
        if (runs > 1 && ms % 5000 == 0)
            kill(getpid(), SIGQUIT);
    }
    dup2(standard_error, 2);
}

/* A plain thread, as the strands do nothing of themselves: raises the signal when `count` of them run or doze, and ends
 * them when there are dumps of so many runs. */
struct raiser {
    int count;
    size_t runs;
    pthread_t thread;
};

static void *raise_when_started(void *arg)
{
    struct raiser *raiser = arg;
    while (started + dozing < raiser->count)
        usleep(1000);
    usleep(20000); /* they fall asleep */
    catch_standard_error();
    kill(getpid(), SIGQUIT);
    if (raiser->runs)
        await_dumped(raiser->runs);
    else
        check_not_dumped();
    released = 1;
    return NULL;
}

static void raise_later(struct raiser *raiser, int count, size_t runs)
{
    started = dozing = released = 0;
    *raiser = (struct raiser){.count = count, .runs = runs};
    CHECK_EQ(pthread_create(&raiser->thread, NULL, raise_when_started, raiser), 0);
}

/* A signal is to find it here, and not in a function of a sanitizer's. */
__attribute__((no_sanitize("thread"))) static NOINLINE void compute(void)
{
    started++;
    while (!*(volatile int *)&released)
        continue;
}

static void *computes(void *arg)
{
    compute();
    return arg;
}

static void *all_compute(void *threads)
{
    STRAND_SCOPE(scope);
    for (intptr_t i = 1; i < (intptr_t)threads; i++)
        strand_spawn(scope, computes, NULL);
    computes(NULL);
    strand_scope_join(scope);
    return NULL;
}

static void run(strand_fn *root, int threads, bool quit)
{
    strand_exception *uncaught = NULL;
    strand_options options = test_options();
    test_set_threads(&options, threads);
    options.dump_on_quit = quit;
    options.uncaught = &uncaught;
    strand_run(&options, root, TEST_PTR(threads));
    strand_exception_release(uncaught);
}

static void *all_doze_until_released(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "dozing"), sleeper, arg, 0);
    while (!released)
        strand_sleep(10 * STRAND_MS);
    strand_scope_cancel(scope, NULL);
    return NULL;
}

/* Whether all of them were asked, and have answered: the system may not let one of them run in time. */
static bool all_were_traced(int threads)
{
    struct raiser raiser;
    raise_later(&raiser, threads, 1);
    run(all_compute, threads, true);
    pthread_join(raiser.thread, NULL);
    CHECK_CONTAINS(text, "libstrand: SIGQUIT\n");
    return test_count(text, "asked by a signal") == (size_t)threads &&
           test_count(text, "at compute+0x") == (size_t)threads && strstr(text, "at all_compute+0x");
}

TEST_REAL(quit_prints_the_strands_while_all_threads_compute)
{
    for (int threads = 1; threads <= 3; threads += 2)
        while (!all_were_traced(threads))
            continue;
}

/* Whether all strands slept: on a busy machine one of them may not have fallen asleep in time. The root may be
 * polling. */
static bool all_slept(int threads)
{
    struct raiser raiser;
    raise_later(&raiser, 3, 1);
    run(all_doze_until_released, threads, true);
    pthread_join(raiser.thread, NULL);
    CHECK_EQ(test_count(text, "strand 'dozing'"), 3);
    return test_count(text, "at doze_off+0x") == 3 && test_count(text, "blocked: sleeps") >= 3;
}

TEST_REAL(quit_prints_the_strands_while_all_sleep)
{
    for (int threads = 1; threads <= 2; threads++)
        while (!all_slept(threads))
            continue;
}

static void *another_run(void *arg)
{
    run(all_doze_until_released, 1, true);
    return arg;
}

TEST_REAL(quit_prints_the_strands_of_every_run_that_asked)
{
    struct raiser raiser;
    pthread_t thread;
    raise_later(&raiser, 6, 2);
    CHECK_EQ(pthread_create(&thread, NULL, another_run, NULL), 0);
    run(all_doze_until_released, 2, true);
    pthread_join(thread, NULL);
    pthread_join(raiser.thread, NULL);
    CHECK(test_count(text, "libstrand: SIGQUIT\n") >= 2);
    CHECK(test_count(text, "strand 'dozing'") >= 6);
}

static void note_it(int signal)
{
    handled += signal == SIGQUIT;
}

TEST_REAL(a_handler_that_was_there_before_is_called_as_well_and_is_back_after_the_run)
{
    struct raiser raiser;
    struct sigaction own = {.sa_handler = note_it}, now;
    CHECK_EQ(sigaction(SIGQUIT, &own, NULL), 0);
    raise_later(&raiser, 3, 1);
    run(all_doze_until_released, 2, true);
    pthread_join(raiser.thread, NULL);
    CHECK_EQ(handled, 1);
    CHECK_EQ(sigaction(SIGQUIT, NULL, &now), 0);
    CHECK(now.sa_handler == note_it);
}

TEST_REAL(a_run_that_did_not_ask_leaves_quit_alone)
{
    struct raiser raiser;
    struct sigaction own = {.sa_handler = note_it};
    CHECK_EQ(sigaction(SIGQUIT, &own, NULL), 0);
    raise_later(&raiser, 3, 0);
    run(all_doze_until_released, 2, false);
    pthread_join(raiser.thread, NULL);
    CHECK_EQ(handled, 1);
    CHECK_EQ(test_count(text, "strands: "), 0);
}

static void *raise_quit(void *arg)
{
    raise(SIGQUIT);
    return arg;
}

TEST_REAL(a_run_with_a_seed_leaves_quit_alone)
{
    struct sigaction own = {.sa_handler = note_it};
    strand_options options = {.size = sizeof options, .has_seed = true, .seed = 1, .dump_on_quit = true};
    CHECK_EQ(sigaction(SIGQUIT, &own, NULL), 0);
    catch_standard_error();
    strand_run(&options, raise_quit, NULL);
    check_not_dumped();
    CHECK_EQ(handled, 1);
}

TEST_REAL(the_environment_asks_for_all_runs)
{
    struct raiser raiser;
    setenv("STRAND_DUMP_ON_QUIT", "1", 1);
    raise_later(&raiser, 3, 1);
    run(all_doze_until_released, 2, false);
    pthread_join(raiser.thread, NULL);
    CHECK_CONTAINS(text, "libstrand: SIGQUIT\n");
}

static void *come_and_go(void *arg)
{
    STRAND_SCOPE(scope);
    started++;
    while (!released) {
        for (int i = 0; i < 10; i++)
            strand_spawn(scope, test_return, arg);
        strand_scope_join(scope);
    }
    return NULL;
}

/* Also in a run of one thread, whose strands another thread references. */
TEST_REAL(strands_that_end_while_quit_prints_them_are_left_out)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct raiser raiser;
        raise_later(&raiser, 1, 1);
        run(come_and_go, threads, true);
        pthread_join(raiser.thread, NULL);
        CHECK_CONTAINS(text, "strand 'root'");
    }
}

static void *short_root(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 20; i++)
        strand_spawn(scope, test_return, NULL);
    strand_scope_join(scope);
    return arg;
}

static void *raise_often(void *arg)
{
    while (!released) {
        kill(getpid(), SIGQUIT);
        usleep(300);
    }
    return arg;
}

/* Whether nearly all threads answered in time: on a busy machine one may not. */
static bool few_are_waited_for(void)
{
    pthread_t raiser;
    released = 0;
    catch_standard_error();
    CHECK_EQ(pthread_create(&raiser, NULL, raise_often, NULL), 0);
    for (long i = test_scale(200); i > 0; i--) {
        strand_options options = test_options();
        test_set_threads(&options, 4);
        options.dump_on_quit = true;
        strand_run(&options, short_root, NULL);
    }
    released = 1;
    pthread_join(raiser, NULL);
    dup2(standard_error, 2);
    read_dumped();
    close(dumped);
    close(standard_error);
    return test_count(text, "could not be held") <= test_count(text, "SIGQUIT") / 10;
}

/* Threads that have ended, or not begun, have nothing to be held in. */
TEST_REAL(runs_that_end_while_the_signal_comes_are_not_waited_for)
{
    signal(SIGQUIT, SIG_IGN);
    while (!few_are_waited_for())
        continue;
}
