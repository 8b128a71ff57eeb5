/*
 * The bank as a whole: the strand that owns it opens the connections, lets the clients loose, and ends it all.
 */
#include "ledger.h"

#include <signal.h>

/* SQLite is written for the stacks of threads. */
enum { STACK = 256 * 1024 };

const strand_kind STOPPED = STRAND_KIND("stopped", &STRAND_ERROR);
const strand_kind WRONG = STRAND_KIND("wrong", &STRAND_ERROR);

/* A signal becomes a failure, and that ends the bank as any other does. */
static void *watch_interrupt(void *signals)
{
    strand_wait_signal(*(strand_signals *)signals);
    strand_throw(&STOPPED, "interrupted");
}

/* A strand that stays on this thread of the pool, and so does all that it opens. */
static void open_connection(struct bank *bank, strand_scope scope, strand_pool pool, int index)
{
    const struct connection connection = {.bank = bank, .index = index};
    strand_spawn_with(scope,
                      STRAND_ATTR(.name = index == 0 ? "writer" : "reader", .stack_size = STACK, .pool = pool,
                                  .pin = STRAND_PIN(index)),
                      serve, &connection, sizeof connection);
}

static void open_writer(struct bank *bank, strand_scope scope, strand_pool pool)
{
    open_connection(bank, scope, pool, 0);
    strand_event_wait(&bank->ready);
    if (bank->total != bank->accounts * FIRST_BALANCE)
        strand_throw(&WRONG, "%s: there are %lld in %lld accounts", bank->path, (long long)bank->total,
                     (long long)bank->accounts);
}

static void spawn_client(struct bank *bank, strand_scope scope, const char *name, strand_fn *fn, int number)
{
    struct client client = {bank, number};
    strand_spawn_with(scope, STRAND_ATTR(.name = name), fn, &client, sizeof client);
}

/* Auditors count as long as there are clients, and once more. */
static void let_clients_loose(struct bank *bank)
{
    STRAND_SCOPE(auditors);
    for (int i = 0; i < bank->readers; i++)
        spawn_client(bank, auditors, "auditor", audit_money, i);
    {
        STRAND_SCOPE(clients);
        for (int i = 0; i < bank->clients; i++)
            spawn_client(bank, clients, "client", transfer_money, i);
        spawn_client(bank, clients, "collector", levy_money, 0);
        strand_scope_join(clients);
    }
    bank->settled = true;
    strand_scope_join(auditors);
}

/* Between the opening and the closing of the readers. The writer is there before them, so they find a database, and
 * after them: the last connection tidies up, and that is for one that may write. */
static void serve_clients(struct bank *bank, strand_pool pool)
{
    STRAND_SCOPE(readers);
    for (int i = 1; i <= bank->readers; i++)
        open_connection(bank, readers, pool, i);
    let_clients_loose(bank);
    STRAND_CHAN_CLOSE(bank->questions); /* so they come to their ends */
    strand_scope_join(readers);
}

void *run_bank(void *arg)
{
    struct bank *bank = arg;
    STRAND_SIGNALS(interrupts, SIGINT, SIGTERM);
    STRAND_SCOPE(scope); /* left early, it cancels all that is spawned here and waits for it */
    const strand_chan_attr orders = {.size = sizeof orders, .name = "orders", .drop = drop_order};
    bank->changes = STRAND_CHAN_OPEN_WITH(order_chan, scope, 0, &orders);
    bank->questions = STRAND_CHAN_OPEN_WITH(order_chan, scope, 0, &orders);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + bank->readers, .name = "connections"));
    strand watcher = strand_spawn_with(scope, STRAND_ATTR(.name = "interrupt"), watch_interrupt, &interrupts, 0);
    open_writer(bank, scope, pool);
    serve_clients(bank, pool);
    STRAND_CHAN_CLOSE(bank->changes);
    strand_cancel(watcher, "the bank closes");
    strand_scope_join(scope);
    return NULL;
}
