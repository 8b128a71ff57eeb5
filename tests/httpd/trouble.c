/*
 * What goes wrong around the server: files with impossible dates, directories that are renamed, a listener that fails,
 * a log that nobody reads. And SIGHUP.
 */
#define _GNU_SOURCE
#define SUITE httpd
#include "client.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- files ------------------------------------------------------------------------------------ */

static void check_date(const char *path, int root, time_t date, const char *wanted)
{
    char request[200];
    struct stat status;
    const struct timespec times[2] = {{date, 0}, {date, 0}};
    CHECK_EQ(utimensat(root, "file", times, 0), 0);
    CHECK_EQ(fstatat(root, "file", &status, 0), 0);
    if (status.st_mtim.tv_sec != date)
        return; /* the file system has no such date */
    CHECK_EQ(ask_once(path), 200);
    CHECK_STR(header("Last-Modified"), wanted);
    CHECK_STR(got.body, "0123");
    sprintf(request, REQUEST("GET", "/file", "If-None-Match: %s\r\n"), header("ETag"));
    CHECK_EQ(ask_once(request), 304);
    CHECK_EQ(ask_once(REQUEST("GET", "/file", "Range: bytes=1-2\r\n")), 206);
}

/* A file system in memory takes all dates. */
TEST_REAL(a_date_that_http_can_not_write_is_left_out)
{
    char folder[] = "/dev/shm/strand-httpd-XXXXXX", option[64];
    if (!mkdtemp(folder))
        return;
    int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file = openat(root, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK_EQ(write(file, "0123", 4), 4);
    close(file);
    sprintf(option, "--root=%s", folder);
    SERVER(option);
    check_date(GET("/file"), root, 0, "Thu, 01 Jan 1970 00:00:00 GMT");
    check_date(GET("/file"), root, 253402300799, "Fri, 31 Dec 9999 23:59:59 GMT");
    check_date(GET("/file"), root, 253402300800, "");
    check_date(GET("/file"), root, INT64_MAX / 2, "");
    check_date(GET("/file"), root, INT64_MAX, "");
    check_date(GET("/file"), root, -30610224000, "Wed, 01 Jan 1000 00:00:00 GMT");
    check_date(GET("/file"), root, -30610224001, "");
    check_date(GET("/file"), root, INT64_MIN, "");
    unlinkat(root, "file", 0);
    rmdir(folder);
    close(root);
    server_stop(SIGTERM);
}

struct renamer {
    pthread_t thread;
    char a[256], b[256];
    _Atomic bool over;
    long turns; /* at most */
};

static void *rename_directories(void *arg)
{
    struct renamer *renamer = arg;
    for (long i = 0; i < renamer->turns && !renamer->over; i++) {
        CHECK_EQ(rename(renamer->a, renamer->b), 0);
        CHECK_EQ(rename(renamer->b, renamer->a), 0);
    }
    return NULL;
}

static void begin_renaming(struct renamer *renamer, long turns)
{
    make_directory("a");
    strcpy(renamer->a, path_of("a"));
    strcpy(renamer->b, path_of("b"));
    renamer->turns = turns;
    CHECK_EQ(pthread_create(&renamer->thread, NULL, rename_directories, renamer), 0);
}

static void end_renaming(struct renamer *renamer)
{
    renamer->over = true;
    pthread_join(renamer->thread, NULL);
}

enum { STEPS = 300 };

/* The path from root to root/file, by many "..". */
static const char *winding_path(void)
{
    static char path[STEPS * 7 + 5];
    path[0] = '\0';
    for (int i = 0; i < STEPS; i++)
        strcat(path, "sub/../");
    return strcat(path, "file");
}

/* The system refuses to follow ".." meanwhile. */
TEST_REAL(a_file_is_found_while_directories_are_renamed)
{
    enum { REQUESTS = 1000 };
    static struct renamer renamer;
    char request[STEPS * 7 + 100];
    sprintf(request, "GET /%s HTTP/1.1\r\nHost: test\r\n\r\n", winding_path());
    make_directory("root/sub");
    make_file("root/file", "0123");
    SERVER(NULL);
    int fd = dial();
    begin_renaming(&renamer, LONG_MAX);
    for (int i = 0; i < REQUESTS; i++)
        CHECK_EQ(ask(fd, request), 200);
    end_renaming(&renamer);
    close(fd);
    server_stop(SIGTERM);
}

/* The system may refuse to follow the link until the renaming has ended, which is long before the request's limit. */
TEST_REAL(a_link_is_followed_when_directories_are_no_longer_renamed)
{
    enum { REQUESTS = 100, TURNS = 20000 };
    static struct renamer renamer;
    make_directory("root/sub");
    make_file("root/file", "0123");
    CHECK_EQ(symlink(winding_path(), path_of("root/link")), 0);
    SERVER("--timeout=100");
    int fd = dial();
    begin_renaming(&renamer, TURNS);
    for (int i = 0; i < REQUESTS; i++)
        CHECK_EQ(ask(fd, GET("/link")), 200);
    end_renaming(&renamer);
    close(fd);
    server_stop(SIGTERM);
}

/* ---- a listener that fails ---------------------------------------------------------------------- */

/* The server's descriptor that listens, here; -1 if the system does not let us have it. */
static int take_listener(void)
{
    int pid = (int)syscall(SYS_pidfd_open, server_pid, 0), found = -1;
    for (int i = 3; pid >= 0 && found < 0 && i < 64; i++) {
        int fd = (int)syscall(SYS_pidfd_getfd, pid, i, 0), listens = 0;
        socklen_t size = sizeof listens;
        if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
            found = fd;
        else if (fd >= 0)
            close(fd);
    }
    close(pid);
    return found;
}

TEST_REAL(a_server_that_can_not_accept_any_more_ends)
{
    const char *said;
    SERVER(NULL);
    int fd = dial(), listener = take_listener();
    CHECK_EQ(ask(fd, GET("/hello")), 200);
    if (listener >= 0) {
        CHECK_EQ(shutdown(listener, SHUT_RD), 0);
        CHECK_EQ(server_exit_status(&said), 1);
        CHECK_CONTAINS(said, "served=1 cut=0 lost=0");
        check_end(fd);
        close(listener);
    } else {
        server_stop(SIGTERM);
    }
    close(fd);
}

/* The thread's accept4 fails from here on, and so does that of the programs which it starts. */
static bool let_accept_fail(int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_REAL(a_server_whose_accept_fails_again_and_again_ends)
{
    const char *said;
    if (!let_accept_fail(EOPNOTSUPP))
        return;
    SERVER(NULL);
    int fd = dial();
    CHECK_EQ(server_exit_status(&said), 1);
    CHECK_CONTAINS(said, "served=0 cut=0 lost=0");
    close(fd);
}

/* ---- a log that nobody reads, and SIGHUP --------------------------------------------------------- */

enum { LONG = 1500 };

/* A request whose line in the log is long. */
static const char *long_request(void)
{
    static char request[LONG + 200];
    sprintf(request, "GET /hello HTTP/1.1\r\nHost: test\r\nUser-Agent: %0*d\r\n\r\n", LONG, 0);
    return request;
}

/* Two megabytes fit into the server. */
TEST_REAL(a_log_that_nobody_reads_stops_neither_the_requests_nor_the_end)
{
    enum { REQUESTS = 3000 };
    const char *said;
    SERVER("--log=-", "--timeout=3", "--drain=0.3");
    int fd = dial();
    for (int i = 0; i < REQUESTS; i++)
        CHECK_EQ(ask(fd, long_request()), 200);
    close(fd);
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    UNTIL(server_has_ended());
    CHECK_EQ(server_exit_status(&said), 1);
}

TEST_REAL(a_second_signal_ends_the_wait_for_a_log_that_nobody_reads)
{
    enum { REQUESTS = 500 }; /* more than the pipe takes, less than the server */
    const char *said;
    SERVER("--log=-", "--timeout=100", "--drain=100");
    int fd = dial();
    for (int i = 0; i < REQUESTS; i++)
        CHECK_EQ(ask(fd, long_request()), 200);
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    check_end(fd);
    CHECK(!server_has_ended());
    CHECK_EQ(kill(server_pid, SIGTERM), 0);
    UNTIL(server_has_ended());
    CHECK_EQ(server_exit_status(&said), 1);
    close(fd);
}

static off_t size_of(const char *name)
{
    struct stat status;
    return stat(path_of(name), &status) == 0 ? status.st_size : -1;
}

/* No line is lost. The server writes lines into the old file until it has opened the new one. */
TEST_REAL(a_hang_up_opens_the_log_again)
{
    char option[128], old[256];
    int requests = 1;
    sprintf(option, "--log=%s", path_of("log"));
    SERVER(option);
    int fd = dial();
    CHECK_EQ(ask(fd, GET("/hello")), 200);
    UNTIL(size_of("log") > 0);
    off_t line = size_of("log");
    strcpy(old, path_of("log"));
    CHECK_EQ(rename(old, path_of("log.1")), 0);
    CHECK_EQ(kill(server_pid, SIGHUP), 0);
    UNTIL(size_of("log") == 0);
    do {
        CHECK_EQ(ask(fd, GET("/hello")), 200);
        requests++;
        UNTIL(size_of("log.1") + size_of("log") == requests * line);
    } while (size_of("log") == 0);
    CHECK_EQ(size_of("log"), line);
    close(fd);
    CHECK_EQ(server_stop(SIGTERM).served, requests);
}

TEST_REAL(a_hang_up_ends_a_server_without_a_log_in_order)
{
    SERVER(NULL);
    int fd = dial();
    say(fd, GET("/slow?ms=3000"));
    UNTIL(strands_named("strand 'nap'") == 1);
    CHECK_EQ(kill(server_pid, SIGHUP), 0);
    CHECK_EQ(receive(fd), 200);
    check_end(fd);
    close(fd);
    CHECK_EQ(server_wait().cut, 0);
}
