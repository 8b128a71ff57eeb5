/*
 * A host of two addresses, the first of which takes packets and never answers: the queue of its listener is full. It is
 * dialled with and without a deadline, and while the dialling strand is cancelled.
 */
#include "strand.h"
#include "strand/io.h"

#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEAD = 2, LIVE = 1, FILLERS = 4 };

/* The system itself gives up a dead address after some two minutes only. */
#define LIMIT (60 * STRAND_S)

static int port;

static struct sockaddr_in address_of(int last)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(0x7f000000u + (unsigned)last);
    return address;
}

static struct addrinfo *entry(int last, struct addrinfo *next)
{
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in));
    struct sockaddr_in address = address_of(last);
    info->ai_family = AF_INET;
    info->ai_addrlen = sizeof address;
    info->ai_addr = memcpy(info + 1, &address, sizeof address);
    info->ai_next = next;
    return info;
}

/* "two": the dead and the live one; "dead": the dead one, twice; a number: the live one. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    (void)service;
    bool number = node[0] == '1', two = strcmp(node, "two") == 0;
    if (hints->ai_flags & AI_NUMERICHOST && !number)
        return EAI_NONAME;
    *result = number ? entry(LIVE, NULL) : entry(DEAD, entry(two ? LIVE : DEAD, NULL));
    return 0;
}

void freeaddrinfo(struct addrinfo *info)
{
    for (struct addrinfo *next; info; info = next) {
        next = info->ai_next;
        free(info);
    }
}

static void fill_queue(void)
{
    struct sockaddr_in address = address_of(DEAD);
    int dead = socket(AF_INET, SOCK_STREAM, 0), last = -1;
    if (bind(dead, (struct sockaddr *)&address, sizeof address) != 0 || listen(dead, 0) != 0)
        perror("dead address");
    for (int i = 0; i < FILLERS; i++) {
        last = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(last, (struct sockaddr *)&address, sizeof address);
    }
    if (poll(&(struct pollfd){.fd = last, .events = POLLOUT}, 1, 0) != 0)
        puts("it answers");
}

static int descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static const char *dial(const char *host)
{
    int fd = strand_dial_tcp(host, port);
    if (fd >= 0)
        strand_close(fd);
    return fd >= 0 ? "connected" : strerror(-fd);
}

static void *dial_without_deadline(void *host)
{
    int64_t begun = strand_now().ns;
    const char *how = dial(host);
    printf("without a deadline: %s%s\n", how, strand_now().ns - begun < LIMIT ? "" : ", late");
    return NULL;
}

static void dial_before(const char *host, int64_t ns)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(ns));
        printf("before a deadline: %s\n", dial(host));
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        puts("the deadline passed");
    }
    STRAND_END
}

static void *run(void *arg)
{
    STRAND_SCOPE(scope);
    int listener = strand_listen_tcp("127.0.0.1", 0);
    port = strand_tcp_port(listener);
    fill_queue();
    dial_before("two", 2 * STRAND_S);
    dial_before("dead", 500 * STRAND_MS);
    int before = descriptors();
    strand cancelled = strand_spawn(scope, dial_without_deadline, "dead");
    strand_sleep(50 * STRAND_MS);
    strand_cancel(cancelled, "enough");
    strand_wait(cancelled);
    printf("%s descriptor is left of one that was cancelled\n", descriptors() == before ? "no" : "a");
    dial_without_deadline("two");
    strand_close(listener);
    return arg;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    strand_run(NULL, run, NULL);
    return 0;
}
