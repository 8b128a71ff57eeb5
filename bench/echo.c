/*
 * echo1 to echo10000: a strand per connection sends back what it reads. One thread.
 */
#include "echo.h"

#include <strand/io.h>
#include <strand/pool.h>

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char bytes[ECHO_BUFFER];
    int64_t got;
    while ((got = strand_read(fd, bytes, sizeof bytes)) > 0)
        if (strand_write_all(fd, bytes, (size_t)got) != got)
            break;
    strand_close(fd);
    return NULL;
}

static void *root(void *arg)
{
    const long *connections = arg;
    int listener = strand_listen_tcp("127.0.0.1", 0);
    bench_check(listener >= 0, "listen: %s", strerror(-listener));
    echo_start_load("strand", *connections, strand_tcp_port(listener));
    STRAND_SCOPE(scope);
    for (long i = 0; i < *connections; i++) {
        int fd = strand_accept(listener);
        bench_check(fd >= 0, "accept: %s", strerror(-fd));
        strand_spawn(scope, serve, (void *)(intptr_t)fd);
    }
    strand_scope_join(scope);
    strand_close(listener);
    return NULL;
}

int main(int argc, char **argv)
{
    long connections = echo_connections(argc, argv);
    strand_run(STRAND_OPTIONS(.threads = 1), root, &connections);
    return 0;
}
