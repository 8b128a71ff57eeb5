/*
 * All that may block: a row for each function that is marked STRAND_BLOCKS (tools/check-blocking.sh proves that none is
 * missing), and what they need to be called with, so that none of them would have to wait. Used by
 * tests/spec/blocking.c and by tests/programs/blocking.c, which defines BLOCKING_ENDS: it ends in the call, and could
 * not remove a directory.
 */
#ifndef TEST_BLOCKING_H
#define TEST_BLOCKING_H

#include "strand.h"
#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/changes.h"
#include "strand/date.h"
#include "strand/file.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/process.h"
#include "strand/select.h"
#include "strand/socket.h"
#include "strand/sync.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct things {
    strand_scope children, first, collecting; /* one child each, which has ended */
    strand_scope processes;
    strand child, process;    /* process: only for the function that joins it */
    strand_mutex mutex, held; /* held: by the caller */
    strand_condition condition;
    strand_rwlock rwlock;
    strand_semaphore semaphore;
    strand_barrier barrier;
    strand_once once;
    strand_event event;
    strand_group group;
    strand_latch latch;
    strand_prio_semaphore prio;
    strand_limit limit, bound; /* bound: holds for the caller */
    strand_held permits;
    strand_chan full, empty;
    strand_port messages; /* has one */
    strand_actors over;   /* was asked to stop */
    strand_actor echo, gone;
    long value;
    strand_ticker ticker;
    strand_signals signals;
    int in[2], out[2]; /* pipes: one with a byte to be read, one to be written */
    int listener, caller, socket, port_owner, port;
    int changes;      /* a file was made */
    int datagrams[2]; /* a pair, with a datagram for the first */
    strand_address peer;
    int file, copy, directory; /* the directory has a file "a", a link "s" to it, and an empty directory "d" */
    char directory_path[32];
    struct sockaddr_un address;
    socklen_t address_length;
    char byte, path[64];
    bool ran; /* `run` did */
};

static inline void *run(void *things)
{
    ((struct things *)things)->ran = true;
    return things;
}

static inline int64_t select_one(struct things *t)
{
    strand_case c = strand_on_receive(t->full, &t->value);
    return strand_select(&c, 1, 0);
}

static inline int64_t locked(struct things *t)
{
    STRAND_LOCKED(&t->mutex);
    return 0;
}

static inline int64_t read_locked(struct things *t)
{
    STRAND_READ_LOCKED(&t->rwlock);
    return 0;
}

static inline int64_t write_locked(struct things *t)
{
    STRAND_WRITE_LOCKED(&t->rwlock);
    return 0;
}

static inline int64_t with_permit(struct things *t)
{
    STRAND_PERMIT(&t->semaphore);
    return 0;
}

static inline int64_t with_prio_permit(struct things *t)
{
    STRAND_PRIO_PERMIT(&t->prio, NULL);
    return 0;
}

static inline int64_t with_limit_permit(struct things *t)
{
    STRAND_LIMIT_PERMIT(&t->limit);
    return 0;
}

static inline int64_t within_limits(struct things *t)
{
    STRAND_WITHIN_LIMITS;
    return t->byte;
}

static inline int64_t closed(int fd)
{
    return fd < 0 ? fd : strand_close(fd);
}

static const char *const end_at_once[] = {"true", NULL};

static inline int64_t capture(void)
{
    strand_captured captured = {.size = sizeof captured};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = end_at_once), NULL, &captured);
    free(captured.output);
    free(captured.errors);
    return captured.end.code;
}

STRAND_MESSAGE_DECLARE(echoed, { long value; });

static inline void echo(void *things, strand_message *message)
{
    (*(struct things **)things)->ran = true;
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(echoed, 1)));
}

static const strand_actor_class echo_class = {
    .size = sizeof echo_class, .name = "echo", .state_size = sizeof(struct things *), .receive = echo};

static inline int64_t ask(struct things *t)
{
    echoed answer;
    return strand_ask(t->echo, STRAND_MSG(echoed, 1), STRAND_INTO(echoed, &answer));
}

