/*
 * A clean-up that throws while another exception unwinds. The program has to end there.
 */
#include "noinline.h"

#include "strand.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *way;

static void say_left(int *unused)
{
    (void)unused;
    puts("inner frame of the clean-up left");
    fflush(stdout);
}

static NOINLINE void throw_second(void)
{
    int inner __attribute__((cleanup(say_left), unused)) = 0;
    strand_throw(&STRAND_ERROR, "second failure");
}

static NOINLINE void run_into_deadline(void)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_sleep(3600 * STRAND_S);
}

static void fail_in_clean_up(int *unused)
{
    (void)unused;
    puts("clean-up begins");
    fflush(stdout);
    if (strcmp(way, "deadline") == 0)
        run_into_deadline();
    else
        throw_second();
    __asm__ volatile("");
}

static NOINLINE void throw_first_in_a_try_block(void)
{
    STRAND_TRY {
        int x __attribute__((cleanup(fail_in_clean_up), unused)) = 0;
        strand_throw(&STRAND_ERROR, "first failure");
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        puts("still alive");
    }
    STRAND_END
}

static NOINLINE void throw_first(void)
{
    int x __attribute__((cleanup(fail_in_clean_up), unused)) = 0;
    strand_throw(&STRAND_ERROR, "first failure");
}

static void *root(void *arg)
{
    STRAND_TRY {
        if (strcmp(way, "cxx-try") == 0)
            throw_first_in_a_try_block();
        throw_first();
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        puts("still alive");
    }
    STRAND_END
    return arg;
}

int main(int argc, char **argv)
{
    way = argc > 1 ? argv[1] : "unwinding";
    if (strncmp(way, "cxx", 3) == 0 && !dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL))
        return 1;
    strand_run(NULL, root, NULL);
    puts("still alive at the end");
    return 0;
}
