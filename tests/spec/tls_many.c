/*
 * Many connections: waves of them, and ten thousand at once. What they take is given back.
 */
#define SUITE tls_many
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WAVE = 100 };

static int listener;

static void *serve_one(void *arg)
{
    char byte;
    strand_tls *tls = strand_tls_server(serving, (int)(intptr_t)arg);
    CHECK_EQ(strand_tls_read(tls, &byte, 1), 1);
    CHECK_EQ(strand_tls_write_all(tls, &byte, 1), 1);
    CHECK_EQ(strand_tls_read(tls, &byte, 1), 0);
    CHECK_EQ(strand_tls_shutdown(tls), 0);
    CHECK_EQ(strand_tls_close(tls), 0);
    return NULL;
}

static void *serve_wave(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < WAVE; i++) {
        int fd = strand_accept(listener);
        CHECK(fd >= 0);
        strand_spawn(scope, serve_one, TEST_PTR(fd));
    }
    strand_scope_join(scope);
    return arg;
}

/* A connection that has its own byte sent back, and ends in order. */
static void *visit_once(void *i)
{
    char byte = (char)(intptr_t)i, got = 0;
    int fd = strand_dial_tcp("127.0.0.1", strand_tcp_port(listener));
    CHECK(fd >= 0);
    strand_tls *tls = strand_tls_client(trusting, fd, "example.org");
    if (strand_tls_write_all(tls, &byte, 1) != 1 || strand_tls_read(tls, &got, 1) != 1)
        CHECK_FAIL("%s", strand_tls_failure(tls));
    CHECK_EQ(got, byte);
    CHECK_EQ(strand_tls_shutdown(tls), 0);
    CHECK_EQ(strand_tls_read(tls, &got, 1), 0);
    CHECK_EQ(strand_tls_close(tls), 0);
    return NULL;
}

static void run_wave(void)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, serve_wave, NULL);
    for (int i = 0; i < WAVE; i++)
        strand_spawn(scope, visit_once, TEST_PTR(i));
    strand_scope_join(scope);
}

/* Slower builds make fewer waves, two at least. TSan takes strands of one thread for threads, which share what OpenSSL
 * keeps for the thread: its random numbers. */
TEST_CASE_(waves_of_connections_leave_nothing, true, false, true, 4)
{
    if (TEST_TSAN) {
        fprintf(stderr, "skipped: tls_many: TSan does not know that strands of one thread run one after the other\n");
        return;
    }
    long waves = test_scale(1000) / WAVE;
    open_contexts(NULL, NULL);
    listener = strand_listen_tcp("127.0.0.1", 0);
    CHECK(listener >= 0);
    run_wave();
    run_wave();
    int descriptors = test_count_entries("/proc/self/fd");
    size_t resident = test_resident_bytes();
    for (long i = 2; i < waves; i++)
        run_wave();
    CHECK_EQ(test_count_entries("/proc/self/fd"), descriptors);
    if (!TEST_ASAN) /* which keeps memory of its own */
        CHECK(test_resident_bytes() < resident + ((size_t)32 << 20));
    CHECK_EQ(strand_close(listener), 0);
    close_contexts();
}

/* ---- all at once ------------------------------------------------------------------------------------------------- */

/* Connections that are open at once, and the strands that open them. */
enum { HELD_MOST = 10000, OPENERS = 64 };

static struct held {
    strand_tls *client, *served;
} held[HELD_MOST];
static long held_count;
static _Atomic long next_held;
static char held_path[64];

/* The number behind a word of a file, or at its beginning; or `otherwise`. */
static long number_in(const char *path, const char *word, long otherwise)
{
    char line[256];
    long number = otherwise;
    FILE *file = fopen(path, "re");
    while (file && number == otherwise && fgets(line, sizeof line, file))
        if (strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), "%ld", &number) != 1)
            number = otherwise;
    if (file)
        fclose(file);
    return number;
}

/* What the machine and the container have left, in KiB. */
static long memory_left(void)
{
    const long no_limit = LONG_MAX / 2;
    long machine = number_in("/proc/meminfo", "MemAvailable:", no_limit);
    long most = number_in("/sys/fs/cgroup/memory.max", "", no_limit);
    long container = (most - (most == no_limit ? 0 : number_in("/sys/fs/cgroup/memory.current", "", 0))) / 1024;
    return machine < container ? machine : container;
}

