/*
 * Several certificates: by the name that a client asks for, and one after the other; and programs of others as peers.
 */
#define SUITE tls_hosts
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include "strand/file.h"
#include "strand/process.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

static struct made second, wild, other_authority, guest, stranger;

static void make_hosts(void)
{
    make_usual();
    if (second.key)
        return;
    MAKE(&second, .subject = "second", .names = "DNS:example.org,DNS:example.net", .issuer = &authority);
    MAKE(&wild, .subject = "wild", .names = "DNS:*.example.com", .issuer = &authority);
    MAKE(&other_authority, .subject = "other authority", .authority = true);
    MAKE(&guest, .subject = "guest", .issuer = &authority);
    MAKE(&stranger, .subject = "stranger", .issuer = &other_authority);
}

/* The subject that a client of this host sees, whose handshake has to succeed. */
static const char *seen_by(const char *host)
{
    static char peer[100];
    strand_tls_info info = {.size = sizeof info};
    open_streams(host);
    shake();
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    snprintf(peer, sizeof peer, "%s", info.peer);
    close_streams();
    return peer;
}

TEST_INSIDE(a_server_has_a_certificate_for_each_name)
{
    make_hosts();
    open_contexts(NULL, NULL);
    strand_tls_context *others[] = {strand_tls_context_open(STRAND_TLS_ATTR(.certificates = second.pem)),
                                    strand_tls_context_open(STRAND_TLS_ATTR(.certificates = wild.pem))};
    CHECK_EQ(strand_tls_context_name(serving, "EXAMPLE.net", others[0]), 0);
    CHECK_EQ(strand_tls_context_name(serving, "*.example.com", others[1]), 0);
    CHECK_EQ(strand_tls_context_name(serving, "example.net", serving), -EINVAL);
    CHECK_EQ(strand_tls_context_name(serving, "", others[0]), -EINVAL);
    strand_tls_context_close(others[0]);
    strand_tls_context_close(others[1]);
    CHECK_STR(seen_by("example.net"), "CN = second");
    CHECK_STR(seen_by("www.example.com"), "CN = wild");
    CHECK_STR(seen_by("example.org"), "CN = server");
    CHECK_STR(seen_by("127.0.0.1"), "CN = server");
    close_contexts();
}

/* Whether the stream's peer has sent this certificate. */
static bool is_peer(strand_tls *tls, const struct made *m)
{
    strand_tls_info info = {.size = sizeof info}, again = info;
    CHECK_EQ(strand_tls_info_get(tls, &info), 0);
    CHECK_EQ(strand_tls_info_get(tls, &again), 0);
    CHECK(info.peer_certificate == again.peer_certificate);
    const unsigned char *der = info.peer_certificate;
    X509 *peer = d2i_X509(NULL, &der, (long)info.peer_certificate_size);
    bool is = peer && X509_cmp(peer, m->certificate) == 0;
    CHECK(!peer || der == (const unsigned char *)info.peer_certificate + info.peer_certificate_size);
    X509_free(peer);
    return is;
}

TEST_INSIDE(both_ends_can_look_at_the_certificate_of_the_other_one)
{
    make_hosts();
    open_contexts(STRAND_TLS_ATTR(.certificates = guest.pem, .trust = authority.public_pem),
                  STRAND_TLS_ATTR(.certificates = server.pem, .trust = authority.public_pem,
                                  .clients = STRAND_TLS_CLIENTS_REQUIRED));
    for (int time = 0; time < 2; time++) { /* the second handshake resumes the first one's session */
        open_streams("example.org");
        strand_tls_info info = {.size = sizeof info, .peer_certificate = "before"};
        CHECK_EQ(strand_tls_info_get(served, &info), 0);
        CHECK(!info.peer_certificate && !info.peer_certificate_size);
        shake();
        char byte;
        CHECK_EQ(strand_tls_write_all(served, "x", 1), 1);
        CHECK_EQ(strand_tls_read(client, &byte, 1), 1); /* and the tickets before it */
        CHECK_EQ(strand_tls_info_get(client, &info), 0);
        CHECK_EQ(info.resumed, time == 1);
        CHECK(is_peer(served, &guest));
        CHECK(is_peer(client, &server));
        close_streams();
    }
    close_contexts();
}

TEST_INSIDE(a_peer_without_a_certificate_has_none_to_look_at)
{
    open_all();
    shake();
    strand_tls_info info = {.size = sizeof info, .peer_certificate = "before"};
    CHECK_EQ(strand_tls_info_get(served, &info), 0);
    CHECK(!info.peer_certificate && !info.peer_certificate_size);
    /* a program of an earlier version has a smaller struct */
    info = (strand_tls_info){.size = offsetof(strand_tls_info, peer_certificate), .peer_certificate = "after"};
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK_STR((const char *)info.peer_certificate, "after");
    CHECK_STR(info.peer, "CN = server");
    close_all();
}

