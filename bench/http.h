/*
 * What the HTTP rows share: servers, which are other programs, and the load, which is wrk. A server says on its
 * standard output where it listens, as 127.0.0.1:PORT, and ends by SIGTERM.
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HTTP_SERVERS_MOST = 2 };
static pid_t http_servers[HTTP_SERVERS_MOST];
static int http_server_count;

/* The last one first: it may be a proxy for the one before. */
static void http_end_servers(void)
{
    while (http_server_count) {
        pid_t server = http_servers[--http_server_count];
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
}

/* Start it with its standard output in a pipe, and return the port that it names there. The pipe stays open. */
BENCH_API int http_start_server(char **command)
{
    int out[2], port = 0;
    char line[512];
    pid_t server = -1;
    bench_check(pipe(out) == 0 && (server = fork()) >= 0, "no process");
    if (server == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    if (!http_server_count)
        atexit(http_end_servers);
    http_servers[http_server_count++] = server;
    close(out[1]);
    FILE *lines = fdopen(out[0], "r");
    while (port == 0 && fgets(line, sizeof line, lines) != NULL) {
        const char *address = strstr(line, "127.0.0.1:");
        if (address != NULL)
            port = atoi(strchr(address, ':') + 1);
    }
    bench_check(port > 0, "%s has not said where it listens", command[0]);
    return port;
}

/* The page is there at all: an answer 404 is fast too. */
BENCH_API void http_check_page(int port, const char *page)
{
    char request[256];
    int length =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", page);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    char answer[13] = "";
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bench_check(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "nobody listens");
    bench_check(send(fd, request, (size_t)length, MSG_NOSIGNAL) > 0 &&
                    recv(fd, answer, sizeof answer - 1, MSG_WAITALL) > 0 && strcmp(answer, "HTTP/1.1 200") == 0,
                "%s is answered by '%s'", page, answer);
    close(fd);
}

/* Returns the requests per second that wrk counts, on 100 connections. */
BENCH_API double http_ask(int port, const char *page, int seconds)
{
    char command[256], line[256];
    double rate = 0;
    snprintf(command, sizeof command, "wrk -t1 -c100 -d%ds http://127.0.0.1:%d%s", seconds, port, page);
    FILE *lines = popen(command, "r");
    bench_check(lines != NULL, "wrk can't be started");
    while (fgets(line, sizeof line, lines) != NULL) {
        bench_check(!strstr(line, "Socket errors") && !strstr(line, "Non-2xx"), "%s", line);
        sscanf(line, "Requests/sec: %lf", &rate);
    }
    bench_check(pclose(lines) == 0 && rate > 0, "wrk has failed");
    return rate;
}

/* The path of an example beside this program. The row is left out if it is not there, or without wrk. */
BENCH_API void http_find_example(const char *row, const char *name, char *path, size_t size)
{
    if (system("command -v wrk >/dev/null") != 0)
        bench_leave_out("%s: wrk is not installed (Debian: apt-get install wrk)", row);
    ssize_t length = readlink("/proc/self/exe", path, size - 64);
    bench_check(length > 0, "/proc/self/exe can't be read");
    path[length] = '\0';
    snprintf(strrchr(path, '/'), 64, "/../examples/%s", name);
    if (access(path, X_OK) != 0)
        bench_leave_out("%s: there is no %s", row, path);
}

#endif
