/*
 * Which certificates are accepted, and what a refusal says.
 */
#define SUITE tls_certificates
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct made stranger, expired, early, between, below, person;

static void make_others(void)
{
    make_usual();
    if (stranger.key)
        return;
    MAKE(&stranger, .subject = "stranger", .names = "DNS:example.org");
    MAKE(&expired, .subject = "old", .names = "DNS:example.org", .issuer = &authority, .from_days = -9, .to_days = -2);
    MAKE(&early, .subject = "young", .names = "DNS:example.org", .issuer = &authority, .from_days = 2, .to_days = 9);
    MAKE(&between, .subject = "between", .issuer = &authority, .authority = true);
    MAKE(&below, .subject = "below", .names = "DNS:*.example.org", .issuer = &between);
    MAKE(&person, .subject = "person", .issuer = &authority);
}

/* A handshake with the server of these certificates, as a client that wants this host. Returns the client's result. */
static int visit(const char *certificates, const char *host)
{
    open_contexts(NULL, STRAND_TLS_ATTR(.certificates = certificates));
    open_streams(host);
    int of_server;
    int result = shake_both(&of_server);
    if (result == -EKEYREJECTED)
        CHECK_EQ(of_server, -EACCES); /* the client has said why it leaves */
    else
        CHECK_EQ(of_server, 0);
    return result;
}

static void check_refused(const struct made *m, const char *host, const char *words)
{
    CHECK_EQ(visit(m->pem, host), -EKEYREJECTED);
    CHECK_CONTAINS(strand_tls_failure(client), words);
    close_all();
}

TEST_INSIDE(a_refusal_says_which_certificate_and_why)
{
    make_others();
    check_refused(&expired, "example.org", "certificate 0 (CN = old): certificate has expired");
    check_refused(&early, "example.org", "certificate 0 (CN = young): certificate is not yet valid");
    check_refused(&stranger, "example.org", "certificate 0 (CN = stranger): self-signed certificate");
    check_refused(&below, "www.example.org", "certificate 0 (CN = below): unable to get local issuer certificate");
    check_refused(&server, "example.com",
                  "certificate 0 (CN = server): it is for example.org, 127.0.0.1, not for example.com");
    check_refused(&server, "127.0.0.2",
                  "certificate 0 (CN = server): it is for example.org, 127.0.0.1, not for 127.0.0.2");
    /* a common name is no name of a host */
    check_refused(&person, "person", "certificate 0 (CN = person): it is for no server by name, not for person");
}

TEST_INSIDE(a_refusal_lists_as_many_names_as_have_room)
{
    static struct made many;
    char names[1000] = "email:a@example.org,IP:::1", long_name[64];
    make_usual();
    for (int i = 0; i < 20; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), ",DNS:host%d.example.org", i);
    memset(long_name, 'a', 63);
    long_name[63] = 0;
    snprintf(names + strlen(names), sizeof names - strlen(names), ",DNS:%s.%s", long_name, long_name);
    if (!many.key)
        MAKE(&many, .subject = "many", .names = names, .issuer = &authority);
    check_refused(&many, "example.com", "it is for 0:0:0:0:0:0:0:1, host0.example.org, host1.example.org, ");
    check_refused(&many, "example.com", ", ..., not for example.com");
}

/* A context with this key in PEM, which is encrypted, is refused in words. */
static void check_encrypted(const char *key)
{
    STRAND_TRY {
        strand_tls_context_open(STRAND_TLS_ATTR(.certificates = server.public_pem, .key = key));
        CHECK_FAIL("an encrypted key");
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        CHECK_EQ(strand_exception_code(e), -EINVAL);
        CHECK_STR(strand_exception_text(e),
                  "the key is encrypted, and must not be (openssl pkey decrypts it): key of a text");
    }
    STRAND_END
}

TEST_INSIDE(an_encrypted_key_is_refused_as_such)
{
    static char passphrase[] = "passphrase";
    char text[4096];
    make_usual();
    BIO *pkcs = BIO_new(BIO_s_mem()), *traditional = BIO_new(BIO_s_mem());
    CHECK(PEM_write_bio_PKCS8PrivateKey(pkcs, server.key, EVP_aes_256_cbc(), NULL, 0, NULL, passphrase));
    CHECK(PEM_write_bio_PrivateKey_traditional(traditional, server.key, EVP_aes_256_cbc(), NULL, 0, NULL, passphrase));
    made_text(pkcs, text, sizeof text);
    check_encrypted(text);
    made_text(traditional, text, sizeof text);
    check_encrypted(text);
}

TEST_INSIDE(names_and_addresses_of_a_server_are_accepted)
{
    make_others();
    static char chain[16384];
    snprintf(chain, sizeof chain, "%s%s", below.pem, between.public_pem);
    struct {
        const char *certificates, *host;
    } good[] = {{server.pem, "example.org"}, {server.pem, "127.0.0.1"}, {chain, "www.example.org"}};
    for (size_t i = 0; i < 3; i++) {
        if (visit(good[i].certificates, good[i].host))
            CHECK_FAIL("%s: %s", good[i].host, strand_tls_failure(client));
        close_all();
    }
}

