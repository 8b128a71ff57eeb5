/*
 * Who orders something: they send an order to a connection and wait until it is done.
 */
#include "ledger.h"

#include <errno.h>
#include <stdlib.h>

void drop_order(void *pointer)
{
    struct order **order = pointer;
    if (*order && atomic_fetch_sub(&(*order)->users, 1) == 1)
        free(*order);
    *order = NULL;
}

/* The client's clean-up: the connection that works on the order may stop. */
static void give_up(struct order **order)
{
    (*order)->given_up = true;
    drop_order(order);
}

static struct order *order_new(enum what what)
{
    struct order *order = calloc(1, sizeof *order);
    if (!order)
        strand_must(-ENOMEM);
    order->users = 1;
    order->what = what;
    return order;
}

/* Send it, and wait until it is done. What is under way belongs to the sender, then to the channel, then to the
 * receiver. */
static void have_done(struct order *order, order_chan chan)
{
    struct order *sent __attribute__((cleanup(drop_order))) = order;
    order->users++;
    strand_must(STRAND_SEND(chan, &sent));
    sent = NULL;
    strand_event_wait(&order->done);
}

/* A step of splitmix64. */
static uint64_t draw(uint64_t *chance)
{
    uint64_t z = *chance += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void transfer_once(struct bank *bank, uint64_t *chance)
{
    struct order *order __attribute__((cleanup(give_up))) = order_new(TRANSFER);
    order->payer = (int64_t)(draw(chance) % (uint64_t)bank->accounts);
    order->payee = (int64_t)(draw(chance) % (uint64_t)bank->accounts);
    order->amount = 1 + (int64_t)(draw(chance) % FIRST_BALANCE);
    have_done(order, bank->changes);
    (*(order->refused ? &bank->refused : &bank->transferred))++;
}

void *transfer_money(void *arg)
{
    const struct client *client = arg;
    uint64_t chance = client->bank->seed ^ ((uint64_t)client->number << 32);
    for (int i = 0; i < client->bank->transfers; i++)
        transfer_once(client->bank, &chance);
    return NULL;
}

static void levy_once(struct bank *bank, int64_t patience)
{
    STRAND_DEADLINE(strand_in(patience));
    struct order *order __attribute__((cleanup(give_up))) = order_new(LEVY);
    have_done(order, bank->changes);
    bank->levied++;
}

/* Whether a levy that was left behind was done nevertheless is not known: it may have been at its very end. */
static void levy_or_give_up(struct bank *bank, int64_t patience)
{
    STRAND_TRY {
        levy_once(bank, patience);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        bank->given_up++;
    }
    STRAND_END
}

/* A client of little patience, sometimes less, sometimes more. */
void *levy_money(void *arg)
{
    struct bank *bank = ((const struct client *)arg)->bank;
    uint64_t chance = bank->seed;
    for (int i = 0; i < bank->levies; i++)
        levy_or_give_up(bank, (int64_t)(draw(&chance) % (uint64_t)(bank->patience + 1)));
    return NULL;
}

static void audit_once(struct bank *bank)
{
    struct order *order __attribute__((cleanup(give_up))) = order_new(AUDIT);
    have_done(order, bank->questions);
    if (order->accounts != bank->accounts || order->total != bank->total)
        strand_throw(&WRONG, "%s: an audit has found %lld in %lld accounts instead of %lld in %lld", bank->path,
                     (long long)order->total, (long long)order->accounts, (long long)bank->total,
                     (long long)bank->accounts);
    bank->audits++;
}

void *audit_money(void *arg)
{
    struct bank *bank = ((const struct client *)arg)->bank;
    for (bool last = false; !last; strand_sleep(STRAND_MS)) {
        last = bank->settled;
        audit_once(bank);
    }
    return NULL;
}