/* The handshakes of a client with this certificate and a server that requires one of `authority`, while the context for
 * the name that the client asks for trusts the other authority and requires nothing. Returns the server's result. */
static int introduce_by_name(const struct made *m)
{
    make_hosts();
    open_contexts(STRAND_TLS_ATTR(.certificates = m->pem, .trust = authority.public_pem),
                  STRAND_TLS_ATTR(.certificates = server.pem, .trust = authority.public_pem,
                                  .clients = STRAND_TLS_CLIENTS_REQUIRED));
    strand_tls_context *other =
        strand_tls_context_open(STRAND_TLS_ATTR(.certificates = second.pem, .trust = other_authority.public_pem));
    CHECK_EQ(strand_tls_context_name(serving, "example.net", other), 0);
    strand_tls_context_close(other);
    open_streams("example.net");
    int of_server;
    CHECK_EQ(shake_both(&of_server), 0);
    close_all();
    return of_server;
}

TEST_INSIDE(the_name_that_a_client_asks_for_does_not_change_which_clients_are_trusted)
{
    CHECK_EQ(introduce_by_name(&guest), 0);
    CHECK_EQ(introduce_by_name(&stranger), -EKEYREJECTED);
}

TEST_INSIDE(certificates_are_replaced_without_a_restart)
{
    make_hosts();
    open_all();
    strand_tls_context *new = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = second.pem));
    CHECK_EQ(strand_tls_context_replace(serving, new), 0);
    CHECK_EQ(strand_tls_context_replace(new, serving), -EINVAL);
    CHECK_EQ(strand_tls_context_replace(serving, NULL), -EINVAL);
    strand_tls_context_close(new);
    shake(); /* opened before */
    strand_tls_info info = {.size = sizeof info};
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK_STR(info.peer, "CN = server");
    close_streams();
    CHECK_STR(seen_by("example.org"), "CN = second");
    close_contexts();
}

/* What replaces a context may be replaced in turn, in any order. */
TEST_INSIDE(a_context_follows_the_one_that_replaces_it)
{
    make_hosts();
    open_contexts(NULL, NULL);
    strand_tls_context *next = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = server.pem));
    strand_tls_context *first = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = server.pem));
    strand_tls_context *last = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = second.pem));
    CHECK_EQ(strand_tls_context_replace(next, first), 0);
    CHECK_EQ(strand_tls_context_replace(serving, next), 0);
    CHECK_EQ(strand_tls_context_replace(next, last), 0);
    strand_tls_context_close(next);
    strand_tls_context_close(first);
    strand_tls_context_close(last);
    CHECK_STR(seen_by("example.org"), "CN = second");
    close_contexts();
}

TEST_INSIDE(the_secrets_of_a_connection_by_name_are_in_the_log_of_its_context)
{
    char path[] = "/tmp/strand-keys-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    make_hosts();
    open_contexts(NULL, STRAND_TLS_ATTR(.certificates = server.pem, .key_log = path));
    strand_tls_context *other = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = second.pem));
    CHECK_EQ(strand_tls_context_name(serving, "example.net", other), 0);
    strand_tls_context_close(other);
    CHECK_STR(seen_by("example.net"), "CN = second");
    close_contexts();
    CHECK(lseek(fd, 0, SEEK_END) > 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(unlink(path), 0);
}

TEST_INSIDE(contexts_lead_to_each_other_in_no_circle)
{
    enum { COUNT = 5 };
    make_hosts();
    strand_tls_context *all[COUNT];
    for (int i = 0; i < COUNT; i++)
        all[i] = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = server.pem));
    CHECK_EQ(strand_tls_context_name(all[0], "example.net", all[1]), 0);
    CHECK_EQ(strand_tls_context_name(all[0], "example.com", all[2]), 0);
    CHECK_EQ(strand_tls_context_replace(all[1], all[3]), 0);
    CHECK_EQ(strand_tls_context_name(all[2], "example.net", all[3]), 0);
    CHECK_EQ(strand_tls_context_name(all[1], "example.org", all[0]), -EINVAL);
    CHECK_EQ(strand_tls_context_replace(all[2], all[0]), -EINVAL);
    CHECK_EQ(strand_tls_context_name(all[3], "example.org", all[0]), -EINVAL);
    CHECK_EQ(strand_tls_context_replace(all[3], all[2]), -EINVAL);
    CHECK_EQ(strand_tls_context_replace(all[3], all[4]), 0);
    CHECK_EQ(strand_tls_context_replace(all[4], all[0]), -EINVAL);
    for (int i = 0; i < COUNT; i++)
        strand_tls_context_close(all[i]);
}

static strand_tls_context *ends[2];

