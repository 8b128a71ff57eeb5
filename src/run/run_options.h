/*
 * The options of a run.
 */
#ifndef RUN_RUN_OPTIONS_H
#define RUN_RUN_OPTIONS_H

#include "../strand/core.h"

enum { CPUS_MOST = 4096 }; /* how many CPUs a pool may name at most */
enum { POOL_SPIN_US = 20 };

/* enum balance is enum strand_balance in the layers below. */
_Static_assert((int)STRAND_BALANCE_EVEN == (int)BALANCE_EVEN && (int)STRAND_BALANCE_STIR == (int)BALANCE_STIR &&
                   (int)STRAND_BALANCE_NONE == (int)BALANCE_NONE,
               "they are the same");
OWN_INLINE bool is_balance(int balance)
{
    return balance >= BALANCE_EVEN && balance <= BALANCE_NONE;
}

/* Copies the options into the run; NULL means the usual ones. A wrong size is misuse. */
void run_options_take(struct runtime *runtime, const strand_options *options);
/* Returns 0 if a run is possible with these options, or -EINVAL with the reason in text. seeded: a seed plays the
 * run. */
int run_options_check(const strand_options *options, bool seeded, char *text, size_t room);
/* Overrides options.files by STRAND_FILES in the environment. Returns 0, or -EINVAL with the reason in text. */
int run_options_choose_files(strand_options *options, char *text, size_t room);
/* Adds the options that the environment asks for. Called when the run knows whether a seed plays it. */
void run_options_from_environment(struct runtime *runtime);
/* Returns the number of threads of the first pool. */
int run_options_threads(const strand_options *options, const struct scheduler *scheduler, bool seeded);
/* Returns the number of threads of a pool with that scheduler. asked: the wish; it may be STRAND_THREADS_ALLOWED. */
int run_options_thread_count(int asked, const struct scheduler *scheduler, bool seeded);
/* Returns one thread for each of those CPUs, or as many as a pool may have. */
static inline int threads_for(int cpus)
{
    return cpus < THREADS_MOST ? cpus : THREADS_MOST;
}
/* Returns the index of the first of these CPUs that the process may not use; -1: it may use all. */
int run_options_refused_cpu(const int *cpus, int count);
/* Returns the size of a stack, in bytes, that the options ask for. */
size_t run_options_stack_size(const strand_options *options);

#endif
