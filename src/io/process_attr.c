/*
 * The attributes of a process: their check, a copy of them that does not depend on the caller's stack, and the standard
 * streams.
 */
#include "process.h"

#include "descriptor.h"

#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START "strand_process_start"
#define GRACE_USUAL (5 * STRAND_S)
enum { SIGNAL_USUAL = 15 /* SIGTERM */, SIGNALS = 64, NUMBER_MOST = 65535 };

static const char *const stream_names[PROCESS_STREAMS] = {"in", "out", "err"};

static const strand_stdio *stream_of(const strand_process_attr *attr, int which)
{
    return which == 0 ? &attr->in : which == 1 ? &attr->out : &attr->err;
}

/* ---- the check ------------------------------------------------------------------------------------------------ */

static bool makes_descriptor(const strand_stdio *stream)
{
    return stream->kind == STRAND_STDIO_PIPE || stream->kind == STRAND_STDIO_TERMINAL;
}

/* The first stream that is a terminal; PROCESS_STREAMS: none. */
static int first_terminal(const strand_process_attr *attr)
{
    int which = 0;
    while (which < PROCESS_STREAMS && stream_of(attr, which)->kind != STRAND_STDIO_TERMINAL)
        which++;
    return which;
}

static void check_stream(const strand_process_attr *attr, int which)
{
    const strand_stdio *stream = stream_of(attr, which);
    const char *name = stream_names[which];
    int first = first_terminal(attr);
    bool shares = stream->kind == STRAND_STDIO_TERMINAL && which > first;
    if ((unsigned)stream->kind > STRAND_STDIO_OUTPUT)
        MISUSE(START, "", "attr.%s.kind is %d, which is none of enum strand_stdio_kind", name, (int)stream->kind);
    if (makes_descriptor(stream) && !stream->ours && !shares)
        MISUSE(START, "", "attr.%s.ours is NULL: it gets the caller's descriptor", name);
    if (shares && stream->ours && stream->ours != stream_of(attr, first)->ours)
        MISUSE(START, "", "attr.%s.ours is not attr.%s.ours: the terminal has one master", name, stream_names[first]);
    if (!makes_descriptor(stream) && stream->ours)
        MISUSE(START, "", "attr.%s.ours is set, but only STRAND_STDIO_PIPE and STRAND_STDIO_TERMINAL set it", name);
    if (stream->kind == STRAND_STDIO_OUTPUT && which != 2)
        MISUSE(START, "", "attr.%s.kind is STRAND_STDIO_OUTPUT, which is for attr.err", name);
}

static void check_fds(const strand_process_attr *attr)
{
    if (attr->fd_count)
        must_be_there(attr->fds, "array attr.fds", START);
    for (size_t i = 0; i < attr->fd_count; i++) {
        int number = attr->fds[i].number;
        if (number < PROCESS_STREAMS || number > NUMBER_MOST)
            MISUSE(START, "", "attr.fds[%zu].number is %d, not 3 to %d (attr.in, attr.out and attr.err are 0 to 2)", i,
                   number, NUMBER_MOST);
        for (size_t j = 0; j < i; j++)
            if (attr->fds[j].number == number)
                MISUSE(START, "", "attr.fds[%zu].number and attr.fds[%zu].number are both %d", j, i, number);
    }
}

static void check_env_changes(const char *const *changes)
{
    for (size_t i = 0; changes && changes[i]; i++)
        if (changes[i][0] == '=' || !changes[i][0])
            MISUSE(START, "", "attr.env_changes[%zu] is \"%.40s\", which names no variable", i, changes[i]);
}

static void check_user(const strand_process_user *user)
{
    if (user->group_count)
        must_be_there(user->groups, "array attr.user->groups", START);
    if (user->user == UINT32_MAX || user->group == UINT32_MAX)
        MISUSE(START, "", "attr.user->user or attr.user->group is -1, for which the system keeps the caller's");
}

