/*
 * A call of a public function with NULL where there has to be something: the one with the number that the argument
 * gives. Without an argument it prints all of them, one a line.
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <stdio.h>
#include <stdlib.h>

/* What the compiler does not know to be NULL. */
static void *volatile nothing;
static strand_fn *volatile no_function;

static void *return_arg(void *arg)
{
    return arg;
}

struct objects {
    strand_scope scope;
    strand_chan chan;
    strand_port port;
    strand_crew crew;
    strand_fibre fibre;
    strand_mutex mutex;
};

/* CHECKED: of those whose result the compiler wants to be used. */
#define CALLS(CALL, CHECKED)                                                                                           \
    CALL(strand_exception_text(nothing))                                                                               \
    CALL(strand_exception_code(nothing))                                                                               \
    CALL(strand_exception_kind(nothing))                                                                               \
    CALL(strand_exception_is(nothing, &STRAND_ERROR))                                                                  \
    CALL(strand_exception_payload(nothing))                                                                            \
    CALL(strand_exception_cause(nothing))                                                                              \
    CALL(strand_exception_suppressed(nothing, 0))                                                                      \
    CALL(strand_exception_who(nothing))                                                                                \
    CALL(strand_exception_why(nothing))                                                                                \
    CALL(strand_exception_progress(nothing))                                                                           \
    CALL(strand_exception_print(nothing, 2))                                                                           \
    CALL(strand_exception_keep(nothing))                                                                               \
    CALL(strand_throw(nothing, "no kind"))                                                                             \
    CALL(strand_throw(&STRAND_ERROR, nothing, 0))                                                                      \
    CALL(strand_throw_with(nothing, NULL, "no kind"))                                                                  \
    CALL(strand_throw_with(&STRAND_ERROR, NULL, nothing, 0))                                                           \
    CALL(strand_rethrow(nothing))                                                                                      \
    CHECKED(strand_try(no_function, NULL, NULL))                                                                       \
    CALL(strand_run(NULL, no_function, NULL))                                                                          \
    CALL(strand_spawn(o->scope, no_function, NULL))                                                                    \
    CALL(strand_spawn_with(o->scope, NULL, no_function, NULL, 0))                                                      \
    CALL(strand_spawn_with(o->scope, NULL, return_arg, nothing, 8))                                                    \
    CHECKED(strand_chan_send(o->chan, nothing))                                                                        \
    CHECKED(strand_chan_receive(o->chan, nothing))                                                                     \
    CHECKED(strand_chan_try_send(o->chan, nothing))                                                                    \
    CHECKED(strand_chan_try_receive(o->chan, nothing))                                                                 \
    CALL(strand_select((strand_case[]){strand_on_send(o->chan, nothing)}, 1, 0))                                       \
    CALL(strand_select((strand_case[]){strand_on_receive(o->chan, nothing)}, 1, 0))                                    \
    CALL(strand_select(nothing, 1, 0))                                                                                 \
    CALL(strand_wait_tick(nothing))                                                                                    \
    CALL(strand_on_tick(nothing))                                                                                      \
    CALL(strand_port_receive(o->port, nothing, 8))                                                                     \
    CHECKED(strand_port_try_receive(o->port, nothing, 8))                                                              \
    CALL(strand_select((strand_case[]){strand_on_message(o->port, nothing, 8)}, 1, 0))                                 \
    CALL(strand_port_info_get(o->port, nothing))                                                                       \
    CALL(strand_mutex_lock(nothing))                                                                                   \
    CHECKED(strand_mutex_try_lock(nothing))                                                                            \
    CALL(strand_mutex_unlock(nothing))                                                                                 \
    CALL(strand_mutex_held(nothing))                                                                                   \
    CALL(strand_condition_wait(nothing, &o->mutex))                                                                    \
    CALL(strand_condition_wait(&(strand_condition){0}, nothing))                                                       \
    CALL(strand_condition_signal(nothing))                                                                             \
    CALL(strand_condition_broadcast(nothing))                                                                          \
    CALL(strand_rwlock_read(nothing))                                                                                  \
    CALL(strand_rwlock_write(nothing))                                                                                 \
    CHECKED(strand_rwlock_try_read(nothing))                                                                           \
    CHECKED(strand_rwlock_try_write(nothing))                                                                          \
    CALL(strand_rwlock_read_done(nothing))                                                                             \
    CALL(strand_rwlock_write_done(nothing))                                                                            \
    CALL(strand_semaphore_acquire(nothing))                                                                            \
    CALL(strand_semaphore_acquire_many(nothing, 2))                                                                    \
    CHECKED(strand_semaphore_try_acquire(nothing))                                                                     \
    CHECKED(strand_semaphore_try_acquire_many(nothing, 2))                                                             \
    CALL(strand_semaphore_release(nothing))                                                                            \
    CALL(strand_semaphore_release_many(nothing, 2))                                                                    \
    CALL(strand_semaphore_permits(nothing))                                                                            \
    CALL(strand_on_permit(nothing))                                                                                    \
    CALL(strand_barrier_wait(nothing))                                                                                 \
    CALL(strand_once_run(nothing, return_arg, NULL))                                                                   \
    CALL(strand_once_run(&(strand_once){0}, no_function, NULL))                                                        \
    CALL(strand_once_done(nothing))                                                                                    \
    CALL(strand_event_wait(nothing))                                                                                   \
    CALL(strand_event_set(nothing))                                                                                    \
    CALL(strand_event_clear(nothing))                                                                                  \
    CALL(strand_event_is_set(nothing))                                                                                 \
    CALL(strand_on_event(nothing))                                                                                     \
    CALL(strand_group_add(nothing, 1))                                                                                 \
    CALL(strand_group_done(nothing))                                                                                   \
    CALL(strand_group_wait(nothing))                                                                                   \
    CALL(strand_group_count(nothing))                                                                                  \
    CALL(strand_on_group(nothing))                                                                                     \
    CALL(strand_latch_count_down(nothing, 1))                                                                          \
    CALL(strand_latch_wait(nothing))                                                                                   \
    CALL(strand_on_latch(nothing))                                                                                     \
    CALL(strand_pipe(nothing))                                                                                         \
    CALL(strand_listen_tcp(nothing, 0))                                                                                \
    CHECKED(strand_dial_tcp(nothing, 1))                                                                               \
    CALL(strand_listen_unix(nothing))                                                                                  \
    CHECKED(strand_dial_unix(nothing))                                                                                 \
    CALL(strand_offload(no_function, NULL))                                                                            \
    CALL(strand_offload_on(o->crew, no_function, NULL))                                                                \
    CALL(strand_offload_with(NULL, no_function, NULL, 0))                                                              \
    CALL(strand_offload_with(NULL, return_arg, nothing, 8))                                                            \
    CALL(strand_crew_info_get(o->crew, nothing))                                                                       \
    CALL(strand_fibre_info_get(o->fibre, 0, nothing))                                                                  \
    CALL(strand_pool_info_get(strand_pool_self(), nothing))                                                            \
    CALL(strand_stats_get(nothing))