/* How many connections the limits permit, both ends of each. */
static long count_permitted(void)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t others = (rlim_t)test_count_entries("/proc/self/fd") + 200; /* more may come with threads */
    long descriptors = limit.rlim_cur == RLIM_INFINITY ? HELD_MOST
                       : limit.rlim_cur < others       ? 0
                                                       : (long)((limit.rlim_cur - others) / 2);
    long memory = memory_left() / 4 / 256; /* 256 KiB each */
    long wanted = test_scale(HELD_MOST);
    long most = descriptors < memory ? descriptors : memory;
    if (most < wanted)
        fprintf(stderr, "tls_many: the system permits %ld connections at once, not %ld\n", most, wanted);
    return most < wanted ? most : wanted;
}

/* The server's end of one connection: its client says which one it is. */
static void *serve_held(void *arg)
{
    long i;
    strand_tls *tls = strand_tls_server(serving, (int)(intptr_t)arg);
    CHECK_EQ(strand_tls_read(tls, &i, sizeof i), sizeof i);
    CHECK(i >= 0 && i < held_count && !held[i].served);
    held[i].served = tls;
    CHECK_EQ(strand_tls_write_all(tls, "a", 1), 1);
    return NULL;
}

static void *serve_all_held(void *arg)
{
    STRAND_SCOPE(scope);
    for (long i = 0; i < held_count; i++) {
        int fd = strand_accept(listener);
        CHECK(fd >= 0);
        strand_spawn(scope, serve_held, TEST_PTR(fd));
    }
    strand_scope_join(scope);
    return arg;
}

static void *open_held(void *arg)
{
    char byte;
    for (long i; (i = next_held++) < held_count;) {
        int fd = strand_dial_unix(held_path);
        CHECK(fd >= 0);
        strand_tls *tls = held[i].client = strand_tls_client(trusting, fd, "example.org");
        if (strand_tls_write_all(tls, &i, sizeof i) != sizeof i || strand_tls_read(tls, &byte, 1) != 1)
            CHECK_FAIL("%s", strand_tls_failure(tls));
    }
    return arg;
}

static void open_all_held(void)
{
    STRAND_SCOPE(scope);
    next_held = 0;
    strand_spawn(scope, serve_all_held, NULL);
    for (int i = 0; i < OPENERS; i++)
        strand_spawn(scope, open_held, NULL);
    strand_scope_join(scope);
}

/* Each connection carries its own bytes, in both directions. */
static void use_all_held(void)
{
    for (long i = 0; i < held_count; i++) {
        long got = -1;
        CHECK_EQ(strand_tls_write_all(held[i].client, &i, sizeof i), sizeof i);
        CHECK_EQ(strand_tls_read(held[i].served, &got, sizeof got), sizeof got);
        CHECK_EQ(got, i);
        CHECK_EQ(strand_tls_write_all(held[i].served, &i, sizeof i), sizeof i);
        CHECK_EQ(strand_tls_read(held[i].client, &got, sizeof got), sizeof got);
        CHECK_EQ(got, i);
    }
}

static void close_all_held(void)
{
    for (long i = 0; i < held_count; i++) {
        CHECK_EQ(strand_tls_close(held[i].client), 0);
        CHECK_EQ(strand_tls_close(held[i].served), 0);
        held[i] = (struct held){NULL, NULL};
    }
}

/* Some are opened before: what is there once for all does not count. */
TEST_CASE_(ten_thousand_connections_are_open_at_once, true, false, true, 4)
{
    if (TEST_TSAN) {
        fprintf(stderr, "skipped: tls_many: TSan does not know that strands of one thread run one after the other\n");
        return;
    }
    open_contexts(NULL, NULL);
    snprintf(held_path, sizeof held_path, "@libstrand-tls-many-%d", (int)getpid());
    CHECK((listener = strand_listen_unix(held_path)) >= 0);
    long permitted = count_permitted();
    held_count = permitted < WAVE ? permitted : WAVE;
    open_all_held();
    close_all_held();
    int descriptors = test_count_entries("/proc/self/fd");
    size_t resident = test_resident_bytes();
    held_count = permitted;
    open_all_held();
    use_all_held();
    size_t each = (test_resident_bytes() - resident) / (size_t)(held_count ? held_count : 1);
    printf("tls_many: %ld connections are open at once; each takes %zu bytes, with both ends\n", held_count, each);
    if (!TEST_ASAN && held_count >= 1000)
        CHECK(each < (size_t)128 << 10);
    close_all_held();
    CHECK_EQ(test_count_entries("/proc/self/fd"), descriptors);
    CHECK_EQ(strand_close(listener), 0);
    close_contexts();
}
