/*
 * httpd: serves the files of a directory, and some generated pages, by HTTP/1.1. This is its command line.
 */
#include "httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char usage[] =
    "usage: httpd [option...]\n"
    "\n"
    "Serves the files of a directory by HTTP/1.1, and: /hello, /slow?ms=N&strands=K, /strands (the tree of its own\n"
    "strands). SIGTERM and SIGINT end it: requests under way are finished, as far as the time to drain allows; a\n"
    "second signal ends them at once. SIGHUP opens the file of the log again, for one that was renamed; without such "
    "a\n"
    "file it does as SIGTERM. A client that closes its side of the connection, be it only for sending, while it waits\n"
    "for /slow counts as gone: the work for it is given up.\n"
    "\n"
    "  -p, --port=N        the port; 0 (the default): any free one, which is printed\n"
    "  -H, --host=NAME     the address to listen on (default 127.0.0.1); '': all of this machine\n"
    "  -r, --root=DIR      the directory (default .)\n"
    "  -t, --threads=N     threads (default: one per processor that may be used)\n"
    "  -T, --timeout=S     seconds that a request may take to come and to be worked on (default 10)\n"
    "  -R, --rate=N        bytes per second that a client takes of its answer at least, in each such time (default "
    "500)\n"
    "  -k, --keep-alive=S  seconds that a connection may rest between requests (default 60)\n"
    "  -d, --drain=S       seconds to drain for (default 5)\n"
    "  -l, --log=FILE      the access log, in the combined format; - is standard output (default: none)\n"
    "  -h, --help          this text\n";

__attribute__((noreturn)) static void refuse_option(const char *name, const char *value)
{
    fprintf(stderr, "httpd: %s can't be %s\n", name, value);
    exit(2);
}

static double number(const char *name, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        refuse_option(name, text);
    return value;
}

static int whole(const char *name, const char *text, int least, int most)
{
    if (!*text || text[strspn(text, "0123456789")])
        refuse_option(name, text);
    return (int)number(name, text, least, most);
}

static int64_t seconds(const char *name, const char *text)
{
    return (int64_t)(number(name, text, 0.001, 1e6) * (double)STRAND_S);
}

static void read_options(struct server *server, int argc, char **argv)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},
        {"host", required_argument, NULL, 'H'},
        {"root", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'},
        {"timeout", required_argument, NULL, 'T'},
        {"keep-alive", required_argument, NULL, 'k'},
        {"drain", required_argument, NULL, 'd'},
        {"log", required_argument, NULL, 'l'},
        {"rate", required_argument, NULL, 'R'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "p:H:r:t:T:R:k:d:l:h", options, NULL)) != -1;) {
        switch (option) {
        case 'p':
            server->port = whole("--port", optarg, 0, 65535);
            break;
        case 'H':
            server->host = optarg;
            break;
        case 'r':
            server->directory = optarg;
            break;
        case 't':
            server->threads = whole("--threads", optarg, 1, 1024);
            break;
        case 'T':
            server->timeout = seconds("--timeout", optarg);
            break;
        case 'R':
            server->rate = (uint64_t)whole("--rate", optarg, 0, 1000000000);
            break;
        case 'k':
            server->patience = seconds("--keep-alive", optarg);
            break;
        case 'd':
            server->drain = seconds("--drain", optarg);
            break;
        case 'l':
            server->log_path = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs("Try httpd --help.\n", stderr);
            exit(2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "httpd: what is %s? Try httpd --help.\n", argv[optind]);
        exit(2);
    }
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

/* As many connections as the system lets us have. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Whether somebody reads what is written, if it is a pipe: it may be a log that nobody reads. */
static bool is_taken(int fd)
{
    struct pollfd output = {.fd = fd, .events = POLLOUT};
    return poll(&output, 1, 0) > 0;
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
    signal(SIGPIPE, SIG_IGN); /* sendfile has no flag for that */
    raise_limit();
    server.root = open(server.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (server.root < 0)
        fail(server.directory, errno);
    int error = log_open(&server.log, server.log_path);
    if (error)
        fail(server.log_path, -error);
    strand_run(STRAND_OPTIONS(.threads = server.threads), serve, &server);
    log_free(&server.log);
    if (server.listener < 0)
        fail_to_listen(&server);
    uint64_t lost = server.begun - server.served - server.cut;
    if (server.log.lost)
        fprintf(stderr, "httpd: %s: %s: %llu lines lost\n", server.log_path,
                server.log.error ? strerror(server.log.error) : "nobody takes them",
                (unsigned long long)server.log.lost);
    if (is_taken(STDOUT_FILENO))
        printf("httpd: served=%llu cut=%llu lost=%llu connections=%llu strands=%llu live=%llu\n",
               (unsigned long long)server.served, (unsigned long long)server.cut, (unsigned long long)lost,
               (unsigned long long)server.connections, (unsigned long long)server.stats.spawned,
               (unsigned long long)server.stats.live - 1);
    return lost || server.log.lost || server.stats.live != 1 || server.accept_error;
}
