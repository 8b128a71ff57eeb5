/*
 * usage: seeds [BUG]
 *
 * Three small programs with three common bugs, each found by trying seeds, and their fixed forms. The program searches
 * 1000 seeds for each bug, or for the one that is named, and runs the fixed form under the same seeds. STRAND_SEED=n in
 * the environment repeats exactly that run, for example in a debugger:
 *
 *     STRAND_SEED=12 build/examples/seeds lost-update
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 1000, TELLERS = 3 };

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "seeds: %s\n", what);
    abort();
}

/* ---- a lost update: what was read before a suspension is stale after it ----------------------------------- */

struct account {
    bool mended;
    int balance;
    strand_mutex lock;
};

static void *pay_in(void *arg)
{
    struct account *account = arg;
    if (account->mended) {
        STRAND_LOCKED(&account->lock);
        int before = account->balance;
        strand_yield(); /* asks somebody whether the money is good */
        account->balance = before + 1;
    } else {
        int before = account->balance;
        strand_yield();
        account->balance = before + 1;
    }
    return NULL;
}

static void *lost_update(void *mended)
{
    struct account account = {.mended = mended != NULL};
    {
        STRAND_SCOPE(tellers);
        for (int i = 0; i < TELLERS; i++)
            strand_spawn(tellers, pay_in, &account);
        strand_scope_join(tellers);
    }
    require(account.balance == TELLERS, "money was paid in that is not there");
    return NULL;
}

/* ---- a deadlock: two locks, taken in either order --------------------------------------------------------- */

struct transfer {
    strand_mutex *first, *second;
};

static void *move(void *arg)
{
    struct transfer *transfer = arg;
    STRAND_LOCKED(transfer->first);
    strand_yield(); /* looks up who it is for */
    STRAND_LOCKED(transfer->second);
    return NULL;
}

static void *lock_order(void *mended)
{
    strand_mutex mine = {0}, yours = {0};
    struct transfer there = {&mine, &yours}, back = {&yours, &mine};
    if (mended)
        back = there;
    STRAND_SCOPE(transfers);
    strand_spawn(transfers, move, &there);
    strand_spawn(transfers, move, &back);
    strand_scope_join(transfers);
    return NULL;
}

/* ---- a lost message: a cancellation between receiving it and keeping it ------------------------------------- */

typedef STRAND_CHAN(int) letters;

struct office {
    bool mended;
    letters letters;
    int kept;
};

static void *keep_letters(void *arg)
{
    struct office *office = arg;
    int letter;
    while (STRAND_RECEIVE(office->letters, &letter) == 0) {
        if (office->mended) {
            STRAND_SHIELD; /* once it is taken, it is kept despite a cancel */
            strand_sleep(STRAND_US);
            office->kept++;
        } else {
            strand_sleep(STRAND_US); /* walks to the shelf */
            office->kept++;
        }
    }
    return NULL;
}

static void *lost_message(void *mended)
{
    struct office office = {.mended = mended != NULL};
    int left = 0, sent = 4, letter;
    STRAND_SCOPE(scope);
    office.letters = STRAND_CHAN_OPEN(letters, scope, (size_t)sent);
    for (int i = 0; i < sent; i++)
        STRAND_IGNORE(STRAND_SEND(office.letters, &i));
    {
        STRAND_SCOPE(clerks);
        strand clerk = strand_spawn(clerks, keep_letters, &office);
        strand_sleep(3 * STRAND_US);
        strand_cancel(clerk, "the office closes");
    }
    while (STRAND_TRY_RECEIVE(office.letters, &letter) == 0)
        left++;
    require(office.kept + left == sent, "a letter is neither kept nor in the box");
    return NULL;
}

/* ---- finding them --------------------------------------------------------------------------------------- */

static const struct bug {
    const char *name;
    strand_fn *fn;
} bugs[] = {{"lost-update", lost_update}, {"lock-order", lock_order}, {"lost-message", lost_message}};
enum { BUGS = sizeof bugs / sizeof *bugs };

static char mended; /* its address says so */

static int search(const struct bug *bug, void *form, strand_sim_found *found)
{
    int result = strand_sim_search(STRAND_OPTIONS(.threads = 2), 1, SEEDS, bug->fn, form, found);
    if (result < 0) {
        fprintf(stderr, "seeds: no seed can be tried: error %d\n", -result);
        exit(EXIT_FAILURE);
    }
    return result;
}

static bool find(const struct bug *bug)
{
    strand_sim_found found = {.size = sizeof found};
    bool is_found = search(bug, NULL, &found);
    if (!is_found && found.tried == 1) { /* that of the environment */
        printf("%s: nothing happened with seed %llu\n", bug->name, (unsigned long long)found.seed);
        return true;
    }
    if (!is_found) {
        printf("%s: not found by %d seeds\n", bug->name, SEEDS);
        return false;
    }
    printf("%s: found by seed %llu, after %llu; STRAND_SEED=%llu seeds %s has it again\n", bug->name,
           (unsigned long long)found.seed, (unsigned long long)found.tried, (unsigned long long)found.seed, bug->name);
    fflush(stdout);
    if (search(bug, &mended, &found)) {
        printf("%s: the mended form fails under seed %llu\n", bug->name, (unsigned long long)found.seed);
        return false;
    }
    printf("%s: the mended form holds under %d seeds\n", bug->name, SEEDS);
    return true;
}

int main(int argc, char **argv)
{
    bool good = true, known = argc == 1;
    if (argc > 2) {
        fprintf(stderr, "usage: seeds [BUG]\n");
        return EXIT_FAILURE;
    }
    for (int i = 0; i < BUGS; i++) {
        if (argc == 2 && strcmp(argv[1], bugs[i].name) != 0)
            continue;
        known = true;
        good &= find(&bugs[i]);
    }
    if (!known)
        fprintf(stderr, "seeds: there is no bug '%s', but lost-update, lock-order and lost-message\n", argv[1]);
    return good && known ? EXIT_SUCCESS : EXIT_FAILURE;
}