static void *replace_end(void *i)
{
    return TEST_PTR(strand_tls_context_replace(ends[i != NULL], ends[i == NULL]));
}

TEST_RACE(of_two_contexts_that_replace_each_other_at_the_same_time_one_is_refused)
{
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < 2; i++)
            ends[i] = strand_tls_context_open(NULL);
        STRAND_SCOPE(scope);
        strand both[] = {strand_spawn(scope, replace_end, NULL), strand_spawn(scope, replace_end, TEST_PTR(1))};
        intptr_t results[] = {(intptr_t)strand_join(both[0]), (intptr_t)strand_join(both[1])};
        CHECK_EQ(results[0] + results[1], -EINVAL);
        strand_tls_context_close(ends[0]);
        strand_tls_context_close(ends[1]);
    }
}

/* ---- programs of others ----------------------------------------------------------------------------------------- */

static int listener;
static char trust[] = "/tmp/strand-tls-XXXXXX";

/* Serves one connection: answers a request by a page, as HTTP has it. */
static void *serve_page(void *arg)
{
    static const char page[] = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nhi\n";
    char request[4096];
    served = strand_tls_server(serving, strand_accept(listener));
    int64_t got = strand_tls_read(served, request, sizeof request);
    if (got > 0) {
        CHECK_EQ(strand_tls_write_all(served, page, sizeof page - 1), sizeof page - 1);
        CHECK_EQ(strand_tls_shutdown(served), 0);
        while (strand_tls_read(served, request, sizeof request) > 0) {
        }
    }
    CHECK_EQ(strand_tls_close(served), 0);
    return arg;
}

/* Serves one connection without saying anything. Returns the result of the first read. */
static void *serve_nothing(void *arg)
{
    (void)arg;
    char byte;
    served = strand_tls_server(serving, strand_accept(listener));
    int64_t got = strand_tls_read(served, &byte, 1);
    CHECK_EQ(strand_tls_close(served), 0);
    return TEST_PTR(got);
}

/* Run a program against the server. The caller frees what it wrote. */
static strand_captured visit_by(const char *const *argv)
{
    strand_captured captured = {.size = sizeof captured};
    STRAND_SCOPE(scope);
    strand s = strand_spawn(scope, serve_page, NULL);
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv), NULL, &captured);
    strand_join(s);
    return captured;
}

static void forget(strand_captured *captured)
{
    free(captured->output);
    free(captured->errors);
}

static int begin_visits(void)
{
    open_contexts(NULL, NULL);
    listener = strand_listen_tcp("127.0.0.1", 0);
    int fd = mkstemp(trust);
    CHECK(fd >= 0 && write(fd, authority.public_pem, strlen(authority.public_pem)) > 0);
    close(fd);
    return strand_tcp_port(listener);
}

static void end_visits(void)
{
    unlink(trust);
    CHECK_EQ(strand_close(listener), 0);
    close_contexts();
}

TEST_REAL_INSIDE(curl_gets_a_page)
{
    char url[64], where[64];
    int port = begin_visits();
    snprintf(url, sizeof url, "https://example.org:%d/", port);
    snprintf(where, sizeof where, "example.org:%d:127.0.0.1", port);
    const char *const argv[] = {"curl", "-sS", "--noproxy", "*", "--cacert", trust, "--resolve", where, url, NULL};
    strand_captured captured = visit_by(argv);
    CHECK_EQ(captured.end.code, 0);
    CHECK_STR(captured.output, "hi\n");
    forget(&captured);
    end_visits();
}

TEST_OWN_STACKS(curl_gets_a_page, "it passes locals to a process");

TEST_REAL_INSIDE(a_renegotiation_is_refused)
{
    char address[64];
    int port = begin_visits();
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    const char *const argv[] = {"openssl",
                                "s_client",
                                "-connect",
                                address,
                                "-servername",
                                "example.org",
                                "-CAfile",
                                trust,
                                "-verify_return_error",
                                "-verify_hostname",
                                "example.org",
                                "-tls1_2",
                                NULL};
    strand_captured captured = {.size = sizeof captured};
    {
        STRAND_SCOPE(scope);
        strand s = strand_spawn(scope, serve_nothing, NULL);
        strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv), STRAND_CAPTURE_ATTR(.input = "R\n", .input_size = 2),
                               &captured);
        CHECK((intptr_t)strand_join(s) < 0); /* neither a byte nor an end of TLS: the client gives up */
    }
    CHECK_CONTAINS(captured.errors, "RENEGOTIATING");
    CHECK_CONTAINS(captured.output, "Verify return code: 0 (ok)");
    CHECK_CONTAINS(captured.errors, "no renegotiation");
    forget(&captured);
    end_visits();
}

TEST_OWN_STACKS(a_renegotiation_is_refused, "it passes locals to a process");
