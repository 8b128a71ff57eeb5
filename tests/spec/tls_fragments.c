/*
 * Messages after the handshake that arrive in several records: a peer that uses OpenSSL itself sends the first record
 * of a ticket, and later the others.
 */
#define SUITE tls_fragments
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include "strand/sync.h"

#include <openssl/ssl.h>

#include <sys/ioctl.h>

/* ---- the peer -------------------------------------------------------------------------------------------------- */

enum { RECORD = 512, TICKET = 1500 }; /* what a record holds at most; what a ticket holds at least */

static SSL_CTX *peer_context;
static SSL *peer;

static int fill_ticket(SSL *ssl, void *arg)
{
    static const unsigned char data[TICKET];
    (void)arg;
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data, sizeof data);
}

static SSL_TICKET_RETURN use_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t size,
                                    SSL_TICKET_STATUS status, void *arg)
{
    (void)ssl, (void)session, (void)name, (void)size, (void)status, (void)arg;
    return SSL_TICKET_RETURN_IGNORE;
}

static void open_peer(void)
{
    peer_context = SSL_CTX_new(TLS_server_method());
    CHECK(peer_context && SSL_CTX_use_certificate(peer_context, server.certificate) == 1);
    CHECK(SSL_CTX_use_PrivateKey(peer_context, server.key) == 1);
    SSL_CTX_set_max_send_fragment(peer_context, RECORD);
    SSL_CTX_set_num_tickets(peer_context, 1);
    CHECK(SSL_CTX_set_session_ticket_cb(peer_context, fill_ticket, use_ticket, NULL));
    peer = SSL_new(peer_context);
    CHECK(peer);
    SSL_set_bio(peer, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(peer);
}

static void close_peer(void)
{
    SSL_free(peer);
    SSL_CTX_free(peer_context);
    CHECK_EQ(strand_close(pair[1]), 0);
}

/* Give the peer the bytes that the client has sent. */
static void feed_peer(void)
{
    char bytes[4096];
    int64_t got = strand_read(pair[1], bytes, sizeof bytes);
    CHECK(got > 0);
    CHECK_EQ(BIO_write(SSL_get_rbio(peer), bytes, (int)got), got);
}

/* What the peer wants to send. Returns its size. */
static int take_from_peer(char *bytes, int room)
{
    int size = BIO_read(SSL_get_wbio(peer), bytes, room);
    CHECK(size < room);
    return size > 0 ? size : 0;
}

/* The peer's handshake. What it sends after the client's last message stays in its BIO. */
static void *shake_peer(void *arg)
{
    char bytes[16384];
    while (SSL_do_handshake(peer) != 1) {
        int size = take_from_peer(bytes, sizeof bytes);
        if (size)
            CHECK_EQ(strand_write_all(pair[1], bytes, (size_t)size), size);
        feed_peer();
    }
    return arg;
}

static char ticket[16384];
static int ticket_size, sent;

/* Send the first record of the ticket. */
static void send_first_record(void)
{
    ticket_size = take_from_peer(ticket, sizeof ticket);
    sent = 5 + ((unsigned char)ticket[3] << 8 | (unsigned char)ticket[4]);
    CHECK(ticket_size > sent && sent > RECORD);
    CHECK_EQ(strand_write_all(pair[1], ticket, (size_t)sent), sent);
}

static void send_others(void)
{
    size_t size = (size_t)(ticket_size - sent);
    CHECK_EQ(strand_write_all(pair[1], ticket + sent, size), size);
}

/* One byte of the client's, or 0 at its end. */
static int hear_peer(void)
{
    char byte;
    while (SSL_read(peer, &byte, 1) != 1) {
        if (SSL_get_shutdown(peer) & SSL_RECEIVED_SHUTDOWN)
            return 0;
        feed_peer();
    }
    return byte;
}

/* ---- the client ------------------------------------------------------------------------------------------------ */

static void *read_on(void *arg)
{
    (void)arg;
    char byte;
    return TEST_PTR(strand_tls_read(client, &byte, 1));
}

static void *write_byte(void *arg)
{
    (void)arg;
    return TEST_PTR(strand_tls_write(client, "w", 1));
}

static void *end_it(void *arg)
{
    (void)arg;
    return TEST_PTR(strand_tls_shutdown(client));
}

/* After the handshake. */
static void open_both(void)
{
    open_contexts(NULL, NULL);
    open_pair();
    open_peer();
    client = strand_tls_client(trusting, pair[0], "example.org");
    STRAND_SCOPE(scope);
    strand s = strand_spawn(scope, shake_peer, NULL);
    CHECK_EQ(strand_tls_handshake(client), 0);
    strand_join(s);
}

static void close_both(void)
{
    CHECK_EQ(strand_tls_close(client), 0);
    close_peer();
    close_contexts();
}

/* Until the client has taken what was sent. A reader may wait before, since the poller reports bytes later. */
static void await_taken(void)
{
    int left = 0;
    while (!test_seed() && ioctl(pair[0], FIONREAD, &left) == 0 && left > 0)
        strand_sleep(20 * STRAND_US);
}

/* A reader that has the first record of a ticket, and waits for the others. */
static strand read_amid(strand_scope scope)
{
    send_first_record();
    strand reader = strand_spawn(scope, read_on, NULL);
    await_taken();
    test_await_blocked("waits for descriptor", 1);
    return reader;
}

/* Let the client have read the first record, and nothing more, when the reader has left. */
static void read_first_record(void)
{
    STRAND_SCOPE(scope);
    strand reader = read_amid(scope);
    strand_cancel(reader, "because");
    CHECK(test_join_interrupted(reader));
}

/* Run a call in the middle of a ticket, without a reader. Returns its result. */
static intptr_t call_amid(strand_fn *call)
{
    STRAND_SCOPE(scope);
    read_first_record();
    strand calling = strand_spawn(scope, call, NULL);
    test_await_blocked("waits for descriptor", 1);
    send_others();
    return (intptr_t)strand_join(calling);
}

TEST_INSIDE(a_write_reads_the_rest_of_a_ticket)
{
    open_both();
    CHECK_EQ(call_amid(write_byte), 1);
    CHECK_EQ(hear_peer(), 'w');
    close_both();
}

TEST_INSIDE(a_shutdown_reads_the_rest_of_a_ticket)
{
    open_both();
    CHECK_EQ(call_amid(end_it), 0);
    CHECK_EQ(hear_peer(), 0);
    close_both();
}

static void *select_stream(void *arg)
{
    strand_case cases[] = {strand_on_tls(client), strand_on_time(strand_in(10 * STRAND_S))};
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    return arg;
}

/* What the peer sends behind the ticket stays in the descriptor. */
TEST_INSIDE(a_select_sees_what_follows_the_ticket_that_a_writer_reads)
{
    char byte;
    open_both();
    {
        STRAND_SCOPE(scope);
        read_first_record();
        strand writer = strand_spawn(scope, write_byte, NULL);
        test_await_blocked("waits for descriptor", 1);
        strand waiter = strand_spawn(scope, select_stream, NULL);
        test_await_blocked("waits for one of", 1);
        CHECK_EQ(SSL_write(peer, "x", 1), 1);
        int more = take_from_peer(ticket + ticket_size, (int)sizeof ticket - ticket_size);
        ticket_size += more;
        send_others();
        CHECK_EQ((intptr_t)strand_join(writer), 1);
        strand_join(waiter);
        CHECK_EQ(strand_tls_try_read(client, &byte, 1), 1);
        CHECK_EQ(byte, 'x');
        CHECK_EQ(hear_peer(), 'w');
    }
    close_both();
}

/* A writer that waits for this reader. */
static strand write_amid(strand_scope scope)
{
    strand writer = strand_spawn(scope, write_byte, NULL);
    test_await_blocked("waits for condition", 1);
    return writer;
}

TEST_INSIDE(a_write_lets_the_reader_read_the_rest_of_a_ticket)
{
    open_both();
    {
        STRAND_SCOPE(scope);
        strand reader = read_amid(scope), writer = write_amid(scope);
        send_others();
        CHECK_EQ((intptr_t)strand_join(writer), 1);
        CHECK_EQ(hear_peer(), 'w');
        strand_cancel(reader, "because");
        CHECK(test_join_interrupted(reader));
    }
    close_both();
}

TEST_INSIDE(a_reader_that_leaves_gives_the_rest_of_a_ticket_to_the_writer)
{
    open_both();
    {
        STRAND_SCOPE(scope);
        strand reader = read_amid(scope), writer = write_amid(scope);
        strand_cancel(reader, "because");
        CHECK(test_join_interrupted(reader));
        test_await_blocked("waits for descriptor", 1);
        send_others();
        CHECK_EQ((intptr_t)strand_join(writer), 1);
        CHECK_EQ(hear_peer(), 'w');
    }
    close_both();
}
