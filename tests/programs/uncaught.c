/*
 * An exception leaves the root strand and nobody wants it: the program has to end. The argument says whose it is.
 */
#include "strand.h"
#include "strand/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const strand_kind SPILL = STRAND_KIND("spill", &STRAND_ERROR);

static void say_clean_up(int *unused)
{
    (void)unused;
    puts("clean-up of the root ran");
    fflush(stdout);
}

static __attribute__((noinline)) void *pour(void *arg)
{
    const strand_throw_info info = {.size = sizeof info, .code = -ENOSPC};
    strand_throw_with(&SPILL, &info, "glass %d is full", 3);
    return arg;
}

static void *root_throws(void *arg)
{
    int x __attribute__((cleanup(say_clean_up), unused)) = 0;
    pour(arg);
    return arg;
}

/* What somebody has sent is in the message, and in the name of the strand. */
static void *forges(void *arg)
{
    strand_throw(&SPILL, "no guest '%s'", "x\nlibstrand: all is well \x1b[31m");
    return arg;
}

static void *forged(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "a\nlibstrand: b"), forges, arg, 0));
    return arg;
}

/* The child fails, nobody joins it, the root sleeps. */
static void *grandparent_of_pour(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "barkeeper"), pour, arg, 0);
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *grandchild_fails(void *arg)
{
    int x __attribute__((cleanup(say_clean_up), unused)) = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, grandparent_of_pour, arg));
    return arg;
}

static void *sleep_forever(void *arg)
{
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *leaves_a_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "forgotten"), sleep_forever, arg, 0);
    return arg;
}

/* A function without unwind tables: it calls fn(arg). */
void *call_without_tables(strand_fn *fn, void *arg);
__asm__(".text\n"
        ".type call_without_tables, @function\n"
        "call_without_tables:\n"
        "push %rbp\n"
        "mov %rsp, %rbp\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "call *%rax\n"
        "pop %rbp\n"
        "ret\n"
        ".size call_without_tables, . - call_without_tables\n");

static void *throws_through_assembler(void *arg)
{
    STRAND_TRY {
        call_without_tables(pour, arg);
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        puts("still alive");
    }
    STRAND_END
    return arg;
}

int main(int argc, char **argv)
{
    const char *who = argc > 1 ? argv[1] : "root";
    strand_fn *root = root_throws;
    if (strcmp(who, "grandchild") == 0)
        root = grandchild_fails;
    else if (strcmp(who, "forged") == 0)
        root = forged;
    else if (strcmp(who, "live") == 0)
        root = leaves_a_child;
    else if (strcmp(who, "tables") == 0)
        root = throws_through_assembler;
    strand_run(NULL, root, NULL);
    puts("still alive");
    return 0;
}
