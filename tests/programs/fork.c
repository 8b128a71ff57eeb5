/*
 * A run that waits for a signal forks, and the child gets that signal. Says what became of both.
 */
#include "strand.h"
#include "strand/io.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *fork_and_wait(void *arg)
{
    STRAND_SIGNALS(signals, SIGUSR1);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)raise(SIGUSR1);
        _exit(7); /* it was kept back */
    }
    (void)waitpid(child, &status, 0);
    printf("child: %s %d\n", WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : status);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(20 * STRAND_MS));
        printf("parent: signal %d\n", strand_wait_signal(signals));
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        puts("parent: none");
    }
    STRAND_END(void)
    raise(SIGUSR1);
    printf("parent: signal %d\n", strand_wait_signal(signals));
    return arg;
}

int main(void)
{
    strand_run(NULL, fork_and_wait, NULL);
    return 0;
}
