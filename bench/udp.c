/*
 * udp_echo: a strand sends back the datagrams that it receives, several with each call. One thread.
 */
#include "udp.h"

#include <strand/pool.h>
#include <strand/socket.h>

static char bytes[UDP_BATCH][ECHO_BUFFER];
static strand_address senders[UDP_BATCH];
static strand_datagram list[UDP_BATCH];

/* Returns whether the load goes on. */
static bool serve(int fd)
{
    for (int i = 0; i < UDP_BATCH; i++)
        list[i].size = ECHO_BUFFER;
    int count = strand_receive_many(fd, list, UDP_BATCH);
    bench_check(count > 0, "receive: %s", strerror(-count));
    for (int i = 0; i < count; i++) {
        if (!list[i].got)
            return false;
        list[i].size = list[i].got;
    }
    bench_check(strand_send_many(fd, list, (size_t)count) == count, "a datagram was not sent");
    return true;
}

static void *root(void *arg)
{
    strand_address here;
    bench_check(strand_address_ip(&here, "127.0.0.1", 0) == 0, "no address");
    int fd = strand_datagram_open(&here, NULL);
    bench_check(fd >= 0, "no socket: %s", strerror(-fd));
    for (int i = 0; i < UDP_BATCH; i++)
        list[i] = (strand_datagram){bytes[i], 0, 0, &senders[i]};
    udp_start_load("strand", strand_tcp_port(fd));
    while (serve(fd))
        ;
    strand_close(fd);
    return arg;
}

int main(void)
{
    strand_run(STRAND_OPTIONS(.threads = 1), root, NULL);
    return 0;
}
