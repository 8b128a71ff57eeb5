/*
 * How pools end: what is closed with them, what outlives them, who may close them and when.
 */
#define SUITE pool_close
#include "test.h"

#include "strand/pool.h"

#include <errno.h>

#define FOREVER (3600 * STRAND_S)

static strand spawn_onto(strand_scope scope, strand_pool pool, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.pool = pool), fn, arg, 0);
}

static void *sleep_forever(void *arg)
{
    strand_sleep(FOREVER);
    return arg;
}

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
        strand_pool pool = strand_pool_open(inner, NULL);
        strand_join(spawn_onto(inner, pool, open_fibre, &abroad));
    }
    check_shut_down(strand_try(spawn_onto_fibre, &abroad, &result));
    strand_pool_open(scope, NULL);
    check_shut_down(strand_try(spawn_onto_fibre, &abroad, &result));
    (void)strand_fibre_trim(abroad.fibre);
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
    return sleep_forever(arg);
}

static void *close_though_cancelled(void *arg)
{
    struct closer *closer = arg;
    void *result;
    strand_exception *e = strand_try(sleep_forever, arg, &result);
    strand_pool_close(closer->pool, NULL);
    closer->ready = true;
    strand_rethrow(e);
    return arg;
}

static void *spawn_onto_it(void *arg)
{
    STRAND_SCOPE(scope);
    spawn_onto(scope, ((struct closer *)arg)->pool, test_return, NULL);
    return arg;
}

TEST_INSIDE(closing_a_pool_is_not_refused_to_a_strand_that_is_interrupted)
{
    static struct closer closer;
    strand_fn *const ways[] = {close_when_cancelled, close_though_cancelled};
    void *result;
    for (int i = 0; i < 2; i++) {
        STRAND_SCOPE(scope);
        closer = (struct closer){strand_pool_open(scope, NULL), false};
        strand inside = spawn_onto(scope, closer.pool, sleep_forever, NULL);
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