static void check_group(const strand_process_attr *attr)
{
    if ((unsigned)attr->group > STRAND_PROCESS_SHARED)
        MISUSE(START, "", "attr.group is %d, which is none of enum strand_process_group", (int)attr->group);
    if (attr->group == STRAND_PROCESS_SHARED && first_terminal(attr) < PROCESS_STREAMS)
        MISUSE(START, "", "attr.group is STRAND_PROCESS_SHARED, but a process with a terminal leads a session");
    if (attr->stop_signal < 0 || attr->stop_signal > SIGNALS)
        MISUSE(START, "", "attr.stop_signal is %d, not 1 to %d", attr->stop_signal, SIGNALS);
}

void process_attr_take(const strand_process_attr *given, strand_process_attr *attr)
{
    must_be_there(given, "strand_process_attr", START);
    must_have_size(given->size, offsetof(strand_process_attr, file), "strand_process_attr", START);
    sized_take(attr, sizeof *attr, given, given->size);
    if (!attr->argv || !attr->argv[0])
        MISUSE(START, "", "attr.argv is empty: its first element is the name of the program");
    for (int i = 0; i < PROCESS_STREAMS; i++)
        check_stream(attr, i);
    check_fds(attr);
    check_group(attr);
    check_env_changes(attr->env_changes);
    if (attr->limit_count)
        must_be_there(attr->limits, "array attr.limits", START);
    if (attr->user)
        check_user(attr->user);
}

/* ---- the copy -------------------------------------------------------------------------------------------------- */

/* Memory that is measured in a first pass, in which `at` is NULL, and filled in a second one. */
struct room {
    char *at;
    size_t used;
};

static void *reserve(struct room *room, size_t size)
{
    const size_t word = sizeof(uint64_t);
    void *result = room->at ? room->at + room->used : NULL;
    room->used += (size + word - 1) / word * word;
    return result;
}

static void *copy_of(struct room *room, const void *from, size_t size)
{
    void *to = reserve(room, size);
    return to && size ? memcpy(to, from, size) : to;
}

static const char *copy_text(struct room *room, const char *text)
{
    return text ? copy_of(room, text, strlen(text) + 1) : NULL;
}

static size_t length_of(const char *const *list)
{
    size_t count = 0;
    while (list[count])
        count++;
    return count;
}

