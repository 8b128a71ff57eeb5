/*
 * A connection to the database, which lives on one thread.
 */
#define _GNU_SOURCE /* gettid */
#include "ledger.h"

#include <string.h>
#include <unistd.h>

/* ---- its thread ------------------------------------------------------------------------------ */

/* Not pthread_self: compilers take it for a constant, and might ask once for a whole function. Under a seed one thread
 * of the system plays all of them; the index is then what tells. */
static void must_be_on_its_thread(const struct connection *c)
{
    pid_t thread = gettid();
    int index = strand_thread_index();
    if (thread != c->thread || index != c->index)
        strand_throw(&STRAND_ERROR,
                     "connection %d: opened on thread %d of the system, used on %d, number %d of its pool", c->index,
                     (int)c->thread, (int)thread, index);
}

/* ---- steps ----------------------------------------------------------------------------------- */

const strand_kind DATABASE = STRAND_KIND("database", &STRAND_ERROR);
const strand_kind GIVEN_UP = STRAND_KIND("given up", &STRAND_ERROR);

/* What has gone wrong, what the system had to say to it, and in which statement. */
__attribute__((noreturn)) static void fail(const struct connection *c, const char *doing)
{
    int result = sqlite3_errcode(c->db), error = sqlite3_system_errno(c->db);
    bool told = error && (result == SQLITE_IOERR || result == SQLITE_CANTOPEN);
    strand_throw(&DATABASE, "%s: %s%s%s (%.80s)", c->bank->path, sqlite3_errmsg(c->db), told ? ": " : "",
                 told ? strerror(error) : "", doing);
}

/* SQLite asks this now and then from inside of a statement, and stops the statement if it is so. That it asks on the
 * connection's own thread is why it is not sqlite3_interrupt, called by the client: that would have to know that what
 * it hits is still the client's own. */
static int is_given_up(void *connection)
{
    const struct connection *c = connection;
    return !c->ending && c->order && c->order->given_up;
}

/* Any result. */
static int raw_step(struct connection *c, sqlite3_stmt *statement)
{
    must_be_on_its_thread(c);
    c->steps++;
    STRAND_NO_SUSPEND; /* an exception must not pass through SQLite, nor another strand come between */
    return sqlite3_step(statement);
}

static int must_go_on(struct connection *c, sqlite3_stmt *statement, int result)
{
    if (result == SQLITE_INTERRUPT)
        strand_throw(&GIVEN_UP, "nobody waits for the order any more");
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        fail(c, sqlite3_sql(statement));
    return result;
}

int step(struct connection *c, sqlite3_stmt *statement)
{
    return must_go_on(c, statement, raw_step(c, statement));
}

/* Here, and not in a busy handler of SQLite's: this wait is a strand's, and so can be interrupted. */
int first_step(struct connection *c, sqlite3_stmt *statement)
{
    static const int64_t pause = 2 * STRAND_MS;
    strand_time end = strand_in(c->bank->busy);
    int result;
    while ((result = raw_step(c, statement)) == SQLITE_BUSY) {
        sqlite3_reset(statement);
        if (strand_now().ns >= end.ns)
            strand_throw(&DATABASE, "%s: another process has had it locked for %g s (%.80s)", c->bank->path,
                         (double)c->bank->busy / (double)STRAND_S, sqlite3_sql(statement));
        c->waits++;
        strand_sleep(pause);
    }
    return must_go_on(c, statement, result);
}

static sqlite3_stmt *prepare(struct connection *c, const char *sql)
{
    sqlite3_stmt *statement;
    must_be_on_its_thread(c);
    if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        fail(c, sql);
    return statement;
}

/* Its end may have come without it: some failures of a statement roll the whole transaction back. That a rollback fails
 * does not matter: then, too, nothing of the transaction is left. */
void roll_back(struct connection **connection)
{
    struct connection *c = *connection;
    if (strand_unwinding())
        c->rolled_back++;
    if (sqlite3_get_autocommit(c->db))
        return;
    c->ending = true;
    raw_step(c, c->statements[ROLLBACK]);
    sqlite3_reset(c->statements[ROLLBACK]);
}

static void finalize(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

void execute(struct connection *c, const char *sql)
{
    sqlite3_stmt *statement __attribute__((cleanup(finalize))) = prepare(c, sql);
    for (int result = first_step(c, statement); result == SQLITE_ROW;)
        result = step(c, statement);
}

/* Readers then see the state of the last commit, and never wait for the writer. */
static void use_write_ahead_log(struct connection *c)
{
    sqlite3_stmt *statement __attribute__((cleanup(finalize))) = prepare(c, "PRAGMA journal_mode = WAL");
    first_step(c, statement);
    if (strcmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0)
        strand_throw(&DATABASE, "%s: a write-ahead log is not available here", c->bank->path);
}

/* ---- its life -------------------------------------------------------------------------------- */

static void open_connection(struct connection *c)
{
    int how = c->index == 0 ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    c->thread = gettid();
    int result = sqlite3_open_v2(c->bank->path, &c->db, how | SQLITE_OPEN_NOMUTEX, NULL);
    if (!c->db)
        strand_throw(&DATABASE, "%s: %s", c->bank->path, sqlite3_errstr(result));
    if (result != SQLITE_OK)
        fail(c, "open");
    sqlite3_progress_handler(c->db, 1000, is_given_up, c); /* asks every so many operations of its virtual machine */
}

static void prepare_all(struct connection *c)
{
    static const char *const texts[STATEMENTS] = {
        [BEGIN] = "BEGIN IMMEDIATE",
        [COMMIT] = "COMMIT",
        [ROLLBACK] = "ROLLBACK",
        [TAKE] = "UPDATE accounts SET balance = balance - ?1 WHERE id = ?2 AND balance >= ?1",
        [GIVE] = "UPDATE accounts SET balance = balance + ?1 WHERE id = ?2",
        [NOTE] = "INSERT INTO entries VALUES (?1, ?2, ?3)",
        [NOTE_LEVY] = "INSERT INTO entries SELECT id, 0, 1 FROM accounts WHERE id > 0 AND balance > 0",
        [LEVY_ALL] = "UPDATE accounts SET balance = balance - 1 WHERE id > 0 AND balance > 0",
        [COUNT] = "SELECT count(*), sum(balance) FROM accounts",
    };
    for (int i = 0; i < STATEMENTS; i++)
        c->statements[i] = prepare(c, texts[i]);
}

/* On its thread, too: a strand's clean-ups run where it runs. */
static void close_connection(struct connection *c)
{
    drop_order(&c->order);
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(c->statements[i]);
    sqlite3_close(c->db);
    c->bank->steps += c->steps;
    c->bank->rolled_back += c->rolled_back;
    c->bank->waits += c->waits;
}

/* An order that its client gives up is no failure of the connection. */
static void serve_order(struct connection *c)
{
    STRAND_TRY {
        carry_out(c);
        strand_event_set(&c->order->done);
    }
    STRAND_CATCH(&GIVEN_UP, e) {
    }
    STRAND_END
    drop_order(&c->order);
}

void *serve(void *arg)
{
    struct connection c __attribute__((cleanup(close_connection))) = *(const struct connection *)arg;
    bool writes = c.index == 0;
    open_connection(&c);
    if (writes) {
        use_write_ahead_log(&c);
        found_bank(&c);
    }
    prepare_all(&c);
    if (writes) {
        count_money(&c, &c.bank->accounts, &c.bank->total);
        strand_event_set(&c.bank->ready);
    }
    while (STRAND_RECEIVE(writes ? c.bank->changes : c.bank->questions, &c.order) == 0)
        serve_order(&c);
    return NULL;
}
