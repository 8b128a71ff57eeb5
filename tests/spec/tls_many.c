/*
 * Ten thousand connections, a wave of them at a time: what they take is given back.
 */
#define SUITE tls_many
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

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

/* Slower builds make fewer waves. TSan takes strands of one thread for threads, which share what OpenSSL keeps for the
 * thread: its random numbers. */
TEST_CASE_(ten_thousand_connections_leave_nothing, true, false, true, 4)
{
    if (TEST_TSAN) {
        fprintf(stderr, "skipped: tls_many: TSan does not know that strands of one thread run one after the other\n");
        return;
    }
    long waves = test_scale(10000) / WAVE;
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