static inline int wait_stopping(void)
{
    if (strand_id(strand_self()))
        strand_run_stop(strand_run_self(), INT64_MAX, NULL);
    strand_wait_stopping();
    return 0;
}

static inline int64_t load(struct things *t)
{
    char *bytes = NULL;
    int64_t size = strand_file_load(t->directory, "a", 0, &bytes);
    free(bytes);
    return size;
}

static inline int64_t open_temporary(struct things *t)
{
    char path[] = "XXXXXX";
    int fd = strand_file_open_temporary(t->directory, path, O_DIRECTORY);
    if (fd >= 0)
        unlinkat(t->directory, path, AT_REMOVEDIR);
    return closed(fd);
}

static inline int64_t resolve(struct things *t)
{
    char path[64];
    return strand_file_resolve(t->directory, "a", path, sizeof path);
}

static inline int64_t receive_change(struct things *t)
{
    strand_change change;
    return strand_changes_receive(t->changes, &change, 1);
}

static inline int64_t receive_many(struct things *t)
{
    strand_datagram one = {&t->byte, 1, 0, NULL};
    return strand_receive_many(t->datagrams[0], &one, 1);
}

static inline int64_t receive_passed(struct things *t)
{
    strand_passed passed = {.size = sizeof passed};
    return strand_receive_passed(t->datagrams[0], &t->byte, 1, &passed);
}

