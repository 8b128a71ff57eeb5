/*
 * The command line, the file, and what came of it.
 */
#define _GNU_SOURCE
#include "ledger.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2, INTERRUPTED = 130 }; /* the last one as shells have it */

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

/* Why it ended, and how far it came: to standard error. */
static void tell_end(const struct bank *bank, const strand_exception *e)
{
    fprintf(stderr, "ledger: %s", strand_exception_text(e));
    if (bank->accounts) /* it was open */
        fprintf(stderr, " after %llu transfers; what was under way is rolled back",
                (unsigned long long)bank->transferred);
    fprintf(stderr, "\n");
}

/* The root. Every end is here: nothing was rolled back or closed by hand on the way. */
static void *run(void *arg)
{
    struct bank *bank = arg;
    strand_exception *e = strand_try(run_bank, bank, NULL);
    int status = !e ? EXIT_SUCCESS : strand_exception_is(e, &STOPPED) ? INTERRUPTED : FAILED;
    if (e)
        tell_end(bank, e);
    strand_exception_release(e);
    return (void *)(intptr_t)status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char usage[] =
    "usage: ledger [option...] [FILE]\n"
    "\n"
    "Moves money between the accounts of a database, from many clients at a time, and counts it meanwhile: it has to\n"
    "be as much as ever. FILE is made if there is none, and kept; without it, it is a temporary one. Exit status: 0;\n"
    "1 it was not as much, or another failure; 2 the command line; 130 Ctrl-C.\n"
    "\n"
    "  -a, --accounts=N    accounts of a new file (default 10000)\n"
    "  -c, --clients=N     clients that order transfers (default 50)\n"
    "  -n, --transfers=N   transfers that each orders (default 200)\n"
    "  -l, --levies=N      levies, which take one from every account, by one more client (default 50)\n"
    "  -p, --patience=MS   how long that one waits at most before it gives a levy up (default 60)\n"
    "  -r, --readers=N     connections that read (default 3)\n"
    "  -t, --threads=N     threads for the clients (default: one per processor that may be used)\n"
    "  -b, --busy=S        how long to wait for other processes that have the file locked (default 5)\n"
    "  -m, --pages=N       the most pages that the file may have; 0 (the default): any number\n"
    "  -s, --seed=N        of who pays whom how much (default 1)\n"
    "  -h, --help          this text\n";

__attribute__((noreturn)) static void refuse_option(const char *name, const char *value)
{
    fprintf(stderr, "ledger: %s can't be %s\n", name, value);
    exit(USAGE);
}

static int64_t whole(const char *name, const char *text, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most)
        refuse_option(name, text);
    return value;
}

static int64_t time_of(const char *name, const char *text, int64_t unit)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 1e6))
        refuse_option(name, text);
    return (int64_t)(value * (double)unit);
}

static void take_option(struct bank *bank, int option)
{
    switch (option) {
    case 'a':
        bank->new_accounts = whole("--accounts", optarg, 1, 100000000);
        break;
    case 'c':
        bank->clients = (int)whole("--clients", optarg, 0, 1000000);
        break;
    case 'n':
        bank->transfers = (int)whole("--transfers", optarg, 0, INT_MAX);
        break;
    case 'l':
        bank->levies = (int)whole("--levies", optarg, 0, INT_MAX);
        break;
    case 'p':
        bank->patience = time_of("--patience", optarg, STRAND_MS);
        break;
    case 'r':
        bank->readers = (int)whole("--readers", optarg, 1, READERS_MOST);
        break;
    case 't':
        bank->threads = (int)whole("--threads", optarg, 1, 1024);
        break;
    case 'b':
        bank->busy = time_of("--busy", optarg, STRAND_S);
        break;
    case 'm':
        bank->pages = whole("--pages", optarg, 0, INT_MAX);
        break;
    case 's':
        bank->seed = (uint64_t)whole("--seed", optarg, 0, INT64_MAX);
        break;
    case 'h':
        exit(fputs(usage, stdout) < 0 || fflush(stdout) != 0);
    default:
        fputs("Try ledger --help.\n", stderr);
        exit(USAGE);
    }
}

static void read_options(struct bank *bank, int argc, char **argv)
{
    static const struct option options[] = {
        {"accounts", required_argument, NULL, 'a'},
        {"clients", required_argument, NULL, 'c'},
        {"transfers", required_argument, NULL, 'n'},
        {"levies", required_argument, NULL, 'l'},
        {"patience", required_argument, NULL, 'p'},
        {"readers", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'},
        {"busy", required_argument, NULL, 'b'},
        {"pages", required_argument, NULL, 'm'},
        {"seed", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "a:c:n:l:p:r:t:b:m:s:h", options, NULL)) != -1;)
        take_option(bank, option);
    if (argc - optind > 1) {
        fprintf(stderr, "ledger: one file at a time: what is %s? Try ledger --help.\n", argv[optind + 1]);
        exit(USAGE);
    }
    if (optind < argc)
        bank->path = argv[optind];
}

/* ---- a temporary file ------------------------------------------------------------------------ */

/* In a folder of its own, as SQLite puts other files beside it. */
static void make_folder(char *folder, size_t size)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, size, "%s/ledger.XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        fprintf(stderr, "ledger: %s: %s\n", folder, strerror(errno));
        exit(FAILED);
    }
}

/* And those beside it: of a bank that has failed they may be left. */
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
    signal(SIGXFSZ, SIG_IGN); /* that a file may not grow is an error */
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
