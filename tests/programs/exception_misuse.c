/*
 * A misuse of exceptions, or of a function that is given to the library, per argument.
 */
#include "strand.h"
#include "strand/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const strand_kind KIND = STRAND_KIND("kind", &STRAND_ERROR);

static void throw_it(void *unused)
{
    (void)unused;
    strand_throw(&KIND, "of a function");
}

static void sleep_in_it(void *unused)
{
    (void)unused;
    strand_sleep(1);
}

/* ---- without a reference --------------------------------------------------------------------- */

static void give_away(const char *how, strand_exception *e)
{
    if (strcmp(how, "rethrow") == 0)
        strand_rethrow(e);
    if (strcmp(how, "suppress") == 0)
        strand_suppress(e);
    if (strcmp(how, "cause") == 0)
        strand_throw_with(&KIND, STRAND_THROW_INFO(.cause = e), "because of it");
    if (strcmp(how, "release") == 0)
        strand_exception_release(e);
    if (strcmp(how, "size") == 0)
        strand_throw_with(&KIND, &(strand_throw_info){.code = -EIO}, "of no size");
}

static void *without_a_reference(void *how)
{
    STRAND_TRY {
        strand_throw(&KIND, "caught");
    }
    STRAND_CATCH(&KIND, e) {
        give_away(how, e);
    }
    STRAND_END
    return how;
}

/* ---- functions that may neither block nor throw ----------------------------------------------- */

static void with_a_payload(void (*function)(void *))
{
    STRAND_TRY {
        const strand_throw_info info = {.size = sizeof info, .payload_free = function};
        strand_throw_with(&KIND, &info, "with a payload");
    }
    STRAND_CATCH(&KIND, e) {
    }
    STRAND_END
}

static void *return_arg(void *arg)
{
    return arg;
}

static void with_a_result(void (*function)(void *))
{
    STRAND_SCOPE(s);
    strand_spawn_with(s, STRAND_ATTR(.drop = function), return_arg, NULL, 0);
    strand_scope_join(s);
}

static void *root(void *arg)
{
    const char *how = arg;
    void (*function)(void *) = strstr(how, "throws") ? throw_it : sleep_in_it;
    if (strncmp(how, "payload", strlen("payload")) == 0)
        with_a_payload(function);
    else if (strncmp(how, "result", strlen("result")) == 0)
        with_a_result(function);
    else
        without_a_reference(arg);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        strand_run(NULL, root, argv[1]);
    puts("still alive");
    return 0;
}
