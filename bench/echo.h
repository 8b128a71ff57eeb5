/*
 * What the echo servers in C share: the limit of descriptors, and the load, a process of its own that is started by the
 * server, so that the server knows its port and its end.
 *
 * A server takes CONNECTIONS connections, sends back whatever comes through them, and ends when all have ended. The
 * load is the same program for every runtime: echo_load.c.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include "bench.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The size of a message, and of a server's buffer, which is larger: a read returns several messages if the server is
 * slow. */
enum { ECHO_MESSAGE = 64, ECHO_BUFFER = 4096 };

/* Descriptors of a process beside its connections. */
enum { ECHO_DESCRIPTORS = 64 };

extern char **environ;

/* The number of connections from the command line, with as many descriptors allowed. */
BENCH_API long echo_connections(int argc, char **argv)
{
    long connections = bench_argument(argc, argv, 100);
    rlim_t wanted = (rlim_t)connections + ECHO_DESCRIPTORS;
    struct rlimit limit;
    bench_check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "no limit of descriptors is known");
    if (limit.rlim_cur < wanted) {
        if (limit.rlim_max < wanted)
            bench_leave_out("echo%ld takes %ld descriptors and the hard limit is %ld: see ulimit -Hn", connections,
                            (long)wanted, (long)limit.rlim_max);
        limit.rlim_cur = wanted;
        bench_check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit of descriptors can't be raised to %ld",
                    (long)wanted);
    }
    return connections;
}

/* The load has found something wrong, and said so: nothing more will come. */
BENCH_API void echo_load_ended(int signal)
{
    int status;
    (void)signal;
    if (waitpid(-1, &status, WNOHANG) > 0 && status != 0)
        _exit(1);
}

/* Start a load, a program beside this one, on a port of this machine. */
BENCH_API void echo_start(const char *name, const char *runtime, long connections, int port)
{
    char program[4096], at[16], count[16];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 16);
    bench_check(length > 0, "/proc/self/exe can't be read");
    program[length] = '\0';
    strcpy(strrchr(program, '/'), name);
    snprintf(at, sizeof at, "%d", port);
    snprintf(count, sizeof count, "%ld", connections);
    struct sigaction action = {.sa_handler = echo_load_ended, .sa_flags = SA_RESTART | SA_ONSTACK | SA_NOCLDSTOP};
    sigaction(SIGCHLD, &action, NULL);
    char *arguments[] = {program, count, at, (char *)runtime, NULL};
    pid_t load;
    bench_check(posix_spawn(&load, program, NULL, NULL, arguments, environ) == 0, "%s can't be started", program);
}

BENCH_API void echo_start_load(const char *runtime, long connections, int port)
{
    echo_start("/echo_load", runtime, connections, port);
}

#endif
