/*
 * Try blocks and scopes in loops that free what they have made, and around variables that are not volatile.
 */
#include "strand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void use(char *text);
void *work(void *arg);
void *root(void *arg);

void use(char *text)
{
    strand_yield();
    memset(text, 0, 10);
}

void *work(void *arg)
{
    use(arg);
    return arg;
}

static void scope_in_a_loop(void)
{
    for (int i = 0; i < 8; i++) {
        STRAND_SCOPE(scope);
        char *text = malloc(10);
        strand child = strand_spawn(scope, work, text);
        STRAND_TRY {
            strand_join(child);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            fputs(strand_exception_text(e), stderr);
        }
        STRAND_END
        use(text);
        free(text);
    }
}

static void try_in_a_loop(void)
{
    for (int i = 0; i < 8; i++) {
        char *text = malloc(10);
        use(text);
        STRAND_TRY {
            use(text);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
        }
        STRAND_END
        use(text);
        free(text);
        strand_yield();
    }
}

static void try_around_a_loop(void)
{
    STRAND_TRY {
        for (int i = 0; i < 8; i++) {
            STRAND_DEADLINE(strand_in(STRAND_S));
            char *text = malloc(10);
            use(text);
            free(text);
        }
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        fputs(strand_exception_text(e), stderr);
    }
    STRAND_END
}

static int retries(int most)
{
    int failed = 0;
    while (failed < most) {
        char text[10];
        STRAND_TRY {
            use(text);
            return failed;
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
            failed++;
            continue;
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            break;
        }
        STRAND_END
    }
    return failed;
}

static char *list_of_lines(int count)
{
    char *all = NULL;
    for (int i = 0; i < count; i++) {
        char *more = realloc(all, (size_t)(i + 1) * 10);
        if (!more) {
            free(all);
            return NULL;
        }
        all = more;
        STRAND_TRY {
            STRAND_TRY {
                use(all + (size_t)i * 10);
            }
            STRAND_CATCH(&STRAND_SYSTEM, e) {
                strand_rethrow(strand_exception_keep(e));
            }
            STRAND_END
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            free(all);
            all = NULL;
            break;
        }
        STRAND_END
    }
    return all;
}

void *root(void *arg)
{
    STRAND_SHIELD;
    scope_in_a_loop();
    try_in_a_loop();
    try_around_a_loop();
    char *lines = list_of_lines(retries(3));
    free(lines);
    return arg;
}
