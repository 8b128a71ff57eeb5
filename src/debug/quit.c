/*
 * SIGQUIT prints a dump. A dedicated thread waits for the signal, so that the dump works also when all threads of the
 * run compute, or sleep, or wait for each other. That thread belongs to no pool: it runs no strands and is never held,
 * but it holds the others, and has a thread's record for memory that it may have to free for a strand.
 */
#include "debug_layer.h"

#include "../strand/exception.h"
#include "../strand/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QUIT = 3 /* SIGQUIT, on every system that has it */ };

struct quit {
    struct worker worker;
    struct runtime *runtime;
    struct arch_watch *watch;
    arch_thread os;
    _Atomic bool stop;
};

static void *wait_and_dump(void *arg)
{
    struct quit *quit = arg;
    for (;;) {
        arch_watch_wait(quit->watch);
        if (atomic_load_explicit(&quit->stop, memory_order_acquire)) /* [PB1] */
            return NULL;
        if (arch_watch_take(quit->watch))
            dump_on_quit(&quit->worker.thread, 2);
    }
}

static struct quit *make(struct runtime *runtime)
{
    struct quit *quit = aligned_alloc(CACHE_LINE, (sizeof *quit + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    if (!quit)
        return NULL;
    memset(quit, 0, sizeof *quit);
    quit->runtime = runtime;
    worker_open_outside(&quit->worker, runtime);
    return quit;
}

int quit_open(struct runtime *runtime)
{
    struct quit *quit = make(runtime);
    if (!quit)
        return -ENOMEM;
    int error = arch_watch_open(UINT64_C(1) << (QUIT - 1), runtime, &quit->watch);
    if (!error && (error = arch_thread_start_unsignalled(&quit->os, wait_and_dump, quit, "strand-quit"))) {
        int fd = arch_watch_fd(quit->watch);
        arch_watch_close(quit->watch);
        arch_fd_close(fd);
    }
    if (error)
        free(quit);
    else
        debug_run_of(runtime)->quit = quit;
    return error;
}

void quit_close(struct runtime *runtime)
{
    struct quit *quit = debug_run_of(runtime)->quit;
    int fd = arch_watch_fd(quit->watch);
    atomic_store_explicit(&quit->stop, true, memory_order_release); /* [PB1] */
    arch_watch_wake(quit->watch);
    arch_thread_join(quit->os);
    arch_watch_close(quit->watch);
    arch_fd_close(fd);
    free(quit);
    debug_run_of(runtime)->quit = NULL;
}
