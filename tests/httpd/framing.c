/*
 * Framing: where a request ends is never open to interpretation. Each row is sent whole, in pieces of several lengths,
 * and byte by byte; the same answer has to come. Behind a request that is taken the next one is found, and behind one
 * that is refused the connection ends.
 */
#define SUITE httpd
#include "client.h"
#include "rows.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

/* Each piece is a segment of its own, as far as the system does that. */
static void say_in_pieces(int fd, const struct row *row, size_t piece)
{
    for (size_t at = 0; at < row->length; at += piece)
        if (!try_say(fd, row->bytes + at, row->length - at < piece ? row->length - at : piece))
            return; /* it has been refused */
}

static void check_row(const struct row *row, size_t piece)
{
    int fd = dial(), at_once = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    say_in_pieces(fd, row, piece);
    if (row->stays)
        say(fd, GET("/nothing"));
    if (receive(fd) != row->status)
        CHECK_FAIL("%.*s: %d instead of %d, in pieces of %zu", (int)row->length, row->bytes, got.status, row->status,
                   piece);
    if (row->stays) {
        if (receive(fd) != 404)
            CHECK_FAIL("%.*s: the next is answered by %d, in pieces of %zu", (int)row->length, row->bytes, got.status,
                       piece);
    } else {
        CHECK_STR(header("Connection"), "close");
        check_end(fd);
    }
    close(fd);
}

static void check_rows(const struct row *rows, size_t count)
{
    static const size_t pieces[] = {SIZE_MAX, 1, 2, 7};
    SERVER(NULL);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++)
            check_row(&rows[i], pieces[k]);
    server_stop(SIGTERM);
}

#define TABLE(name, rows)                                                                                              \
    TEST_REAL(name)                                                                                                    \
    {                                                                                                                  \
        check_rows(rows, sizeof(rows) / sizeof *(rows));                                                               \
    }

TABLE(a_request_line_has_one_form, request_lines)
TABLE(fields_have_one_form, fields)
TABLE(a_body_has_one_length, lengths)
TABLE(a_body_has_one_coding, codings)
TABLE(chunks_have_one_form, chunks)

/* ---- what does not fit into a row --------------------------------------------------------------- */

TEST_REAL(trailers_have_a_limit)
{
    enum { MOST = 4096 };
    static char text[2 * MOST];
    SERVER(NULL);
    int fd = dial(), length = sprintf(text, CHUNKS("0\r\nX: %0*d\r\n\r\n"), MOST - 9, 0);
    say_bytes(fd, text, (size_t)length);
    CHECK_EQ(receive(fd), 200);
    length = sprintf(text, CHUNKS("0\r\n"));
    while (length < MOST + 200)
        length += sprintf(text + length, "X-%d: y\r\n", length);
    say_bytes(fd, text, (size_t)length);
    CHECK_EQ(receive(fd), 431);
    check_end(fd);
    close(fd);
    server_stop(SIGTERM);
}

TEST_REAL(the_body_may_be_as_long_as_its_limit_and_no_longer)
{
    enum { MOST = 1 << 20, CHUNK = 1 << 16 };
    static char body[MOST + 2];
    SERVER(NULL);
    int fd = dial();
    say(fd, HEAD("Content-Length: 1048576\r\n"));
    say_bytes(fd, body, MOST);
    CHECK_EQ(receive(fd), 200);
    say(fd, HEAD(CHUNKED));
    memcpy(body + CHUNK, "\r\n", 2);
    for (int sent = 0; sent < MOST; sent += CHUNK) {
        say(fd, "10000\r\n");
        say_bytes(fd, body, CHUNK + 2);
    }
    say(fd, "0\r\n\r\n");
    CHECK_EQ(receive(fd), 200);
    CHECK_EQ(ask(fd, GET("/nothing")), 404);
    close(fd);
    server_stop(SIGTERM);
}

TEST_REAL(a_head_that_is_refused_gets_no_body)
{
    static const char *const heads[] = {
        REQUEST("HEAD", "/hello", "X : y\r\n"),
        REQUEST("HEAD", "/hello", "Transfer-Encoding: gzip\r\n"),
        REQUEST("HEAD", "/he\tllo", ""),
    };
    SERVER(NULL);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        int fd = dial();
        CHECK(ask(fd, heads[i]) >= 400);
        check_end(fd);
        close(fd);
    }
    server_stop(SIGTERM);
}
