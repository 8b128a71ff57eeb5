/*
 * What holds for every function of strand/tls.h that may block: it is a cancellation point, which in a cancelled strand
 * throws before it does anything. tools/check-blocking.sh proves that no function is missing.
 */
#define SUITE tls_blocking
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

static char byte;

/* ROW(function, a call) */
#define BLOCKING(ROW)                                                                                                  \
    ROW(strand_tls_handshake, strand_tls_handshake(client))                                                            \
    ROW(strand_tls_read, strand_tls_read(client, &byte, 1))                                                            \
    ROW(strand_tls_write, strand_tls_write(client, "w", 1))                                                            \
    ROW(strand_tls_write_all, strand_tls_write_all(client, "w", 1))                                                    \
    ROW(strand_tls_shutdown, strand_tls_shutdown(client))

#define CALL(name, call)                                                                                               \
    static void *call_##name(void *arg)                                                                                \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return TEST_PTR(call);                                                                                         \
    }
BLOCKING(CALL)

static const struct {
    const char *name;
    strand_fn *fn;
} calls[] = {
#define ENTRY(name, call) {#name, call_##name},
    BLOCKING(ENTRY)
#undef ENTRY
};

static void *try_call(void *i)
{
    test_try_operation(calls[(intptr_t)i].fn, NULL);
    return NULL;
}

/* contract 4.18 */
TEST_INSIDE(an_interrupted_call_on_a_stream_does_nothing)
{
    open_all();
    shake();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        test_log_clear();
        test_run_cancelled(try_call, TEST_PTR(i));
        if (!test_log_is("cut"))
            CHECK_FAIL("%s is no cancellation point", calls[i].name);
    }
    /* neither an end nor a byte was sent */
    CHECK_EQ(strand_tls_write_all(served, "b", 1), 1);
    CHECK_EQ(strand_tls_write_all(client, "a", 1), 1);
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    CHECK_EQ(byte, 'b');
    CHECK_EQ(strand_tls_read(served, &byte, 1), 1);
    CHECK_EQ(byte, 'a');
    close_all();
}

TEST_INSIDE(a_call_without_a_stream_or_a_buffer_is_refused)
{
    open_all();
    CHECK_EQ(strand_tls_handshake(NULL), -EINVAL);
    CHECK_EQ(strand_tls_read(NULL, &byte, 1), -EINVAL);
    CHECK_EQ(strand_tls_write(NULL, &byte, 1), -EINVAL);
    CHECK_EQ(strand_tls_write_all(NULL, &byte, 1), -EINVAL);
    CHECK_EQ(strand_tls_shutdown(NULL), -EINVAL);
    CHECK_EQ(strand_tls_read(client, NULL, 1), -EINVAL);
    CHECK_EQ(strand_tls_write(client, NULL, 1), -EINVAL);
    CHECK_EQ(strand_tls_close(NULL), 0);
    CHECK_STR(strand_tls_failure(NULL), "");
    strand_tls_context_close(NULL);
    close_all();
}
