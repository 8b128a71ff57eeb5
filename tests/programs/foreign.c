/*
 * Handles of one run, used in another: one function per argument. With "ended:" before its name the run that made the
 * handle has ended. What is no misuse prints what it returned; the report of a misuse goes to standard error, and then
 * the program has to end by abort().
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/monitor.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define FOREVER (3600 * STRAND_S)

/* What the first run has made. */
static struct {
    strand child;
    strand_scope plain, open;
    strand_chan chan;
    strand_fibre fibre;
    strand_signals signals;
    strand_pool first, pool;
    strand_crew crew;
    strand_port port;
} made;
static long value;
static strand_mutex mutex;
STRAND_MONITOR(account, { long balance; });
static struct account account;
static strand_prio_semaphore semaphore;
static strand_limit limit;

static void *return_arg(void *arg)
{
    return arg;
}

static void *sleep_forever(void *arg)
{
    strand_sleep(FOREVER);
    return arg;
}

/* ---- the operations ------------------------------------------------------------------------- */

static long join(void)
{
    return (long)(intptr_t)strand_join(made.child);
}

static long wait_for_it(void)
{
    strand_wait(made.child);
    return 0;
}

static long has_ended(void)
{
    return strand_ended(made.child);
}

static long cancel(void)
{
    strand_cancel(made.child, "from another run");
    return 0;
}

static long hand_off(void)
{
    STRAND_SCOPE_OPEN(scope);
    return strand_hand_off(made.child, scope);
}

static long hand_off_to(void)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, return_arg, NULL);
    long result = strand_hand_off(child, made.open);
    strand_join(child);
    return result;
}

static long select_on_end(void)
{
    strand_case c = strand_on_end(made.child);
    return strand_select(&c, 1, 0);
}

static long spawn_plain(void)
{
    strand_spawn(made.plain, return_arg, NULL);
    return 0;
}

static long spawn_open(void)
{
    strand_spawn(made.open, return_arg, NULL);
    return 0;
}

static long join_scope(void)
{
    strand_scope_join(made.plain);
    return 0;
}

static long cancel_plain(void)
{
    strand_scope_cancel(made.plain, NULL);
    return 0;
}

static long cancel_open(void)
{
    strand_scope_cancel(made.open, NULL);
    return 0;
}

static long count_plain(void)
{
    return (long)strand_scope_count(made.plain);
}

static long count_open(void)
{
    return (long)strand_scope_count(made.open);
}

static long first(void)
{
    strand_scope_join_first(made.plain, NULL);
    return 0;
}

static long next(void)
{
    return (long)strand_id(strand_scope_wait_next(made.plain));
}

static long failure(void)
{
    return strand_scope_failure(made.plain, NULL) != NULL;
}

static long open_chan(void)
{
    strand_chan_open(made.open, 1, 1, NULL);
    return 0;
}

static long open_fibre(void)
{
    strand_fibre_open(made.plain, NULL);
    return 0;
}

static long send_value(void)
{
    return strand_chan_send(made.chan, &value);
}

static long receive_value(void)
{
    return strand_chan_receive(made.chan, &value);
}

static long try_send(void)
{
    return strand_chan_try_send(made.chan, &value);
}

static long try_receive(void)
{
    return strand_chan_try_receive(made.chan, &value);
}

static long close_chan(void)
{
    strand_chan_close(made.chan);
    return 0;
}

static long length(void)
{
    return (long)strand_chan_length(made.chan);
}

static long capacity(void)
{
    return (long)strand_chan_capacity(made.chan);
}

static long select_to_send(void)
{
    strand_case c = strand_on_send(made.chan, &value);
    return strand_select(&c, 1, 0);
}

static long select_to_receive(void)
{
    strand_case c[2] = {strand_on_time(strand_in(FOREVER)), strand_on_receive(made.chan, &value)};
    return strand_select(c, 2, STRAND_SELECT_ORDERED);
}

static long spawn_on_fibre(void)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = made.fibre), return_arg, NULL, 0);
    return 0;
}

static long count_fibres(void)
{
    return strand_fibre_count(made.fibre);
}

static long trim_fibre(void)
{
    return (long)strand_fibre_trim(made.fibre);
}

static long ask_fibre(void)
{
    strand_fibre_info info = {.size = sizeof info};
    strand_fibre_info_get(made.fibre, 0, &info);
    return 0;
}

static long spawn_with(const struct strand_attr *attr)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, attr, return_arg, NULL, 0);
    return 0;
}

static long spawn_in_first_pool(void)
{
    return spawn_with(STRAND_ATTR(.pool = made.first));
}

static long spawn_in_pool(void)
{
    return spawn_with(STRAND_ATTR(.pool = made.pool));
}

static long pin_in_pool(void)
{
    return spawn_with(STRAND_ATTR(.pool = made.pool, .pin = STRAND_PIN(0)));
}

static long open_pool(void)
{
    strand_pool_open(made.plain, NULL);
    return 0;
}

static long close_pool(void)
{
    strand_pool_close(made.pool, NULL);
    return 0;
}

static long resize_pool(void)
{
    return strand_pool_resize(made.pool, 2);
}

static long ask_pool(void)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(made.pool, &info);
    return 0;
}

static long open_crew(void)
{
    strand_crew_open(made.plain, NULL);
    return 0;
}

static long call_crew(void)
{
    strand_offload_on(made.crew, return_arg, NULL);
    return 0;
}

