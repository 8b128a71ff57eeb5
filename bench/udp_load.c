/*
 * usage: udp_load IN_FLIGHT PORT RUNTIME
 *
 * The load of udp_echo: so many datagrams of 64 bytes are under way, and each that comes back is sent again with new
 * bytes. How many come back in a second. One thread, recvmmsg and sendmmsg. Each echo is looked at: its first word says
 * which datagram it is, and the others follow from its turn. Ends the server by an empty datagram.
 */
#define _GNU_SOURCE
#include "udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define WARM_UP_NS BENCH_MANY(INT64_C(300000000))
#define SAMPLE_NS BENCH_MANY(INT64_C(300000000))

enum { WORDS = UDP_MESSAGE / 8 };
static uint64_t turns[UDP_IN_FLIGHT], bytes[UDP_IN_FLIGHT][WORDS];
static struct iovec parts[UDP_IN_FLIGHT];
static struct mmsghdr messages[UDP_IN_FLIGHT];

static void fill(uint64_t number, uint64_t message[WORDS])
{
    message[0] = number;
    for (uint64_t i = 1; i < WORDS; i++)
        message[i] = (number << 40 ^ turns[number]) + i * UINT64_C(0x9e3779b97f4a7c15);
}

/* Looks at an echo, and makes the next message of it. */
static void turn(uint64_t message[WORDS], unsigned size)
{
    uint64_t expected[WORDS], number = message[0];
    bench_check(size == UDP_MESSAGE && number < UDP_IN_FLIGHT, "%u bytes came back, of datagram %" PRIu64, size,
                number);
    fill(number, expected);
    bench_check(memcmp(expected, message, UDP_MESSAGE) == 0, "datagram %" PRIu64 " came back otherwise", number);
    turns[number]++;
    fill(number, message);
}

static void send_all(int fd, int count)
{
    for (int sent = 0, put; sent < count; sent += put)
        bench_check((put = sendmmsg(fd, messages + sent, (unsigned)(count - sent), 0)) > 0, "send: %s",
                    strerror(errno));
}

/* Round trips per second, over a time of so many ns. */
static double measure(int fd, int64_t time)
{
    long trips = 0;
    int64_t start = bench_now(), now;
    do {
        int count = recvmmsg(fd, messages, UDP_IN_FLIGHT, MSG_WAITFORONE, NULL);
        bench_check(count > 0, "no echo for five seconds: %s", strerror(errno));
        for (int i = 0; i < count; i++)
            turn(bytes[i], messages[i].msg_len);
        send_all(fd, count);
        trips += count;
        now = bench_now();
    } while (now - start < time);
    return (double)trips * 1e9 / (double)(now - start);
}

int main(int argc, char **argv)
{
    bench_check(argc == 4, "usage: udp_load IN_FLIGHT PORT RUNTIME");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    const struct timeval limit = {.tv_sec = 5};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bench_check(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "%s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (int i = 0; i < UDP_IN_FLIGHT; i++) {
        fill((uint64_t)i, bytes[i]);
        parts[i] = (struct iovec){bytes[i], UDP_MESSAGE};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    send_all(fd, UDP_IN_FLIGHT);
    measure(fd, WARM_UP_NS);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("udp_echo", argv[3], 1, "trips/s", measure(fd, SAMPLE_NS));
    bench_check(send(fd, "", 0, 0) == 0, "the server is not told of the end");
    return 0;
}
