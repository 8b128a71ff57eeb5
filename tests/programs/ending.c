/*
 * Runs that are out of work, by name, and misuse of strand_wait_quiet.
 */
#include "strand.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(void)
{
    printf("at exit\n");
    fflush(stdout);
}

static void *wait_for_ever(void *arg)
{
    static strand_event never;
    strand_event_wait(&never);
    return arg;
}

static void *shielded(void *arg)
{
    STRAND_SHIELD;
    return wait_for_ever(arg);
}

/* The scope waits for a child that nothing can interrupt. */
static void *leaving(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, shielded, arg);
    strand_yield();
    return arg;
}

static void end_badly(int *mark)
{
    (void)mark;
    wait_for_ever(NULL);
}

static void *cleaning_up(void *arg)
{
    static const strand_kind kind = {"made-up", &STRAND_ERROR};
    int mark __attribute__((cleanup(end_badly)));
    (void)mark, (void)arg;
    strand_throw(&kind, "on purpose");
}

static void unwind(int *mark)
{
    (void)mark;
    printf("unwound\n");
    fflush(stdout);
}

static void *by_itself(void *arg)
{
    int mark __attribute__((cleanup(unwind)));
    (void)mark;
    return wait_for_ever(arg);
}

static void *flags(void *arg)
{
    strand_wait_quiet((strand_pool){{0}}, 4);
    return arg;
}

static void *run_and_pool(void *arg)
{
    strand_wait_quiet(strand_pool_self(), STRAND_QUIET_RUN);
    return arg;
}

static const struct {
    const char *name;
    strand_fn *fn;
    enum strand_out_of_work what;
} cases[] = {
    {"exit", wait_for_ever, STRAND_OUT_OF_WORK_EXIT},   {"shielded", shielded, STRAND_OUT_OF_WORK_THROW},
    {"leaving", leaving, STRAND_OUT_OF_WORK_THROW},     {"cleaning_up", cleaning_up, STRAND_OUT_OF_WORK_THROW},
    {"end_shielded", shielded, STRAND_OUT_OF_WORK_END}, {"by_itself", by_itself, STRAND_OUT_OF_WORK_AUTO},
    {"flags", flags, STRAND_OUT_OF_WORK_AUTO},          {"run_and_pool", run_and_pool, STRAND_OUT_OF_WORK_AUTO},
};

int main(int argc, char **argv)
{
    atexit(say);
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            strand_run(STRAND_OPTIONS(.out_of_work = cases[i].what, .threads = 2), cases[i].fn, NULL);
    return 0;
}
