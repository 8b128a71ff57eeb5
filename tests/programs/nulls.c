/*
 * Calls of public functions with NULL where there has to be something. A case is called as its call is written.
 */
#include "cases.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/monitor.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

/* What the compiler does not know to be NULL. */
static void *volatile nothing;
static strand_fn *volatile no_function;

STRAND_MONITOR(account, { int balance; });
static struct account *volatile no_account;

static void *return_arg(void *arg)
{
    return arg;
}

static struct objects {
    strand_scope scope;
    strand_chan chan;
    strand_port port;
    strand_crew crew;
    strand_fibre fibre;
    strand_mutex mutex;
} o;

static void *with_objects(void (*call)(void))
{
    STRAND_DEADLINE(strand_in(5 * STRAND_S));
    STRAND_SCOPE(s);
    o = (struct objects){.scope = s,
                         .chan = strand_chan_open(s, 8, 1, NULL),
                         .port = strand_port_open(s, 8, 1, NULL),
                         .crew = strand_crew_open(s, NULL),
                         .fibre = strand_fibre_open(s, NULL)};
    strand_mutex_lock(&o.mutex);
    call();
    strand_mutex_unlock(&o.mutex);
    return NULL;
}

#define NULL_CALL__(n, text, name, ...)                                                                                \
    static void call_##n(void);                                                                                        \
    CASE_(null_##n, name, "strand", name, text, NULL)                                                                  \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return with_objects(call_##n);                                                                                 \
    }                                                                                                                  \
    static ON_PURPOSE NOINLINE void call_##n(void)                                                                     \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }
#define NULL_CALL_(n, text, name, ...) NULL_CALL__(n, text, name, __VA_ARGS__)
#define NULL_CALL(text, ...) NULL_CALL_(__COUNTER__, text, #__VA_ARGS__, __VA_ARGS__)
#define NULL_IN(...) NULL_CALL_(__COUNTER__, " is NULL", #__VA_ARGS__, __VA_ARGS__)
/* The compiler wants the result to be used. */
#define NULL_IN_CHECKED(...) NULL_CALL_(__COUNTER__, " is NULL", #__VA_ARGS__, STRAND_IGNORE(__VA_ARGS__))

