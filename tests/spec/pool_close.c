/*
 * The end of pools: objects that are closed with them, objects that outlive them, and closers.
 */
#define SUITE pool_close
#include "test.h"

#include "strand/debug.h"
#include "strand/pool.h"

#include <errno.h>

static void check_shut_down(strand_exception *e)
{
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ESHUTDOWN);
    strand_exception_release(e);
}

/* ---- what outlives them --------------------------------------------------------------------- */

struct abroad {
    strand_scope scope;
    strand_fibre fibre;
};

static void *open_fibre(void *arg)
{
    struct abroad *abroad = arg;
    abroad->fibre = strand_fibre_open(abroad->scope, NULL);
    return arg;
}

static void *spawn_onto_fibre(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = ((struct abroad *)arg)->fibre), test_return, NULL, 0);
    return arg;
}

TEST_INSIDE(the_fibres_of_a_closed_pool_take_no_strands_also_when_there_is_a_new_pool)
{
    static struct abroad abroad;
    void *result;
    STRAND_SCOPE_WITH(scope, STRAND_OPEN);
    abroad.scope = scope;
    {
        STRAND_SCOPE(inner);
        strand_pool pool = strand_pool_open(inner, STRAND_POOL_ATTR(.threads = 1));
        strand_join(test_spawn_onto(inner, pool, open_fibre, &abroad));
    }
    check_shut_down(strand_try(spawn_onto_fibre, &abroad, &result));
    strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    check_shut_down(strand_try(spawn_onto_fibre, &abroad, &result));
    (void)strand_fibre_trim(abroad.fibre);
}

/* Closing a pool reads the pool of each strand, also of unjoined ones. MODE=asan reports a use of freed memory. */
TEST_INSIDE(a_pool_is_closed_beside_a_strand_that_has_ended_on_a_fibre_that_was_closed)
{
    STRAND_SCOPE(scope);
    strand guest;
    {
        STRAND_SCOPE(inner);
        guest =
            strand_spawn_with(scope, STRAND_ATTR(.fibre = strand_fibre_open(inner, NULL)), test_return, TEST_PTR(1), 0);
        strand_wait(guest);
    }
    strand_pool_close(strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1)), NULL);
    CHECK_PTR(strand_join(guest), TEST_PTR(1));
}

/* ---- who may close them ---------------------------------------------------------------------- */

struct closer {
    strand_pool pool;
    bool ready;
};

static void close_it(struct closer **closer)
{
    strand_pool_close((*closer)->pool, "by a clean-up");
}

static void *close_when_cancelled(void *arg)
{
    struct closer *closer __attribute__((cleanup(close_it))) = arg;
    closer->ready = true;
    return test_sleep(arg);
}

static void *close_though_cancelled(void *arg)
{
    struct closer *closer = arg;
    void *result;
    strand_exception *e = strand_try(test_sleep, arg, &result);
    strand_pool_close(closer->pool, NULL);
    closer->ready = true;
    strand_rethrow(e);
    return arg;
}

static void *spawn_onto_it(void *arg)
{
    STRAND_SCOPE(scope);
    test_spawn_onto(scope, ((struct closer *)arg)->pool, test_return, NULL);
    return arg;
}

/* V-11 */
TEST_INSIDE(closing_a_pool_is_not_refused_to_a_strand_that_is_interrupted)
{
    static struct closer closer;
    strand_fn *const ways[] = {close_when_cancelled, close_though_cancelled};
    void *result;
    for (int i = 0; i < 2; i++) {
        STRAND_SCOPE(scope);
        closer = (struct closer){strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1)), false};
        strand inside = test_spawn_onto(scope, closer.pool, test_sleep, NULL);
        strand child = strand_spawn(scope, ways[i], &closer);
        strand_yield();
        strand_cancel(child, "it has to go");
        strand_wait(child);
        CHECK(closer.ready);
        CHECK(strand_ended(inside));
        strand_cancel(inside, NULL);
        check_shut_down(strand_try(spawn_onto_it, &closer, &result));
    }
}

/* ---- what is not cancelled with them --------------------------------------------------------- */

TEST_INSIDE(an_ended_strand_of_a_closed_pool_may_be_handed_off)
{
    STRAND_SCOPE(from);
    STRAND_SCOPE_WITH(to, STRAND_OPEN | STRAND_COLLECT);
    strand ended;
    {
        STRAND_SCOPE(inner);
        ended = test_spawn_onto(from, strand_pool_open(inner, STRAND_POOL_ATTR(.threads = 1)), test_return, &ended);
        strand_wait(ended);
    }
    CHECK_EQ(strand_hand_off(ended, to), 0);
    CHECK_PTR(strand_join(ended), &ended);
}

/* On one pool: a host whose scope is open, and a guest who spawns into it when both are cancelled. */
struct family {
    strand_scope scope;
    strand child;
    _Atomic int open, born;
};

static void *take_a_while(void *arg)
{
    strand_sleep(STRAND_MS);
    return arg;
}

static void *be_host(void *arg)
{
    struct family *family = arg;
    void *result;
    STRAND_SCOPE_WITH(scope, STRAND_OPEN);
    family->scope = scope;
    family->open = 1;
    strand_exception *e = strand_try(test_sleep, arg, &result);
    {
        STRAND_SHIELD;
        test_yield_until(&family->born, 1);
        CHECK_PTR(strand_join(family->child), arg);
    }
    strand_rethrow(e);
}

