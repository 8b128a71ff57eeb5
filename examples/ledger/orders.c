/*
 * What is done in the database.
 */
#include "ledger.h"

#include <stdio.h>

/* ---- statements ------------------------------------------------------------------------------ */

static void reset(sqlite3_stmt **statement)
{
    sqlite3_reset(*statement);
}

/* Run a statement of a transaction, with these values for its parameters: how many rows it has changed. Before it is
 * where a connection that is cancelled, or an order that is given up, stops at the latest. */
static int run(struct connection *c, enum statement which, const int64_t *values)
{
    sqlite3_stmt *statement __attribute__((cleanup(reset))) = c->statements[which];
    strand_checkpoint();
    if (c->order->given_up)
        strand_throw(&GIVEN_UP, "nobody waits for the order any more");
    for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
        sqlite3_bind_int64(statement, i + 1, values[i]);
    c->ending = which == COMMIT;
    if (which == BEGIN)
        first_step(c, statement);
    else
        step(c, statement);
    return sqlite3_changes(c->db);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void transfer(struct connection *c)
{
    struct connection *open __attribute__((cleanup(roll_back))) = c;
    struct order *order = c->order;
    run(open, BEGIN, NULL);
    order->refused = run(c, TAKE, (int64_t[]){order->amount, order->payer}) == 0;
    if (order->refused)
        return;
    run(c, GIVE, (int64_t[]){order->amount, order->payee});
    run(c, NOTE, (int64_t[]){order->payer, order->payee, order->amount});
    run(c, COMMIT, NULL);
}

/* One from everybody who has it, to account 0: long enough to be given up in the middle. */
static void levy(struct connection *c)
{
    struct connection *open __attribute__((cleanup(roll_back))) = c;
    run(open, BEGIN, NULL);
    run(c, NOTE_LEVY, NULL);
    int payers = run(c, LEVY_ALL, NULL);
    run(c, GIVE, (int64_t[]){payers, 0});
    run(c, COMMIT, NULL);
}

/* One statement, and so one state of the database, whatever the writer does meanwhile. */
void count_money(struct connection *c, int64_t *accounts, int64_t *total)
{
    sqlite3_stmt *statement __attribute__((cleanup(reset))) = c->statements[COUNT];
    first_step(c, statement);
    *accounts = sqlite3_column_int64(statement, 0);
    *total = sqlite3_column_int64(statement, 1);
}

void carry_out(struct connection *c)
{
    switch (c->order->what) {
    case TRANSFER:
        transfer(c);
        break;
    case LEVY:
        levy(c);
        break;
    case AUDIT:
        count_money(c, &c->order->accounts, &c->order->total);
        break;
    }
}

/* ---- the tables ------------------------------------------------------------------------------ */

/* Each statement is a transaction of its own: a process that is killed between two of them leaves what the next one
 * begins with. */
void found_bank(struct connection *c)
{
    char text[256];
    execute(c, "PRAGMA synchronous = NORMAL");
    if (c->bank->pages) {
        snprintf(text, sizeof text, "PRAGMA max_page_count = %lld", (long long)c->bank->pages);
        execute(c, text);
    }
    execute(c, "CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, balance INTEGER CHECK (balance >= 0))");
    execute(c, "CREATE TABLE IF NOT EXISTS entries (payer INTEGER, payee INTEGER, amount INTEGER)");
    snprintf(text, sizeof text,
             "INSERT INTO accounts WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n LIMIT %lld) "
             "SELECT id, %d FROM n WHERE NOT EXISTS (SELECT 1 FROM accounts)",
             (long long)c->bank->new_accounts, FIRST_BALANCE);
    execute(c, text);
}
