/*
 * ledger: the command line, the temporary database, and the figures at the end.
 */
#define _GNU_SOURCE
#include "ledger.h"

#include "../common/options.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1, INTERRUPTED = 130 }; /* shells report a program that SIGINT has ended as 130 */

/* ---- the end --------------------------------------------------------------------------------- */

static void print_bank(const struct bank *bank)
{
    printf("%llu transfers, and %llu refused for lack of money, by %d clients\n", (unsigned long long)bank->transferred,
           (unsigned long long)bank->refused, bank->clients);
    printf("%llu levies, and %llu given up; %llu transactions were left in the middle and rolled back\n",
           (unsigned long long)bank->levied, (unsigned long long)bank->given_up, (unsigned long long)bank->rolled_back);
    printf("%llu audits, each of which found %lld in %lld accounts\n", (unsigned long long)bank->audits,
           (long long)bank->total, (long long)bank->accounts);
    printf("%llu steps by 1 writer and %d readers, each on the thread that had opened its connection\n",
           (unsigned long long)bank->steps, bank->readers);
    if (bank->waits)
        printf("%llu waits for another process\n", (unsigned long long)bank->waits);
}

/* Prints why the run ended and how far it came. */
static void report_end(const struct bank *bank, const strand_exception *e)
{
    fprintf(stderr, "ledger: %s", strand_exception_text(e));
    if (bank->accounts) /* the file was open */
        fprintf(stderr, " after %llu transfers; what was under way is rolled back",
                (unsigned long long)bank->transferred);
    fprintf(stderr, "\n");
}

/* The root strand. Every end of the run arrives here as an exception; clean-ups have rolled back and closed all. */
static void *run(void *arg)
{
    struct bank *bank = arg;
    strand_exception *e = strand_try(run_bank, bank, NULL);
    int status = !e ? EXIT_SUCCESS : strand_exception_is(e, &STOPPED) ? INTERRUPTED : FAILED;
    if (e)
        report_end(bank, e);
    strand_exception_release(e);
    return (void *)(intptr_t)status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char about[] =
    "Moves money between the accounts of a database, from many clients at a time, and counts the money meanwhile: the\n"
    "sum must never change. Creates FILE if it does not exist, and keeps it; without FILE, the database is temporary.\n"
    "Exit status: 0; 1 the sum has changed, or another failure; 2 the command line; 130 Ctrl-C.\n";

static void read_options(struct bank *bank, int argc, char **argv)
{
    const struct option_row options[] = {
        {"accounts", 'a', "N", "accounts of a new file (default 10000)",
         OPTION_NUMBER(bank->new_accounts, 1, 100000000)},
        {"clients", 'c', "N", "clients that order transfers (default 50)", OPTION_NUMBER(bank->clients, 0, 1000000)},
        {"transfers", 'n', "N", "transfers that each client orders (default 200)",
         OPTION_NUMBER(bank->transfers, 0, INT_MAX)},
        {"levies", 'l', "N", "levies that one more client orders; a levy takes one from every account\n(default 50)",
         OPTION_NUMBER(bank->levies, 0, INT_MAX)},
        {"patience", 'p', "MS", "milliseconds after which this client gives a levy up (default 60)",
         OPTION_TIME(bank->patience, STRAND_MS, 0, 1e6L)},
        {"readers", 'r', "N", "connections that read (default 3)", OPTION_NUMBER(bank->readers, 1, READERS_MOST)},
        {"threads", 't', "N", "threads for the clients (default: one per allowed CPU)",
         OPTION_NUMBER(bank->threads, 1, 1024)},
        {"busy", 'b', "S", "seconds to wait for other processes that have locked the file (default 5)",
         OPTION_TIME(bank->busy, STRAND_S, 0, 1e6L)},
        {"pages", 'm', "N", "the most pages that the file may have; 0 (the default): any number",
         OPTION_NUMBER(bank->pages, 0, INT_MAX)},
        {"seed", 's', "N", "of the random payers, payees and amounts (default 1)",
         OPTION_NUMBER(bank->seed, 0, INT64_MAX)},
        {0},
    };
    bank->path = options_read(&(struct program){"ledger", about, "FILE", options}, argc, argv);
}

/* ---- a temporary file ------------------------------------------------------------------------ */

/* SQLite puts files beside the database, so the database has a folder of its own. */
static void make_folder(char *folder, size_t size)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, size, "%s/ledger.XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        fprintf(stderr, "ledger: %s: %s\n", folder, strerror(errno));
        exit(FAILED);
    }
}

/* Also removes the files that SQLite leaves beside the database after a failure. */
static void remove_folder(const char *folder, const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[PATH_MAX + 8];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
    if (rmdir(folder) != 0)
        fprintf(stderr, "ledger: %s can't be removed: %s\n", folder, strerror(errno));
}

int main(int argc, char **argv)
{
    static struct bank bank = {
        .threads = STRAND_THREADS_ALLOWED,
        .new_accounts = 10000,
        .clients = 50,
        .transfers = 200,
        .levies = 50,
        .patience = 60 * STRAND_MS,
        .readers = 3,
        .busy = 5 * STRAND_S,
        .seed = 1,
    };
    char folder[PATH_MAX - 32], path[PATH_MAX];
    read_options(&bank, argc, argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error, not a reason to die */
    bool temporary = !bank.path;
    if (temporary) {
        make_folder(folder, sizeof folder);
        snprintf(path, sizeof path, "%s/ledger.db", folder);
        bank.path = path;
    }
    int status = (int)(intptr_t)strand_run(STRAND_OPTIONS(.threads = bank.threads), run, &bank);
    if (temporary)
        remove_folder(folder, path);
    if (status == EXIT_SUCCESS)
        print_bank(&bank);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "ledger: standard output: %s\n", strerror(errno));
        return FAILED;
    }
    return status;
}
