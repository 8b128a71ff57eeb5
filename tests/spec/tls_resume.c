/*
 * Sessions that clients resume.
 */
#define SUITE tls_resume
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_responses.h"

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

TEST_INSIDE(a_session_ends_with_the_list_of_revoked_certificates_that_the_client_has)
{
    int of_server;
    char list[4096];
    make_passing();
    make_list(&lasting_authority, NULL, BEHIND_A_DAY - 60, list, sizeof list);
    open_contexts(STRAND_TLS_ATTR(.trust = lasting_authority.public_pem, .revoked = list),
                  STRAND_TLS_ATTR(.certificates = lasting.pem));
    CHECK_EQ(visit_before_and_behind(&of_server), -EKEYREJECTED);
}

TEST_INSIDE(a_session_ends_with_the_list_of_revoked_certificates_that_the_server_has)
{
    int of_server;
    char list[4096];
    make_passing();
    make_list(&lasting_authority, NULL, BEHIND_A_DAY - 60, list, sizeof list);
    open_contexts(STRAND_TLS_ATTR(.trust = lasting_authority.public_pem, .certificates = lasting.pem),
                  STRAND_TLS_ATTR(.trust = lasting_authority.public_pem, .certificates = lasting.pem, .revoked = list,
                                  .clients = STRAND_TLS_CLIENTS_REQUIRED));
    CHECK(visit_before_and_behind(&of_server) < 0);
    CHECK_EQ(of_server, -EKEYREJECTED);
}

/* ---- revocation -------------------------------------------------------------------------------------------------- */

/* A client of `trusting` hears from a server of this host that its certificate is revoked. */
static void hear_of_revocation(const char *host)
{
    static struct response revoked;
    RESPOND(&revoked, .certificate = &server, .status = V_OCSP_CERTSTATUS_REVOKED);
    strand_tls *open_client = client;
    CHECK_EQ(visit_stapler((struct stapler){.own = &server, .staple = &revoked}, host), -EKEYREJECTED);
    CHECK_EQ(strand_tls_close(client), 0);
    client = open_client;
}

TEST_INSIDE(a_revocation_ends_the_sessions_of_its_host)
{
    open_contexts(NULL, NULL);
    CHECK(!visit("example.org"));
    CHECK(!visit("127.0.0.1"));
    hear_of_revocation("EXAMPLE.org");
    CHECK(visit("127.0.0.1"));
    CHECK(!visit("example.org"));
    CHECK(visit("example.org")); /* by a session that began later */
    close_contexts();
}

/* A stream to a host whose certificate is found revoked while the stream is open. It gets its tickets afterwards. */
static void open_through_a_revocation(bool resumed)
{
    char byte;
    strand_tls_info info = {.size = sizeof info};
    open_streams("example.org");
    shake();
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK_EQ(info.resumed, resumed);
    int of_client = pair[0], of_server = pair[1];
    hear_of_revocation("EXAMPLE.org");
    pair[0] = of_client;
    pair[1] = of_server;
    CHECK_EQ(strand_tls_write_all(served, "a", 1), 1);
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    close_streams();
}

TEST_INSIDE(a_stream_that_is_open_during_a_revocation_leaves_no_session)
{
    open_contexts(NULL, NULL);
    open_through_a_revocation(false);
    CHECK(!visit("example.org"));
    open_through_a_revocation(true);
    CHECK(!visit("example.org"));
    CHECK(visit("example.org"));
    close_contexts();
}

/* ---- several threads --------------------------------------------------------------------------------------------- */

enum { VISITORS = 8 };

static int listener, visits; /* of each visitor */
static _Atomic int sessions_resumed;

static void *serve_one(void *fd)
{
    char byte;
    strand_tls *tls = strand_tls_server(serving, (int)(intptr_t)fd);
    CHECK_EQ(strand_tls_read(tls, &byte, 1), 1);
    CHECK_EQ(strand_tls_write_all(tls, "a", 1), 1);
    CHECK_EQ(strand_tls_read(tls, &byte, 1), 0);
    CHECK_EQ(strand_tls_close(tls), 0);
    return NULL;
}

static void *serve_all(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < VISITORS * visits; i++)
        strand_spawn(scope, serve_one, TEST_PTR(strand_accept(listener)));
    strand_scope_join(scope);
    return arg;
}

static void *visit_often(void *host)
{
    for (int i = 0; i < visits; i++) {
        char byte;
        strand_tls_info info = {.size = sizeof info};
        strand_tls *tls = strand_tls_client(trusting, strand_dial_tcp("127.0.0.1", strand_tcp_port(listener)), host);
        if (strand_tls_write_all(tls, "q", 1) != 1 || strand_tls_read(tls, &byte, 1) != 1)
            CHECK_FAIL("%s", strand_tls_failure(tls));
        CHECK_EQ(strand_tls_info_get(tls, &info), 0);
        sessions_resumed += info.resumed;
        CHECK_EQ(strand_tls_shutdown(tls), 0);
        CHECK_EQ(strand_tls_close(tls), 0);
    }
    return host;
}

/* All of them take from one list and add to it. TSan takes strands of one thread for threads, which share what OpenSSL
 * keeps for the thread: its random numbers. */
TEST_RACE(several_threads_resume_sessions_at_the_same_time)
{
    if (TEST_TSAN) {
        fprintf(stderr, "skipped: tls_resume: TSan does not know that strands of one thread run one after the other\n");
        return;
    }
    static char hosts[][12] = {"example.org", "EXAMPLE.org", "127.0.0.1"};
    open_contexts(NULL, NULL);
    sessions_resumed = 0;
    visits = test_seed() ? 2 : 20;
    CHECK((listener = strand_listen_tcp("127.0.0.1", 0)) >= 0);
    {
        STRAND_SCOPE(scope);
        strand_spawn(scope, serve_all, NULL);
        for (int i = 0; i < VISITORS; i++)
            strand_spawn(scope, visit_often, hosts[i % 3]);
        strand_scope_join(scope);
    }
    CHECK(sessions_resumed > 0);
    CHECK_EQ(strand_close(listener), 0);
    close_contexts();
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
