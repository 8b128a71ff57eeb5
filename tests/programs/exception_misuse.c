/*
 * Misuse of exceptions, and of functions that the library calls in the middle of something.
 */
#include "cases.h"

#include <errno.h>

static const strand_kind KIND = STRAND_KIND("kind", &STRAND_ERROR);

static void throw_it(void *unused)
{
    (void)unused;
    strand_throw(&KIND, "of a function");
}

static void sleep_in_it(void *unused)
{
    (void)unused;
    strand_sleep(1);
}

/* ---- without a reference --------------------------------------------------------------------- */

/* What a catch block does with its exception, to which it has no reference to give away. */
#define MISUSE_IN_A_CATCH_BLOCK(name, ...)                                                                             \
    static void name##_(strand_exception *e);                                                                          \
    MISUSE(name, __VA_ARGS__)                                                                                          \
    {                                                                                                                  \
        STRAND_TRY {                                                                                                   \
            strand_throw(&KIND, "caught");                                                                             \
        }                                                                                                              \
        STRAND_CATCH(&KIND, e) {                                                                                       \
            name##_(e);                                                                                                \
        }                                                                                                              \
        STRAND_END                                                                                                     \
        return arg;                                                                                                    \
    }                                                                                                                  \
    static void name##_(strand_exception *e)

MISUSE_IN_A_CATCH_BLOCK(rethrow, "strand_rethrow", "strand_exception_keep gives one")
{
    strand_rethrow(e);
}

MISUSE_IN_A_CATCH_BLOCK(suppress, "strand_suppress", "strand_exception_keep gives one")
{
    strand_suppress(e);
}

MISUSE_IN_A_CATCH_BLOCK(cause, "strand_throw_with", "strand_exception_keep gives one")
{
    strand_throw_with(&KIND, STRAND_THROW_INFO(.cause = e), "because of it");
}

MISUSE_IN_A_CATCH_BLOCK(release, "strand_exception_release", "belongs to its catch block")
{
    strand_exception_release(e);
}

MISUSE(size, "strand_throw_with", "strand_throw_info.size is 0, not sizeof(strand_throw_info)")
{
    (void)arg;
    strand_throw_with(&KIND, &(strand_throw_info){.code = -EIO}, "of no size");
}

/* ---- functions that may neither block nor throw ----------------------------------------------- */

static void with_a_payload(void (*function)(void *))
{
    STRAND_TRY {
        const strand_throw_info info = {.size = sizeof info, .payload_free = function};
        strand_throw_with(&KIND, &info, "with a payload");
    }
    STRAND_CATCH(&KIND, e) {
    }
    STRAND_END
}

MISUSE(payload_throws, "strand_throw_info.payload_free", "has thrown 'of a function'", "with a payload")
DOES(with_a_payload(throw_it))

MISUSE(payload_blocks, "strand_sleep", "inside strand_throw_info.payload_free")
DOES(with_a_payload(sleep_in_it))

static void *return_arg(void *arg)
{
    return arg;
}

static void with_a_result(void (*function)(void *))
{
    STRAND_SCOPE(s);
    strand_spawn_with(s, STRAND_ATTR(.drop = function), return_arg, NULL, 0);
    strand_scope_join(s);
}

MISUSE(result_throws, "strand_attr.drop", "has thrown 'of a function'", "was spawned in")
DOES(with_a_result(throw_it))

MISUSE(result_blocks, "strand_sleep", "inside strand_attr.drop")
DOES(with_a_result(sleep_in_it))