/* ROW(marked function, the function that a report of misuse names, a call: negative if it has failed) */
#define BLOCKING(ROW)                                                                                                  \
    ROW(strand_scope_join, "strand_scope_join", (strand_scope_join(t->children), 0))                                   \
    ROW(strand_scope_join_first, "strand_scope_join_first", (strand_scope_join_first(t->first, NULL), 0))              \
    ROW(strand_scope_wait_next, "strand_scope_wait_next", (strand_scope_wait_next(t->collecting), 0))                  \
    ROW(strand_join, "strand_join", (strand_join(t->child), 0))                                                        \
    ROW(strand_wait, "strand_wait", (strand_wait(t->child), 0))                                                        \
    ROW(strand_yield, "strand_yield", (strand_yield(), 0))                                                             \
    ROW(strand_wait_quiet, "strand_wait_quiet", (strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_STALLED), 0))      \
    ROW(strand_wait_stopping, "strand_wait_stopping", wait_stopping())                                                 \
    ROW(strand_checkpoint, "strand_checkpoint", (strand_checkpoint(), 0))                                              \
    ROW(strand_sleep, "strand_sleep", (strand_sleep(1), 0))                                                            \
    ROW(strand_sleep_until, "strand_sleep_until", (strand_sleep_until((strand_time){1}), 0))                           \
    ROW(strand_chan_send, "strand_chan_send", strand_chan_send(t->empty, &t->value))                                   \
    ROW(strand_chan_receive, "strand_chan_receive", strand_chan_receive(t->full, &t->value))                           \
    ROW(strand_port_receive, "strand_port_receive", strand_port_receive(t->messages, &t->value, sizeof t->value))      \
    ROW(strand_select, "strand_select", select_one(t))                                                                 \
    ROW(strand_wait_tick, "strand_wait_tick", (strand_wait_tick(&t->ticker), 0))                                       \
    ROW(strand_mutex_lock, "strand_mutex_lock", (strand_mutex_lock(&t->mutex), strand_mutex_unlock(&t->mutex), 0))     \
    ROW(strand_mutex_enter_, "STRAND_LOCKED", locked(t))                                                               \
    ROW(strand_condition_wait, "strand_condition_wait", (strand_condition_wait(&t->condition, &t->held), 0))           \
    ROW(strand_rwlock_read, "strand_rwlock_read",                                                                      \
        (strand_rwlock_read(&t->rwlock), strand_rwlock_read_done(&t->rwlock), 0))                                      \
    ROW(strand_rwlock_read_enter_, "STRAND_READ_LOCKED", read_locked(t))                                               \
    ROW(strand_rwlock_write, "strand_rwlock_write",                                                                    \
        (strand_rwlock_write(&t->rwlock), strand_rwlock_write_done(&t->rwlock), 0))                                    \
    ROW(strand_rwlock_write_enter_, "STRAND_WRITE_LOCKED", write_locked(t))                                            \
    ROW(strand_semaphore_acquire, "strand_semaphore_acquire", (strand_semaphore_acquire(&t->semaphore), 0))            \
    ROW(strand_semaphore_acquire_many, "strand_semaphore_acquire_many",                                                \
        (strand_semaphore_acquire_many(&t->semaphore, 2), 0))                                                          \
    ROW(strand_semaphore_enter_, "STRAND_PERMIT", with_permit(t))                                                      \
    ROW(strand_barrier_wait, "strand_barrier_wait", strand_barrier_wait(&t->barrier))                                  \
    ROW(strand_once_run, "strand_once_run", (strand_once_run(&t->once, run, t), 0))                                    \
    ROW(strand_event_wait, "strand_event_wait", (strand_event_wait(&t->event), 0))                                     \
    ROW(strand_group_wait, "strand_group_wait", (strand_group_wait(&t->group), 0))                                     \
    ROW(strand_latch_wait, "strand_latch_wait", (strand_latch_wait(&t->latch), 0))                                     \
    ROW(strand_prio_acquire, "strand_prio_acquire", strand_prio_acquire(&t->prio, NULL))                               \
    ROW(strand_limit_acquire, "strand_limit_acquire", (strand_limit_acquire(&t->limit), 0))                            \
    ROW(strand_prio_permit_enter_, "STRAND_PRIO_PERMIT", with_prio_permit(t))                                          \
    ROW(strand_limit_permit_enter_, "STRAND_LIMIT_PERMIT", with_limit_permit(t))                                       \
    ROW(strand_limits_acquire, "strand_limits_acquire",                                                                \
        (strand_limits_acquire(&t->permits), strand_limits_release(&t->permits), 0))                                   \
    ROW(strand_limits_enter_, "strand_limits_acquire", within_limits(t))                                               \
    ROW(strand_read, "strand_read", strand_read(t->in[0], &t->byte, 1))                                                \
    ROW(strand_read_all, "strand_read_all", strand_read_all(t->in[0], &t->byte, 1))                                    \
    ROW(strand_write, "strand_write", strand_write(t->out[1], "w", 1))                                                 \
    ROW(strand_write_all, "strand_write_all", strand_write_all(t->out[1], "w", 1))                                     \
    ROW(strand_splice, "strand_splice", strand_splice(t->in[0], t->copy, 1, NULL))                                     \
    ROW(strand_readv, "strand_readv", strand_readv(t->in[0], &(struct iovec){&t->byte, 1}, 1))                         \
    ROW(strand_writev, "strand_writev", strand_writev(t->out[1], &(struct iovec){&t->byte, 1}, 1))                     \
    ROW(strand_writev_all, "strand_writev_all", strand_writev_all(t->out[1], &(struct iovec){&t->byte, 1}, 1))         \
    ROW(strand_receive_from, "strand_receive_from", strand_receive_from(t->datagrams[0], &t->byte, 1, NULL))           \
    ROW(strand_send_to, "strand_send_to", strand_send_to(t->datagrams[1], "w", 1, NULL))                               \
    ROW(strand_receive_many, "strand_receive_many", receive_many(t))                                                   \
    ROW(strand_send_many, "strand_send_many",                                                                          \
        strand_send_many(t->datagrams[1], &(strand_datagram){"w", 1, 0, NULL}, 1))                                     \
    ROW(strand_receive_passed, "strand_receive_passed", receive_passed(t))                                             \
    ROW(strand_send_passed, "strand_send_passed",                                                                      \
        strand_send_passed(t->datagrams[1], "w", 1, &(strand_passed){.size = sizeof(strand_passed)}))                  \
    ROW(strand_notify, "strand_notify", strand_notify("READY=1"))                                                      \
    ROW(strand_wait_ready, "strand_wait_ready", strand_wait_ready(t->in[0], STRAND_READABLE))                          \
    ROW(strand_accept, "strand_accept", closed(strand_accept(t->listener)))                                            \
    ROW(strand_accept_from, "strand_accept_from", closed(strand_accept_from(t->listener, &t->peer)))                   \
    ROW(strand_connect, "strand_connect", strand_connect(t->socket, &t->address, t->address_length))                   \
    ROW(strand_listen_tcp, "strand_listen_tcp", closed(strand_listen_tcp("127.0.0.1", 0)))                             \
    ROW(strand_dial_tcp, "strand_dial_tcp", closed(strand_dial_tcp("127.0.0.1", t->port)))                             \
    ROW(strand_dial_unix, "strand_dial_unix", closed(strand_dial_unix(t->path)))                                       \
    ROW(strand_wait_signal, "strand_wait_signal", strand_wait_signal(t->signals))                                      \
    ROW(strand_wait_date, "strand_wait_date", strand_wait_date((strand_date){1}))                                      \
    ROW(strand_offload, "strand_offload", (strand_offload(run, t), 0))                                                 \
    ROW(strand_offload_on, "strand_offload_on", (strand_offload_on((strand_crew){{0, 0}}, run, t), 0))                 \
    ROW(strand_offload_with, "strand_offload_with", (strand_offload_with(NULL, run, t, 0), 0))                         \
    ROW(strand_changes_add, "strand_changes_add", strand_changes_add(t->changes, t->directory, "a", IN_MODIFY))        \
    ROW(strand_changes_receive, "strand_changes_receive", receive_change(t))                                           \
    ROW(strand_file_open, "strand_file_open", closed(strand_file_open(t->directory, "a", O_RDONLY, 0)))                \
    ROW(strand_file_read, "strand_file_read", strand_file_read(t->file, &t->byte, 1, 0))                               \
    ROW(strand_file_write, "strand_file_write", strand_file_write(t->file, "w", 1, 0))                                 \
    ROW(strand_file_readv, "strand_file_readv", strand_file_readv(t->file, &(struct iovec){&t->byte, 1}, 1, 0))        \
    ROW(strand_file_writev, "strand_file_writev", strand_file_writev(t->file, &(struct iovec){&t->byte, 1}, 1, 0))     \
    ROW(strand_file_copy, "strand_file_copy", strand_file_copy(t->file, NULL, t->copy, NULL, 1))                       \
    ROW(strand_file_send, "strand_file_send", strand_file_send(t->file, t->copy, 1, 0))                                \
    ROW(strand_file_sync, "strand_file_sync", strand_file_sync(t->file, true))                                         \
    ROW(strand_file_truncate, "strand_file_truncate", strand_file_truncate(t->file, 1))                                \
    ROW(strand_file_allocate, "strand_file_allocate", strand_file_allocate(t->file, 0, 0, 1))                          \
    ROW(strand_file_lock, "strand_file_lock", strand_file_lock(t->file, F_RDLCK, 0, 0))                                \
    ROW(strand_file_try_lock, "strand_file_try_lock", strand_file_try_lock(t->file, F_RDLCK, 0, 0))                    \
    ROW(strand_file_stat, "strand_file_stat", strand_file_stat(t->directory, "a", 0, &(struct stat){0}))               \
    ROW(strand_file_rename, "strand_file_rename", strand_file_rename(t->directory, "s", t->directory, "b", 0))         \
    ROW(strand_file_link, "strand_file_link", strand_file_link(t->directory, "a", t->directory, "b", 0))               \
    ROW(strand_file_symlink, "strand_file_symlink", strand_file_symlink("a", t->directory, "b"))                       \
    ROW(strand_file_read_link, "strand_file_read_link", strand_file_read_link(t->directory, "s", (char[8]){0}, 8))     \
    ROW(strand_file_unlink, "strand_file_unlink", strand_file_unlink(t->directory, "d", AT_REMOVEDIR))                 \
    ROW(strand_file_make_directory, "strand_file_make_directory", strand_file_make_directory(t->directory, "b", 0700)) \
    ROW(strand_file_make_directories, "strand_file_make_directories",                                                  \
        strand_file_make_directories(t->directory, "b/c", 0700))                                                       \
    ROW(strand_file_remove_tree, "strand_file_remove_tree", strand_file_remove_tree(t->directory, "d", NULL, 0))       \
    ROW(strand_file_open_temporary, "strand_file_open_temporary", open_temporary(t))                                   \
    ROW(strand_file_set, "strand_file_set",                                                                            \
        strand_file_set(t->directory, "a", 0, STRAND_FILE_MODE, &(struct stat){.st_mode = 0600}))                      \
    ROW(strand_file_resolve, "strand_file_resolve", resolve(t))                                                        \
    ROW(strand_file_list, "strand_file_list", strand_file_list(t->directory, &(strand_file_entry){0}, 1))              \
    ROW(strand_file_load, "strand_file_load", load(t))                                                                 \
    ROW(strand_file_store, "strand_file_store", strand_file_store(t->directory, "b", "x", 1, 0600))                    \
    ROW(strand_process_start, "strand_process_start",                                                                  \
        (strand_process_start(t->processes, STRAND_PROCESS_ATTR(.argv = end_at_once)), 0))                             \
    ROW(strand_process_join, "strand_process_join", (strand_process_join(t->process, NULL), 0))                        \
    ROW(strand_process_capture, "strand_process_capture", capture())                                                   \
    ROW(strand_process_reap, "strand_process_reap", (strand_process_reap(t->processes, (strand_chan){{0, 0}}, 0), 0))  \
    ROW(strand_ask, "strand_ask", ask(t))                                                                              \
    ROW(strand_actor_wait, "strand_actor_wait", strand_actor_wait(t->gone))                                            \
    ROW(strand_actors_join, "strand_actors_join", (strand_actors_join(t->over), 0))