static void check_no_host(const char *host)
{
    STRAND_TRY {
        strand_tls_client(trusting, pair[0], host);
        CHECK_FAIL("a client of \"%s\"", host);
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        CHECK_EQ(strand_exception_code(e), -EINVAL);
        CHECK_CONTAINS(strand_exception_text(e), "not the name of a server");
    }
    STRAND_END
}

TEST_INSIDE(a_host_that_is_no_name_is_refused)
{
    static const char *const hosts[] = {".example.org",
                                        ".",
                                        "example..org",
                                        "example.org..",
                                        " example.org",
                                        "example.org ",
                                        "exa mple.org",
                                        "*.org",
                                        "example.org:443",
                                        "[]",
                                        "[example.org]",
                                        "[127.0.0.1]",
                                        "[::1",
                                        "::1]",
                                        "ex\xc3\xa4mple.org"};
    char label[80], name[300] = "";
    open_contexts(NULL, NULL);
    open_pair();
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        check_no_host(hosts[i]);
    snprintf(label, sizeof label, "%064d.org", 0);
    check_no_host(label);
    for (int i = 0; i < 4; i++)
        snprintf(name + 64 * i, sizeof name - 64 * (size_t)i, "%063d.", 0);
    check_no_host(name);
    CHECK_EQ(strand_close(pair[0]), 0);
    CHECK_EQ(strand_close(pair[1]), 0);
    close_contexts();
}

TEST_INSIDE(a_host_may_have_a_dot_at_its_end_or_brackets_around_its_address)
{
    static struct made six;
    make_others();
    if (!six.key)
        MAKE(&six, .subject = "six", .names = "IP:::1", .issuer = &authority);
    CHECK_EQ(visit(six.pem, "[::1]"), 0);
    close_all();
    CHECK_EQ(visit(six.pem, "::1"), 0);
    close_all();
    CHECK_EQ(visit(server.pem, "example.org."), 0);
    strand_tls_info info = {.size = sizeof info};
    CHECK_EQ(strand_tls_info_get(served, &info), 0);
    CHECK_STR(info.server_name, "example.org");
    close_all();
    check_refused(&below, "[::1]", "certificate 0 (CN = below)");
}

TEST_INSIDE(a_client_can_do_without_the_check)
{
    make_others();
    open_contexts(STRAND_TLS_ATTR(.unverified = true), STRAND_TLS_ATTR(.certificates = stranger.pem));
    open_streams("example.org");
    shake();
    close_all();
}

/* ---- revoked ------------------------------------------------------------------------------------------------ */

static int visit_by_list(const struct made *revoked, const char **failure)
{
    static char text[4096];
    static char words[400];
    make_list(&authority, revoked, 3600, text, sizeof text);
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .revoked = text), NULL);
    open_streams("example.org");
    int of_server;
    int result = shake_both(&of_server);
    snprintf(words, sizeof words, "%s", strand_tls_failure(client));
    *failure = words;
    close_all();
    return result;
}

TEST_INSIDE(a_revoked_certificate_is_refused)
{
    make_others();
    const char *failure;
    CHECK_EQ(visit_by_list(&person, &failure), 0);
    CHECK_EQ(visit_by_list(&server, &failure), -EKEYREJECTED);
    CHECK_STR(failure, "certificate 0 (CN = server): certificate revoked");
}

/* ---- of clients ---------------------------------------------------------------------------------------------- */

/* Both handshakes with a client that has this certificate, or none. Returns the server's result. */
static int introduce(const struct made *m, enum strand_tls_clients clients)
{
    make_others();
    open_contexts(STRAND_TLS_ATTR(.certificates = m ? m->pem : NULL, .trust = authority.public_pem),
                  STRAND_TLS_ATTR(.certificates = server.pem, .trust = authority.public_pem, .clients = clients));
    open_streams("example.org");
    int of_server;
    CHECK_EQ(shake_both(&of_server), 0);
    return of_server;
}

static void check_client_hears(void)
{
    char byte;
    CHECK_EQ(strand_tls_read(client, &byte, 1), -EACCES);
    CHECK_CONTAINS(strand_tls_failure(client), "the peer refuses the connection");
    close_all();
}

TEST_INSIDE(a_server_asks_for_certificates_of_clients)
{
    strand_tls_info info = {.size = sizeof info};
    CHECK_EQ(introduce(&person, STRAND_TLS_CLIENTS_REQUIRED), 0);
    CHECK_EQ(strand_tls_info_get(served, &info), 0);
    CHECK_STR(info.peer, "CN = person");
    close_all();
    CHECK_EQ(introduce(NULL, STRAND_TLS_CLIENTS_ASKED), 0);
    close_all();
    CHECK_EQ(introduce(&person, STRAND_TLS_CLIENTS_UNASKED), 0);
    close_all();
}

