/*
 * ledger: accounts in an SQLite database, one connection that writes to it and several that read.
 *
 *     clients, auditors --orders, a channel for each kind--> connections, each on a thread of its own --> the file
 *
 * What it shows: a library that requires each of its objects to stay on one thread. A connection is opened without
 * SQLite's own locks (SQLITE_OPEN_NOMUTEX), so only its strand's pin keeps two threads from it. The strand opens it,
 * takes orders, and closes it, and checks its thread before each step. SQLite may block the thread for any time,
 * because no other strand needs it: clients run on threads of another pool.
 *
 * It also shows how work under way ends. A clean-up rolls back a transaction that is left before its end in any way:
 * when its client is cancelled or runs out of patience, when a statement fails, at Ctrl-C. During long statements
 * SQLite calls back to ask whether their client has given up. The total of all money is the same at the beginning, at
 * the end, and at every audit: no order makes or loses any.
 *
 * Where to begin: bank.c, the tree of strands and how it ends; then clients.c, connection.c (SQLite and its thread),
 * orders.c (the statements). main.c has the command line.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sqlite3.h>

#include <strand.h>
#include <strand/chan.h>
#include <strand/io.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { READERS_MOST = 64, FIRST_BALANCE = 1000 };

/* ---- orders ---------------------------------------------------------------------------------- */

enum what { TRANSFER, LEVY, AUDIT };

/* An order of a client, and its result. It belongs to the client and to the connection that works on it, so a client
 * can leave at any time. */
struct order {
    atomic_int users;
    atomic_bool given_up; /* by the client: nobody waits for it any more */
    enum what what;
    int64_t payer, payee, amount; /* of a transfer */

    strand_event done; /* from then on the rest is there */
    bool refused;      /* the payer does not have so much */
    int64_t accounts, total;
};

typedef STRAND_CHAN(struct order *) order_chan;

/* For the clean-up of a variable that points to one, and for what is left in a channel. NULL is none. */
void drop_order(void *order);

/* ---- the bank -------------------------------------------------------------------------------- */

struct bank {
    const char *path; /* of the database */
    int threads, readers, clients, transfers, levies;
    int64_t new_accounts, pages; /* of a file that has none; the most pages that it may have, 0: any number */
    int64_t patience, busy; /* ns: how long a client waits for a levy, and a connection for another process's lock */
    uint64_t seed;

    order_chan changes, questions; /* for the writer; for the readers */
    strand_event ready;            /* the writer has opened the file, and knows the rest: */
    int64_t accounts, total;

    atomic_bool settled; /* no client orders anything any more */
    atomic_uint_fast64_t transferred, refused, levied, given_up, audits;
    atomic_uint_fast64_t steps, rolled_back, waits; /* of the connections */
};

extern const strand_kind STOPPED;  /* by Ctrl-C */
extern const strand_kind DATABASE; /* SQLite has failed: names the file, the statement and why */
extern const strand_kind WRONG;    /* an audit has found more money than there is, or less */

/* The root: opens the pool and the connections, lets the clients loose, and ends it all. */
strand_fn run_bank;
/* Clients, each the function of a strand: they get the struct client. */
struct client {
    struct bank *bank;
    int number;
};
strand_fn transfer_money, levy_money, audit_money;

/* ---- connections ----------------------------------------------------------------------------- */

enum statement { BEGIN, COMMIT, ROLLBACK, TAKE, GIVE, NOTE, NOTE_LEVY, LEVY_ALL, COUNT, STATEMENTS };

struct connection {
    struct bank *bank;
    int index; /* of its thread in the pool; 0 is the writer's */
    sqlite3 *db;
    pid_t thread; /* that has opened it */
    sqlite3_stmt *statements[STATEMENTS];
    struct order *order; /* that it has in hands, or NULL */
    bool ending;         /* by COMMIT or ROLLBACK, which nobody gives up */
    uint64_t steps, rolled_back, waits;
};

extern const strand_kind GIVEN_UP; /* the client of the order in hands does not wait for it any more */

/* A strand that is one connection; gets a struct connection with bank and index. */
strand_fn serve;

/* By the writer, before all else: make the tables and the accounts where there are none. */
STRAND_BLOCKS void found_bank(struct connection *c);
/* Do what the order in hands says. Throws GIVEN_UP; then, as with every other exception, nothing has been done. */
STRAND_BLOCKS void carry_out(struct connection *c);
STRAND_BLOCKS void count_money(struct connection *c, int64_t *accounts, int64_t *total);

/* One step of a statement: SQLITE_ROW or SQLITE_DONE. Everything else is thrown. */
int step(struct connection *c, sqlite3_stmt *statement);
/* The same for the first step of a statement that begins a transaction: it waits for other processes. */
STRAND_BLOCKS int first_step(struct connection *c, sqlite3_stmt *statement);
/* For the clean-up of a transaction: roll it back, unless it has come to its end. Does not throw. */
void roll_back(struct connection **c);
/* Run a statement of which no rows are wanted. */
STRAND_BLOCKS void execute(struct connection *c, const char *sql);

#endif