static const char *const names[] = {
#define NAME(call) #call,
    CALLS(NAME, NAME)
#undef NAME
};

/* Not inlined: a function that does not return would cut off those below it. */
static __attribute__((noinline)) void call(int number, struct objects *o)
{
    int i = 0;
#define CALL(call)                                                                                                     \
    if (i++ == number)                                                                                                 \
        (void)(call);
#define CHECKED(call)                                                                                                  \
    if (i++ == number)                                                                                                 \
        STRAND_IGNORE(call);
    CALLS(CALL, CHECKED)
#undef CALL
#undef CHECKED
}

static void *root(void *number)
{
    STRAND_DEADLINE(strand_in(5 * STRAND_S));
    STRAND_SCOPE(s);
    struct objects o = {.scope = s,
                        .chan = strand_chan_open(s, 8, 1, NULL),
                        .port = strand_port_open(s, 8, 1, NULL),
                        .crew = strand_crew_open(s, NULL),
                        .fibre = strand_fibre_open(s, NULL)};
    strand_mutex_lock(&o.mutex);
    call((int)(intptr_t)number, &o);
    strand_mutex_unlock(&o.mutex);
    return NULL;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc < 2 && i < sizeof names / sizeof *names; i++)
        puts(names[i]);
    if (argc > 1)
        strand_run(NULL, root, (void *)(intptr_t)atoi(argv[1]));
    return 0;
}
