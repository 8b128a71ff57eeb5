/*
 * Mistakes of docs/misuse.md that no other program here plants, one per argument. The report goes to standard error.
 * A sanitizer may have threads of its own, so that a deadlock is one has to be said.
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include "strand/check.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

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

static void *forget_to_join(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, return_arg, arg);
    return arg;
}

/* ---- arguments that end before the strand ------------------------------------------------------- */

static NOINLINE void spawn_with_a_variable_of_its_own(strand_scope scope)
{
    int here = 1;
    strand child = strand_spawn(scope, return_arg, &here);
    strand_join(child); /* an exception may leave the function before */
}

static void *pass_a_variable_of_a_called_function(void *arg)
{
    STRAND_SCOPE(scope);
    spawn_with_a_variable_of_its_own(scope);
    return arg;
}

static NOINLINE void spawn_named_with_a_variable_of_its_own(strand_scope scope)
{
    int here = 1;
    strand_spawn_with(scope, STRAND_ATTR(.name = "child"), return_arg, &here, 0);
    strand_scope_join(scope);
}

static void *pass_a_variable_of_a_called_function_with_attributes(void *arg)
{
    STRAND_SCOPE(scope);
    spawn_named_with_a_variable_of_its_own(scope);
    return arg;
}

static void *pass_an_array_of_a_length_that_is_computed(void *arg)
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

static void *pass_a_variable_that_is_gone(void *arg)
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

static void *pass_a_variable_into_the_scope_of_another(void *arg)
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

static void *jump_over_a_scope(void *arg)
{
    if (setjmp(out) == 0)
        jump_out_of_scope();
    return arg;
}

static void *jump_over_a_shield(void *arg)
{
    if (setjmp(out) == 0)
        jump_out_of_shield();
    return arg;
}

static void *jump_over_a_try_block(void *arg)
{
    if (setjmp(out) == 0)
        jump_out_of_try();
    return arg;
}

/* The deadline that was jumped over interrupts the strand: the exception has nowhere to go. */
static void *be_interrupted_by_a_skipped_deadline(void *arg)
{
    if (setjmp(out) == 0)
        jump_out_of_deadline();
    return sleep_forever(arg);
}

static void *leave_a_scope_outside_of_the_skipped_one(void *arg)
{
    STRAND_SCOPE(scope);
    if (setjmp(out) == 0)
        jump_out_of_deadline();
    return arg;
}

static void *leave_a_try_block_outside_of_the_skipped_one(void *arg)
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

static void *throw_past_a_skipped_scope(void *arg)
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

static void *jump_on_a_shared_stack(void *arg)
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

static void *swallow_an_interruption(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, catch_all_for_a_while, arg);
    strand_yield();
    strand_cancel(child, "enough");
    return strand_join(child);
}

/* ---- mutexes of the C library --------------------------------------------------------------------- */

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;

static void *sleep_with_a_pthread_mutex(void *arg)
{
    pthread_mutex_lock(&plain);
    strand_sleep(STRAND_MS);
    pthread_mutex_unlock(&plain);
    return arg;
}

static void *sleep_with_a_read_write_lock_of_pthreads(void *arg)
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

static void *sleep_in_pthread_once(void *arg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, sleep_once);
    return arg;
}

static void *end_with_a_pthread_mutex(void *arg)
{
    pthread_mutex_lock(&plain);
    return arg;
}

/* ---- deadlocks ------------------------------------------------------------------------------------ */

static void *receive_from_nobody(void *arg)
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

static void *lock_crosswise(void *arg)
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

static void *catch_a_kind_of_the_same_name(void *arg)
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

static const struct {
    const char *name;
    strand_fn *root;
} cases[] = {
    {"forget_to_join", forget_to_join},
    {"pass_a_variable_of_a_called_function", pass_a_variable_of_a_called_function},
    {"pass_a_variable_of_a_called_function_with_attributes", pass_a_variable_of_a_called_function_with_attributes},
    {"pass_an_array_of_a_length_that_is_computed", pass_an_array_of_a_length_that_is_computed},
    {"pass_a_variable_that_is_gone", pass_a_variable_that_is_gone},
    {"pass_a_variable_into_the_scope_of_another", pass_a_variable_into_the_scope_of_another},
    {"jump_over_a_scope", jump_over_a_scope},
    {"jump_over_a_shield", jump_over_a_shield},
    {"jump_over_a_try_block", jump_over_a_try_block},
    {"be_interrupted_by_a_skipped_deadline", be_interrupted_by_a_skipped_deadline},
    {"leave_a_scope_outside_of_the_skipped_one", leave_a_scope_outside_of_the_skipped_one},
    {"leave_a_try_block_outside_of_the_skipped_one", leave_a_try_block_outside_of_the_skipped_one},
    {"throw_past_a_skipped_scope", throw_past_a_skipped_scope},
    {"jump_on_a_shared_stack", jump_on_a_shared_stack},
    {"swallow_an_interruption", swallow_an_interruption},
    {"sleep_with_a_pthread_mutex", sleep_with_a_pthread_mutex},
    {"sleep_with_a_read_write_lock_of_pthreads", sleep_with_a_read_write_lock_of_pthreads},
    {"sleep_in_pthread_once", sleep_in_pthread_once},
    {"end_with_a_pthread_mutex", end_with_a_pthread_mutex},
    {"receive_from_nobody", receive_from_nobody},
    {"lock_crosswise", lock_crosswise},
    {"catch_a_kind_of_the_same_name", catch_a_kind_of_the_same_name},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            strand_run(STRAND_OPTIONS(.threads = 1, .out_of_work = STRAND_OUT_OF_WORK_THROW), cases[i].root, NULL);
    puts("still alive");
    return 0;
}
