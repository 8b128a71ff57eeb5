/*
 * Staples: what clients make of the responses of OCSP that servers send.
 */
#define SUITE tls_staple
#define ONE_SEED_IN 50 /* the arithmetic of many handshakes takes the time */
#include "tls_responses.h"

static struct made demanding, between, below, namesake, stranger, responder, no_responder, foreign_responder;

static void make_others(void)
{
    make_usual();
    if (demanding.key)
        return;
    MAKE(&demanding, .subject = "demanding", .names = "DNS:example.org", .issuer = &authority,
         .features = "status_request");
    MAKE(&between, .subject = "between", .issuer = &authority, .authority = true);
    MAKE(&below, .subject = "below", .names = "DNS:example.org", .issuer = &between);
    MAKE(&namesake, .subject = "authority", .authority = true);
    MAKE(&stranger, .subject = "stranger", .authority = true);
    MAKE(&responder, .subject = "responder", .issuer = &authority, .usage = "OCSPSigning");
    MAKE(&no_responder, .subject = "no responder", .issuer = &authority, .usage = "serverAuth");
    MAKE(&foreign_responder, .subject = "foreign", .issuer = &stranger, .usage = "OCSPSigning");
}

static bool stapled; /* what the last successful client has said of it */

/* A handshake with a server that staples this. Without words it has to succeed; else it is refused for them. */
static void check_visit(struct stapler stapler, bool required, const char *words)
{
    strand_tls_info info = {.size = sizeof info};
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .staple_required = required), NULL);
    int result = visit_stapler(stapler, "example.org");
    if (result != (words ? -EKEYREJECTED : 0))
        CHECK_FAIL("%d (%s) instead of: %s", result, strand_tls_failure(client), words ? words : "success");
    if (words) {
        CHECK_CONTAINS(strand_tls_failure(client), words);
    } else {
        CHECK_EQ(strand_tls_info_get(client, &info), 0);
        stapled = info.stapled;
        CHECK(stapled || !required);
    }
    CHECK_EQ(strand_tls_close(client), 0);
    close_contexts();
}

/* A staple that is no good, by both versions: it is ignored, unless one is required. */
static void check_useless(struct answer answer, const char *words)
{
    static struct response r;
    make_response(&r, answer);
    check_visit((struct stapler){.own = &server, .staple = &r}, false, NULL);
    CHECK(!stapled);
    check_visit((struct stapler){.own = &server, .staple = &r}, true, words);
    check_visit((struct stapler){.own = &server, .staple = &r, .version = TLS1_2_VERSION}, true, words);
}
#define USELESS(words, ...) check_useless((struct answer){.certificate = &server, __VA_ARGS__}, (words))

static void check_good(struct answer answer)
{
    static struct response r;
    make_response(&r, answer);
    check_visit((struct stapler){.own = &server, .staple = &r}, true, NULL);
    check_visit((struct stapler){.own = &server, .staple = &r, .version = TLS1_2_VERSION}, true, NULL);
}
#define GOOD(...) check_good((struct answer){.certificate = &server, __VA_ARGS__})

static void check_revoked(struct answer answer, const char *words)
{
    static struct response r;
    make_response(&r, answer);
    check_visit((struct stapler){.own = &server, .staple = &r}, false, words);
    check_visit((struct stapler){.own = &server, .staple = &r, .version = TLS1_2_VERSION}, false, words);
    check_visit((struct stapler){.own = &server, .staple = &r}, true, words);
}
#define REVOKED(words, ...)                                                                                            \
    check_revoked((struct answer){.certificate = &server, .status = V_OCSP_CERTSTATUS_REVOKED, __VA_ARGS__}, (words))

TEST_INSIDE(a_good_staple_is_accepted)
{
    make_others();
    GOOD(.reason = -1);
    GOOD(.by_key = true);
    GOOD(.bare = true);
    GOOD(.bare = true, .by_key = true);
    GOOD(.signer = &responder);
    GOOD(.endless = true); /* it does not say when there will be a newer one */
    GOOD(.to = -100);      /* clocks may differ */
    GOOD(.from = 100);
}

