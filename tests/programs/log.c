/*
 * Suppresses an exception with none in flight: without a log hook; or, as the argument has it, with one that blocks or
 * throws.
 */
#include "strand.h"
#include "strand/pool.h"

#include <string.h>

static void *fail(void *arg)
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "lost letter");
}

static void *root(void *arg)
{
    strand_suppress(strand_try(fail, arg, NULL));
    return arg;
}

static void block(const char *message, void *arg)
{
    (void)message, (void)arg;
    strand_sleep(STRAND_MS);
}

static void throw_it(const char *message, void *arg)
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "%s", message);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    strand_options options = {.size = sizeof options};
    options.on_log = !strcmp(how, "block") ? block : !strcmp(how, "throw") ? throw_it : NULL;
    strand_run(&options, root, NULL);
    return 0;
}