struct blocking {
    const char *name, *reported;
    int64_t (*call)(struct things *t);
};

#define BLOCKING_CALL_(function, reported, call)                                                                       \
    static inline int64_t block_in_##function(struct things *t)                                                        \
    {                                                                                                                  \
        (void)t;                                                                                                       \
        return call;                                                                                                   \
    }
BLOCKING(BLOCKING_CALL_)
#define BLOCKING_ROW_(function, reported, call) {#function, reported, block_in_##function},
static const struct blocking blocking[] = {BLOCKING(BLOCKING_ROW_)};
enum { BLOCKING_COUNT = sizeof blocking / sizeof *blocking };

/* ---- what they are called with --------------------------------------------------------------------------- */

static inline bool open_files(struct things *t)
{
    t->file = memfd_create("file", MFD_CLOEXEC);
    t->copy = memfd_create("copy", MFD_CLOEXEC);
    t->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
#ifdef BLOCKING_ENDS
    return true;
#endif
    strcpy(t->directory_path, "/tmp/libstrand-XXXXXX");
    if (!mkdtemp(t->directory_path))
        return false;
    t->directory = open(t->directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inotify_add_watch(t->changes, t->directory_path, IN_CREATE) < 0)
        return false;
    close(openat(t->directory, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return write(t->file, "byte", 4) == 4 && lseek(t->file, 0, SEEK_SET) == 0 && t->copy >= 0 &&
           symlinkat("a", t->directory, "s") == 0 && mkdirat(t->directory, "d", 0700) == 0;
}

static inline void remove_files(struct things *t)
{
    static const char *const names[] = {"a", "b", "s", "d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlinkat(t->directory, names[i], 0) != 0)
            (void)unlinkat(t->directory, names[i], AT_REMOVEDIR);
    (void)rmdir(t->directory_path);
}

/* Returns whether all is there. None of this is a cancellation point. */
static inline bool things_open(struct things *t)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    t->semaphore = (strand_semaphore)STRAND_SEMAPHORE_INIT(2);
    t->barrier = (strand_barrier)STRAND_BARRIER_INIT(1);
    strand_event_set(&t->event);
    strand_limit_init(&t->limit, 1, "limit");
    strand_limit_init(&t->bound, 1, "bound");
    strand_prio_init(&t->prio, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1});
    t->full = strand_chan_open(t->children, sizeof t->value, 1, NULL);
    t->empty = strand_chan_open(t->children, sizeof t->value, 1, NULL);
    t->messages = strand_port_open(t->children, sizeof t->value, 1, NULL);
    t->ticker = strand_ticker_every(STRAND_MS);
    snprintf(t->path, sizeof t->path, "@libstrand-%d", (int)getpid());
    t->address.sun_family = AF_UNIX;
    memcpy(t->address.sun_path + 1, t->path + 1, strlen(t->path) - 1);
    t->address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(t->path));
    t->listener = strand_listen_unix(t->path);
    t->caller = socket(AF_UNIX, SOCK_STREAM, 0);
    t->socket = socket(AF_UNIX, SOCK_STREAM, 0);
    t->port_owner = socket(AF_INET, SOCK_STREAM, 0);
    bool made = bind(t->port_owner, (const struct sockaddr *)&local, sizeof local) == 0 &&
                listen(t->port_owner, 4) == 0 && strand_pipe(t->in) == 0 && strand_pipe(t->out) == 0 &&
                connect(t->caller, (const struct sockaddr *)&t->address, t->address_length) == 0;
    t->port = strand_tcp_port(t->port_owner);
    made = made && socketpair(AF_UNIX, SOCK_DGRAM, 0, t->datagrams) == 0 && send(t->datagrams[1], "d", 1, 0) == 1;
    made = made && open_files(t);
    return made && strand_mutex_try_lock(&t->held) == 0 && strand_chan_try_send(t->full, &t->value) == 0 &&
           strand_port_send(t->messages, &t->value, sizeof t->value) == 0 && write(t->in[1], "r", 1) == 1 &&
           raise(SIGUSR1) == 0;
}

