/*
 * A search among ten seeds. The argument says what for: "well", nothing; "fails", a named strand that aborts if it is
 * the first to end; "posted", strands that wait for a thread of the program's own; "starves", among 4000, a strand that
 * takes sixty turns while another one that could go on takes none.
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef STRAND_CHAN(int) numbers;

static strand_mutex lock;
static _Atomic int ended;

static void *lock_often(void *arg)
{
    for (int i = 0; i < 10; i++) {
        STRAND_LOCKED(&lock);
        strand_yield();
    }
    ended++;
    return arg;
}

static void *abort_if_first(void *arg)
{
    lock_often(arg);
    if (ended == 1)
        abort();
    return arg;
}

static void *go_well(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, lock_often, arg);
    strand_scope_join(scope);
    return arg;
}

static void *fail(void *arg)
{
    STRAND_SCOPE(scope);
    ended = 0;
    strand_spawn(scope, lock_often, arg);
    strand_spawn_with(scope, STRAND_ATTR(.name = "clumsy"), abort_if_first, arg, 0);
    strand_scope_join(scope);
    return arg;
}

static void *wait_for_a_post(void *arg)
{
    int number;
    STRAND_SCOPE(scope);
    numbers chan = STRAND_CHAN_OPEN(numbers, scope, 1);
    STRAND_IGNORE(STRAND_RECEIVE(chan, &number));
    return arg;
}

static void *take_turns(void *arg)
{
    for (int i = 0; i < 60; i++)
        strand_yield();
    ended++;
    return arg;
}

static void *starve(void *arg)
{
    STRAND_SCOPE(scope);
    ended = 0;
    strand_spawn(scope, take_turns, arg);
    strand_yield();
    strand_yield();
    if (ended)
        abort();
    strand_scope_join(scope);
    return arg;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    bool long_one = strcmp(what, "starves") == 0;
    strand_fn *fn = strcmp(what, "fails") == 0    ? fail
                    : strcmp(what, "posted") == 0 ? wait_for_a_post
                    : long_one                    ? starve
                                                  : go_well;
    strand_sim_found found = {.size = sizeof found};
    int result = strand_sim_search(STRAND_OPTIONS(.threads = 2), 1, long_one ? 4000 : 10, fn, NULL, &found);
    printf("result %d, seed %llu, tried %llu\n", result, (unsigned long long)found.seed,
           (unsigned long long)found.tried);
    return 0;
}
