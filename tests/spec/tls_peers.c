/*
 * Clients of servers that others have written: openssl s_server, and nginx where it is installed.
 */
#define SUITE tls_peers
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_responses.h"

#include "strand/process.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/strand-tls-XXXXXX", pem[64], path[64], conf[64];

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "w");
    CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void write_file(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static void open_folder(void)
{
    CHECK(mkdtemp(folder) != NULL && chmod(folder, 0711) == 0);
    snprintf(pem, sizeof pem, "%s/pem", folder);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(conf, sizeof conf, "%s/conf", folder);
    open_contexts(NULL, NULL);
    write_file(pem, server.pem);
}

static void close_folder(void)
{
    const char *const names[] = {pem, path, conf};
    for (int i = 0; i < 3; i++)
        unlink(names[i]);
    CHECK_EQ(rmdir(folder), 0);
    close_contexts();
}

/* ---- openssl ------------------------------------------------------------------------------------------------------
 */

/* The port from the line that the server writes when it listens. */
static int read_port(int out)
{
    static char text[400];
    for (size_t size = 0; size < sizeof text - 1; size++) {
        CHECK_EQ(strand_read(out, text + size, 1), 1);
        const char *line = strstr(text, "ACCEPT 127.0.0.1:");
        if (line && text[size] == '\n')
            return atoi(line + strlen("ACCEPT 127.0.0.1:"));
    }
    CHECK_FAIL("no port in: %s", text);
}

/* A connection, on which the server sends a line back from its end to its beginning. Returns whether it was resumed. */
static bool turn_line(int fd, const char *version)
{
    char line[8] = "";
    strand_tls_info info = {.size = sizeof info};
    CHECK(fd >= 0);
    client = strand_tls_client(trusting, fd, "example.org");
    if (strand_tls_write_all(client, "abc\n", 4) != 4)
        CHECK_FAIL("%s", strand_tls_failure(client));
    for (int64_t got, size = 0; size < 4; size += got)
        CHECK((got = strand_tls_read(client, line + size, 4 - (size_t)size)) > 0);
    CHECK_STR(line, "cba\n");
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK_STR(info.version, version);
    CHECK_EQ(strand_tls_shutdown(client), 0);
    CHECK_EQ(strand_tls_close(client), 0);
    return info.resumed;
}

/* Three connections to a server with this option and its value, if it has one. */
static void talk_to_openssl(const char *option, const char *value, const char *version)
{
    int out;
    const char *const argv[] = {"openssl", "s_server", "-accept",  "127.0.0.1:0", "-cert", pem,   "-key",
                                pem,       "-rev",     "-naccept", "3",           option,  value, NULL};
    STRAND_SCOPE(scope);
    strand s = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .in = {.kind = STRAND_STDIO_NULL},
                                                               .out = {.kind = STRAND_STDIO_PIPE, .ours = &out},
                                                               .err = {.kind = STRAND_STDIO_NULL}));
    int port = read_port(out);
    CHECK(!turn_line(strand_dial_tcp("127.0.0.1", port), version));
    CHECK(turn_line(strand_dial_tcp("127.0.0.1", port), version));
    CHECK(turn_line(strand_dial_tcp("127.0.0.1", port), version));
    strand_cancel(s, "over");
    CHECK_EQ(strand_close(out), 0);
}

TEST_REAL_INSIDE(openssl_serves_over_tls_1_3)
{
    open_folder();
    talk_to_openssl("-tls1_3", NULL, "TLSv1.3");
    close_folder();
}

TEST_REAL_INSIDE(openssl_serves_over_tls_1_2)
{
    open_folder();
    talk_to_openssl("-tls1_2", NULL, "TLSv1.2");
    close_folder();
}

TEST_REAL_INSIDE(openssl_staples)
{
    static struct response good;
    open_folder();
    RESPOND(&good, .certificate = &server);
    write_bytes(conf, good.der, (size_t)good.size);
    strand_tls_context_close(trusting);
    trusting = strand_tls_context_open(STRAND_TLS_ATTR(.trust = authority.public_pem, .staple_required = true));
    talk_to_openssl("-status_file", conf, "TLSv1.3");
    close_folder();
}

TEST_OWN_STACKS(openssl_serves_over_tls_1_3, "it passes locals to a process");
TEST_OWN_STACKS(openssl_serves_over_tls_1_2, "it passes locals to a process");
TEST_OWN_STACKS(openssl_staples, "it passes locals to a process");

/* ---- nginx --------------------------------------------------------------------------------------------------------
 */

static const char *find_nginx(void)
{
    static const char *const places[] = {"/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"};
    for (int i = 0; i < 3; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static void write_conf(void)
{
    char text[1200];
    snprintf(text, sizeof text,
             "daemon off; master_process off; error_log stderr; pid %s/pid;\n"
             "events {}\n"
             "http { access_log off; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;\n"
             "  uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
             "  server { listen unix:%s ssl; ssl_certificate %s; ssl_certificate_key %s; return 200 hi; } }\n",
             folder, folder, folder, folder, folder, folder, path, pem, pem);
    write_file(conf, text);
}

/* A connection to nginx, as soon as it listens. */
static int dial_nginx(strand process)
{
    for (int fd; !strand_ended(process); strand_sleep(STRAND_MS))
        if ((fd = strand_dial_unix(path)) >= 0)
            return fd;
    CHECK_FAIL("nginx has ended");
}

static void get_page(int fd)
{
    static const char request[] = "GET / HTTP/1.0\r\n\r\n";
    char page[2000] = "";
    client = strand_tls_client(trusting, fd, "example.org");
    if (strand_tls_write_all(client, request, sizeof request - 1) < 0)
        CHECK_FAIL("%s", strand_tls_failure(client));
    for (int64_t got, size = 0; (got = strand_tls_read(client, page + size, sizeof page - 1 - (size_t)size)) != 0;) {
        CHECK(got > 0); /* nginx says the end of TLS */
        size += got;
    }
    CHECK_CONTAINS(page, "200 OK");
    CHECK_CONTAINS(page, "\r\n\r\nhi");
    CHECK_EQ(strand_tls_close(client), 0);
}

TEST_REAL_INSIDE(nginx_serves_a_page)
{
    const char *nginx = find_nginx();
    if (!nginx) {
        fprintf(stderr, "skipped: tls_peers.nginx_serves_a_page: nginx is not installed\n");
        return;
    }
    open_folder();
    write_conf();
    const char *const argv[] = {nginx, "-p", folder, "-c", conf, NULL};
    {
        STRAND_SCOPE(scope);
        strand s = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .in = {.kind = STRAND_STDIO_NULL},
                                                                   .out = {.kind = STRAND_STDIO_NULL},
                                                                   .err = {.kind = STRAND_STDIO_NULL}));
        get_page(dial_nginx(s));
        get_page(dial_nginx(s));
        strand_cancel(s, "over");
    }
    char command[400];
    snprintf(command, sizeof command, "rmdir %s/b %s/p %s/f %s/u %s/s 2>/dev/null; rm -f %s/pid", folder, folder,
             folder, folder, folder, folder);
    CHECK(system(command) == 0);
    close_folder();
}

TEST_OWN_STACKS(nginx_serves_a_page, "it passes locals to a process");