static long ask_crew(void)
{
    strand_crew_info info = {.size = sizeof info};
    strand_crew_info_get(made.crew, &info);
    return 0;
}

static long open_port(void)
{
    strand_port_open(made.plain, sizeof value, 1, NULL);
    return 0;
}

static long receive_message(void)
{
    return strand_port_receive(made.port, &value, sizeof value);
}

static long try_message(void)
{
    return strand_port_try_receive(made.port, &value, sizeof value);
}

static long select_message(void)
{
    strand_case cases[] = {strand_on_message(made.port, &value, sizeof value)};
    return strand_select(cases, 1, 0);
}

static long wait_for_signal(void)
{
    return strand_wait_signal(made.signals);
}

static long lock_mutex(void)
{
    strand_mutex_lock(&mutex);
    return 0;
}

static long take_permit(void)
{
    return strand_prio_acquire(&semaphore, NULL);
}

static long take_limit(void)
{
    strand_limit_acquire(&limit);
    return 0;
}

static long enter_monitor(void)
{
    STRAND_MONITOR_ENTER(account, in, &account);
    return in->balance;
}

static const struct {
    const char *name;
    long (*operation)(void);
} operations[] = {
    {"strand_join", join},
    {"strand_wait", wait_for_it},
    {"strand_ended", has_ended},
    {"strand_cancel", cancel},
    {"strand_hand_off", hand_off},
    {"strand_hand_off to", hand_off_to},
    {"strand_select end", select_on_end},
    {"strand_spawn", spawn_plain},
    {"strand_spawn open", spawn_open},
    {"strand_scope_join", join_scope},
    {"strand_scope_cancel", cancel_plain},
    {"strand_scope_cancel open", cancel_open},
    {"strand_scope_count", count_plain},
    {"strand_scope_count open", count_open},
    {"strand_scope_join_first", first},
    {"strand_scope_wait_next", next},
    {"strand_scope_failure", failure},
    {"strand_chan_open", open_chan},
    {"strand_fibre_open", open_fibre},
    {"strand_chan_send", send_value},
    {"strand_chan_receive", receive_value},
    {"strand_chan_try_send", try_send},
    {"strand_chan_try_receive", try_receive},
    {"strand_chan_close", close_chan},
    {"strand_chan_length", length},
    {"strand_chan_capacity", capacity},
    {"strand_select send", select_to_send},
    {"strand_select receive", select_to_receive},
    {"strand_spawn_with fibre", spawn_on_fibre},
    {"strand_fibre_count", count_fibres},
    {"strand_fibre_trim", trim_fibre},
    {"strand_fibre_info_get", ask_fibre},
    {"strand_spawn_with first", spawn_in_first_pool},
    {"strand_spawn_with pool", spawn_in_pool},
    {"strand_spawn_with pin", pin_in_pool},
    {"strand_pool_open", open_pool},
    {"strand_pool_close", close_pool},
    {"strand_pool_resize", resize_pool},
    {"strand_pool_info_get", ask_pool},
    {"strand_crew_open", open_crew},
    {"strand_offload_on", call_crew},
    {"strand_crew_info_get", ask_crew},
    {"strand_port_open", open_port},
    {"strand_port_receive", receive_message},
    {"strand_port_try_receive", try_message},
    {"strand_select message", select_message},
    {"strand_wait_signal", wait_for_signal},
    {"strand_mutex_lock", lock_mutex},
    {"strand_prio_acquire", take_permit},
    {"strand_limit_acquire", take_limit},
    {"STRAND_MONITOR_ENTER", enter_monitor},
};

/* ---- the two runs --------------------------------------------------------------------------- */

static void *operate(void *operation)
{
    printf("returned %ld\n", (*(long (**)(void))operation)());
    return NULL;
}

/* Makes one of everything; then, if there is an operation, another run uses it, while this one is there. */
static void *make(void *operation)
{
    STRAND_SCOPE_OPEN(open);
    STRAND_SCOPE(scope);
    STRAND_SIGNALS(signals, SIGUSR1);
    made.open = open;
    made.plain = scope;
    made.signals = signals;
    made.child = strand_spawn(scope, sleep_forever, NULL);
    made.chan = strand_chan_open(scope, sizeof value, 1, NULL);
    made.fibre = strand_fibre_open(scope, NULL);
    made.first = strand_pool_self();
    made.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    made.crew = strand_crew_open(scope, NULL);
    made.port = strand_port_open(scope, sizeof value, 1, NULL);
    strand_prio_init(&semaphore, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1});
    strand_limit_init(&limit, 1, NULL);
    if (operation) {
        STRAND_LOCKED(&mutex);
        STRAND_MONITOR_ENTER(account, in, &account);
        in->balance++;
        strand_run(STRAND_OPTIONS(.own_threads = true), operate, operation);
    }
    strand_scope_cancel(scope, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "", *ended = "ended:";
    bool first_ends = strncmp(name, ended, strlen(ended)) == 0;
    if (first_ends)
        name += strlen(ended);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        long (*operation)(void) = operations[i].operation;
        if (strcmp(name, operations[i].name) != 0)
            continue;
        strand_run(NULL, make, first_ends ? NULL : (void *)&operation);
        if (first_ends)
            strand_run(NULL, operate, (void *)&operation);
        return 0;
    }
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        puts(operations[i].name);
    return 0;
}