static const char *const *copy_list(struct room *room, const char *const *list)
{
    if (!list)
        return NULL;
    size_t count = length_of(list);
    const char **copy = reserve(room, (count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        const char *text = copy_text(room, list[i]);
        if (copy)
            copy[i] = text;
    }
    if (copy)
        copy[count] = NULL;
    return copy;
}

/* What of the calling process decides about the other program. PATH is copied before it is
 * used: another thread may change it meanwhile. */
struct surroundings {
    const char *path;
    const char *const *env;
    size_t env_count;
};

/* Whether a later change concerns the variable of this entry or change. */
static bool is_changed(const char *entry, const char *const *changes)
{
    size_t length = strcspn(entry, "=");
    for (; *changes; changes++)
        if (!strncmp(*changes, entry, length) && ((*changes)[length] == '=' || !(*changes)[length]))
            return true;
    return false;
}

/* The environment with the changes: those variables that no change concerns, and the changes that set one. */
static const char *const *change_env(struct room *room, const struct surroundings *around,
                                     const strand_process_attr *attr)
{
    const char *const *old = copy_list(room, attr->env), *const *changes = copy_list(room, attr->env_changes);
    if (!attr->env_changes)
        return old;
    size_t count = attr->env ? length_of(attr->env) : around->env_count, kept = 0;
    const char **env = reserve(room, (count + length_of(attr->env_changes) + 1) * sizeof *env);
    if (!env)
        return NULL;
    if (!attr->env)
        old = around->env;
    for (size_t i = 0; i < count && old[i]; i++)
        if (!is_changed(old[i], changes))
            env[kept++] = old[i];
    for (; *changes; changes++)
        if (strchr(*changes, '=') && !is_changed(*changes, changes + 1))
            env[kept++] = *changes;
    env[kept] = NULL;
    return env;
}

/* The files to try: one for each folder of PATH. */
static const char *const *list_files(struct room *room, const char *file, const char *path)
{
    if (strchr(file, '/') || !*file)
        return copy_list(room, (const char *const[]){file, NULL});
    size_t count = 1, length = strlen(file);
    for (const char *c = path; *c; c++)
        count += *c == ':';
    const char **files = reserve(room, (count + 1) * sizeof *files);
    for (size_t i = 0; i < count; i++) {
        size_t folder = strcspn(path, ":");
        char *text = reserve(room, folder + length + 2);
        if (text) {
            memcpy(text, path, folder); /* an empty one is the working directory */
            snprintf(text + folder, length + 2, "%s%s", folder ? "/" : "", file);
            files[i] = text;
        }
        path += folder + 1;
    }
    if (files)
        files[count] = NULL;
    return files;
}

static const struct arch_exec_user *copy_user(struct room *room, const strand_process_user *user)
{
    if (!user)
        return NULL;
    struct arch_exec_user *copy = reserve(room, sizeof *copy);
    const uint32_t *groups = copy_of(room, user->groups, user->group_count * sizeof *groups);
    if (copy)
        *copy = (struct arch_exec_user){user->user, user->group, groups, user->group_count};
    return copy;
}

static const struct arch_exec_limit *copy_limits(struct room *room, const strand_process_attr *attr)
{
    struct arch_exec_limit *copy = reserve(room, attr->limit_count * sizeof *copy);
    for (size_t i = 0; copy && i < attr->limit_count; i++)
        copy[i] = (struct arch_exec_limit){attr->limits[i].resource, attr->limits[i].soft, attr->limits[i].hard};
    return copy;
}

static struct arch_exec_fd *copy_fds(struct room *room, const strand_process_attr *attr)
{
    struct arch_exec_fd *copy = reserve(room, (PROCESS_STREAMS + attr->fd_count) * sizeof *copy);
    for (int i = 0; copy && i < PROCESS_STREAMS; i++)
        copy[i] = (struct arch_exec_fd){.number = i, .source = i, .inherited = true};
    for (size_t i = 0; copy && i < attr->fd_count; i++)
        copy[PROCESS_STREAMS + i] = (struct arch_exec_fd){.number = attr->fds[i].number, .source = attr->fds[i].fd};
    return copy;
}

static enum arch_exec_group group_of(const strand_process_attr *attr)
{
    bool session = attr->group == STRAND_PROCESS_SESSION || first_terminal(attr) < PROCESS_STREAMS;
    return session                                ? ARCH_EXEC_LEADS_SESSION
           : attr->group == STRAND_PROCESS_SHARED ? ARCH_EXEC_JOINS_GROUP
                                                  : ARCH_EXEC_LEADS_GROUP;
}

static struct process *fill(struct room *room, const strand_process_attr *attr, const struct surroundings *around)
{
    struct process *process = reserve(room, sizeof *process);
    const char *file = attr->file ? attr->file : attr->argv[0];
    const char *const *argv = copy_list(room, attr->argv), *const *env = change_env(room, around, attr);
    const char *const *files = list_files(room, file, around->path);
    const char *named = copy_text(room, file);
    const char *directory = copy_text(room, attr->directory);
    const struct arch_exec_user *user = copy_user(room, attr->user);
    const struct arch_exec_limit *limits = copy_limits(room, attr);
    struct arch_exec_fd *fds = copy_fds(room, attr);
    if (!process)
        return NULL;
    *process = (struct process){.end = {.size = sizeof process->end},
                                .exec = {.files = files,
                                         .argv = argv,
                                         .env = env,
                                         .directory = directory,
                                         .fds = fds,
                                         .fd_count = PROCESS_STREAMS + attr->fd_count,
                                         .limits = limits,
                                         .limit_count = attr->limit_count,
                                         .user = user,
                                         .group = group_of(attr),
                                         .terminal = attr->in.kind == STRAND_STDIO_TERMINAL,
                                         .mask = attr->has_mask ? (int)(attr->mask & 0777) : -1,
                                         .nice = attr->nice},
                                .file = named,
                                .started = STRAND_EVENT_INIT,
                                .child = {.pidfd = -1},
                                .stop_signal = attr->stop_signal ? attr->stop_signal : SIGNAL_USUAL,
                                .grace_ns = attr->grace_ns ? attr->grace_ns : GRACE_USUAL};
    const char *last = strrchr(file, '/');
    snprintf(process->name, sizeof process->name, "process %s", last && last[1] ? last + 1 : file);
    return process;
}

/* [PC4] */
struct process *process_make(struct thread *thread, const strand_process_attr *attr)
{
    struct room text = {NULL, 0}, room = {NULL, 0};
    const char *path = arch_exec_path();
    struct surroundings around = {.env = arch_exec_environment()};
    size_t length = strlen(path) + 1;
    text.at = platform_malloc(thread, length);
    if (!text.at)
        return NULL;
    around.path = copy_of(&text, path, length - 1);
    text.at[length - 1] = '\0';
    around.env_count = length_of(around.env);
    (void)fill(&room, attr, &around);
    size_t size = room.used;
    room = (struct room){platform_malloc(thread, size), 0};
    struct process *process = room.at ? fill(&room, attr, &around) : NULL;
    ASSERT(!process || room.used == size);
    free(text.at);
    return process;
}

/* ---- the standard streams --------------------------------------------------------------------------------------- */

static int open_pipe(int which, struct process_streams *streams)
{
    int ends[2], ours = which == 0; /* the caller writes to the standard input */
    int error = arch_exec_pipe(ends, ours);
    if (error)
        return error;
    streams->ours[which] = ends[ours];
    streams->theirs[which] = ends[1 - ours];
    return 0;
}

/* The first stream that asks for the terminal opens it; the others get one more number of the process's side. */
static int open_terminal(const strand_process_attr *attr, int which, struct process_streams *streams)
{
    int ends[2], first = first_terminal(attr);
    if (which > first) {
        streams->theirs[which] = arch_fd_twin(streams->theirs[first]);
        return streams->theirs[which] < 0 ? streams->theirs[which] : 0;
    }
    int error = arch_exec_terminal(ends);
    if (error)
        return error;
    streams->ours[which] = ends[0];
    streams->theirs[which] = ends[1];
    return 0;
}

static int open_null(int which, struct process_streams *streams)
{
    streams->theirs[which] = arch_exec_null();
    return streams->theirs[which] < 0 ? streams->theirs[which] : 0;
}

static int open_stream(const strand_process_attr *attr, int which, struct process_streams *streams)
{
    switch (stream_of(attr, which)->kind) {
    case STRAND_STDIO_NULL:
        return open_null(which, streams);
    case STRAND_STDIO_PIPE:
        return open_pipe(which, streams);
    case STRAND_STDIO_TERMINAL:
        return open_terminal(attr, which, streams);
    default:
        return 0;
    }
}

int process_streams_open(const strand_process_attr *attr, struct process *process, struct process_streams *streams)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        const strand_stdio *stream = stream_of(attr, i);
        struct arch_exec_fd *fd = &process->exec.fds[i];
        streams->which = i;
        int error = process->play ? play_open_stream(process->play, stream, i, &streams->ours[i])
                                  : open_stream(attr, i, streams);
        if (error)
            return error;
        streams->out[i] = stream->ours;
        fd->inherited = stream->kind == STRAND_STDIO_INHERIT;
        if (stream->kind == STRAND_STDIO_FD)
            fd->source = stream->fd;
        else if (stream->kind == STRAND_STDIO_OUTPUT) {
            fd->source = process->exec.fds[1].source;
            fd->inherited = process->exec.fds[1].inherited;
        } else if (!fd->inherited)
            fd->source = streams->theirs[i];
    }
    return 0;
}

void process_streams_close(struct process_streams *streams)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        if (streams->ours[i] >= 0)
            (void)descriptor_close(thread_self(), streams->ours[i], false);
        if (streams->theirs[i] >= 0)
            (void)arch_fd_close(streams->theirs[i]);
        streams->ours[i] = streams->theirs[i] = -1;
    }
}
