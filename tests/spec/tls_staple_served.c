/*
 * Staples that servers send, how long sessions last that began with one, and programs of others as peers.
 */
#define SUITE tls_staple_served
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_responses.h"

#include "strand/process.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct made second, demanding, between, below, stranger;
static struct made twin; /* the number is that of `server`, by another authority */
static struct response good, longer, endless, of_second, of_demanding;
static char below_chain[16384];

static void make_others(void)
{
    make_usual();
    if (second.key)
        return;
    MAKE(&second, .subject = "second", .names = "DNS:example.net", .issuer = &authority);
    MAKE(&demanding, .subject = "demanding", .names = "DNS:example.org", .issuer = &authority,
         .features = "status_request");
    MAKE(&between, .subject = "between", .issuer = &authority, .authority = true);
    MAKE(&below, .subject = "below", .names = "DNS:example.org", .issuer = &between);
    MAKE(&stranger, .subject = "stranger", .authority = true);
    MAKE(&twin, .subject = "twin", .issuer = &stranger);
    CHECK(X509_set_serialNumber(twin.certificate, X509_get_serialNumber(server.certificate)));
    snprintf(below_chain, sizeof below_chain, "%s%s", below.pem, between.public_pem);
    RESPOND(&good, .certificate = &server);
    RESPOND(&longer, .certificate = &server, .to = 7200);
    RESPOND(&endless, .certificate = &server, .endless = true);
    RESPOND(&of_second, .certificate = &second);
    RESPOND(&of_demanding, .certificate = &demanding);
}

/* Attributes of a client that requires staples, and of the usual server with a staple. */
#define REQUIRING STRAND_TLS_ATTR(.trust = authority.public_pem, .staple_required = true)
#define STAPLING(r) STRAND_TLS_ATTR(.certificates = server.pem, .staple = (r).pem)

/* A handshake. Returns whether the client has got a good staple, as it says. */
static bool gets_staple(const char *host)
{
    strand_tls_info info = {.size = sizeof info};
    open_streams(host);
    shake();
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    close_streams();
    return info.stapled;
}

/* A handshake that the client refuses for these words. */
static void check_refused(const char *words)
{
    int of_server;
    open_streams("example.org");
    CHECK_EQ(shake_both(&of_server), -EKEYREJECTED);
    CHECK_EQ(of_server, -EACCES);
    CHECK_CONTAINS(strand_tls_failure(client), words);
    close_streams();
}

/* ---- sending ------------------------------------------------------------------------------------------------------
 */

TEST_INSIDE(a_server_staples_the_response_of_its_context)
{
    make_others();
    for (int i = 0; i < 2; i++) {
        open_contexts(REQUIRING, STRAND_TLS_ATTR(.certificates = server.pem, .staple = good.pem, .only_1_3 = i));
        CHECK(gets_staple("example.org"));
        close_contexts();
    }
    open_contexts(NULL, STAPLING(good));
    CHECK(gets_staple("example.org"));
    close_contexts();
    open_contexts(NULL, NULL);
    CHECK(!gets_staple("example.org"));
    close_contexts();
}

/* OpenSSL ends a handshake in which a staple comes unasked. */
TEST_INSIDE(a_server_staples_nothing_unasked)
{
    make_others();
    open_contexts(STRAND_TLS_ATTR(.unverified = true), STAPLING(good));
    CHECK(!gets_staple("example.org"));
    close_contexts();
}

TEST_INSIDE(a_server_has_a_staple_for_each_name)
{
    make_others();
    open_contexts(REQUIRING, STAPLING(good));
    strand_tls_context *other =
        strand_tls_context_open(STRAND_TLS_ATTR(.certificates = second.pem, .staple = of_second.pem));
    CHECK_EQ(strand_tls_context_name(serving, "example.net", other), 0);
    strand_tls_context_close(other);
    CHECK(gets_staple("example.net"));
    CHECK(gets_staple("example.org"));
    close_contexts();
}

TEST_INSIDE(a_staple_that_has_run_out_is_not_sent_and_can_be_replaced)
{
    make_others();
    open_contexts(REQUIRING, STAPLING(good));
    strand_tls_context *newer = strand_tls_context_open(STAPLING(longer));
    CHECK(gets_staple("example.org"));
    later = 3660; /* a client would forgive the minute */
    check_refused("certificate 0 (CN = server): no OCSP response is stapled, which this client requires");
    CHECK_EQ(strand_tls_context_replace(serving, newer), 0);
    CHECK(gets_staple("example.org"));
    strand_tls_context_close(newer);
    close_contexts();
    later = 0;
}