NULL_IN(strand_exception_text(nothing))
NULL_IN(strand_exception_code(nothing))
NULL_IN(strand_exception_kind(nothing))
NULL_IN(strand_exception_is(nothing, &STRAND_ERROR))
NULL_IN(strand_exception_payload(nothing))
NULL_IN(strand_exception_cause(nothing))
NULL_IN(strand_exception_suppressed(nothing, 0))
NULL_IN(strand_exception_who(nothing))
NULL_IN(strand_exception_why(nothing))
NULL_IN(strand_exception_progress(nothing))
NULL_IN(strand_exception_print(nothing, 2))
NULL_IN(strand_exception_keep(nothing))
NULL_IN(strand_throw(nothing, "no kind"))
NULL_IN(strand_throw(&STRAND_ERROR, nothing, 0))
NULL_IN(strand_throw_with(nothing, NULL, "no kind"))
NULL_IN(strand_throw_with(&STRAND_ERROR, NULL, nothing, 0))
NULL_IN(strand_rethrow(nothing))
NULL_IN_CHECKED(strand_try(no_function, NULL, NULL))
NULL_IN(strand_run(NULL, no_function, NULL))
NULL_IN(strand_spawn(o.scope, no_function, NULL))
NULL_IN(strand_spawn_with(o.scope, NULL, no_function, NULL, 0))
NULL_IN(strand_spawn_with(o.scope, NULL, return_arg, nothing, 8))
NULL_IN_CHECKED(strand_chan_send(o.chan, nothing))
NULL_IN_CHECKED(strand_chan_receive(o.chan, nothing))
NULL_IN_CHECKED(strand_chan_try_send(o.chan, nothing))
NULL_IN_CHECKED(strand_chan_try_receive(o.chan, nothing))
NULL_IN(strand_select((strand_case[]){strand_on_send(o.chan, nothing)}, 1, 0))
NULL_IN(strand_select((strand_case[]){strand_on_receive(o.chan, nothing)}, 1, 0))
NULL_CALL("are NULL", strand_select(nothing, 1, 0))
NULL_CALL("there is no ticker: strand_ticker_every makes one", strand_wait_tick(nothing))
NULL_CALL("there is no ticker: strand_ticker_every makes one", strand_on_tick(nothing))
NULL_IN(strand_port_receive(o.port, nothing, 8))
NULL_IN_CHECKED(strand_port_try_receive(o.port, nothing, 8))
NULL_IN(strand_select((strand_case[]){strand_on_message(o.port, nothing, 8)}, 1, 0))
NULL_IN(strand_port_info_get(o.port, nothing))
NULL_IN(strand_mutex_lock(nothing))
NULL_IN_CHECKED(strand_mutex_try_lock(nothing))
NULL_IN(strand_mutex_unlock(nothing))
NULL_IN(strand_mutex_held(nothing))
NULL_IN(STRAND_LOCKED((strand_mutex *)nothing))
NULL_IN(strand_condition_wait(nothing, &o.mutex))
NULL_IN(strand_condition_wait(&(strand_condition){0}, nothing))
NULL_IN(strand_condition_signal(nothing))
NULL_IN(strand_condition_broadcast(nothing))
NULL_IN(strand_rwlock_read(nothing))
NULL_IN(strand_rwlock_write(nothing))
NULL_IN_CHECKED(strand_rwlock_try_read(nothing))
NULL_IN_CHECKED(strand_rwlock_try_write(nothing))
NULL_IN(strand_rwlock_read_done(nothing))
NULL_IN(strand_rwlock_write_done(nothing))
NULL_IN(STRAND_READ_LOCKED((strand_rwlock *)nothing))
NULL_IN(STRAND_WRITE_LOCKED((strand_rwlock *)nothing))
NULL_IN(strand_semaphore_acquire(nothing))
NULL_IN(strand_semaphore_acquire_many(nothing, 2))
NULL_IN(strand_semaphore_acquire_many(nothing, 0))
NULL_IN_CHECKED(strand_semaphore_try_acquire(nothing))
NULL_IN_CHECKED(strand_semaphore_try_acquire_many(nothing, 2))
NULL_IN_CHECKED(strand_semaphore_try_acquire_many(nothing, 0))
NULL_IN(strand_semaphore_release(nothing))
NULL_IN(strand_semaphore_release_many(nothing, 2))
NULL_IN(strand_semaphore_release_many(nothing, 0))
NULL_IN(strand_semaphore_permits(nothing))
NULL_IN(strand_on_permit(nothing))
NULL_IN(STRAND_PERMIT((strand_semaphore *)nothing))
NULL_IN(strand_barrier_wait(nothing))
NULL_IN(strand_once_run(nothing, return_arg, NULL))
NULL_IN(strand_once_run(&(strand_once){0}, no_function, NULL))
NULL_IN(strand_once_done(nothing))
NULL_IN(strand_event_wait(nothing))
NULL_IN(strand_event_set(nothing))
NULL_IN(strand_event_clear(nothing))
NULL_IN(strand_event_is_set(nothing))
NULL_IN(strand_on_event(nothing))
NULL_IN(strand_group_add(nothing, 1))
NULL_IN(strand_group_add(nothing, 0))
NULL_IN(strand_group_done(nothing))
NULL_IN(strand_group_wait(nothing))
NULL_IN(strand_group_count(nothing))
NULL_IN(strand_on_group(nothing))
NULL_IN(strand_latch_count_down(nothing, 1))
NULL_IN(strand_latch_count_down(nothing, 0))
NULL_IN(strand_latch_wait(nothing))
NULL_IN(strand_on_latch(nothing))
NULL_IN(strand_pipe(nothing))
NULL_IN(strand_listen_tcp(nothing, 0))
NULL_IN_CHECKED(strand_dial_tcp(nothing, 1))
NULL_IN(strand_listen_unix(nothing))
NULL_IN_CHECKED(strand_dial_unix(nothing))
NULL_IN(strand_offload(no_function, NULL))
NULL_IN(strand_offload_on(o.crew, no_function, NULL))
NULL_IN(strand_offload_with(NULL, no_function, NULL, 0))
NULL_CALL("their address is NULL", strand_offload_with(NULL, return_arg, nothing, 8))
NULL_IN(strand_crew_info_get(o.crew, nothing))
NULL_IN(strand_fibre_info_get(o.fibre, 0, nothing))
NULL_IN(strand_pool_info_get(strand_pool_self(), nothing))
NULL_IN(strand_stats_get(nothing))
NULL_IN(strand_prio_init(nothing, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1}))
NULL_IN(strand_prio_acquire(nothing, NULL))
NULL_IN(STRAND_PRIO_PERMIT(nothing, NULL))
NULL_IN_CHECKED(strand_prio_try_acquire(nothing, NULL))
NULL_IN(strand_prio_release(nothing))
NULL_IN(strand_prio_reconsider(nothing))
NULL_IN(strand_on_prio_permit(nothing, NULL))
NULL_IN(strand_prio_prune(nothing, 0, NULL))
NULL_IN(strand_prio_waiting(nothing))
NULL_IN(strand_prio_in_flight(nothing))
NULL_IN(strand_limit_init(nothing, 1, NULL))
NULL_IN(strand_limit_acquire(nothing))
NULL_IN(STRAND_LIMIT_PERMIT(nothing))
NULL_IN_CHECKED(strand_limit_try_acquire(nothing))
NULL_IN(strand_limit_release(nothing))
NULL_IN(strand_on_limit(nothing))
NULL_IN(strand_limit_in_flight(nothing))
NULL_IN(STRAND_LIMIT(nothing))
NULL_IN(strand_limits_acquire(nothing))
NULL_IN_CHECKED(strand_limits_try_acquire(nothing))
NULL_IN(strand_limits_release(nothing))
NULL_IN(STRAND_MONITOR_ENTER(account, in, no_account); in->balance++)
