/*
 * Mistakes of docs/misuse.md that no other program here plants. A sanitizer may have threads of its own, so that a
 * deadlock is one has to be said.
 */
#define CASE_OPTIONS .threads = 1, .out_of_work = STRAND_OUT_OF_WORK_THROW
#include "cases.h"

#include "strand/chan.h"
#include "strand/sync.h"

#include "strand/check.h"

#include <setjmp.h>

static void *return_arg(void *arg)
{
    return arg;
}

static void *sleep_forever(void *arg)
{
    strand_sleep(3600 * STRAND_S);
    return arg;
}

/* ---- scopes ------------------------------------------------------------------------------------ */

MISTAKE(forget_to_join)
DOES(STRAND_SCOPE(scope); strand_spawn(scope, return_arg, arg))

/* ---- arguments that end before the strand ------------------------------------------------------- */

static NOINLINE void spawn_with_a_variable_of_its_own(strand_scope scope)
{
    int here = 1;
    strand child = strand_spawn(scope, return_arg, &here);
    strand_join(child); /* an exception may leave the function before */
}

MISTAKE(pass_a_variable_of_a_called_function)
DOES(STRAND_SCOPE(scope); spawn_with_a_variable_of_its_own(scope))

static NOINLINE void spawn_named_with_a_variable_of_its_own(strand_scope scope)
{
    int here = 1;
    strand_spawn_with(scope, STRAND_ATTR(.name = "child"), return_arg, &here, 0);
    strand_scope_join(scope);
}

MISTAKE(pass_a_variable_of_a_called_function_with_attributes)
DOES(STRAND_SCOPE(scope); spawn_named_with_a_variable_of_its_own(scope))

MISTAKE(pass_an_array_of_a_length_that_is_computed)
{
    STRAND_SCOPE(scope);
    volatile int count = 8;
    char bytes[count];
    bytes[0] = 0;
    strand_spawn(scope, return_arg, bytes);
    strand_scope_join(scope);
    return arg;
}

/* By arithmetic: else compilers see the mistake. */
static NOINLINE uintptr_t leave_an_address(void)
{
    volatile int here = 1;
    return (uintptr_t)&here + (uintptr_t)here - 1;
}

MISTAKE(pass_a_variable_that_is_gone)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, return_arg, (void *)leave_an_address());
    strand_scope_join(scope);
    return arg;
}

static void *spawn_into_the_scope_of_the_parent(void *arg)
{
    int here = 1;
    strand_scope scope = *(strand_scope *)arg;
    strand_wait(strand_spawn(scope, return_arg, &here));
    return NULL;
}

MISTAKE(pass_a_variable_into_the_scope_of_another)
{
    STRAND_SCOPE_OPEN(scope);
    /* A stack of another size is the strand's own, whatever the options: an argument in a shared stack breaks another
     * rule. */
    const strand_attr *own_stack = STRAND_ATTR(.stack_size = 128 * 1024);
    strand_spawn_with(scope, own_stack, spawn_into_the_scope_of_the_parent, &scope, sizeof scope);
    strand_scope_join(scope);
    return arg;
}

/* ---- longjmp ----------------------------------------------------------------------------------- */

static jmp_buf out;

static NOINLINE void jump_out_of_scope(void)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, sleep_forever, NULL);
    longjmp(out, 1);
}

static NOINLINE void jump_out_of_deadline(void)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    longjmp(out, 1);
}

static NOINLINE void jump_out_of_shield(void)
{
    STRAND_SHIELD;
    longjmp(out, 1);
}

static NOINLINE void jump_out_of_try(void)
{
    STRAND_TRY {
        longjmp(out, 1);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        (void)e;
    }
    STRAND_END
}

MISTAKE(jump_over_a_scope)
{
    if (setjmp(out) == 0)
        jump_out_of_scope();
    return arg;
}

MISUSE(jump_over_a_shield, "longjmp",
       "strand 'root' #2 has jumped out of a try block or a shield, whose clean-up has not run")
{
    if (setjmp(out) == 0)
        jump_out_of_shield();
    return arg;
}

MISTAKE(jump_over_a_try_block)
{
    if (setjmp(out) == 0)
        jump_out_of_try();
    return arg;
}

/* The deadline that was jumped over interrupts the strand: the exception has nowhere to go. */
MISTAKE(be_interrupted_by_a_skipped_deadline)
{
    if (setjmp(out) == 0)
        jump_out_of_deadline();
    return sleep_forever(arg);
}

