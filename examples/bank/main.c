/*
 * bank: the command line, the run, and the audit.
 */
#include "bank.h"

#include "../common/options.h"

#include <strand/pool.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t deposit = 1000;

static int64_t audit(const struct bank *bank)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < bank->accounts; i++)
        sum += bank->pages[i].balance;
    return sum;
}

/* Without a subscriber, the log would report each of the many planned failures. */
static void ignore_failure(void *state, strand_message *message)
{
    (void)state, (void)message;
}

static const strand_actor_class auditor = {.size = sizeof auditor, .name = "auditor", .receive = ignore_failure};

static void open_bank(strand_actors system, struct bank *bank)
{
    uint32_t each = bank->accounts / bank->branches, rest = bank->accounts % bank->branches, first = 0;
    for (uint32_t i = 0; i < bank->branches; i++) {
        uint32_t count = each + (i < rest);
        strand_actor branch = strand_actor_spawn(system, NULL, &branch_class, NULL, 0);
        opened o = {0};
        strand_must(strand_ask(branch, STRAND_MSG(open_accounts, bank, first, count), STRAND_INTO(opened, &o)));
        first += count;
    }
}

static void *run_bank(void *arg)
{
    struct bank *bank = arg;
    closed c = {0};
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.name = "bank"));
    strand_must(strand_actors_subscribe(system, strand_actor_spawn(system, NULL, &auditor, NULL, 0),
                                        STRAND_ACTOR_FAILURE | STRAND_ACTOR_DEAD_LETTER));
    for (uint32_t i = 0; i < bank->accounts; i++)
        bank->pages[i].balance = deposit;
    open_bank(system, bank);
    int64_t before = audit(bank);
    strand_time begun = strand_now();
    strand_actor office = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "office"), &office_class, NULL, 0);
    strand_must(strand_ask(office, STRAND_MSG(open_office, bank), STRAND_INTO(closed, &c)));
    double seconds = (double)(strand_now().ns - begun.ns) / (double)STRAND_S;
    strand_actors_stop(system, STRAND_STOP_NEXT);
    strand_actors_join(system);
    int64_t after = audit(bank);
    printf("bank: %" PRIu64 " transfers between %" PRIu32 " accounts in %.2f s, %" PRIu64 " of them refused\n", c.done,
           bank->accounts, seconds, c.refused);
    printf("bank: %" PRIu64 " crashes, %" PRIu64 " orders that had been carried out were asked for again\n",
           bank->crashed, bank->repeated);
    printf("bank: %" PRId64 " before, %" PRId64 " after: %s\n", before, after,
           before == after ? "not a cent is missing" : "WRONG");
    bank->over = before == after && c.done == bank->transfers;
    return NULL;
}

static const char about[] =
    "Transfers between accounts, which are actors, while one message in N crashes the actor that handles it. Exit\n"
    "status 0 if no cent is missing.\n";

static void give_back(struct bank *bank)
{
    for (uint32_t i = 0; i < bank->accounts; i++)
        for (struct order *order = bank->pages[i].orders, *next; order; order = next) {
            next = order->next;
            free(order);
        }
    free(bank->pages);
    free(bank->account);
}

int main(int argc, char **argv)
{
    struct bank bank = {.accounts = 100000, .branches = 100, .transfers = 500000, .at_once = 10000, .crashes = 1000};
    int threads = STRAND_THREADS_ALLOWED;
    const struct option_row options[] = {
        {"accounts", 0, "N", "accounts (default 100000)", OPTION_NUMBER(bank.accounts, 2, 100000000)},
        {"transfers", 0, "N", "transfers (default 500000)", OPTION_NUMBER(bank.transfers, 1, UINT64_C(1) << 40)},
        {"crashes", 0, "N", "one message in N crashes its actor (default 1000); 0: none does",
         OPTION_NUMBER(bank.crashes, 0, UINT32_MAX)},
        {"threads", 0, "N", "threads (default: one per allowed CPU)", OPTION_NUMBER(threads, 1, 1024)},
        {0},
    };
    options_read(&(struct program){"bank", about, NULL, options}, argc, argv);
    bank.pages = calloc(bank.accounts, sizeof *bank.pages);
    bank.account = calloc(bank.accounts, sizeof *bank.account);
    if (!bank.pages || !bank.account) {
        fprintf(stderr, "bank: no memory for %" PRIu32 " accounts\n", bank.accounts);
        return 1;
    }
    strand_run(STRAND_OPTIONS(.threads = threads), run_bank, &bank);
    give_back(&bank);
    return bank.over ? 0 : 1;
}
