/*
 * A program outside of the tree that uses the installed libstrand. tools/check-install.sh builds it with each form of
 * the library, and compares its output.
 */
#include <stdio.h>
#include <strand.h>
#include <strand/debug.h>
#include <strand/io.h>
#include <strand/pool.h>
#include <string.h>

static int cleaned;

static void clean(const int *value)
{
    cleaned += *value;
}

static void *twice(void *n)
{
    return (void *)(2 * (intptr_t)n);
}

static void *fails(void *arg)
{
    int value __attribute__((cleanup(clean), unused)) = 1;
    if (arg == NULL)
        strand_throw(&STRAND_ERROR, "on purpose");
    return arg;
}

static void *sleeps(void *started)
{
    int value __attribute__((cleanup(clean), unused)) = 10;
    *(bool *)started = true;
    strand_sleep(3600 * STRAND_S);
    return NULL;
}

static void *root(void *arg)
{
    strand_exception *volatile kept = NULL;
    bool started = false;
    STRAND_DEADLINE(strand_in(60 * STRAND_S));
    STRAND_SCOPE(scope);
    printf("joined %d\n", (int)(intptr_t)strand_join(strand_spawn(scope, twice, (void *)21)));
    printf("offloaded %d\n", (int)(intptr_t)strand_offload(twice, (void *)4));

    STRAND_TRY {
        fails(NULL);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        printf("caught: %s, cleaned %d\n", strand_exception_text(e), cleaned);
    }
    STRAND_END

    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = "sleeper"), sleeps, &started, 0);
    while (!started)
        strand_yield();
    strand_cancel(child, "enough");
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
        kept = strand_exception_keep(e);
    }
    STRAND_END
    printf("cancelled: %s, cleaned %d\n", kept ? strand_exception_why(kept) : "no", cleaned);
    strand_exception_release(kept);

    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    printf("spawned %d\n", (int)stats.spawned);
    return arg;
}

int main(void)
{
    char headers[32];
    snprintf(headers, sizeof headers, "%d.%d.%d", STRAND_VERSION_MAJOR, STRAND_VERSION_MINOR, STRAND_VERSION_PATCH);
    printf("version %s\n", strcmp(headers, strand_version()) == 0 ? "as in the headers" : strand_version());
    void *result = strand_run(STRAND_OPTIONS(.threads = 2), root, &cleaned);
    return result == &cleaned && cleaned == 11 ? 0 : 1;
}