TEST_INSIDE(a_staple_that_does_not_say_until_when_is_sent_for_a_day)
{
    make_others();
    open_contexts(REQUIRING, STAPLING(endless));
    later = 22 * 3600; /* it is an hour old */
    CHECK(gets_staple("example.org"));
    later = 23 * 3600 + 60;
    check_refused("no OCSP response is stapled, which this client requires");
    close_contexts();
    later = 0;
}

/* ---- sessions -----------------------------------------------------------------------------------------------------
 */

static void *answer(void *arg)
{
    char byte;
    CHECK_EQ(strand_tls_read(served, &byte, 1), 1);
    CHECK_EQ(strand_tls_write_all(served, "a", 1), 1);
    return arg;
}

/* A connection, on which the client hears a byte, and the tickets before it. Returns whether the session was resumed.
 */
static bool resumes(void)
{
    char byte;
    strand_tls_info info = {.size = sizeof info};
    open_streams("example.org");
    {
        STRAND_SCOPE(scope);
        strand s = strand_spawn(scope, answer, NULL);
        if (strand_tls_write_all(client, "q", 1) != 1 || strand_tls_read(client, &byte, 1) != 1)
            CHECK_FAIL("%s", strand_tls_failure(client));
        strand_join(s);
    }
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK(info.resumed != info.stapled);
    close_streams();
    return info.resumed;
}

/* Sessions while a staple is good, and then two minutes after it has run out. */
static void resume_until_end(const strand_tls_attr *of_client, const strand_tls_attr *of_server)
{
    open_contexts(of_client, of_server);
    CHECK(!resumes());
    CHECK(resumes());
    CHECK(resumes()); /* by a ticket of a resumed session */
    later = 3720;
}

static void end_sessions(void)
{
    close_contexts();
    later = 0;
}

TEST_INSIDE(a_session_ends_with_the_staple_that_the_client_requires)
{
    make_others();
    resume_until_end(REQUIRING, STAPLING(good));
    check_refused("no OCSP response is stapled, which this client requires");
    end_sessions();
}

TEST_INSIDE(a_session_ends_with_the_staple_that_the_certificate_requires)
{
    make_others();
    resume_until_end(NULL, STRAND_TLS_ATTR(.certificates = demanding.pem, .staple = of_demanding.pem));
    check_refused("no OCSP response is stapled, which the certificate requires");
    end_sessions();
}

TEST_INSIDE(a_session_outlives_a_staple_that_was_not_required)
{
    make_others();
    resume_until_end(NULL, STAPLING(good));
    CHECK(resumes());
    end_sessions();
}

/* ---- contexts ------------------------------------------------------------------------------------------------------
 */

static void check_no_staple(const char *certificates, struct answer answer, const char *words)
{
    static struct response r;
    make_response(&r, answer);
    check_no_context(STRAND_TLS_ATTR(.certificates = certificates, .staple = r.pem), words);
}

TEST_INSIDE(a_response_that_is_not_good_makes_no_context)
{
    make_others();
    check_no_staple(server.pem, (struct answer){.certificate = &second},
                    "OCSP response of a text: it is for another certificate; ask the responder for the first of");
    check_no_staple(server.pem, (struct answer){.certificate = &twin, .issuer = &stranger}, "for another certificate");
    check_no_staple(server.pem, (struct answer){.certificate = &server, .from = -7200, .to = -60},
                    "it has expired; fetch a new one from the responder");
    check_no_staple(server.pem, (struct answer){.certificate = &server, .from = -7200, .to = -3600}, "it has expired;");
    check_no_staple(server.pem, (struct answer){.certificate = &server, .from = 400}, "not valid yet; check the clock");
    check_no_staple(server.pem, (struct answer){.certificate = &server, .status = V_OCSP_CERTSTATUS_REVOKED},
                    "it says that the certificate is revoked (unspecified); get a new certificate");
    check_no_staple(server.pem, (struct answer){.certificate = &server, .status = V_OCSP_CERTSTATUS_UNKNOWN},
                    "it says that the authority does not know the certificate; ask");
    check_no_staple(below_chain, (struct answer){.certificate = &below, .issuer = &between, .signer = &stranger},
                    "it is not signed by the certificate's authority (");
    check_no_context(STRAND_TLS_ATTR(.staple = good.pem), "an OCSP response without a certificate: a text");
    check_no_context(STRAND_TLS_ATTR(.unverified = true, .staple_required = true), "staple_required");
}

