/*
 * The server with TLS: files, certificates that are read again, clients that break off. The clients are curl and
 * openssl, and plain sockets for what those would not do.
 */
#define SUITE httpd
#include "client.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- certificates ------------------------------------------------------------------------------ */

/* NAME.pem and NAME.key: for localhost, signed by itself. */
static void make_certificate(const char *name)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.key -out %s.pem "
             "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null",
             path_of(""), name, name);
    CHECK_EQ(system(command), 0);
}

/* The server's certificate and key are those of this name from now on. */
static void use_certificate(const char *name)
{
    char command[512];
    snprintf(command, sizeof command, "cd %s && cp %s.pem server.pem && cp %s.key server.key", path_of(""), name, name);
    CHECK_EQ(system(command), 0);
}

static char certificate_option[300], key_option[300];

#define SECURE_SERVER(...) (prepare_options(), SERVER(certificate_option, key_option, __VA_ARGS__))
static void prepare_options(void)
{
    snprintf(certificate_option, sizeof certificate_option, "--tls=%s", path_of("server.pem"));
    snprintf(key_option, sizeof key_option, "--key=%s", path_of("server.key"));
}

/* ---- clients ----------------------------------------------------------------------------------- */

static char fetched[16 << 20];

/* Runs a command of the shell in the temporary directory; what it writes is in `fetched`. Returns its exit status. */
static int run(size_t *length, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int run(size_t *length, const char *format, ...)
{
    char command[1024];
    int used = snprintf(command, sizeof command, "cd %s && ", path_of(""));
    va_list args;
    va_start(args, format);
    vsnprintf(command + used, sizeof command - (size_t)used, format, args);
    va_end(args);
    FILE *out = popen(command, "r");
    CHECK(out);
    *length = fread(fetched, 1, sizeof fetched - 1, out);
    fetched[*length] = '\0';
    int status = pclose(out);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* curl with these options, which trusts the certificate of this name. */
static int fetch(size_t *length, const char *trusted, const char *options, const char *path)
{
    return run(length, "curl -sS -m %d --cacert %s.pem %s https://localhost:%d%s 2>&1", LIMIT_S, trusted, options,
               server_port, path);
}

static void check_fetched(const char *trusted, const char *options, const char *path, const char *bytes, size_t size)
{
    size_t length;
    int status = fetch(&length, trusted, options, path);
    if (status != 0)
        CHECK_FAIL("curl %s %s: %d, %s", options, path, status, fetched);
    CHECK_EQ(length, size);
    CHECK_EQ(memcmp(fetched, bytes, size), 0);
}

static bool trusts(const char *certificate)
{
    size_t length;
    return fetch(&length, certificate, "", "/hello") == 0;
}

/* ---- what is served ------------------------------------------------------------------------------ */

TEST_REAL(files_come_by_tls_whole_in_part_and_under_conditions)
{
    enum { SIZE = 5 << 20 };
    make_certificate("a");
    use_certificate("a");
    make_big("root/large", SIZE);
    make_big("root/small", 4096);
    SECURE_SERVER(NULL);
    check_fetched("a", "", "/large", bytes_of(SIZE), SIZE);
    check_fetched("a", "", "/small", bytes_of(4096), 4096);
    check_fetched("a", "-r 100000-4999999", "/large", bytes_of(SIZE) + 100000, 4900000);
    check_fetched("a", "-o /dev/null -w '%{http_code} %{http_version} %{ssl_verify_result}'", "/small", "200 1.1 0", 9);
    check_fetched("a", "-o /dev/null -w '%{http_code}' -r 5242880-", "/large", "416", 3);
    check_fetched("a", "-o /dev/null -w '%{http_code}' -H 'If-None-Match: *'", "/large", "304", 3);
    check_fetched("a", "-o /dev/null -w '%{http_code} %{num_connects}' -I", "/large", "200 1", 5);
    struct account account = server_stop(SIGTERM);
    CHECK_EQ(account.served, 7);
    CHECK_EQ(account.cut, 0);
}

TEST_REAL(a_server_without_its_certificates_does_not_begin)
{
    const char *said;
    CHECK_EQ(server_says("--tls=/nowhere.pem", &said), 1);
    CHECK_CONTAINS(said, "httpd: certificates of /nowhere.pem: No such file");
}

/* The end of TLS comes too, so the client knows that nothing is missing. */
TEST_REAL(the_end_of_a_connection_is_said_in_tls)
{
    size_t length;
    make_certificate("a");
    use_certificate("a");
    SECURE_SERVER(NULL);
    CHECK_EQ(run(&length,
                 "printf 'GET /hello HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' | "
                 "openssl s_client -ign_eof -connect 127.0.0.1:%d 2>&1",
                 server_port),
             0);
    CHECK_CONTAINS(fetched, "Hello, world!");
    CHECK_CONTAINS(fetched, "\nclosed");
    CHECK(!strstr(fetched, "unexpected eof"));
    server_stop(SIGTERM);
}

/* ---- certificates that change --------------------------------------------------------------------- */

TEST_REAL(certificates_are_read_again_and_connections_go_on)
{
    char line[300] = "";
    make_certificate("a");
    make_certificate("b");
    use_certificate("a");
    SECURE_SERVER(NULL);
    snprintf(line, sizeof line, "openssl s_client -quiet -connect 127.0.0.1:%d >%s 2>/dev/null", server_port,
             path_of("old"));
    FILE *old = popen(line, "w");
    CHECK(old && fputs(GET("/hello"), old) >= 0 && fflush(old) == 0);
    struct stat status = {0};
    UNTIL(stat(path_of("old"), &status) == 0 && status.st_size > 0);
    const off_t one = status.st_size;
    CHECK(trusts("a") && !trusts("b"));
    use_certificate("b");
    CHECK_EQ(kill(server_pid, SIGHUP), 0);
    UNTIL(trusts("b"));
    CHECK(!trusts("a"));
    CHECK(fputs(GET("/hello"), old) >= 0 && fflush(old) == 0);
    UNTIL(stat(path_of("old"), &status) == 0 && status.st_size >= 2 * one);
    use_certificate("a");
    CHECK_EQ(kill(server_pid, SIGHUP), 0);
    UNTIL(trusts("a"));
    struct account account = server_stop(SIGTERM);
    CHECK_EQ(account.cut, 0);
    pclose(old);
}

/* The file of the log is opened again after the certificates were read. */
static void hang_up_and_wait(void)
{
    char moved[300];
    strcpy(moved, path_of("log.old"));
    CHECK_EQ(rename(path_of("log"), moved), 0);
    CHECK_EQ(kill(server_pid, SIGHUP), 0);
    UNTIL(access(path_of("log"), F_OK) == 0);
}

TEST_REAL(certificates_that_can_not_be_read_leave_the_old_ones)
{
    char log[300];
    make_certificate("a");
    make_certificate("b");
    use_certificate("a");
    snprintf(log, sizeof log, "--log=%s", path_of("log"));
    SECURE_SERVER(log);
    CHECK_EQ(unlink(path_of("server.key")), 0);
    hang_up_and_wait();
    CHECK(trusts("a"));
    use_certificate("a");
    size_t length;
    CHECK_EQ(run(&length, "cp b.key server.key"), 0); /* of another certificate */
    hang_up_and_wait();
    CHECK(trusts("a"));
    CHECK_EQ(run(&length, "openssl genrsa -out server.key 2048 2>/dev/null"), 0);
    hang_up_and_wait();
    CHECK(trusts("a"));
    server_stop(SIGTERM);
}

/* ---- staples ---------------------------------------------------------------------------------------- */

/* NAME.ocsp says that the certificate is good for a day. The certificate is its own authority. */
static void make_staple(const char *name)
{
    size_t length;
    CHECK_EQ(run(&length,
                 "s=$(openssl x509 -in %s.pem -noout -serial) && printf "
                 "'V\\t301231235959Z\\t\\t%%s\\tunknown\\t/CN=localhost\\n' "
                 "${s#serial=} >index && openssl ocsp -issuer %s.pem -cert %s.pem -reqout request 2>/dev/null && "
                 "openssl ocsp -index index -CA %s.pem -rsigner %s.pem -rkey %s.key -reqin request -ndays 1 "
                 "-respout %s.ocsp 2>&1",
                 name, name, name, name, name, name, name),
             0);
}

static bool staples(const char *certificate)
{
    size_t length;
    return fetch(&length, certificate, "--cert-status", "/hello") == 0;
}

TEST_REAL(a_staple_is_sent_and_read_again)
{
    char option[300];
    size_t length;
    make_certificate("a");
    make_certificate("b");
    make_staple("a");
    make_staple("b");
    use_certificate("a");
    CHECK_EQ(run(&length, "cp a.ocsp server.ocsp"), 0);
    snprintf(option, sizeof option, "--staple=%s", path_of("server.ocsp"));
    SECURE_SERVER(option);
    CHECK(staples("a") && !staples("b"));
    use_certificate("b");
    CHECK_EQ(run(&length, "cp b.ocsp server.ocsp"), 0);
    CHECK_EQ(kill(server_pid, SIGHUP), 0);
    UNTIL(staples("b"));
    server_stop(SIGTERM);
}

TEST_REAL(without_a_staple_curl_refuses_a_server_that_has_to_have_one)
{
    make_certificate("a");
    use_certificate("a");
    SECURE_SERVER(NULL);
    CHECK(trusts("a") && !staples("a"));
    server_stop(SIGTERM);
}

/* ---- clients that break off ----------------------------------------------------------------------- */

static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"; /* the beginning of the client's first */

TEST_REAL(a_client_that_does_not_come_to_an_agreement_is_cut_off)
{
    make_certificate("a");
    use_certificate("a");
    SECURE_SERVER("--timeout=0.3");
    int silent = dial(), slow = dial();
    say_bytes(slow, hello, sizeof hello - 1);
    check_end(silent);
    check_end(slow);
    CHECK(trusts("a"));
    close(silent);
    close(slow);
    CHECK_EQ(server_stop(SIGTERM).cut, 0);
}

TEST_REAL(what_is_no_tls_harms_nobody)
{
    char byte;
    make_certificate("a");
    use_certificate("a");
    SECURE_SERVER("--drain=0.2");
    int plain = dial(), gone = dial(), rest = dial();
    say(plain, GET("/hello"));
    while (recv(plain, &byte, 1, 0) == 1)
        CHECK(byte != 'H'); /* an alert may come, and no answer */
    say_bytes(gone, hello, sizeof hello - 1);
    reset(gone);
    say_bytes(rest, hello, sizeof hello - 1);
    CHECK(trusts("a"));
    close(plain);
    server_stop(SIGTERM); /* with a connection in the middle of its handshake */
    close(rest);
}

/* curl, which gets a large file, and takes no more while nobody reads its output. */
static FILE *begin_download(void)
{
    char line[400];
    snprintf(line, sizeof line, "exec curl -sS --cacert %s https://localhost:%d/large", path_of("a.pem"), server_port);
    FILE *download = popen(line, "r");
    CHECK(download && fgetc(download) == 0);
    return download;
}

/* The connection has ended, and not in order: curl knows that bytes are missing. */
static void check_cut_short(FILE *download)
{
    while (fread(fetched, 1, sizeof fetched, download) > 0)
        continue;
    int status = pclose(download);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    CHECK(trusts("a"));
    CHECK_EQ(server_stop(SIGTERM).cut, 1);
}

static void make_large(void)
{
    make_file("root/large", "");
    CHECK_EQ(truncate(path_of("root/large"), 64 << 20), 0);
}

TEST_REAL(a_client_that_stops_reading_is_cut_off_and_hears_that_bytes_are_missing)
{
    make_certificate("a");
    use_certificate("a");
    make_large();
    SECURE_SERVER("--timeout=0.5");
    int before = server_descriptors();
    FILE *download = begin_download();
    UNTIL(server_descriptors() <= before);
    check_cut_short(download);
}

TEST_REAL(a_file_that_shrinks_ends_a_connection_of_tls_without_its_end)
{
    make_certificate("a");
    use_certificate("a");
    make_large();
    SECURE_SERVER(NULL);
    FILE *download = begin_download();
    CHECK_EQ(truncate(path_of("root/large"), 1000), 0);
    check_cut_short(download);
}

TEST_REAL(an_idle_connection_of_tls_ends_in_order)
{
    char line[300];
    struct stat status = {0};
    make_certificate("a");
    use_certificate("a");
    SECURE_SERVER("--keep-alive=1");
    snprintf(line, sizeof line, "openssl s_client -quiet -connect 127.0.0.1:%d >%s 2>/dev/null", server_port,
             path_of("idle"));
    FILE *idle = popen(line, "w");
    CHECK(idle && fputs(GET("/hello"), idle) >= 0 && fflush(idle) == 0);
    UNTIL(stat(path_of("idle"), &status) == 0 && status.st_size > 0);
    CHECK_EQ(pclose(idle), 0); /* the end of TLS has come, too */
    CHECK_EQ(server_stop(SIGTERM).cut, 0);
}
