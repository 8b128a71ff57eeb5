/*
 * Sessions that clients resume.
 */
#define SUITE tls_resume
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_clock.h"
#include "tls_pair.h"

static struct made wild, other_authority;
static struct made lasting_authority, lasting, passing; /* the last one is good for a day, the others for a month */

static void *answer(void *arg)
{
    char byte;
    CHECK_EQ(strand_tls_read(served, &byte, 1), 1);
    CHECK_EQ(strand_tls_write_all(served, "a", 1), 1);
    CHECK_EQ(strand_tls_shutdown(served), 0);
    return arg;
}

/* A connection, on which the client hears a byte, and the tickets before it. Returns whether the session was resumed,
 * which both ends have to say. */
static bool visit(const char *host)
{
    char byte;
    strand_tls_info here = {.size = sizeof here}, there = {.size = sizeof there};
    open_streams(host);
    {
        STRAND_SCOPE(scope);
        strand s = strand_spawn(scope, answer, NULL);
        if (strand_tls_write_all(client, "q", 1) != 1 || strand_tls_read(client, &byte, 1) != 1)
            CHECK_FAIL("%s: %s", host, strand_tls_failure(client));
        strand_join(s);
    }
    CHECK_EQ(strand_tls_info_get(client, &here), 0);
    CHECK_EQ(strand_tls_info_get(served, &there), 0);
    CHECK_EQ(here.resumed, there.resumed);
    CHECK_CONTAINS(here.peer, "CN = ");
    close_streams();
    return here.resumed;
}

TEST_INSIDE(a_further_connection_to_the_same_host_is_resumed)
{
    open_contexts(NULL, NULL);
    CHECK(!visit("example.org"));
    for (int i = 0; i < 5; i++)
        CHECK(visit("example.org")); /* each one leaves new tickets */
    CHECK(visit("EXAMPLE.org."));
    CHECK(!visit("127.0.0.1"));
    close_contexts();
}

TEST_INSIDE(a_context_that_replaces_another_one_knows_none_of_its_sessions)
{
    make_usual();
    if (!other_authority.key)
        MAKE(&other_authority, .subject = "other authority", .authority = true);
    open_contexts(NULL, NULL);
    CHECK(!visit("example.org"));
    CHECK(visit("example.org"));
    strand_tls_context *same = strand_tls_context_open(STRAND_TLS_ATTR(.trust = authority.public_pem));
    CHECK_EQ(strand_tls_context_replace(trusting, same), 0);
    CHECK(!visit("example.org"));
    CHECK(visit("example.org"));
    strand_tls_context *other = strand_tls_context_open(STRAND_TLS_ATTR(.trust = other_authority.public_pem));
    CHECK_EQ(strand_tls_context_replace(trusting, other), 0);
    open_streams("example.org");
    int of_server;
    CHECK_EQ(shake_both(&of_server), -EKEYREJECTED);
    close_streams();
    strand_tls_context_close(same);
    strand_tls_context_close(other);
    close_contexts();
}

TEST_INSIDE(a_server_that_was_replaced_makes_full_handshakes)
{
    open_contexts(NULL, NULL);
    CHECK(!visit("example.org"));
    strand_tls_context *other = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = server.pem));
    CHECK_EQ(strand_tls_context_replace(serving, other), 0);
    CHECK(!visit("example.org"));
    CHECK(visit("example.org"));
    strand_tls_context_close(other);
    close_contexts();
}

/* A handshake after which the client reads nothing, and so gets no tickets. Returns whether the session was resumed. */
static bool shake_only(void)
{
    strand_tls_info info = {.size = sizeof info};
    open_streams("example.org");
    shake();
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    close_streams();
    return info.resumed;
}

TEST_INSIDE(a_ticket_is_used_once)
{
    open_contexts(NULL, NULL);
    CHECK(!visit("example.org")); /* leaves two tickets */
    CHECK(shake_only());
    CHECK(shake_only());
    CHECK(!shake_only());
    close_contexts();
}

enum { BEFORE_A_DAY = 24 * 3600 - 1800, BEHIND_A_DAY = 24 * 3600 + 600 };

static void make_passing(void)
{
    if (passing.key)
        return;
    MAKE(&lasting_authority, .subject = "lasting authority", .authority = true, .to_days = 30);
    MAKE(&lasting, .subject = "lasting", .names = "DNS:example.org", .issuer = &lasting_authority, .to_days = 30);
    MAKE(&passing, .subject = "passing", .names = "DNS:example.org", .issuer = &lasting_authority);
}

/* Resumed twice, so that the last ticket is that of a resumed session; then the certificate expires. Returns the
 * client's result, and the server's by *of_server. */
static int visit_before_and_behind(int *of_server)
{
    later = BEFORE_A_DAY;
    CHECK(!visit("example.org"));
    CHECK(visit("example.org"));
    CHECK(visit("example.org"));
    later = BEHIND_A_DAY;
    open_streams("example.org");
    int result = shake_both(of_server);
    char byte;
    if (!result && *of_server) /* TLS 1.3: the server has refused the client afterwards */
        result = (int)strand_tls_read(client, &byte, 1);
    close_streams();
    close_contexts();
    later = 0;
    return result;
}

TEST_INSIDE(a_session_ends_with_the_certificate_that_the_client_has_checked)
{
    int of_server;
    make_passing();
    open_contexts(STRAND_TLS_ATTR(.trust = lasting_authority.public_pem), STRAND_TLS_ATTR(.certificates = passing.pem));
    CHECK_EQ(visit_before_and_behind(&of_server), -EKEYREJECTED);
}

TEST_INSIDE(a_session_ends_with_the_certificate_that_the_server_has_checked)
{
    int of_server;
    make_passing();
    open_contexts(STRAND_TLS_ATTR(.trust = lasting_authority.public_pem, .certificates = passing.pem),
                  STRAND_TLS_ATTR(.trust = lasting_authority.public_pem, .certificates = lasting.pem,
                                  .clients = STRAND_TLS_CLIENTS_REQUIRED));
    CHECK(visit_before_and_behind(&of_server) < 0);
    CHECK_EQ(of_server, -EKEYREJECTED);
}

TEST_INSIDE(a_context_can_do_without_sessions)
{
    make_usual();
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .no_resumption = true), NULL);
    CHECK(!visit("example.org"));
    CHECK(!visit("example.org"));
    close_contexts();
    open_contexts(NULL, STRAND_TLS_ATTR(.certificates = server.pem, .no_resumption = true));
    CHECK(!visit("example.org"));
    CHECK(!visit("example.org"));
    close_contexts();
}

TEST_INSIDE(a_context_keeps_the_newest_sessions_of_some_hosts)
{
    char host[40];
    make_usual();
    if (!wild.key)
        MAKE(&wild, .subject = "wild", .names = "DNS:*.example.com", .issuer = &authority);
    open_contexts(NULL, STRAND_TLS_ATTR(.certificates = wild.pem));
    for (int i = 0; i < 33; i++) {
        snprintf(host, sizeof host, "h%d.example.com", i);
        CHECK(!visit(host));
    }
    CHECK(visit("h32.example.com"));
    CHECK(!visit("h0.example.com"));
    close_contexts();
}