MISUSE(leave_a_scope_outside_of_the_skipped_one, "longjmp",
       "strand 'root' #2 has jumped out of a scope or a deadline block, whose clean-up has not run")
{
    STRAND_SCOPE(scope);
    if (setjmp(out) == 0)
        jump_out_of_deadline();
    return arg;
}

MISUSE(leave_a_try_block_outside_of_the_skipped_one, "longjmp",
       "strand 'root' #2 has jumped out of a try block or a shield, whose clean-up has not run")
{
    STRAND_TRY {
        if (setjmp(out) == 0)
            jump_out_of_try();
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        (void)e;
    }
    STRAND_END
    return arg;
}

MISUSE(throw_past_a_skipped_scope, "longjmp",
       "strand 'root' #2 has jumped out of a scope or a deadline block, whose clean-up has not run")
{
    STRAND_TRY {
        if (setjmp(out) == 0)
            jump_out_of_scope();
        strand_throw(&STRAND_ERROR, "after the jump");
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        (void)e;
    }
    STRAND_END
    return arg;
}

MISUSE(jump_on_a_shared_stack, "longjmp",
       "strand 'strand' #5 has jumped out of a try block or a shield, whose clean-up has not run")
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    return strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), jump_over_a_shield, arg, 0));
}

/* ---- interruptions ------------------------------------------------------------------------------- */

static void *catch_all_for_a_while(void *arg)
{
    for (int i = 0; i < 30000; i++) {
        STRAND_TRY {
            strand_sleep(3600 * STRAND_S);
        }
        STRAND_CATCH(&STRAND_ANY, e) {
            (void)e;
        }
        STRAND_END
    }
    return arg;
}

MISTAKE(swallow_an_interruption)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, catch_all_for_a_while, arg);
    strand_yield();
    strand_cancel(child, "enough");
    return strand_join(child);
}

/* ---- mutexes of the C library --------------------------------------------------------------------- */

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;

MISTAKE(sleep_with_a_pthread_mutex)
{
    pthread_mutex_lock(&plain);
    strand_sleep(STRAND_MS);
    pthread_mutex_unlock(&plain);
    return arg;
}

MISTAKE(sleep_with_a_read_write_lock_of_pthreads)
{
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    pthread_rwlock_rdlock(&lock);
    strand_sleep(STRAND_MS);
    pthread_rwlock_unlock(&lock);
    return arg;
}

static void sleep_once(void)
{
    strand_sleep(STRAND_MS);
}

MISTAKE(sleep_in_pthread_once)
DOES(static pthread_once_t once = PTHREAD_ONCE_INIT; pthread_once(&once, sleep_once))

MISTAKE(end_with_a_pthread_mutex)
DOES(pthread_mutex_lock(&plain))

/* ---- deadlocks ------------------------------------------------------------------------------------ */

MISTAKE(receive_from_nobody)
{
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof(int), 1, NULL);
    int value;
    STRAND_IGNORE(strand_chan_receive(chan, &value));
    return arg;
}

static strand_mutex first, second;
static strand_event both;

static void *lock_one_then_the_other(void *arg)
{
    strand_mutex *mine = arg, *others = mine == &first ? &second : &first;
    strand_mutex_lock(mine);
    if (mine == &second)
        strand_event_set(&both);
    strand_event_wait(&both);
    strand_mutex_lock(others);
    strand_mutex_unlock(others);
    strand_mutex_unlock(mine);
    return NULL;
}

MISTAKE(lock_crosswise)
{
    STRAND_SCOPE(scope);
    strand one = strand_spawn(scope, lock_one_then_the_other, &first);
    strand_yield();
    strand other = strand_spawn(scope, lock_one_then_the_other, &second);
    strand_join(one);
    strand_join(other);
    return arg;
}

/* ---- exceptions ----------------------------------------------------------------------------------- */

/* What two source files have that include a header with such a line. */
static const strand_kind thrown = STRAND_KIND("NO_SUCH_USER", &STRAND_ERROR),
                         caught = STRAND_KIND("NO_SUCH_USER", &STRAND_ERROR);

MISTAKE(catch_a_kind_of_the_same_name)
{
    STRAND_TRY {
        strand_throw(&thrown, "there is no user '%s'", "ada");
    }
    STRAND_CATCH(&caught, e) {
        puts("caught");
    }
    STRAND_END
    return arg;
}
