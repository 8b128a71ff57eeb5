/*
 * A strand calls pthread_exit, below a scope with a live child whose clean-up must not take that for a normal way out.
 * The argument says which thread runs the strand ("caller": the one that called strand_run, "pool": one of the pool's
 * own, "plain": a plain thread that calls strand_run); "-cancelled" is added if the thread is cancelled instead. This
 * program is linked with libunwind, so that the clean-ups of an unwinding by libgcc_s do not run.
 */
#include "strand.h"
#include "strand/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static bool cancels;

static void *return_arg(void *arg)
{
    return arg;
}

static void clean_up(const int *unused)
{
    (void)unused;
    puts("a clean-up has run");
    fflush(stdout);
}

static __attribute__((noinline)) void exit_here(void *arg)
{
    if (cancels) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
    pthread_exit(arg);
}

static void *exit_below_a_live_child(void *arg)
{
    STRAND_TRY {
        STRAND_SCOPE(scope);
        int cleaned __attribute__((cleanup(clean_up))) = 0;
        strand_spawn(scope, return_arg, arg);
        exit_here(arg);
    }
    STRAND_CATCH(&STRAND_ERROR, exception) {
        printf("caught: %s\n", strand_exception_text(exception));
    }
    STRAND_END
    return arg;
}

static void *run(void *options)
{
    strand_run(options, exit_below_a_live_child, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *thread = argc > 1 ? argv[1] : "";
    cancels = strstr(thread, "-cancelled") != NULL;
    strand_options options = {.size = sizeof options, .threads = 1, .own_threads = strncmp(thread, "pool", 4) == 0};
    pthread_t id;
    if (strncmp(thread, "plain", 5) != 0)
        run(&options);
    else if (pthread_create(&id, NULL, run, &options) == 0)
        pthread_join(id, NULL);
    puts("still alive");
    return 0;
}
