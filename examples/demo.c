/*
 * demo: drives a real server by real requests, aborts some of them in the middle, and accounts for every one.
 *
 * It starts examples/httpd over a directory on a free port of the loopback. Clients, each a strand, get all files of
 * the directory and compare them; some go away while their request is being worked on, some are cancelled, some ask for
 * something that takes longer than the server allows. The live tree of the server is read once meanwhile. Then the
 * server gets the signal to drain while requests are under way. At the end the counts of the clients and of the server
 * agree, nothing is lost, and no strand is left alive in either process.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <http_parser.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strand.h>
#include <strand/debug.h>
#include <strand/io.h>
#include <strand/pool.h>

enum {
    READERS = 50,  /* clients that read all files */
    ROUNDS = 8,    /* how often each of them does */
    GOING = 10,    /* clients that go away in the middle */
    CANCELLED = 5, /* that are cancelled */
    PATIENT = 5,   /* that wait until the server's own deadline cuts them */
    DRAINED = 3,   /* whose requests end while the server drains */
    TOO_LATE = 2,  /* and whose requests don't */
    FILES_MOST = 200
};
#define TIMEOUT_S "5"
#define DRAIN_S "1.5"
#define NEVER_MS "60000"

struct file {
    char path[300];
    char *bytes;
    size_t size;
};

struct demo {
    const char *program, *directory;
    struct file files[FILES_MOST];
    int file_count;
    int port;
    _Atomic long requests, cut, wrong, drained;
    char last[256]; /* the server's last line */
    int status;     /* its exit status */
    long long strands;
};

static const strand_kind WRONG = STRAND_KIND("wrong", &STRAND_ERROR);

/* ---- what is on the disk --------------------------------------------------------------------- */

static void load_file(struct demo *demo, const char *name)
{
    char path[600];
    struct stat status;
    struct file *file = &demo->files[demo->file_count];
    snprintf(path, sizeof path, "%s/%s", demo->directory, name);
    FILE *stream = demo->file_count < FILES_MOST ? fopen(path, "r") : NULL;
    if (!stream)
        return;
    if (fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode)) {
        snprintf(file->path, sizeof file->path, "/%s", name);
        file->size = (size_t)status.st_size;
        file->bytes = malloc(file->size + 1);
        if (file->bytes && fread(file->bytes, 1, file->size, stream) == file->size)
            demo->file_count++;
    }
    fclose(stream);
}

