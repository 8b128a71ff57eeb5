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

/* ---- kinds ------------------------------------------------------------------------------------ */

static const strand_kind NO_SIZE = {.name = "NO_SIZE", .parent = &STRAND_ERROR};
static const strand_kind NO_NAME = {.size = sizeof NO_NAME, .parent = &STRAND_ERROR};
static const strand_kind NO_PARENT = {.size = sizeof NO_PARENT, .name = "NO_PARENT"};
static const strand_kind BELOW_NO_SIZE = STRAND_KIND("BELOW_NO_SIZE", &NO_SIZE);

/* A kind in the order of the fields that an initialiser without names may assume. */
static const union {
    struct {
        const char *name;
        const strand_kind *parent;
        const void *none[2];
    } given;
    strand_kind kind;
} FIELDS_FROM_NAME = {.given = {"FIELDS_FROM_NAME", &STRAND_ERROR, {NULL, NULL}}};

/* A handler of any kind catches none of these in silence. */
static void throw_of(const strand_kind *kind)
{
    STRAND_TRY {
        strand_throw(kind, "x");
    }
    STRAND_CATCH(&STRAND_ANY, e) {
    }
    STRAND_END
}

MISUSE(kind_without_size, "strand_throw", "strand_kind.size is 0, not sizeof(strand_kind)", "STRAND_KIND(\"NAME\"")
DOES(throw_of(&NO_SIZE))

MISUSE(kind_with_its_name_first, "strand_throw", "not sizeof(strand_kind)", "STRAND_KIND(\"NAME\"")
DOES(throw_of(&FIELDS_FROM_NAME.kind))

MISUSE(kind_below_one_without_size, "strand_throw", "strand_kind.parent.size is 0, not sizeof(strand_kind)")
DOES(throw_of(&BELOW_NO_SIZE))

MISUSE(kind_without_name, "strand_throw", "the kind has no name", "STRAND_KIND(\"NAME\"")
DOES(throw_of(&NO_NAME))

MISUSE(kind_without_parent, "strand_throw", "the kind 'NO_PARENT' has no parent",
       "STRAND_KIND(\"NO_PARENT\", &STRAND_ERROR)")
DOES(throw_of(&NO_PARENT))

MISUSE(kind_without_parent_with_info, "strand_throw_with", "the kind 'NO_PARENT' has no parent")
DOES(strand_throw_with(&NO_PARENT, NULL, "x"))

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