TEST_INSIDE(a_staple_that_says_revoked_refuses_the_connection)
{
    make_others();
    REVOKED(
        "certificate 0 (CN = server): the stapled OCSP response says that the certificate is revoked (keyCompromise)",
        .reason = OCSP_REVOKED_STATUS_KEYCOMPROMISE);
    REVOKED("says that the certificate is revoked", .reason = OCSP_REVOKED_STATUS_NOSTATUS);
    REVOKED("says that the certificate is revoked", .signer = &responder);
    REVOKED("says that the certificate is revoked", .from = -7200, .to = -3600);
    REVOKED("says that the certificate is revoked", .bare = true);
    REVOKED("says that the certificate is revoked", .twice = true);
}

TEST_INSIDE(a_staple_that_says_nothing_now_is_ignored_unless_one_is_required)
{
    make_others();
    USELESS(
        "certificate 0 (CN = server): the stapled OCSP response says that the authority does not know the certificate",
        .status = V_OCSP_CERTSTATUS_UNKNOWN);
    USELESS("certificate 0 (CN = server): the stapled OCSP response has expired", .from = -7200, .to = -400);
    USELESS("the stapled OCSP response has expired", .from = -25 * 3600, .endless = true);
    USELESS("the stapled OCSP response is not valid yet", .from = 400);
    USELESS("the stapled OCSP response cannot be parsed", .from = -7200, .until = "20200101000000.5Z");
    USELESS("the stapled OCSP response cannot be parsed", .critical = true);
    check_revoked((struct answer){.certificate = &server, .twice = true}, "says that the certificate is revoked");
}

TEST_INSIDE(a_staple_of_others_is_ignored_unless_one_is_required)
{
    static const char unsigned_words[] = "the stapled OCSP response is not signed by the certificate's authority";
    make_others();
    check_useless((struct answer){.certificate = &demanding},
                  "certificate 0 (CN = server): the stapled OCSP response is for another certificate");
    USELESS("the stapled OCSP response is for another certificate", .issuer = &namesake);
    USELESS("the stapled OCSP response is for another certificate", .issuer = &stranger);
    USELESS(unsigned_words, .signer = &stranger);
    USELESS(unsigned_words, .signer = &demanding);
    USELESS("authority (missing ocspsigning usage)", .signer = &no_responder);
    USELESS(unsigned_words, .signer = &foreign_responder);
    USELESS(unsigned_words, .signer = &stranger, .status = V_OCSP_CERTSTATUS_REVOKED);
}

/* A staple of these bytes. */
static void check_useless_bytes(const struct response *r, const char *words)
{
    check_visit((struct stapler){.own = &server, .staple = r}, false, NULL);
    CHECK(!stapled);
    check_visit((struct stapler){.own = &server, .staple = r}, true, words);
}

/* A staple that begins as that one, with another size. */
static void check_useless_size(const struct response *r, int size)
{
    static struct response other;
    memcpy(&other, r, sizeof other);
    other.size = size;
    check_useless_bytes(&other, "the stapled OCSP response cannot be parsed");
}

TEST_INSIDE(a_staple_that_is_broken_is_ignored_unless_one_is_required)
{
    static struct response good, broken;
    make_others();
    RESPOND(&good, .certificate = &server);
    check_useless_size(&good, good.size - 1);
    check_useless_size(&good, good.size + 1);
    check_useless_size(&good, 1);
    response_texts(&broken, OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, NULL));
    check_useless_bytes(&broken, "the stapled OCSP response is a refusal of the responder (trylater)");
}

TEST_INSIDE(a_staple_whose_signature_is_wrong_is_not_believed)
{
    static struct response damaged;
    make_others();
    RESPOND(&damaged, .certificate = &server, .status = V_OCSP_CERTSTATUS_REVOKED);
    int at = 0;
    while (memcmp(damaged.der + at, "\x18\x0f", 2) != 0) /* a time, with 15 bytes */
        at++;
    damaged.der[at + 15] = damaged.der[at + 15] == '0' ? '1' : '0';
    check_useless_bytes(&damaged, "is not signed by the certificate's authority");
}

TEST_INSIDE(a_client_asks_for_a_staple_where_it_checks_certificates)
{
    make_usual();
    check_visit((struct stapler){.own = &server}, false, NULL);
    CHECK(staple_asked);
    open_contexts(STRAND_TLS_ATTR(.unverified = true), NULL);
    CHECK_EQ(visit_stapler((struct stapler){.own = &server}, "example.org"), 0);
    CHECK(!staple_asked);
    CHECK_EQ(strand_tls_close(client), 0);
    close_contexts();
}