/* Run by strand_offload. */
static void *load_files(void *arg)
{
    struct demo *demo = arg;
    struct dirent **entries;
    int count = scandir(demo->directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        load_file(demo, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return NULL;
}

/* ---- a client -------------------------------------------------------------------------------- */

struct reply {
    bool complete;
    int status;
    char *body;
    size_t length, room;
};

static int on_body(http_parser *parser, const char *at, size_t length)
{
    struct reply *reply = parser->data;
    if (reply->length + length > reply->room) {
        size_t room = (reply->length + length) * 2;
        char *more = realloc(reply->body, room);
        if (!more)
            return 1;
        reply->body = more;
        reply->room = room;
    }
    memcpy(reply->body + reply->length, at, length);
    reply->length += length;
    return 0;
}

static int on_complete(http_parser *parser)
{
    struct reply *reply = parser->data;
    reply->complete = true;
    reply->status = (int)parser->status_code;
    http_parser_pause(parser, 1);
    return 0;
}

static void reply_free(struct reply *reply)
{
    free(reply->body);
}

static void read_reply(int fd, struct reply *reply)
{
    static const http_parser_settings settings = {.on_body = on_body, .on_message_complete = on_complete};
    http_parser parser;
    char bytes[8192];
    int64_t got;
    http_parser_init(&parser, HTTP_RESPONSE);
    parser.data = reply;
    while (!reply->complete && (got = strand_read(fd, bytes, sizeof bytes)) > 0) {
        STRAND_NO_SUSPEND;
        http_parser_execute(&parser, &settings, bytes, (size_t)got);
        if (HTTP_PARSER_ERRNO(&parser) != HPE_OK && !reply->complete)
            strand_throw(&WRONG, "the answer is no HTTP: %s", http_errno_description(HTTP_PARSER_ERRNO(&parser)));
    }
}

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        strand_close(*fd);
}

static void ask(struct demo *demo, int fd, const char *path)
{
    char head[512];
    int length = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: demo\r\n\r\n", path);
    demo->requests++;
    strand_must(strand_write_all(fd, head, (size_t)length));
}

static int dial(const struct demo *demo)
{
    return (int)strand_must(strand_dial_tcp("127.0.0.1", demo->port));
}

static void expect(struct demo *demo, bool holds, const char *what)
{
    if (holds)
        return;
    demo->wrong++;
    strand_throw(&WRONG, "%s", what);
}

/* ---- what clients do ------------------------------------------------------------------------- */

static void *read_all_files(void *arg)
{
    struct demo *demo = arg;
    int fd __attribute__((cleanup(close_fd))) = dial(demo);
    for (int i = 0; i < demo->file_count * ROUNDS; i++) {
        const struct file *file = &demo->files[i % demo->file_count];
        struct reply reply __attribute__((cleanup(reply_free))) = {0};
        ask(demo, fd, file->path);
        read_reply(fd, &reply);
        expect(demo, reply.complete && reply.status == 200, "a file was not sent");
        expect(demo, reply.length == file->size && memcmp(reply.body, file->bytes, file->size) == 0,
               "a file is not what was sent");
    }
    return arg;
}

static void *go_away(void *arg)
{
    struct demo *demo = arg;
    int fd __attribute__((cleanup(close_fd))) = dial(demo);
    ask(demo, fd, "/slow?strands=3&ms=" NEVER_MS);
    demo->cut++;
    strand_sleep(100 * STRAND_MS);
    return arg;
}

static void ask_for_too_much(struct demo *demo, struct reply *reply)
{
    int fd __attribute__((cleanup(close_fd))) = dial(demo);
    ask(demo, fd, "/slow?ms=" NEVER_MS);
    demo->cut++;
    read_reply(fd, reply);
}

/* Waits for an answer that never comes, and is cancelled. */
static void *wait_for_ever(void *arg)
{
    struct demo *demo = arg;
    struct reply reply __attribute__((cleanup(reply_free))) = {0};
    ask_for_too_much(demo, &reply);
    expect(demo, false, "a request that takes for ever was answered");
    return arg;
}

static void *meet_the_deadline(void *arg)
{
    struct demo *demo = arg;
    struct reply reply __attribute__((cleanup(reply_free))) = {0};
    ask_for_too_much(demo, &reply);
    expect(demo, reply.complete && reply.status == 503, "the server's deadline did not end a request");
    return arg;
}

static void *be_drained(void *arg)
{
    struct demo *demo = arg;
    struct reply reply __attribute__((cleanup(reply_free))) = {0};
    int fd __attribute__((cleanup(close_fd))) = dial(demo);
    ask(demo, fd, "/slow?ms=300");
    read_reply(fd, &reply);
    expect(demo, reply.complete && reply.status == 200, "a request was not finished while the server drained");
    demo->drained++;
    return arg;
}

static void *be_too_late(void *arg)
{
    struct demo *demo = arg;
    struct reply reply __attribute__((cleanup(reply_free))) = {0};
    int fd __attribute__((cleanup(close_fd))) = dial(demo);
    ask(demo, fd, "/slow?ms=" NEVER_MS);
    demo->cut++;
    read_reply(fd, &reply);
    expect(demo, !reply.complete, "a request was answered after the time to drain");
    return arg;
}

/* The server's own tree. */
static void get_tree(struct demo *demo, struct reply *reply)
{
    int fd __attribute__((cleanup(close_fd))) = dial(demo);
    ask(demo, fd, "/strands");
    read_reply(fd, reply);
    expect(demo, reply->complete && reply->status == 200, "the server did not show its tree");
}

static int count_of(const struct reply *reply, const char *word)
{
    int count = 0;
    const char *end = reply->body + reply->length;
    for (const char *at = reply->body; at && (at = memmem(at, (size_t)(end - at), word, strlen(word))); at++)
        count++;
    return count;
}

/* Until the server works on so many slow requests, or has drained some of them. */
static void wait_for_naps(struct demo *demo, long naps)
{
    for (long count = 0; count < naps; strand_sleep(10 * STRAND_MS)) {
        struct reply reply __attribute__((cleanup(reply_free))) = {0};
        long drained = demo->drained;
        get_tree(demo, &reply);
        count = drained + count_of(&reply, "strand 'nap'");
    }
}

static void describe_tree(struct demo *demo)
{
    struct reply reply __attribute__((cleanup(reply_free))) = {0};
    get_tree(demo, &reply);
    const char *line_end = reply.body ? memchr(reply.body, '\n', reply.length) : NULL;
    if (line_end)
        printf("demo: in the middle of it the server's tree of strands begins with: %.*s\n",
               (int)(line_end - reply.body), reply.body);
}

/* ---- the play -------------------------------------------------------------------------------- */

static void drive(struct demo *demo)
{
    STRAND_SCOPE(scope);
    strand waiting[CANCELLED];
    printf("demo: %d clients go away while the server works for them, %d ask for what takes longer than its %s s\n",
           GOING, PATIENT, TIMEOUT_S);
    for (int i = 0; i < GOING; i++)
        strand_spawn(scope, go_away, demo);
    for (int i = 0; i < PATIENT; i++)
        strand_spawn(scope, meet_the_deadline, demo);
    for (int i = 0; i < CANCELLED; i++)
        waiting[i] = strand_spawn(scope, wait_for_ever, demo);
    wait_for_naps(demo, CANCELLED + PATIENT);
    describe_tree(demo);
    printf("demo: %d more clients are cancelled while they wait; %d others get every file %d times and compare it\n",
           CANCELLED, READERS, ROUNDS);
    for (int i = 0; i < CANCELLED; i++)
        strand_cancel(waiting[i], "the demo has seen enough");
    for (int i = 0; i < READERS; i++)
        strand_spawn(scope, read_all_files, demo);
    strand_scope_join(scope);
}

static void drain(struct demo *demo, pid_t server)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < DRAINED; i++)
        strand_spawn(scope, be_drained, demo);
    for (int i = 0; i < TOO_LATE; i++)
        strand_spawn(scope, be_too_late, demo);
    wait_for_naps(demo, DRAINED + TOO_LATE);
    printf("demo: the server gets SIGTERM with %d requests that can be answered in %s s, and %d that cannot\n", DRAINED,
           DRAIN_S, TOO_LATE);
    kill(server, SIGTERM);
    strand_scope_join(scope);
}

