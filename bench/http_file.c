/*
 * usage: http_file [RUNTIME COMMAND...]
 *
 * http_file4k, http_file1m: requests per second that a server of one thread answers with a file of 4 KiB, or of 1 MiB,
 * which the system has in memory; 100 connections kept alive, asked for by wrk. Without arguments it is examples/httpd;
 * peers/ have other servers, whose command gets the folder of the files as its last argument.
 */
#include "http.h"

#include <sys/stat.h>

enum { WORDS_MOST = 16, SMALL = 4 << 10, LARGE = 1 << 20 };

static char folder[] = "/tmp/strand-http-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_files(void)
{
    unlink(path_of("4k"));
    unlink(path_of("1m"));
    rmdir(folder);
}

static void make_file(const char *name, size_t size)
{
    FILE *file = fopen(path_of(name), "w");
    bench_check(file != NULL, "%s can't be made", path_of(name));
    for (size_t i = 0; i < size; i++)
        fputc((int)(i * 2654435761U >> 8 & 0xff), file);
    bench_check(fclose(file) == 0, "%s can't be written", path_of(name));
}

int main(int argc, char **argv)
{
    char path[4096];
    char *httpd[] = {path, (char *)"--port", (char *)"0", (char *)"--threads", (char *)"1", (char *)"--root"};
    char *command[WORDS_MOST] = {0};
    http_find_example("http_file", "httpd", path, sizeof path);
    char **words = argc < 3 ? httpd : argv + 2;
    int count = argc < 3 ? (int)(sizeof httpd / sizeof *httpd) : argc - 2;
    bench_check(count < WORDS_MOST - 1, "the command is too long");
    memcpy(command, words, (size_t)count * sizeof *words);
    command[count] = folder;
    bench_check(mkdtemp(folder) != NULL && chmod(folder, 0755) == 0, "there is no folder");
    atexit(remove_files);
    make_file("4k", SMALL);
    make_file("1m", LARGE);
    signal(SIGPIPE, SIG_IGN);
    int port = http_start_server(command);
    const char *runtime = argc < 3 ? "strand" : argv[1];
    http_check_page(port, "/4k");
    http_check_page(port, "/1m");
    http_ask(port, "/4k", 1);
    bench_sample("http_file4k", runtime, 1, "req/s", http_ask(port, "/4k", 3));
    http_ask(port, "/1m", 1);
    bench_sample("http_file1m", runtime, 1, "req/s", http_ask(port, "/1m", 3));
    return 0;
}
