/*
 * The checks of strand/check.h, for the files that include it. Locks of the C library that are held across a
 * suspension: a held lock makes a no-suspend section, which may_block checks anyway, so other files pay nothing.
 * Arguments that end before the scope: an address comparison at the spawn. Addresses in shared stacks are not checked
 * here: every build refuses them (escape.h).
 */
#include "exception.h"
#include "handle.h"
#include "misuse.h"
#include "section.h"

#include "../../include/strand/check.h"

#include <stdio.h>
#include <stdlib.h>

void strand_check_locked(const void *mutex, const char *file, int line)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current)
        return;
    struct cb *me = current_of(thread);
    struct checked *checked = malloc(sizeof *checked);
    if (!checked)
        return;
    *checked = (struct checked){own_of(me)->checked, mutex, file, line};
    own_of(me)->checked = checked;
    me->slow_end = true; /* its end checks the list */
    if (!own_of(me)->section_file || me->section_by_mutex)
        section_by_mutex(me);
}

void strand_check_unlocked(const void *mutex)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current)
        return;
    struct cb *me = current_of(thread);
    struct checked **at = &own_of(me)->checked;
    while (*at && (*at)->mutex != mutex)
        at = &(*at)->outer;
    struct checked *checked = *at;
    if (!checked)
        return;
    *at = checked->outer;
    free(checked);
    if (me->section_by_mutex)
        section_by_mutex(me);
}

COLD void mutex_check_at_end_(struct cb *c)
{
    char where[256];
    snprintf(where, sizeof where, "the lock was taken at %s:%d", own_of(c)->checked->file, own_of(c)->checked->line);
    misuse("strand_fn", where,
           "strand '%s' has ended, and still holds a pthread mutex or another lock of its thread: unlock it first",
           cb_name(c));
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

/* The caller's stack grows down, so the bytes that are in use lie between its stack pointer and the top. */
static const char *stack_top(const struct cb *me)
{
    return me->member.fibre->stack->top;
}

/* The stack pointer of the caller is where the frame of this function begins. The caller's variables, except
 * variable-length arrays, lie above it: the compiler takes their memory when the function begins. */
NOINLINE strand_scope strand_check_scope_enter_(strand_scope_flags flags, const char *file, int line)
{
    strand_scope handle = strand_scope_enter_(flags, file, line);
    struct scope *scope = handle_scope(handle);
    scope->stack_taken = (uint32_t)(stack_top(scope->block.owner) - (const char *)__builtin_dwarf_cfa());
    return handle;
}

static bool outlives_the_scope(const struct scope *scope, const char *top, const void *arg)
{
    return !scope->stack_taken || (const char *)arg >= top - scope->stack_taken;
}

/* The spawn reports a stale scope. Only the caller's own scope is examined, because another owner may leave its scope
 * meanwhile. */
NOINLINE void strand_check_argument_(strand_scope handle, const void *arg, const char *function)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current || thread_on_shared(thread))
        return;
    struct cb *me = current_of(thread);
    const struct stack *stack = me->member.fibre->stack;
    struct scope *scope = handle_scope(handle);
    if (!scope || (const char *)arg < stack->low || (const char *)arg >= stack->top)
        return;
    if ((const char *)arg < (const char *)__builtin_dwarf_cfa())
        MISUSE(function, "", "the argument is a variable of a function that has returned");
    if (block_owner(&scope->block) != me)
        MISUSE_STRAND(function, me,
                      "the argument is a variable of the caller, which may end before the strand, since the scope is "
                      "another strand's: copy the argument (strand_spawn_with), or open a scope here");
    if (!outlives_the_scope(scope, stack->top, arg))
        MISUSE_SCOPE(function, scope,
                     "the argument is a variable of a function that was called after the scope was opened, or a "
                     "variable-length array: it may end before the strand. Declare it before the scope, copy it "
                     "(strand_spawn_with), or open a scope here");
}
