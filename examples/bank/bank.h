/*
 * bank: transfers between many accounts, while accounts and transfers crash; in the end no cent is missing.
 *
 * The tree of its actors:
 *
 *   /user/branch-N     supervises some of the accounts
 *     an account       has a balance; may crash at any moment, and is restarted with what it has written down
 *   /user/office supervises the transfers; notifies the owner when all are done
 *     a transfer withdraws from one account, deposits into another, and repeats unanswered orders
 *
 * An account carries out each order at most once: it writes the result down with the balance before it answers, and
 * answers a repeated order with the same result. So orders may be repeated after any crash.
 */
#ifndef BANK_H
#define BANK_H

#include <strand.h>
#include <strand/actor.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What survives a crash: an account's page in the books. It is the account's own. */
struct page {
    int64_t balance;
    struct order *orders; /* answered, and not forgotten yet */
};

struct order {
    struct order *next;
    uint64_t number;
    bool refused; /* a repeated order gets the same answer, whatever has come in since */
};

struct bank {
    uint32_t accounts, branches;
    uint64_t transfers, at_once;
    uint32_t crashes; /* one message in so many crashes who gets it; 0: none does */
    struct page *pages;
    strand_actor *account;
    _Atomic uint64_t crashed, repeated;
    _Atomic bool over;
};

/* Change a balance, by an order of that number; what can't be taken is refused. */
STRAND_MESSAGE_DECLARE(book, {
    uint64_t number;
    int64_t amount;
});
STRAND_MESSAGE_DECLARE(booked, {
    uint64_t number;
    bool refused;
});
/* The order has come to its end: it will not be asked for again. */
STRAND_MESSAGE_DECLARE(forget, { uint64_t number; });

/* To a branch, which supervises accounts. */
STRAND_MESSAGE_DECLARE(open_accounts, {
    struct bank *bank;
    uint32_t first, count;
});
STRAND_MESSAGE_DECLARE(opened, { uint32_t count; });
/* And this: transfers. */
STRAND_MESSAGE_DECLARE(open_office, { struct bank *bank; });
STRAND_MESSAGE_DECLARE(closed, { uint64_t done, refused; });

extern const strand_actor_class branch_class, office_class;

/* A number that depends on the last one. */
uint64_t next_random(uint64_t *state);
/* Crash now and then, as a real one would that meets a bug. */
void may_crash(struct bank *bank, uint64_t *chance);
/* An exception below STRAND_ERROR: what may_crash throws. */
extern const strand_kind CRASH;

#endif