TEST_INSIDE(a_client_hears_that_its_certificate_was_refused)
{
    CHECK_EQ(introduce(NULL, STRAND_TLS_CLIENTS_REQUIRED), -EKEYREJECTED);
    CHECK_CONTAINS(strand_tls_failure(served), "did not return a certificate");
    check_client_hears();
    CHECK_EQ(introduce(&stranger, STRAND_TLS_CLIENTS_ASKED), -EKEYREJECTED);
    CHECK_CONTAINS(strand_tls_failure(served), "certificate 0 (CN = stranger): self-signed certificate");
    check_client_hears();
}

/* ---- contexts ------------------------------------------------------------------------------------------------- */

/* Of another type than all certificates here. */
static void make_other_key(char *pem, size_t room)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *text = BIO_new(BIO_s_mem());
    CHECK(key && text && PEM_write_bio_PKCS8PrivateKey(text, key, NULL, NULL, 0, NULL, NULL));
    int length = BIO_read(text, pem, (int)room - 1);
    CHECK(length > 0);
    pem[length] = 0;
    BIO_free(text);
    EVP_PKEY_free(key);
}

TEST_INSIDE(a_context_that_cannot_be_made_says_why)
{
    char other[4096];
    make_others();
    make_other_key(other, sizeof other);
    check_no_context(STRAND_TLS_ATTR(.certificates = server.public_pem, .key = other), "key of a text: ");
    check_no_context(STRAND_TLS_ATTR(.certificates = "/nowhere/own.pem"),
                     "certificates of /nowhere/own.pem: No such file");
    check_no_context(STRAND_TLS_ATTR(.certificates = "/dev/null/own.pem"), "own.pem: Not a directory");
    check_no_context(STRAND_TLS_ATTR(.certificates = server.public_pem), "key of a text: ");
    check_no_context(STRAND_TLS_ATTR(.certificates = server.public_pem, .key = person.pem), "key values mismatch");
    check_no_context(STRAND_TLS_ATTR(.key = person.pem), "a key without a certificate");
    check_no_context(STRAND_TLS_ATTR(.trust = "/dev/null"), "trusted certificates of /dev/null: no start line");
    check_no_context(STRAND_TLS_ATTR(.certificates = "/dev"), "certificates of /dev: Is a directory");
    check_no_context(STRAND_TLS_ATTR(.trust = "/dev"), "trusted certificates of /dev: Is a directory");
    check_no_context(STRAND_TLS_ATTR(.revoked = "/dev/null"), "revoked certificates of /dev/null");
    check_no_context(STRAND_TLS_ATTR(.key_log = "/dev/null/keys"), "log of keys /dev/null/keys: Not a directory");
    check_no_context(STRAND_TLS_ATTR(.protocols = "h2,,http/1.1"), "name of a protocol");
    check_no_context(&(strand_tls_attr){0}, "without its size");
}

/* How often the file has these words, whose lines are for each connection. */
static int count_in_file(const char *path, const char *words)
{
    char line[400];
    int count = 0;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        count += strncmp(line, words, strlen(words)) == 0;
    CHECK_EQ(fclose(file), 0);
    return count;
}

TEST_INSIDE(the_secrets_of_connections_are_logged_on_request)
{
    char path[] = "/tmp/strand-keys-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    make_usual();
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .key_log = path), NULL);
    struct stat kept;
    CHECK_EQ(stat(path, &kept), 0);
    CHECK_EQ(kept.st_mode & 077, 0);
    for (int i = 0; i < 2; i++) {
        open_streams("example.org");
        shake();
        close_streams();
    }
    close_contexts();
    CHECK_EQ(count_in_file(path, "CLIENT_TRAFFIC_SECRET_0 "), 2);
    CHECK_EQ(count_in_file(path, "SERVER_TRAFFIC_SECRET_0 "), 2);
    CHECK_EQ(unlink(path), 0);
}

static sem_t writing, written;
static bool blocks; /* the next line of a log */

/* OpenSSL's, by which the library writes the log. */
int BIO_printf(BIO *bio, const char *format, ...)
{
    if (blocks) {
        blocks = false;
        sem_post(&writing);
        sem_wait(&written);
    }
    va_list arguments;
    va_start(arguments, format);
    int result = BIO_vprintf(bio, format, arguments);
    va_end(arguments);
    return result;
}

/* Calls that need the context, while its log is written. */
static void *use_the_context(void *arg)
{
    sem_wait(&writing);
    CHECK_STR(strand_tls_failure(client), "");
    CHECK_EQ(strand_tls_context_name(trusting, "example.net", serving), 0);
    sem_post(&written);
    return arg;
}

TEST_REAL_INSIDE(a_slow_log_of_keys_keeps_nobody_from_its_context)
{
    pthread_t thread;
    CHECK(sem_init(&writing, 0, 0) == 0 && sem_init(&written, 0, 0) == 0);
    make_usual();
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .key_log = "/dev/null"), NULL);
    open_streams("example.org");
    CHECK_EQ(pthread_create(&thread, NULL, use_the_context, NULL), 0);
    blocks = true;
    shake();
    CHECK(!blocks);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_all();
}
