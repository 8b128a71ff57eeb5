/*
 * Processes that could not be started: the exception names the step that failed, and the object of that step. The
 * protocol block is in process.h.
 */
#include "process.h"

#include "../strand/throw.h"

#include <stdio.h>

/* In the order of their numbers. */
static const char *const resources[] = {"CPU",      "FSIZE",  "DATA",    "STACK", "CORE",  "RSS",
                                        "NPROC",    "NOFILE", "MEMLOCK", "AS",    "LOCKS", "SIGPENDING",
                                        "MSGQUEUE", "NICE",   "RTPRIO",  "RTTIME"};
enum { RESOURCES = sizeof resources / sizeof *resources };

/* A long name is cut, so that the step and the system's words stay. */
void process_throw(struct cb *me, const char *step, const char *object, int error)
{
    char what[160];
    snprintf(what, sizeof what, "strand_process_start: %s: %.80s", step, object);
    throw_system(me, error, what);
}

void process_throw_stream(struct cb *me, int which, int error)
{
    static const char *const names[PROCESS_STREAMS] = {"standard input", "standard output", "standard error"};
    process_throw(me, "opening a standard stream", names[which], error);
}

static void say_limit(char *text, size_t size, int resource)
{
    if (resource >= 0 && resource < RESOURCES)
        snprintf(text, size, "RLIMIT_%s", resources[resource]);
    else
        snprintf(text, size, "resource %d", resource);
}

/* Writes what has a number. Returns whether the object has one. */
static bool say_number(char *text, size_t size, const struct arch_exec *exec, const struct arch_exec_failed *failed)
{
    int index = failed->index;
    switch (failed->object) {
    case ARCH_EXEC_FD:
        snprintf(text, size, "%d as number %d", exec->fds[index].source, exec->fds[index].number);
        return true;
    case ARCH_EXEC_LIMIT:
        say_limit(text, size, exec->limits[index].resource);
        return true;
    case ARCH_EXEC_NICE:
        snprintf(text, size, "%+d", exec->nice);
        return true;
    case ARCH_EXEC_GROUP_COUNT:
        snprintf(text, size, "%zu groups", exec->user->count);
        return true;
    case ARCH_EXEC_GROUP_ID:
        snprintf(text, size, "%u", (unsigned)exec->user->group);
        return true;
    case ARCH_EXEC_USER_ID:
        snprintf(text, size, "%u", (unsigned)exec->user->user);
        return true;
    default:
        return false;
    }
}

void process_throw_failed(struct cb *me, const struct process *process)
{
    const struct arch_exec_failed *failed = &process->failed;
    char number[64];
    const char *object = say_number(number, sizeof number, &process->exec, failed) ? number
                         : failed->object == ARCH_EXEC_DIRECTORY                   ? process->exec.directory
                                                                                   : process->file;
    process_throw(me, failed->step, object, failed->error);
}
