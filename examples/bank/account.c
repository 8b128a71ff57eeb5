/*
 * Accounts, and the branches that supervise them.
 */
#include "bank.h"

#include <stdlib.h>
#include <string.h>

const strand_kind CRASH = STRAND_KIND("crash", &STRAND_ERROR);

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void may_crash(struct bank *bank, uint64_t *chance)
{
    if (!bank->crashes || next_random(chance) % bank->crashes)
        return;
    bank->crashed++;
    strand_throw(&CRASH, "on purpose");
}

/* ---- an account ---------------------------------------------------------------------------------------------- */

struct account {
    struct bank *bank;
    struct page *page;
    uint64_t chance;
};

struct account_args {
    struct bank *bank;
    uint32_t number;
};

/* Again after each crash: what it needs to know is in the books. */
static void open_account(void *state, const void *args)
{
    static _Atomic uint64_t starts;
    struct account *me = state;
    const struct account_args *a = args;
    *me = (struct account){a->bank, &a->bank->pages[a->number], ++starts};
}

static struct order **find(struct page *page, uint64_t number)
{
    struct order **at = &page->orders;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

/* Both at once: nothing can fail in between. */
static struct order *write_down(struct page *page, const book *b)
{
    struct order *order = malloc(sizeof *order);
    if (!order)
        strand_throw(&STRAND_SYSTEM, "no memory for an order");
    *order = (struct order){page->orders, b->number, page->balance + b->amount < 0};
    page->orders = order;
    page->balance += order->refused ? 0 : b->amount;
    return order;
}

static void book_order(struct account *me, const strand_message *message, const book *b)
{
    struct order *order = *find(me->page, b->number);
    may_crash(me->bank, &me->chance);
    if (order)
        me->bank->repeated++;
    else
        order = write_down(me->page, b);
    may_crash(me->bank, &me->chance);
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(booked, b->number, order->refused)));
    may_crash(me->bank, &me->chance);
}

static void forget_order(struct page *page, uint64_t number)
{
    struct order **at = find(page, number), *order = *at;
    if (!order)
        return;
    *at = order->next;
    free(order);
}

static void be_account(void *state, strand_message *message)
{
    struct account *me = state;
    const book *b = STRAND_IS(message, book);
    const forget *f = STRAND_IS(message, forget);
    if (b)
        book_order(me, message, b);
    else if (f)
        forget_order(me->page, f->number);
    else
        strand_message_unhandled(message);
}

static const strand_actor_class account_class = {.size = sizeof account_class,
                                                 .name = "account",
                                                 .state_size = sizeof(struct account),
                                                 .receive = be_account,
                                                 .start = open_account};

/* ---- a branch ------------------------------------------------------------------------------------------------ */

static enum strand_directive restart(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child;
    return strand_exception_is(why, &CRASH) ? STRAND_RESTART : STRAND_ESCALATE;
}

static void be_branch(void *state, strand_message *message)
{
    const open_accounts *o = STRAND_IS(message, open_accounts);
    (void)state;
    if (!o) {
        strand_message_unhandled(message);
        return;
    }
    for (uint32_t i = o->first; i < o->first + o->count; i++) {
        struct account_args args = {o->bank, i};
        o->bank->account[i] = strand_actor_spawn_child(NULL, &account_class, &args, sizeof args);
    }
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(opened, o->count)));
}

const strand_actor_class branch_class = {
    .size = sizeof branch_class, .name = "branch", .receive = be_branch, .decide = restart};

STRAND_MESSAGE_DEFINE(book, NULL);
STRAND_MESSAGE_DEFINE(booked, NULL);
STRAND_MESSAGE_DEFINE(forget, NULL);
STRAND_MESSAGE_DEFINE(open_accounts, NULL);
STRAND_MESSAGE_DEFINE(opened, NULL);
