/*
 * Child processes that run a function of this program, and memory shared with them.
 */
#include "arch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int arch_map_shared(size_t bytes, void **out)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    *out = at;
    return 0;
}

int arch_child_start(void (*fn)(void *), void *arg, int *pid)
{
    (void)fflush(NULL); /* buffered output would be written twice */
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0UL, 0UL, 0UL);
        fn(arg);
        (void)fflush(NULL);
        _exit(EXIT_SUCCESS);
    }
    *pid = child;
    return 0;
}

int arch_child_wait(int pid, int *status)
{
    while (waitpid(pid, status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}
