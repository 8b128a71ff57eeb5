/*
 * Clients and the server that they talk to; see client.h.
 */
#define TEST_HARNESS
#include "client.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef TEST_EXAMPLES
#define TEST_EXAMPLES "build/examples"
#endif

extern char **environ;

pid_t server_pid;
int server_port, server_output = -1;
char server_name[100];
struct answer got;

static char folder[64];

/* ---- time ------------------------------------------------------------------------------------- */

long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000L;
}

void rest_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) != 0)
        continue;
}

/* ---- the directory ------------------------------------------------------------------------------ */

const char *path_of(const char *name)
{
    static char path[256];
    if (!folder[0]) {
        strcpy(folder, "/tmp/strand-httpd-XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
        make_directory("root");
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void make_directory(const char *name)
{
    CHECK_EQ(mkdir(path_of(name), 0755), 0);
}

static void write_file(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "w");
    CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

void make_file(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

const char *bytes_of(size_t size)
{
    static char *bytes;
    static size_t made;
    bytes = realloc(bytes, size > made ? size + 1 : made + 1);
    for (uint32_t x = 1; made < size; made++) {
        x = (uint32_t)made * 2654435761U;
        bytes[made] = (char)(x ^ x >> 15);
    }
    return bytes;
}

void make_big(const char *name, size_t size)
{
    write_file(name, bytes_of(size), size);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status, (void)type, (void)ftw;
    return remove(path);
}

static void remove_folder(void)
{
    if (folder[0])
        nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

/* ---- the server ------------------------------------------------------------------------------ */

/* It does not outlive the test, whichever way that ends. */
static void spawn(int descriptors, const char *const *options, bool both)
{
    char script[128], root[128], threads[32];
    const char *argv[32] = {"sh", "-c", script, "sh", TEST_EXAMPLES "/httpd"};
    int n = 5, out[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, pipe_only;
    script[0] = '\0';
    if (descriptors)
        snprintf(script, sizeof script, "ulimit -n %d; ", descriptors);
    strcat(script, "exec setpriv --pdeathsig KILL \"$@\"");
    if (!both) {
        snprintf(root, sizeof root, "--root=%s", path_of("root"));
        snprintf(threads, sizeof threads, "--threads=%d", test_threads());
        argv[n++] = root;
        argv[n++] = threads;
    }
    while (*options)
        argv[n++] = *options++;
    CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (both)
        posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE); /* ignored here, and not there */
    posix_spawnattr_setsigdefault(&attributes, &pipe_only);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    CHECK_EQ(posix_spawn(&server_pid, "/bin/sh", &actions, &attributes, (char **)(uintptr_t)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(out[1]);
    server_output = out[0];
}

void server_start(int descriptors, const char *const *options)
{
    char line[128];
    size_t used = 0;
    signal(SIGPIPE, SIG_IGN);
    spawn(descriptors, options, false);
    while (used < sizeof line - 1 && read(server_output, line + used, 1) == 1 && line[used++] != '\n')
        continue;
    line[used] = '\0';
    if (sscanf(line, "httpd: listening on %99s", server_name) != 1 || !strrchr(server_name, ':'))
        CHECK_FAIL("the server said: %s", line);
    server_port = atoi(strrchr(server_name, ':') + 1);
}

/* All that it says until its end. */
static char *output_of(int *status)
{
    static char text[1 << 23];
    size_t used = 0;
    for (ssize_t n; used < sizeof text - 1 && (n = read(server_output, text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    close(server_output);
    while (waitpid(server_pid, status, 0) < 0 && errno == EINTR)
        continue;
    return text;
}

bool server_has_ended(void)
{
    siginfo_t info = {0};
    CHECK_EQ(waitid(P_PID, (id_t)server_pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == server_pid;
}

int server_exit_status(const char **said)
{
    int status = 0;
    *said = output_of(&status);
    remove_folder();
    if (!WIFEXITED(status))
        CHECK_FAIL("the server ended with %x and said: %s", status, *said);
    return WEXITSTATUS(status);
}

int server_says(const char *option, const char **said)
{
    int status = 0;
    spawn(0, (const char *const[]){option, NULL}, true);
    *said = output_of(&status);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

struct account server_wait(void)
{
    struct account a;
    int status = 0;
    char *text = output_of(&status), *sums = strstr(text, "httpd: served=");
    remove_folder();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        CHECK_FAIL("the server ended with %x and said: %s", status, text);
    if (!sums || sscanf(sums, "httpd: served=%llu cut=%llu lost=%llu connections=%llu strands=%*u live=%llu", &a.served,
                        &a.cut, &a.lost, &a.connections, &a.live) != 5)
        CHECK_FAIL("the server's last words: %s", text);
    CHECK_EQ(a.lost, 0);
    CHECK_EQ(a.live, 0);
    return a;
}

struct account server_stop(int signal)
{
    CHECK_EQ(kill(server_pid, signal), 0);
    return server_wait();
}

/* fn of each name in a folder of /proc, summed. */
static long sum(const char *of, long (*fn)(const char *name))
{
    char path[64];
    long all = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)server_pid, of);
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    for (const struct dirent *entry; (entry = readdir(dir));)
        all += entry->d_name[0] != '.' ? fn(entry->d_name) : 0;
    closedir(dir);
    return all;
}

static long one(const char *name)
{
    (void)name;
    return 1;
}

static long switches(const char *thread)
{
    char path[320], line[128];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)server_pid, thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "voluntary_ctxt_switches: %ld", &n);
    if (file)
        fclose(file);
    return n;
}

int server_descriptors(void)
{
    return (int)sum("fd", one);
}

long server_switches(void)
{
    return sum("task", switches);
}

long server_pages(void)
{
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)server_pid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages;
}

long server_cpu_ms(void)
{
    clockid_t clock;
    struct timespec t;
    CHECK_EQ(clock_getcpuclockid(server_pid, &clock), 0);
    CHECK_EQ(clock_gettime(clock, &t), 0);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000L;
}

/* ---- clients ---------------------------------------------------------------------------------- */

int dial_small(int buffer)
{
    const struct timeval limit = {LIMIT_S, 0};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)server_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (buffer)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

int dial(void)
{
    return dial_small(0);
}

bool try_say(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

void say_bytes(int fd, const char *bytes, size_t length)
{
    if (!try_say(fd, bytes, length))
        CHECK_FAIL("the server does not listen: %s", strerror(errno));
}

void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

void check_end(int fd)
{
    char bytes[256];
    ssize_t n = recv(fd, bytes, sizeof bytes - 1, 0);
    if (n != 0)
        CHECK_FAIL("no end of the connection, but %zd: %.*s", n, n > 0 ? (int)n : 100, n > 0 ? bytes : strerror(errno));
}

void reset(int fd)
{
    const struct linger at_once = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* Into got.head, and not a byte more. What was looked at is taken at once: a few bytes that are left of a big segment
 * keep all its memory, and the window closed for what should follow them. */
static void receive_until_empty_line(int fd)
{
    size_t had = 0;
    for (char *end = NULL; !end;) {
        CHECK(had < sizeof got.head - 1);
        ssize_t n = recv(fd, got.head + had, sizeof got.head - 1 - had, MSG_PEEK);
        if (n <= 0)
            CHECK_FAIL("no answer: %s", n ? strerror(errno) : "the connection has ended");
        got.head[had + (size_t)n] = '\0';
        end = strstr(got.head, "\r\n\r\n");
        size_t take = end ? (size_t)(end + 4 - got.head) - had : (size_t)n;
        CHECK_EQ(recv(fd, got.head + had, take, MSG_WAITALL), take);
        had += take;
    }
    got.head[had] = '\0';
}

int receive_head(int fd)
{
    receive_until_empty_line(fd);
    if (sscanf(got.head, "HTTP/1.1 %d ", &got.status) != 1)
        CHECK_FAIL("no answer, but: %s", got.head);
    got.length = 0;
    return got.status;
}

int receive(int fd)
{
    receive_head(fd);
    if (got.status == 304)
        return 304;
    const char *length = header("Content-Length");
    CHECK(*length != '\0');
    got.length = strtoul(length, NULL, 10);
    got.body = realloc(got.body, got.length + 1);
    for (size_t used = 0; used < got.length;) {
        ssize_t n = recv(fd, got.body + used, got.length - used, 0);
        if (n <= 0)
            CHECK_FAIL("%zu bytes of %zu: %s", used, got.length, n ? strerror(errno) : "the connection has ended");
        used += (size_t)n;
    }
    got.body[got.length] = '\0';
    return got.status;
}

const char *header(const char *name)
{
    static char value[8192];
    char start[64];
    snprintf(start, sizeof start, "\r\n%s: ", name);
    const char *at = strcasestr(got.head, start);
    value[0] = '\0';
    if (at)
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at + strlen(start), "\r"), at + strlen(start));
    return value;
}

void check_body(const char *bytes, size_t length)
{
    CHECK_EQ(got.length, length);
    if (length && memcmp(got.body, bytes, length) != 0)
        CHECK_FAIL("other bytes came, %zu of them: %.200s", got.length, got.body);
}

int ask(int fd, const char *request)
{
    say(fd, request);
    return strncmp(request, "HEAD ", 5) == 0 ? receive_head(fd) : receive(fd);
}

int ask_once(const char *request)
{
    int fd = dial(), status = ask(fd, request);
    close(fd);
    return status;
}

int strands_named(const char *text)
{
    int n = 0;
    CHECK_EQ(ask_once(GET("/strands")), 200);
    for (const char *at = got.body; (at = strstr(at, text)); at++)
        n++;
    return n;
}
