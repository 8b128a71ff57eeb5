/*
 * Children for all purposes: what most tests spawn.
 */
#define TEST_HARNESS
#include "test.h"

const strand_kind TEST_ERROR = STRAND_KIND("test-error", &STRAND_ERROR);
const strand_kind TEST_ERROR2 = STRAND_KIND("test-error-2", &STRAND_ERROR);

void test_yield_until(const _Atomic int *flag, int value)
{
    for (int i = 1; atomic_load(flag) != value; i++)
        if (i % 32 == 0)
            strand_sleep(20 * STRAND_US);
        else
            strand_yield();
}

static int count_words(const char *text, const char *words)
{
    int count = 0;
    while ((text = strstr(text, words)) != NULL) {
        text += strlen(words);
        count++;
    }
    return count;
}

/* A dump takes long: so it is the last that is asked. */
/* Under a seed time is virtual, and a sleep that long is over when all of them wait. */
void test_await_blocked(const char *words, int count)
{
    if (test_seed()) {
        strand_sleep(10 * STRAND_MS);
        return;
    }
    do {
        for (int i = 0; i < 16; i++)
            strand_yield();
        strand_sleep(20 * STRAND_US);
    } while (count_words(test_dump(), words) != count);
}

void *test_sleep(void *arg)
{
    strand_sleep(FOREVER);
    return arg;
}

void *test_join(void *child)
{
    return strand_join(*(strand *)child);
}

void *test_wait(void *other)
{
    strand_wait(*(strand *)other);
    return NULL;
}

void *test_join_scope(void *scope)
{
    strand_scope_join(*(strand_scope *)scope);
    return NULL;
}

void *test_yield(void *arg)
{
    strand_yield();
    return arg;
}

void *test_yield_times(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++)
        strand_yield();
    return times;
}

strand test_spawn_onto(strand_scope scope, strand_pool pool, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.pool = pool), fn, arg, 0);
}

strand test_spawn_on_fibre(strand_scope scope, strand_fibre fibre, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), fn, arg, 0);
}

strand_stats test_stats(void)
{
    strand_stats now = {.size = sizeof now};
    strand_stats_get(&now);
    return now;
}

strand_pool_info test_pool_info(strand_pool pool)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(pool, &info);
    return info;
}

void test_await_threads(strand_pool pool, int threads)
{
    while (test_pool_info(pool).threads != threads)
        strand_sleep(STRAND_MS);
}

bool test_join_interrupted(strand child)
{
    strand_exception *e = strand_try(test_join, &child, NULL);
    if (e)
        CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    strand_exception_release(e);
    return e != NULL;
}

void test_try_operation(strand_fn *fn, void *arg)
{
    strand_exception *e = strand_try(fn, arg, NULL);
    if (e)
        CHECK_KIND(e, &STRAND_INTERRUPTED);
    test_log(e ? "cut" : "ok");
    strand_exception_release(e);
}

struct cancelled {
    strand_fn *fn;
    void *arg;
    _Atomic int by_now;
};

static void *run_when_cancelled(void *arg)
{
    struct cancelled *it = arg;
    {
        STRAND_SHIELD;
        test_yield_until(&it->by_now, 1);
    }
    return it->fn(it->arg);
}

void test_run_cancelled(strand_fn *fn, void *arg)
{
    struct cancelled it = {.fn = fn, .arg = arg};
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, run_when_cancelled, &it);
    strand_cancel(child, "because");
    atomic_store(&it.by_now, 1);
    strand_wait(child);
}

/* The end of the child takes some switches. */
static void end_slowly(struct test_child **child)
{
    STRAND_SHIELD;
    for (int i = 0; i < 3; i++)
        strand_yield();
    atomic_store(&(*child)->ended, 1);
}

void *test_child_blocks(void *arg)
{
    struct test_child *child __attribute__((cleanup(end_slowly))) = arg;

    atomic_store(&child->started, 1);
    strand_sleep(FOREVER);
    return arg;
}

void *test_child_throws(void *child)
{
    STRAND_TRY {
        test_child_blocks(child);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_throw2("of a cancelled child");
    }
    STRAND_END
    return child;
}

void *test_child_waits(void *arg)
{
    struct test_child *child __attribute__((cleanup(end_slowly))) = arg;

    atomic_store(&child->started, 1);
    test_yield_until(&child->release, 1);
    return arg;
}

void *test_child_resists(void *arg)
{
    struct test_child *child __attribute__((cleanup(end_slowly))) = arg;
    STRAND_SHIELD;

    atomic_store(&child->started, 1);
    test_yield_until(&child->release, 1);
    return arg;
}

strand test_spawn_started(strand_scope scope, strand_fn *fn, struct test_child *child)
{
    strand handle = strand_spawn(scope, fn, child);

    test_yield_until(&child->started, 1);
    return handle;
}

void *test_return(void *arg)
{
    return arg;
}

void *test_throw(void *text)
{
    strand_throw(&TEST_ERROR, "%s", text != NULL ? (const char *)text : "failed");
}

void *test_throw2(void *text)
{
    strand_throw(&TEST_ERROR2, "%s", text != NULL ? (const char *)text : "failed");
}

struct failing {
    strand after; /* it fails when this one has ended; {0}: at once */
    const char *text;
};

static void *fail_in_turn(void *arg)
{
    const struct failing *failing = arg;

    if (strand_id(failing->after) != 0)
        strand_wait(failing->after);
    strand_throw(&TEST_ERROR, "%s", failing->text);
}

void test_spawn_failed(strand_scope scope, strand *children, int n)
{
    static const char *const texts[] = {"0", "1", "2", "3"};
    STRAND_SHIELD;

    for (int i = 0; i < n; i++) {
        struct failing failing = {i > 0 ? children[i - 1] : (strand){{0, 0}}, texts[i]};
        children[i] = strand_spawn_with(scope, NULL, fail_in_turn, &failing, sizeof(failing));
    }
    strand_wait(children[n - 1]);
}

int test_count_kind(const strand_exception *e, const strand_kind *kind)
{
    int n = strand_exception_kind(e) == kind;

    for (size_t i = 0; strand_exception_suppressed(e, i) != NULL; i++)
        n += test_count_kind(strand_exception_suppressed(e, i), kind);
    return n;
}