static void *be_guest(void *arg)
{
    struct family *family = arg;
    void *result;
    strand_exception *e = strand_try(test_sleep, arg, &result);
    family->child = strand_spawn(family->scope, take_a_while, arg);
    family->born = 1;
    strand_rethrow(e);
}

/* V-11 */
TEST_INSIDE(closing_a_pool_does_not_cancel_what_lives_below_its_own_strands)
{
    static struct family family;
    family.open = family.born = 0;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    STRAND_SCOPE_WITH(inner, STRAND_COLLECT);
    strand host = test_spawn_onto(inner, pool, be_host, &family);
    test_yield_until(&family.open, 1);
    test_spawn_onto(inner, pool, be_guest, &family);
    strand_sleep(STRAND_MS);
    strand_pool_close(pool, NULL);
    strand_exception *failure = strand_scope_failure(inner, &host);
    if (failure)
        strand_exception_print(failure, 2);
    CHECK_PTR(failure, NULL);
    strand_scope_cancel(inner, NULL);
}

/* ---- what they refuse ------------------------------------------------------------------------ */

static void *pin_onto(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.pool = *(strand_pool *)arg, .pin = STRAND_PIN(0)), test_return, NULL, 0);
    return arg;
}

static void *spawn_many(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.pool = *(strand_pool *)arg, .name = "late"), test_return, "args", 5);
    return arg;
}

/* V-11 */
TEST_INSIDE(a_closed_pool_says_so_however_a_strand_is_to_live_on_it)
{
    static strand_pool pool;
    void *result;
    STRAND_SCOPE(scope);
    pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    strand_pool_close(pool, NULL);
    check_shut_down(strand_try(pin_onto, &pool, &result));
    check_shut_down(strand_try(spawn_many, &pool, &result));
    CHECK_EQ(strand_pool_resize(pool, 2), -ESHUTDOWN);
}

/* Another pool may have its record by then. */
TEST_INSIDE(the_handle_of_a_closed_pool_answers_for_that_pool_while_others_are_open)
{
    static const char *const schedulers[] = {"stealing", "dedicated"};
    static strand_pool pool;
    void *result;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 2; i++) {
        pool = strand_pool_open(scope, STRAND_POOL_ATTR(.name = "old", .threads = 1, .scheduler = schedulers[i]));
        strand_pool_close(pool, NULL);
        strand_pool next =
            strand_pool_open(scope, STRAND_POOL_ATTR(.name = "new", .threads = 1, .scheduler = schedulers[i]));
        strand child = test_spawn_onto(scope, next, test_sleep, NULL);
        check_shut_down(strand_try(spawn_many, &pool, &result));
        struct strand_pool_info info = {.size = sizeof info};
        strand_pool_info_get(pool, &info);
        CHECK_STR(info.name, "old");
        CHECK_STR(info.scheduler, schedulers[i]);
        CHECK_EQ(info.threads, 0);
        CHECK_EQ(info.strands, 0);
        strand_wait_quiet(pool, 0);
        strand_pool_close(pool, NULL);
        CHECK_EQ(strand_pool_resize(pool, 1), -ESHUTDOWN);
        strand_pool_info_get(next, &info);
        CHECK_EQ(info.strands, 1);
        strand_cancel(child, NULL);
    }
}

struct asked {
    strand_pool pool;
    _Atomic int asking, enough;
};

static void ask(strand_pool pool)
{
    struct strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(pool, &info);
    CHECK_STR(info.name, "asked");
    CHECK(info.threads <= 1);
    (void)strand_pool_resize(pool, 1);
    strand_wait_quiet(pool, 0);
}

static void *ask_on(void *arg)
{
    struct asked *asked = arg;
    while (!asked->enough) {
        ask(asked->pool);
        asked->asking = 1;
        strand_yield();
    }
    return arg;
}

TEST_RACE(pools_are_asked_while_they_are_closed_and_others_opened)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++) {
        struct asked *asked = calloc(1, sizeof *asked);
        asked->pool = strand_pool_open(scope, STRAND_POOL_ATTR(.name = "asked", .threads = 1));
        strand asker = strand_spawn(scope, ask_on, asked);
        test_yield_until(&asked->asking, 1);
        strand_pool_close(asked->pool, NULL);
        strand_pool next = strand_pool_open(scope, STRAND_POOL_ATTR(.name = "next", .threads = 2));
        asked->asking = 0;
        test_yield_until(&asked->asking, 1);
        asked->enough = 1;
        strand_join(asker);
        strand_pool_close(next, NULL);
        free(asked);
    }
}

struct late {
    strand_scope scope;
    const char *scheduler;
};

static void *open_late(void *arg)
{
    struct late *late = arg;
    strand_pool_open(late->scope, STRAND_POOL_ATTR(.threads = 1, .scheduler = late->scheduler));
    return arg;
}

TEST_INSIDE(a_pool_for_an_open_scope_that_was_left_is_refused_and_gone)
{
    static struct late late;
    static const char *const schedulers[] = {"stealing", "global", "dedicated", "current"};
    strand_stats before = {.size = sizeof before}, after = before;
    void *result;
    strand_stats_get(&before);
    for (int i = 0; i < 4; i++) {
        late.scheduler = schedulers[i];
        {
            STRAND_SCOPE_WITH(scope, STRAND_OPEN);
            late.scope = scope;
        }
        strand_exception *e = strand_try(open_late, &late, &result);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -ECANCELED);
        strand_exception_release(e);
    }
    strand_stats_get(&after);
    CHECK_EQ(after.threads, before.threads);
}