static inline void things_close(struct things *t)
{
    const int fds[] = {t->in[0],      t->in[1], t->out[0], t->out[1],    t->listener,     t->caller,       t->socket,
                       t->port_owner, t->file,  t->copy,   t->directory, t->datagrams[0], t->datagrams[1], t->changes};
    remove_files(t);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        strand_close(fds[i]);
    strand_mutex_unlock(&t->held);
    strand_scope_cancel(t->children, NULL);
    strand_scope_cancel(t->first, NULL);
    strand_scope_cancel(t->collecting, NULL);
    strand_scope_cancel(t->processes, NULL);
}

static inline void *return_it(void *arg)
{
    return arg;
}

static inline strand spawn_ended(strand_scope scope)
{
    strand child = strand_spawn(scope, return_it, NULL);
    STRAND_SHIELD;
    while (!strand_ended(child))
        strand_yield();
    return child;
}

/* A process that has ended: its keeper closes no descriptor any more. */
static inline strand start_ended(strand_scope scope)
{
    STRAND_SHIELD;
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = end_at_once));
    strand_wait(process);
    return process;
}

/* Calls use with the row and new things, which do not lie on a strand's stack. Returns false if there are none. */
static inline bool with_things(const struct blocking *row, void (*use)(const struct blocking *row, struct things *t))
{
    static struct things t;
    memset(&t, 0, sizeof t);
    STRAND_SIGNALS(signals, SIGUSR1);
    STRAND_SCOPE(children);
    STRAND_SCOPE_WITH(first, STRAND_FIRST_WINS);
    STRAND_SCOPE_WITH(collecting, STRAND_COLLECT);
    STRAND_SCOPE(processes);
    STRAND_ACTORS(actors, NULL);
    STRAND_ACTORS(over, NULL);
    struct things *at = &t;
    t.echo = strand_actor_spawn(actors, NULL, &echo_class, &at, sizeof at);
    t.gone = strand_actor_spawn(actors, NULL, &echo_class, &at, sizeof at);
    t.over = over;
    t.signals = signals;
    t.children = children;
    t.first = first;
    t.collecting = collecting;
    t.child = spawn_ended(children);
    spawn_ended(first);
    spawn_ended(collecting);
    t.processes = processes;
    if (row->call == block_in_strand_process_join)
        t.process = start_ended(processes);
    if (!things_open(&t) || strand_actor_stop(t.gone, STRAND_STOP_NEXT) != 0)
        return false;
    strand_actors_stop(over, STRAND_STOP_NEXT);
    {
        STRAND_LIMIT(&t.bound);
        use(row, &t);
    }
    things_close(&t);
    return true;
}

#endif