/* ---- the server's process -------------------------------------------------------------------- */

struct server {
    pid_t pid;
    int output;
};

static void *wait_for_process(void *arg)
{
    int status = -1;
    while (waitpid(*(pid_t *)arg, &status, 0) < 0 && errno == EINTR)
        ;
    return (void *)(intptr_t)status;
}

/* On every way out the process is gone. */
static void end_server(struct server *server)
{
    if (server->pid > 0) {
        kill(server->pid, SIGKILL);
        strand_offload(wait_for_process, &server->pid);
    }
    strand_close(server->output);
}

static void start_server(struct demo *demo, struct server *server)
{
    extern char **environ;
    char *args[] = {(char *)(uintptr_t)demo->program,
                    "--root",
                    (char *)(uintptr_t)demo->directory,
                    "--threads",
                    "2",
                    "--timeout",
                    TIMEOUT_S,
                    "--drain",
                    DRAIN_S,
                    NULL};
    posix_spawn_file_actions_t actions;
    int pipes[2];
    strand_must(strand_pipe(pipes));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    int error = posix_spawn(&server->pid, demo->program, &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    strand_close(pipes[1]);
    server->output = pipes[0];
    if (error) {
        server->pid = 0;
        strand_throw(&WRONG, "%s: %s", demo->program, strerror(error));
    }
}

/* False: the output has ended. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    char byte;
    while (strand_read(fd, &byte, 1) == 1 && byte != '\n')
        if (length < size - 1)
            line[length++] = byte;
    line[length] = '\0';
    return length > 0;
}

static void *play(void *arg)
{
    struct demo *demo = arg;
    char line[256];
    struct server server __attribute__((cleanup(end_server))) = {0, -1};
    strand_offload(load_files, demo);
    start_server(demo, &server);
    if (!read_line(server.output, line, sizeof line) ||
        sscanf(line, "httpd: listening on 127.0.0.1:%d", &demo->port) != 1)
        strand_throw(&WRONG, "the server does not listen");
    printf("demo: a web server on port %d serves the %d files of %s, with a strand for each connection\n", demo->port,
           demo->file_count, demo->directory);
    drive(demo);
    drain(demo, server.pid);
    while (read_line(server.output, line, sizeof line))
        memcpy(demo->last, line, sizeof line);
    demo->status = (int)(intptr_t)strand_offload(wait_for_process, &server.pid);
    server.pid = 0;
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    demo->strands = (long long)stats.spawned;
    return arg;
}

/* Whether the server has counted what its clients have. */
static bool sums_agree(const struct demo *demo)
{
    unsigned long long served = 0, cut = 0, lost = 0, connections = 0, strands = 0, live = 0;
    int fields = sscanf(demo->last, "httpd: served=%llu cut=%llu lost=%llu connections=%llu strands=%llu live=%llu",
                        &served, &cut, &lost, &connections, &strands, &live);
    long long difference = (long long)(served + cut) - demo->requests;
    printf("demo: the clients have sent %ld requests; the server has answered %llu of them and cut %llu short\n",
           demo->requests, served, cut);
    printf("demo: the clients and the server have spawned %lld strands, and %llu are left\n",
           demo->strands + (long long)strands, live);
    printf("server: %s\n", demo->last);
    printf("demo: requests=%ld cut=%ld lost=%lld strands=%lld live=%llu\n", demo->requests, demo->cut,
           (long long)lost + (difference < 0 ? -difference : difference), demo->strands + (long long)strands, live);
    return fields == 6 && difference == 0 && (long)cut == demo->cut && lost == 0 && live == 0;
}

int main(int argc, char **argv)
{
    static struct demo demo;
    if (argc != 3) {
        fprintf(stderr, "usage: demo HTTPD DIRECTORY\n");
        return 2;
    }
    demo.program = argv[1];
    demo.directory = argv[2];
    strand_run(STRAND_OPTIONS(.threads = STRAND_THREADS_ALLOWED), play, &demo);
    for (int i = 0; i < demo.file_count; i++)
        free(demo.files[i].bytes);
    bool ok = sums_agree(&demo) && demo.status == 0 && demo.file_count > 0 && demo.wrong == 0;
    printf("demo: %s\n", ok ? "ok, every request is accounted for" : "FAILED");
    return ok ? 0 : 1;
}
