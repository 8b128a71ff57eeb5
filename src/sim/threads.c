/*
 * Plain threads that tests make, and signal handlers: simulated ones in a seeded run.
 */
#include "sim.h"

#include "../strand/escape.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>

struct plain {
    struct plain *next;
    struct runtime *runtime;
    struct platform_thread thread;
    strand_fn *fn;
    void *arg;
};

static void *call(void *arg)
{
    struct plain *plain = arg;
    (void)plain->fn(plain->arg);
    must_be_here(plain->runtime, "strand_sim_thread");
    return NULL;
}

void threads_close(struct runtime *runtime)
{
    struct sim_run *run = runtime->parts[SIM_PART];
    struct plain *plain = atomic_exchange_explicit(&run->plain, NULL, memory_order_acquire); /* [PB1] */
    while (plain) {
        struct plain *next = plain->next;
        platform_thread_join(&runtime->sub, &plain->thread);
        free(plain);
        plain = next;
    }
}

void strand_sim_sleep(int64_t ns)
{
    struct thread *thread = thread_self();
    struct sim *sim = (struct sim *)arch_player();
    if (thread && thread->current)
        MISUSE("strand_sim_sleep", "",
               "it was called from a strand, which would block its thread: strand_sleep is for that");
    if (sim && sim->running)
        player_sleep(sim, ns < ARCH_FOREVER - sim->now ? sim->now + ns : ARCH_FOREVER);
    else
        arch_nap(ns);
}

int strand_sim_thread(strand_fn *fn, void *arg)
{
    struct thread *thread = must_be_strand("strand_sim_thread");
    struct runtime *runtime = runtime_of(thread);
    if (!fn)
        MISUSE("strand_sim_thread", "", "the function is NULL: pass the one to run");
    must_not_escape(thread, arg, "the argument", "strand_sim_thread");
    struct plain *plain = platform_malloc(thread, sizeof *plain);
    if (!plain)
        return -ENOMEM;
    *plain = (struct plain){.runtime = runtime, .fn = fn, .arg = arg};
    int error = platform_thread_start(&runtime->sub, &plain->thread, call, plain, "strand-plain", true);
    if (error) {
        free(plain);
        return error;
    }
    struct sim_run *run = runtime->parts[SIM_PART];
    plain->next = atomic_load_explicit(&run->plain, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&run->plain, &plain->next, plain, memory_order_release,
                                                  memory_order_relaxed)) /* [PB1] */
        ;
    return 0;
}

int strand_sim_signal(void (*handler)(void *arg), void *arg)
{
    struct thread *thread = must_be_strand("strand_sim_signal");
    if (!handler)
        MISUSE("strand_sim_signal", "", "the handler is NULL");
    must_not_escape(thread, arg, "the argument", "strand_sim_signal");
    if (platform_refuses(thread))
        return -ENOMEM;
    if (thread->platform)
        return player_interrupt(sim_of(thread->sub), handler, arg);
    handler(arg);
    return 0;
}
