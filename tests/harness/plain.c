/*
 * The plain runner: a main for programs whose tests are compiled with -DTEST_PLAIN. It is linked into those only.
 *
 *     prog           every test, each in a process of its own; a line per failed test, and a last line of sums
 *     prog NAME      that test in this process, for the debugger
 *     prog --list    the names
 */
#define TEST_HARNESS
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static struct test_case *first, **last = &first;

void test_register(struct test_case *test)
{
    *last = test;
    last = &test->next;
}

static struct test_case *find(const char *name)
{
    struct test_case *test = first;

    while (test != NULL && strcmp(test->name, name) != 0)
        test = test->next;
    return test;
}

static int run_here(const char *name)
{
    const struct test_case *test = find(name);

    if (test == NULL) {
        fprintf(stderr, "no test %s\n", name);
        return EXIT_FAILURE;
    }
    test_execute(test);
    return EXIT_SUCCESS;
}

/* ---- a test in a process of its own ---------------------------------------------------------- */

static pid_t start(const char *program, const char *name)
{
    char mode[] = "--run", own_name[256], own_program[4096];
    char *argv[] = {own_program, mode, own_name, NULL};
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;

    snprintf(own_program, sizeof(own_program), "%s", program);
    snprintf(own_name, sizeof(own_name), "%s", name);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int refused = posix_spawn(&pid, "/proc/self/exe", NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (refused != 0) {
        fprintf(stderr, "cannot start %s: %s\n", name, strerror(refused));
        exit(EXIT_FAILURE);
    }
    return pid;
}

static long limit_s(void)
{
    const char *text = getenv("STRAND_TEST_LIMIT");

    return text != NULL && *text != '\0' ? strtol(text, NULL, 10) : TEST_LIMIT_S;
}

/* SIGCHLD is blocked, so it waits in sigtimedwait until the process has ended or its time is over. */
static bool wait_in_time(pid_t pid, int *status)
{
    struct timespec now;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t limit = now.tv_sec + limit_s();
    while (waitpid(pid, status, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= limit)
            return false;
        struct timespec left = {limit - now.tv_sec, 0};
        sigtimedwait(&child, NULL, &left);
    }
    return true;
}

static bool passes(const char *program, const struct test_case *test)
{
    int status = 0;
    pid_t pid = start(program, test->name);

    if (!wait_in_time(pid, &status)) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        printf("FAILED %s.%s: not ended after %ld s\n", test->suite, test->name, limit_s());
        return false;
    }
    if (WIFSIGNALED(status))
        printf("FAILED %s.%s: %s\n", test->suite, test->name, strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        printf("FAILED %s.%s: exit status %d\n", test->suite, test->name, WEXITSTATUS(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int run_all(const char *program)
{
    int passed = 0, failed = 0, skipped = 0;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    for (const struct test_case *test = first; test != NULL; test = test->next) {
        if (test_why_skipped(test) != NULL)
            skipped++;
        else if (passes(program, test))
            passed++;
        else
            failed++;
        fflush(stdout);
    }
    printf("plain: %s passed=%d failed=%d skipped=%d\n", first != NULL ? first->suite : "-", passed, failed, skipped);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return run_all(argv[0]);
    if (strcmp(argv[1], "--list") == 0) {
        for (const struct test_case *test = first; test != NULL; test = test->next)
            puts(test->name);
        return EXIT_SUCCESS;
    }
    return run_here(argc > 2 && strcmp(argv[1], "--run") == 0 ? argv[2] : argv[1]);
}
