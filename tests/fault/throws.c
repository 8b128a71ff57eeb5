/*
 * Exceptions: with causes, payloads, long traces and others suppressed; cancels with a reason; strand-local values.
 */
#include "fault.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const strand_kind OUR_ERROR = STRAND_KIND("our error", &STRAND_ERROR);
static const strand_key key = STRAND_KEY("key");

enum { DEPTH = 60, CHAIN = 12, CHILDREN = 10 };

static void *descend(void *arg)
{
    uintptr_t left = (uintptr_t)arg;
    void *result = left > 1 ? descend((void *)(left - 1)) : arg;
    strand_yield();
    if (left == 1)
        strand_throw(&OUR_ERROR, "from below");
    return result;
}

/* Each strand joins the next one, and the last one throws. */
static void *chain(void *arg)
{
    uintptr_t left = (uintptr_t)arg;
    if (left == 0)
        return descend((void *)(uintptr_t)DEPTH);
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn(scope, chain, (void *)(left - 1)));
}

/* One of ours is as good as forgotten; any other goes on. */
static void expect(strand_fn *fn, void *arg)
{
    strand_exception *e = strand_try(fn, arg, NULL);
    FAULT_CHECK(e != NULL);
    if (!strand_exception_is(e, &OUR_ERROR))
        strand_rethrow(e);
    strand_exception_release(e);
}

static void *many_fail(void *arg)
{
    STRAND_SCOPE(scope);
    STRAND_SHIELD;
    strand children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++)
        children[i] = strand_spawn(scope, descend, (void *)(uintptr_t)3);
    for (int i = 0; i < CHILDREN; i++)
        strand_wait(children[i]);
    return arg;
}

static void *with_more(void *arg)
{
    (void)arg;
    strand_exception *cause = strand_try(descend, (void *)(uintptr_t)1, NULL);
    FAULT_CHECK(cause != NULL);
    if (!strand_exception_is(cause, &OUR_ERROR))
        strand_rethrow(cause);
    void *payload = malloc(16);
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FAULT_CHECK(payload != NULL && fd >= 0);
    strand_exception_print(cause, fd);
    close(fd);
    strand_throw_with(&OUR_ERROR, STRAND_THROW_INFO(.payload = payload, .payload_free = free, .cause = cause),
                      "with a cause");
}

static void *sleeper(void *arg)
{
    STRAND_LOCAL(&key, arg);
    FAULT_CHECK(strand_local(&key) == arg);
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void cancel_and_join(void)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, sleeper, FAULT_DONE);
    strand_yield();
    strand_cancel(child, "because");
    STRAND_TRY {
        strand_join(child);
        FAULT_CHECK(false);
    }
    STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
    }
    STRAND_END
}

static void *root(void *arg)
{
    (void)arg;
    expect(chain, (void *)(uintptr_t)CHAIN);
    expect(many_fail, NULL);
    expect(with_more, NULL);
    cancel_and_join();
    return FAULT_DONE;
}

FAULT_WORKLOAD(throws, RUN_ANY, root, )
