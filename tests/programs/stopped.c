/*
 * A run with a watchdog whose process stands still for a while. What the watchdog reports goes to standard error.
 *
 *   holds      in the middle of a computation that is short
 *   clean-up   in the middle of a clean-up that is short
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/pool.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT (300 * STRAND_MS)
enum { STOPPED_MS = 900 };

/* A child process continues this one, because a stopped process can't continue by itself. */
static void stand_still(void)
{
    pid_t me = getpid(), child = fork();
    if (child == 0) {
        kill(me, SIGSTOP);
        usleep(STOPPED_MS * 1000);
        kill(me, SIGCONT);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) != child)
        continue;
}

static void stand_still_in_a_clean_up(int *mark)
{
    (void)mark;
    stand_still();
    strand_sleep(LIMIT / 2); /* two looks of the watchdog */
}

static void *throws(void *arg)
{
    int mark __attribute__((cleanup(stand_still_in_a_clean_up)));
    (void)mark;
    strand_throw(&STRAND_ERROR, "on purpose");
    return arg;
}

static void *root(void *what)
{
    if (!strcmp(what, "holds")) {
        stand_still();
    } else {
        strand_exception *e = strand_try(throws, NULL, NULL);
        strand_exception_release(e);
    }
    return what;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    strand_run(STRAND_OPTIONS(.watchdog_ns = LIMIT), root, argv[1]);
    return 0;
}