TEST_INSIDE(a_context_checks_the_signature_of_a_response_if_it_has_the_issuer)
{
    static struct response signed_by_issuer;
    make_others();
    RESPOND(&signed_by_issuer, .certificate = &below, .issuer = &between, .bare = true);
    open_contexts(REQUIRING, STRAND_TLS_ATTR(.certificates = below_chain, .staple = signed_by_issuer.pem));
    CHECK(gets_staple("example.org"));
    close_contexts();
}

static char folder[] = "/tmp/strand-ocsp-XXXXXX", file[64];

static void write_file(const void *bytes, int size)
{
    FILE *stream = fopen(file, "w");
    CHECK(stream && fwrite(bytes, 1, (size_t)size, stream) == (size_t)size && fclose(stream) == 0);
}

static void open_folder(void)
{
    make_others();
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/response", folder);
}

static void close_folder(void)
{
    CHECK_EQ(unlink(file), 0);
    CHECK_EQ(rmdir(folder), 0);
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}

TEST_REAL_INSIDE(a_file_of_a_response_is_read_or_the_reason_names_it)
{
    char words[200];
    open_folder();
    strand_tls_attr attr = {.size = sizeof attr, .certificates = server.pem, .staple = file};
    snprintf(words, sizeof words, "OCSP response of %s: No such file", file);
    check_no_context(&attr, words);
    snprintf(words, sizeof words, "OCSP response of %s: it cannot be parsed", file);
    write_file("", 0);
    check_no_context(&attr, words);
    write_file("no response", 11);
    check_no_context(&attr, words);
    write_file(good.der, good.size - 1);
    check_no_context(&attr, words);
    attr.staple = folder;
    snprintf(words, sizeof words, "OCSP response of %s: Is a directory", folder);
    check_no_context(&attr, words);
    attr.staple = server.public_pem;
    check_no_context(&attr, "OCSP response of a text: no start line");
    attr.staple = file;
    write_file(good.der, good.size);
    open_contexts(REQUIRING, &attr);
    CHECK(gets_staple("example.org"));
    close_contexts();
    write_file(good.pem, (int)strlen(good.pem));
    strand_tls_context_close(strand_tls_context_open(&attr));
    close_folder();
}

/* ---- programs of others ---------------------------------------------------------------------------------------------
 */

static int listener;

/* Serves one connection, until the client leaves. */
static void *serve_one(void *arg)
{
    char bytes[100];
    served = strand_tls_server(serving, strand_accept(listener));
    while (strand_tls_read(served, bytes, sizeof bytes) > 0) {
    }
    CHECK_EQ(strand_tls_close(served), 0);
    return arg;
}

TEST_REAL_INSIDE(openssl_gets_a_staple)
{
    char address[64];
    open_folder();
    open_contexts(NULL, STAPLING(good));
    write_file(authority.public_pem, (int)strlen(authority.public_pem));
    listener = strand_listen_tcp("127.0.0.1", 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", strand_tcp_port(listener));
    const char *const argv[] = {"openssl", "s_client", "-connect", address, "-status", "-CAfile", file, NULL};
    strand_captured captured = {.size = sizeof captured};
    {
        STRAND_SCOPE(scope);
        strand s = strand_spawn(scope, serve_one, NULL);
        strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv), STRAND_CAPTURE_ATTR(.input = "Q\n", .input_size = 2),
                               &captured);
        strand_join(s);
    }
    CHECK_CONTAINS(captured.output, "OCSP Response Status: successful");
    CHECK_CONTAINS(captured.output, "Cert Status: good");
    CHECK_CONTAINS(captured.output, "Verify return code: 0 (ok)");
    free(captured.output);
    free(captured.errors);
    CHECK_EQ(strand_close(listener), 0);
    close_contexts();
    close_folder();
}

TEST_OWN_STACKS(openssl_gets_a_staple, "it passes locals to a process");
