/*
 * httpd: a server for HTTP/1.1. This file has the command line and prints the figures at the end.
 */
#include "httpd.h"

#include "../common/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char about[] =
    "Serves the files of a directory by HTTP/1.1, and three generated pages: /hello, /slow?ms=N&strands=K and\n"
    "/strands (the tree of the server's own strands). SIGTERM and SIGINT end the server: it finishes the requests "
    "that\n"
    "it is working on, for as long as --drain allows; a second signal ends them at once. SIGHUP opens the log's file\n"
    "again, for a log that was renamed, and reads the certificates again, for connections that come after it; without\n"
    "both it ends the server too. A client that closes its side of\n"
    "the connection, even for sending only, while it waits for /slow counts as gone: the server gives up its "
    "request.\n";

static void read_options(struct server *server, int argc, char **argv)
{
    const struct option_row options[] = {
        {"port", 'p', "N", "the port; 0 (the default): any free one, which is printed",
         OPTION_NUMBER(server->port, 0, 65535)},
        {"host", 'H', "NAME", "the address to listen on (default 127.0.0.1); '': all of this machine",
         OPTION_TEXT(server->host)},
        {"root", 'r', "DIR", "the directory (default .)", OPTION_TEXT(server->directory)},
        {"threads", 't', "N", "threads (default: one per allowed CPU)", OPTION_NUMBER(server->threads, 1, 1024)},
        {"timeout", 'T', "S", "seconds for a request to arrive and to be worked on (default 10)",
         OPTION_TIME(server->timeout, STRAND_S, 0.001L, 1e6L)},
        {"rate", 'R', "N",
         "bytes per second of its answer that a client must take, averaged over\neach --timeout (default 500)",
         OPTION_NUMBER(server->rate, 0, 1000000000)},
        {"keep-alive", 'k', "S", "seconds that a connection may be idle between requests (default 60)",
         OPTION_TIME(server->patience, STRAND_S, 0.001L, 1e6L)},
        {"drain", 'd', "S", "seconds for requests to finish when the server ends (default 5)",
         OPTION_TIME(server->drain, STRAND_S, 0.001L, 1e6L)},
        {"tls", 'c', "FILE",
         "speak TLS, with the certificates of this file (PEM): the server's own,\nthen those between it and the root",
         OPTION_TEXT(server->security.certificates)},
        {"key", 'K', "FILE", "the private key of the first one (default: it is in the same file)",
         OPTION_TEXT(server->security.key)},
        {"staple", 'S', "FILE", "an OCSP response for the first one (DER), sent to clients that ask for it",
         OPTION_TEXT(server->security.staple)},
        {"log", 'l', "FILE", "the access log, in the combined format; -: standard output (default: none)",
         OPTION_TEXT(server->log_path)},
        {0},
    };
    options_read(&(struct program){"httpd", about, NULL, options}, argc, argv);
}

__attribute__((noreturn)) static void fail(const char *what, int error)
{
    fprintf(stderr, "httpd: %s: %s\n", what, strerror(error));
    exit(1);
}

__attribute__((noreturn)) static void fail_to_listen(const struct server *server)
{
    char name[NAME_MOST];
    name_listener(server, server->port, name, sizeof name);
    const char *why = server->listener == -ENOENT ? "there is no such host" : strerror(-server->listener);
    fprintf(stderr, "httpd: listen on %s: %s\n", name, why);
    exit(1);
}

/* Each connection needs a descriptor. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    static struct server server = {
        .host = "127.0.0.1",
        .directory = ".",
        .threads = STRAND_THREADS_ALLOWED,
        .timeout = 10 * STRAND_S,
        .rate = 500,
        .patience = 60 * STRAND_S,
        .drain = 5 * STRAND_S,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    read_options(&server, argc, argv);
    signal(SIGPIPE, SIG_IGN); /* the log may go to a pipe that nobody reads any more */
    raise_limit();
    server.root = open(server.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (server.root < 0)
        fail(server.directory, errno);
    int error = log_open(&server.log, server.log_path);
    if (error)
        fail(server.log_path, -error);
    strand_run(STRAND_OPTIONS(.threads = server.threads), serve, &server);
    log_free(&server.log);
    if (server.security.failed)
        return 1;
    if (server.listener < 0)
        fail_to_listen(&server);
    uint64_t lost = server.begun - server.served - server.cut;
    if (server.log.lost)
        fprintf(stderr, "httpd: %s: %s: %llu lines lost\n", server.log_path,
                server.log.error ? strerror(server.log.error) : "nobody takes them",
                (unsigned long long)server.log.lost);
    if (log_takes(STDOUT_FILENO))
        printf("httpd: served=%llu cut=%llu lost=%llu connections=%llu strands=%llu live=%llu\n",
               (unsigned long long)server.served, (unsigned long long)server.cut, (unsigned long long)lost,
               (unsigned long long)server.connections, (unsigned long long)server.stats.spawned,
               (unsigned long long)server.stats.live - 1);
    return lost || server.log.lost || server.stats.live != 1 || server.accept_error;
}
