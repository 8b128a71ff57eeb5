/*
 * Clients of examples/httpd that are cut in the middle, for tools/soak-httpd.sh: so many at a time, each on a thread
 * and a blocking socket. One says a part of a request, or takes a part of an answer, rests for a random time, and
 * closes or resets its connection.
 *
 *     cut_clients PORT CLIENTS SECONDS
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int port;
static time_t end;
static atomic_long cut, failed;

static int dial(void)
{
    const struct timeval limit = {5, 0};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void hang_up(int fd, bool by_reset)
{
    const struct linger at_once = {1, 0};
    if (by_reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static void *be_cut(void *arg)
{
    static const char *const requests[] = {
        "GET /hello HTTP/1.1\r\nHost: soak\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: soak\r\n\r\nGET /slow?ms=200 HTTP/1.1\r\nHost: soak\r\n\r\nGET /hel",
        "GET /large HTTP/1.1\r\nHost: soak\r\n\r\n",
        "GET /slow?ms=3000&strands=5 HTTP/1.1\r\nHost: soak\r\n\r\n",
        "GET /strands HTTP/1.1\r\nHost: soak\r\nUser-Agent: half",
        "garbage\r\n\r\n",
    };
    unsigned seed = (unsigned)(uintptr_t)arg;
    static __thread char bytes[64 * 1024];
    while (time(NULL) < end) {
        const char *request = requests[(unsigned)rand_r(&seed) % (sizeof requests / sizeof *requests)];
        struct timespec rest = {0, rand_r(&seed) % 500 * 1000000L};
        int fd = dial();
        if (fd < 0 || write(fd, request, strlen(request)) < 0)
            failed++;
        else if (rand_r(&seed) % 2 && recv(fd, bytes, 1 + (size_t)rand_r(&seed) % sizeof bytes, MSG_DONTWAIT) == 0)
            failed++; /* it has hung up before us */
        nanosleep(&rest, NULL);
        if (fd >= 0)
            hang_up(fd, rand_r(&seed) % 2);
        cut++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    enum { MOST = 1000 };
    pthread_t threads[MOST];
    int clients = argc == 4 ? atoi(argv[2]) : 0;
    if (clients < 1 || clients > MOST)
        return fputs("usage: cut_clients PORT CLIENTS SECONDS\n", stderr), 2;
    signal(SIGPIPE, SIG_IGN);
    port = atoi(argv[1]);
    end = time(NULL) + atoi(argv[3]);
    for (int i = 0; i < clients; i++)
        if (pthread_create(&threads[i], NULL, be_cut, (void *)(uintptr_t)(i + 1)) != 0)
            return perror("cut_clients"), 1;
    for (int i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    printf("cut_clients: cut=%ld failed=%ld\n", (long)cut, (long)failed);
    return 0;
}
