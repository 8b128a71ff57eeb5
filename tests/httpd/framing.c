/*
 * Framing: where a request ends is never open to interpretation. Each row is sent whole, in pieces of several lengths,
 * and byte by byte; the same answer has to come. Behind a request that is taken the next one is found, and behind one
 * that is refused the connection ends.
 */
#define SUITE httpd
#include "client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

#define LINE "GET /hello HTTP/1.1\r\n"
#define HOST "Host: test\r\n"
#define HEAD(fields) LINE HOST fields "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define CHUNKS(bytes) HEAD(CHUNKED) bytes

struct row {
    int status;
    bool stays; /* the connection does */
    const char *bytes;
    size_t length;
};
#define ROW(status, bytes)                                                                                             \
    {                                                                                                                  \
        status, (status) == 200, bytes, sizeof(bytes) - 1                                                              \
    }
/* The request is framed, and makes no sense. */
#define SENSELESS(bytes)                                                                                               \
    {                                                                                                                  \
        400, true, bytes, sizeof(bytes) - 1                                                                            \
    }

static const struct row request_lines[] = {
    ROW(200, HEAD("")),
    ROW(200, "\r\n" HEAD("")),
    ROW(200, "\r\n\r\n" HEAD("")),
    ROW(200, "GET /hello HTTP/1.2\r\n" HOST "\r\n"),
    ROW(200, "GET /hello HTTP/1.9\r\n" HOST "\r\n"),
    ROW(200, "GET http://test/hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET HTTP://test:80/hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET /hello?a=b&c HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET /hello?\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET /%68ello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "\n" HEAD("")),
    ROW(400, "\r" HEAD("")),
    ROW(400, " " HEAD("")),
    ROW(400, "\t" HEAD("")),
    ROW(400, "\r\n " HEAD("")),
    ROW(400, "\0" HEAD("")),
    ROW(400, "\377\376" HEAD("")),
    ROW(400, "\357\273\277" HEAD("")), /* a byte order mark */
    ROW(400, "get /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "Get /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GE\tT /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GE\0T /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "G@T /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET: /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "GETS /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "GE /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "G /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "HEAD_ /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ROW(405, "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"),
    ROW(405, "M-SEARCH /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(405, "TRACE /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(405, "CONNECT test:80 HTTP/1.1\r\n" HOST "\r\n"),
    ROW(405, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET\t/hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET  /hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello  HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello\tHTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel\tlo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel lo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel\0lo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel\rlo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel\nlo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel\177lo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hel\001lo HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET  HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET\r\n\r\n"),
    ROW(400, "GET \r\n\r\n"),
    ROW(400, "GET /hello\r\n\r\n"),
    ROW(400, "GET /hello \r\n\r\n"),
    ROW(400, "GET /hello HTTP\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1,1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.x\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/-1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1 \r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1\t\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1\r" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1\r\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1\0\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP/1.1x\r\n" HOST "\r\n"),
    ROW(400, "GET /hello http/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTPS/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello HTTP /1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello XTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /hello ICE/1.0\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/0.9\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/2.0\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/10.1\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/01.1\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/1.10\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/1.01\r\n" HOST "\r\n"),
    ROW(505, "GET /hello HTTP/4294967297.1\r\n" HOST "\r\n"),
    SENSELESS("GET * HTTP/1.1\r\n" HOST "\r\n"),
    SENSELESS("GET ftp://test/hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http:/hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http:///hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http://?a HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http://a@test/hello HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http://te\\st/hello HTTP/1.1\r\n" HOST "\r\n"),
    SENSELESS("GET //%zz HTTP/1.1\r\n" HOST "\r\n"),
    SENSELESS("GET /%00 HTTP/1.1\r\n" HOST "\r\n"),
};

static const struct row fields[] = {
    ROW(200, HEAD("X:\r\n")),
    ROW(200, HEAD("X:y\r\n")),
    ROW(200, HEAD("X: \t y \t \r\n")),
    ROW(200, HEAD("X: a\tb\r\n")),
    ROW(200, HEAD("X: a:b: c\r\n")),
    ROW(200, HEAD("X: \303\244\377\r\n")),
    ROW(200, HEAD("!#$%&'*+-.^_`|~09azAZ: y\r\n")),
    ROW(200, HEAD("X: y\r\nX: z\r\n")),
    ROW(200, HEAD("User-Agent: a\r\nUser-Agent: b\r\nReferer: a\r\nReferer: b\r\n")),
    ROW(200, HEAD("Connection: keep-alive\r\nConnection: x\r\n")),
    ROW(200, HEAD("Connection: upgrade\r\nUpgrade: h2c\r\n")),
    ROW(200, HEAD("Expect:\r\n")),
    ROW(200, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n"),
    ROW(200, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
    ROW(400, LINE "\r\n"),
    ROW(400, "GET /hello HTTP/1.2\r\n\r\n"),
    ROW(400, LINE HOST HOST "\r\n"),
    ROW(400, LINE HOST "hOST: test\r\n\r\n"),
    ROW(400, LINE "Host:\r\n" HOST "\r\n"),
    ROW(400, LINE "Host: a b\r\n\r\n"),
    ROW(400, LINE "Host: a\tb\r\n\r\n"),
    ROW(400, LINE "Host: a/b\r\n\r\n"),
    ROW(400, LINE "Host: a@b\r\n\r\n"),
    ROW(400, LINE "Host: \303\244\r\n\r\n"),
    ROW(400, "GET http://test/hello HTTP/1.1\r\n\r\n"),
    ROW(400, HEAD("X : y\r\n")),
    ROW(400, HEAD("X\t: y\r\n")),
    ROW(400, HEAD("X Y: z\r\n")),
    ROW(400, HEAD(" X: y\r\n")),
    ROW(400, HEAD("\tX: y\r\n")),
    ROW(400, LINE " " HOST "\r\n"),
    ROW(400, HEAD("X: y\r\n z\r\n")),  /* folded */
    ROW(400, HEAD("X: y\r\n\tz\r\n")), /* the same */
    ROW(400, HEAD("X: y\r\n \r\n")),   /* the same */
    ROW(400, HEAD("X:\r\n y\r\n")),    /* the same */
    ROW(400, LINE "Host: test\r\n b\r\n\r\n"),
    ROW(400, HEAD("Content-Length:\r\n 5\r\n") "abcde"),
    ROW(400, HEAD("Transfer-Encoding:\r\n chunked\r\n") "0\r\n\r\n"),
    ROW(400, HEAD(":\r\n")),
    ROW(400, HEAD(": y\r\n")),
    ROW(400, HEAD("X\r\n")),
    ROW(400, HEAD("no colon\r\n")),
    ROW(400, HEAD("X;: y\r\n")),
    ROW(400, HEAD("X(: y\r\n")),
    ROW(400, HEAD("X\": y\r\n")),
    ROW(400, HEAD("X[]: y\r\n")),
    ROW(400, HEAD("X/Y: z\r\n")),
    ROW(400, HEAD("X@: y\r\n")),
    ROW(400, HEAD("\303\244: y\r\n")),
    ROW(400, HEAD("X\0: y\r\n")),
    ROW(400, HEAD("X\177: y\r\n")),
    ROW(400, HEAD("X: a\0b\r\n")),
    ROW(400, HEAD("X: a\001b\r\n")),
    ROW(400, HEAD("X: a\033b\r\n")),
    ROW(400, HEAD("X: a\177b\r\n")),
    ROW(400, HEAD("X: a\rb\r\n")),
    ROW(400, HEAD("X: a\r\r\n")),
    ROW(400, HEAD("X: y\n")),
    ROW(400, HEAD("X: y\nY: z\r\n")),
    ROW(400, HEAD("X: y\rY: z\r\n")),
    ROW(400, HEAD("X: y\n\r")),
    ROW(400, LINE HOST "\n"),
    ROW(400, LINE "Host: test\n\n"),
    ROW(400, LINE HOST "\rx"),
    ROW(400, LINE HOST "\r\r\n"),
    ROW(400, HEAD("Range: bytes=0-\r\nRange: bytes=1-\r\n")),
    ROW(200, HEAD("If-None-Match: a\r\nIf-None-Match: b\r\n")), /* lists */
    ROW(400, HEAD("If-Range: a\r\nIf-Range: b\r\n")),
    ROW(400, HEAD("If-Modified-Since: a\r\nIf-Modified-Since: b\r\n")),
    ROW(400, HEAD("If-Unmodified-Since: a\r\nIf-Unmodified-Since: b\r\n")),
    ROW(400, HEAD("Expect: 100-continue\r\nExpect:\r\n")),
    ROW(417, HEAD("Expect: 100-continue\r\n")),
    ROW(417, HEAD("Expect: 100-continue\r\nContent-Length: 5\r\n")),
    ROW(417, HEAD("Expect: something\r\n")),
    ROW(417, HEAD("eXPECT: 200-ok\r\n" CHUNKED) "0\r\n\r\n"),
};

static const struct row lengths[] = {
    ROW(200, HEAD("Content-Length: 0\r\n")),
    ROW(200, HEAD("Content-Length: 5\r\n") "abcde"),
    ROW(200, HEAD("Content-Length: 00005\r\n") "abcde"),
    ROW(200, HEAD("Content-Length:5  \r\n") "GET /"),
    ROW(200, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nabcde"),
    ROW(400, HEAD("Content-Length:\r\n")),
    ROW(400, HEAD("Content-Length: \t\r\n")),
    ROW(400, HEAD("Content-Length: -1\r\n")),
    ROW(400, HEAD("Content-Length: -0\r\n")),
    ROW(400, HEAD("Content-Length: +5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5x\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: x5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 0x5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5 5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5,5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5, 5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5;\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5.0\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 1e1\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: \"5\"\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5\0\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 18446744073709551615\r\n")),
    ROW(400, HEAD("Content-Length: 18446744073709551616\r\n")),
    ROW(400, HEAD("Content-Length: 18446744073709551621\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 99999999999999999999999999999999999999\r\n")),
    ROW(413, HEAD("Content-Length: 1048577\r\n")),
    ROW(413, HEAD("Content-Length: 4294967301\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5\r\nContent-Length: 5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5\r\nContent-Length: 6\r\n") "abcdef"),
    ROW(400, HEAD("Content-Length: 0\r\ncontent-length: 0\r\n")),
    ROW(400, HEAD("Content-Length : 5\r\n") "abcde"),
    ROW(400, HEAD("Content-Length: 5\r\n" CHUNKED) "0\r\n\r\n"),
    ROW(400, HEAD(CHUNKED "Content-Length: 5\r\n") "0\r\n\r\n"),
    ROW(400, HEAD(CHUNKED "Content-Length: 0\r\n") "0\r\n\r\n"),
    ROW(405, "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 99999999\r\n\r\n"),
    ROW(400, "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CHUNKED "\r\n"),
};

static const struct row codings[] = {
    ROW(200, HEAD("Transfer-Encoding: CHUNKED\r\n") "0\r\n\r\n"),
    ROW(200, HEAD("transfer-encoding:chunked \t\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: gzip\r\n")),
    ROW(501, HEAD("Transfer-Encoding: identity\r\n")),
    ROW(501, HEAD("Transfer-Encoding:\r\n")),
    ROW(501, HEAD("Transfer-Encoding: gzip, chunked\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: chunked, gzip\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: chunked, chunked\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: chunked,\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: ,chunked\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: chunked;a=b\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: \"chunked\"\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: 'chunked'\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: xchunked\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: chunkedx\r\n") "0\r\n\r\n"),
    ROW(501, HEAD("Transfer-Encoding: chunk ed\r\n") "0\r\n\r\n"),
    ROW(400, HEAD("Transfer-Encoding: chunked\0\r\n") "0\r\n\r\n"),
    ROW(400, HEAD("Transfer-Encoding: \vchunked\r\n") "0\r\n\r\n"),
    ROW(400, HEAD(CHUNKED CHUNKED) "0\r\n\r\n"),
    ROW(400, HEAD(CHUNKED "Transfer-Encoding: gzip\r\n") "0\r\n\r\n"),
    ROW(400, HEAD("Transfer-Encoding: gzip\r\n" CHUNKED) "0\r\n\r\n"),
    ROW(400, HEAD("Transfer-Encoding : chunked\r\n") "0\r\n\r\n"),
    ROW(400, "GET /hello HTTP/1.0\r\n" HOST CHUNKED "\r\n0\r\n\r\n"),
    ROW(400, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n" CHUNKED "\r\n0\r\n\r\n"),
    ROW(400, "POST /hello HTTP/1.0\r\n" HOST CHUNKED "\r\n0\r\n\r\n"),
};

#define X16 "xxxxxxxxxxxxxxxx"
#define X256 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16

static const struct row chunks[] = {
    ROW(200, CHUNKS("0\r\n\r\n")),
    ROW(200, CHUNKS("000\r\n\r\n")),
    ROW(200, CHUNKS("5\r\nabcde\r\n0\r\n\r\n")),
    ROW(200, CHUNKS("5\r\n0\r\n\r\n\r\n0\r\n\r\n")),
    ROW(200, CHUNKS("00000000000000000005\r\nabcde\r\n0\r\n\r\n")),
    ROW(200, CHUNKS("a\r\n0123456789\r\nA\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n")),
    ROW(200, CHUNKS("1;a\r\nx\r\n0;b=\"c d\"\r\n\r\n")),
    ROW(200, CHUNKS("0\r\nX: y\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\nHost: other\r\n\r\n")),
    ROW(400, CHUNKS("\r\n0\r\n\r\n")),
    ROW(400, CHUNKS(";a\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("x\r\n")),
    ROW(400, CHUNKS("-1\r\n")),
    ROW(400, CHUNKS("+1\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("0x1\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS(" 1\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1 \r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\t\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1 1\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1_0\r\n")),
    ROW(400, CHUNKS("1g\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1,1\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\0\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\rx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\r\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1;a\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1;a\rb\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1;a\0\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1;a\001\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1;" X256 "\r\nx\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\r\nxy\r\n0\r\n\r\n")), /* junk behind a chunk */
    ROW(400, CHUNKS("1\r\nx0\r\n\r\n")),      /* nothing behind it */
    ROW(400, CHUNKS("1\r\nx\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\r\nx\r0\r\n\r\n")),
    ROW(400, CHUNKS("1\r\nx \r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\r\nx;;0\r\n\r\n")),
    ROW(400, CHUNKS("5\r\nabc\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("1\r\nx\r\n\r\n0\r\n\r\n")),
    ROW(400, CHUNKS("0\n\r\n")),
    ROW(400, CHUNKS("0\r\n\n")),
    ROW(400, CHUNKS("0\r\n\rx")),
    ROW(400, CHUNKS("0\r\n\0\r\n")),
    ROW(400, CHUNKS("0\r\n: y\r\n\r\n")),
    ROW(400, CHUNKS("0\r\nX\r\n\r\n")),
    ROW(400, CHUNKS("0\r\nX : y\r\n\r\n")),
    ROW(400, CHUNKS("0\r\n X: y\r\n\r\n")),
    ROW(400, CHUNKS("0\r\nX: y\r\n z\r\n\r\n")),
    ROW(400, CHUNKS("0\r\nX: y\nY: z\r\n\r\n")),
    ROW(400, CHUNKS("0\r\nX: a\0b\r\n\r\n")),
    ROW(413, CHUNKS("100001\r\n")),
    ROW(413, CHUNKS("ffffffff\r\n")),
    ROW(413, CHUNKS("ffffffffffffffff\r\n")),
    ROW(413, CHUNKS("10000000000000001\r\nx\r\n0\r\n\r\n")),
    ROW(413, CHUNKS("100000000000000000000000000000000\r\n")),
    ROW(413, CHUNKS("1\r\nx\r\n100000\r\n")),
};

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