TEST_INSIDE(a_server_without_a_staple_is_refused_if_one_is_required)
{
    make_others();
    check_visit((struct stapler){.own = &server}, false, NULL);
    check_visit((struct stapler){.own = &server}, true,
                "certificate 0 (CN = server): no OCSP response is stapled, which this client requires");
    check_visit((struct stapler){.own = &server, .version = TLS1_2_VERSION}, true, "no OCSP response is stapled");
}

TEST_INSIDE(a_certificate_can_require_staples)
{
    static struct response good, old;
    make_others();
    RESPOND(&good, .certificate = &demanding);
    RESPOND(&old, .certificate = &demanding, .from = -7200, .to = -400);
    check_visit((struct stapler){.own = &demanding, .staple = &good}, false, NULL);
    CHECK(stapled);
    check_visit((struct stapler){.own = &demanding, .staple = &old}, false, "has expired");
    check_visit((struct stapler){.own = &demanding}, false,
                "certificate 0 (CN = demanding): no OCSP response is stapled, which the certificate requires");
    check_visit((struct stapler){.own = &demanding, .version = TLS1_2_VERSION}, false, "the certificate requires");
}

TEST_INSIDE(the_issuer_of_a_staple_is_that_of_the_certificate)
{
    static struct response right, wrong;
    make_others();
    RESPOND(&right, .certificate = &below, .issuer = &between);
    RESPOND(&wrong, .certificate = &below, .issuer = &between, .signer = &responder);
    check_visit((struct stapler){.own = &below, .between = &between, .staple = &right}, true, NULL);
    check_visit((struct stapler){.own = &below, .between = &between, .staple = &wrong}, true, "is not signed by");
}

TEST_INSIDE(a_staple_that_is_signed_by_a_weak_digest_is_not_believed)
{
    make_others();
    USELESS("the stapled OCSP response has a weak signature (ecdsa-with-SHA1)", .digest = EVP_sha1());
    USELESS("has a weak signature", .digest = EVP_sha1(), .status = V_OCSP_CERTSTATUS_REVOKED);
    GOOD(.digest = EVP_sha384());
}

/* The only certificate that ends its chain and has no issuer above it: all others need one that is trusted. */
TEST_INSIDE(the_issuer_of_a_certificate_that_signs_itself_is_that_certificate)
{
    static struct made lonely;
    static struct response right, wrong;
    make_others();
    if (!lonely.key)
        MAKE(&lonely, .subject = "lonely", .names = "DNS:example.org");
    RESPOND(&right, .certificate = &lonely, .issuer = &lonely);
    RESPOND(&wrong, .certificate = &lonely, .issuer = &lonely, .signer = &stranger);
    open_contexts(STRAND_TLS_ATTR(.trust = lonely.public_pem, .staple_required = true), NULL);
    CHECK_EQ(visit_stapler((struct stapler){.own = &lonely, .staple = &right}, "example.org"), 0);
    CHECK_EQ(strand_tls_close(client), 0);
    CHECK_EQ(visit_stapler((struct stapler){.own = &lonely, .staple = &wrong}, "example.org"), -EKEYREJECTED);
    CHECK_EQ(strand_tls_close(client), 0);
    close_contexts();
    open_contexts(STRAND_TLS_ATTR(.trust = server.public_pem), NULL);
    CHECK_EQ(visit_stapler((struct stapler){.own = &server}, "example.org"), -EKEYREJECTED);
    CHECK_CONTAINS(strand_tls_failure(client), "unable to get local issuer certificate");
    CHECK_EQ(strand_tls_close(client), 0);
    close_contexts();
}

TEST_INSIDE(a_server_hears_that_its_staple_was_refused)
{
    int of_server;
    make_others();
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .staple_required = true), NULL);
    open_streams("example.org");
    CHECK_EQ(shake_both(&of_server), -EKEYREJECTED);
    CHECK_EQ(of_server, -EACCES);
    CHECK_CONTAINS(strand_tls_failure(served), "bad certificate status response");
    close_all();
}
