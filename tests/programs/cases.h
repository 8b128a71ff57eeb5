/*
 * The frame of a program of mistakes. The argument is the name of a case, "2 NAME" on two threads; without an argument
 * the program lists its cases for tests/spec/misuse.c, which runs them and checks their reports.
 *
 *   MISUSE(name, function, text...) { ... return arg; }
 *       defines and registers the function `name`, which the root strand of a run calls: its report is a misuse of
 *       `function`, and contains each text, but none that follows a '!'. The run's hook receives the same report.
 *   MISUSE_ON_TWO      the same on one thread, and on two
 *   MISUSE_NO_TSAN     the same, but not under ThreadSanitizer
 *   MISUSE_OWN_STACK   the same, only where the strands that wait have stacks of their own
 *   MISUSE_IN_DEBUG    the same in debug builds; in others the program goes on
 *   MISUSE_BY_THREAD   the same by a plain thread that the root strand starts: no hook is called
 *   MISUSE_OUTSIDE     the same by the main thread, outside of all runs
 *   NO_MISUSE(name)    the program goes on
 *   MISTAKE(name)      the row of docs/misuse.md says all that is checked
 *
 * DOES(statement) is the body of a case of one statement.
 *
 * A program may define CASE_OPTIONS, the options of its runs, before it includes this.
 */
#ifndef CASES_H
#define CASES_H

#include "noinline.h"

#include "strand.h"
#include "strand/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CASE_OPTIONS
#define CASE_OPTIONS .threads = 0 /* one for each CPU */
#endif

/* The compiler can see that some of it is misuse. */
#if defined(__clang__)
#define ON_PURPOSE __attribute__((no_thread_safety_analysis))
#else
#define ON_PURPOSE
#endif

struct misuse_case {
    const char *name, *how, *function; /* function: up to a parenthesis, if there is one */
    strand_fn *run;
    const char *const *texts; /* the last is NULL */
    struct misuse_case *next;
};
static struct misuse_case *first_case, **end_of_cases = &first_case;

#define CASE_(id, name, how, function, ...)                                                                            \
    static NOINLINE ON_PURPOSE void *id(void *arg);                                                                    \
    __attribute__((constructor)) static void add_##id(void)                                                            \
    {                                                                                                                  \
        static const char *const texts[] = {__VA_ARGS__};                                                              \
        static struct misuse_case it = {name, how, function, id, texts, NULL};                                         \
        *end_of_cases = &it;                                                                                           \
        end_of_cases = &it.next;                                                                                       \
    }                                                                                                                  \
    static void *id(void *arg)

#define MISUSE(name, function, ...) CASE_(name, #name, "strand", function, __VA_ARGS__, NULL)
#define MISUSE_ON_TWO(name, function, ...) CASE_(name, #name, "two", function, __VA_ARGS__, NULL)
#define MISUSE_NO_TSAN(name, function, ...) CASE_(name, #name, "no tsan", function, __VA_ARGS__, NULL)
#define MISUSE_OWN_STACK(name, function, ...) CASE_(name, #name, "own", function, __VA_ARGS__, NULL)
#define MISUSE_IN_DEBUG(name, function, ...) CASE_(name, #name, "debug", function, __VA_ARGS__, NULL)
#define MISUSE_BY_THREAD(name, function, ...) CASE_(name, #name, "thread", function, __VA_ARGS__, NULL)
#define MISUSE_OUTSIDE(name, function, ...) CASE_(name, #name, "outside", function, __VA_ARGS__, NULL)
#define NO_MISUSE(name) CASE_(name, #name, "none", "", NULL)
#define MISTAKE(name) CASE_(name, #name, "mistake", "", NULL)

#define DOES(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        return arg;                                                                                                    \
    }

/* As the report on standard error has it, but for the trace. */
static void tell(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    printf("libstrand: misuse of %s: %s\n", misuse->function, misuse->what);
    if (misuse->made[0])
        printf("  %s\n", misuse->made);
    fflush(stdout);
}

static void list_cases(void)
{
    for (const struct misuse_case *c = first_case; c; c = c->next) {
        printf("%s\t%s\t%.*s", c->name, c->how, (int)strcspn(c->function, "("), c->function);
        for (size_t i = 0; c->texts[i]; i++)
            printf("\t%s", c->texts[i]);
        puts("");
    }
}

int main(int argc, char **argv)
{
    strand_options options = {CASE_OPTIONS};
    const char *name = argc > 1 ? argv[1] : "";
    options.size = sizeof options;
    if (!options.on_misuse)
        options.on_misuse = tell;
    if (strncmp(name, "2 ", 2) == 0)
        options.threads = 2, name += 2;
    if (argc < 2)
        list_cases();
    for (const struct misuse_case *c = first_case; c; c = c->next) {
        if (strcmp(name, c->name) == 0) {
            if (strcmp(c->how, "outside") == 0)
                c->run(NULL);
            else
                strand_run(&options, c->run, NULL);
            puts("still alive");
        }
    }
    return 0;
}

#endif
