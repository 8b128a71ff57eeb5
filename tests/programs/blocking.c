/*
 * Blocking where it is not allowed. The argument is WHERE:FUNCTION, with a function of tests/harness/blocking.h:
 *
 *   section   in a no-suspend section, whose place is written first
 *   outside   on a thread that knows no run
 *   crew      on a thread of the crew of a run
 */
#define _GNU_SOURCE
#define BLOCKING_ENDS
#include "blocking.h"

STRAND_MESSAGE_DEFINE(echoed, NULL);

static const struct blocking *row;

static void call_in_a_section(const struct blocking *it, struct things *t)
{
    printf("section at %s:%d\n", __FILE__, __LINE__ + 2);
    fflush(stdout);
    STRAND_NO_SUSPEND;
    it->call(t);
    puts("still alive");
}

static void *use_a_section(void *arg)
{
    if (!with_things(row, call_in_a_section))
        puts("still alive: things are missing");
    return arg;
}

static void *call_without_a_strand(void *things)
{
    row->call(things);
    return things;
}

static void *use_the_crew(void *things)
{
    return strand_offload(call_without_a_strand, things);
}

int main(int argc, char **argv)
{
    static struct things none;
    none.ticker = strand_ticker_every(STRAND_S);
    const char *name = argc > 1 ? strchr(argv[1], ':') : NULL;
    for (size_t i = 0; name && i < BLOCKING_COUNT; i++)
        if (strcmp(name + 1, blocking[i].name) == 0)
            row = &blocking[i];
    if (row && strncmp(argv[1], "section:", 8) == 0)
        strand_run(NULL, use_a_section, NULL);
    else if (row && strncmp(argv[1], "crew:", 5) == 0)
        strand_run(NULL, use_the_crew, &none);
    else if (row)
        call_without_a_strand(&none);
    puts("still alive");
    return 0;
}
