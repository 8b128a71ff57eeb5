/*
 * The files of a directory: whole, in part, under conditions; and no others.
 */
#define SUITE httpd
#include "client.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whole ------------------------------------------------------------------------------------ */

TEST_REAL(files_come_byte_for_byte)
{
    static const size_t sizes[] = {0, 1, 1000, 8191, 8192, 8193, 16384, 100000, 5 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char name[64];
    for (int i = 0; i < SIZES; i++) {
        sprintf(name, "root/%zu", sizes[i]);
        make_big(name, sizes[i]);
    }
    SERVER(NULL);
    int fd = dial();
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < SIZES; i++) {
            sprintf(name, "GET /%zu HTTP/1.1\r\nHost: test\r\n\r\n", sizes[i]);
            CHECK_EQ(ask(fd, name), 200);
            check_body(bytes_of(sizes[i]), sizes[i]);
        }
    close(fd);
    server_stop(SIGTERM);
}

TEST_REAL(the_type_goes_by_the_end_of_the_name)
{
    make_file("root/a.html", "");
    make_file("root/b.tar.css", "");
    make_file("root/none", "");
    make_directory("root/d.html");
    make_file("root/d.html/none", "");
    SERVER(NULL);
    CHECK_EQ(ask_once(GET("/a.html")), 200);
    CHECK_STR(header("Content-Type"), "text/html; charset=utf-8");
    CHECK_EQ(ask_once(GET("/b.tar.css")), 200);
    CHECK_STR(header("Content-Type"), "text/css");
    CHECK_EQ(ask_once(GET("/none")), 200);
    CHECK_STR(header("Content-Type"), "application/octet-stream");
    CHECK_EQ(ask_once(GET("/d.html/none")), 200);
    CHECK_STR(header("Content-Type"), "application/octet-stream");
    CHECK_EQ(ask_once(GET("/d.html/../a.html")), 200);
    server_stop(SIGTERM);
}

TEST_REAL(a_directory_is_its_index)
{
    make_directory("root/sub");
    make_directory("root/empty");
    make_file("root/sub/index.html", "the index");
    SERVER(NULL);
    CHECK_EQ(ask_once(GET("/sub/")), 200);
    CHECK_STR(got.body, "the index");
    CHECK_STR(header("Content-Type"), "text/html; charset=utf-8");
    CHECK_EQ(ask_once(GET("/sub")), 301);
    CHECK_STR(header("Location"), "/sub/");
    CHECK_EQ(ask_once(GET("/s%75b?a=/b")), 301);
    CHECK_STR(header("Location"), "/s%75b/?a=/b");
    CHECK_EQ(ask_once(GET("/sub?#c")), 301);
    CHECK_STR(header("Location"), "/sub/?");
    CHECK_EQ(ask_once(GET("/sub?%25a?b#c")), 301);
    CHECK_STR(header("Location"), "/sub/?%25a?b");
    CHECK_EQ(ask_once(GET("/empty/")), 404);
    CHECK_EQ(ask_once(GET("/")), 404);
    CHECK_EQ(ask_once(GET("/sub/index.html/")), 404);
    server_stop(SIGTERM);
}

TEST_REAL(a_redirection_that_is_too_long_is_refused)
{
    enum { LONG = 5000 };
    char request[LONG + 200];
    make_directory("root/sub");
    SERVER(NULL);
    sprintf(request, REQUEST("GET", "/sub?%0*d", ""), LONG, 0);
    CHECK_EQ(ask_once(request), 414);
    server_stop(SIGTERM);
}

/* "//sub/" would be a host. */
TEST_REAL(no_redirection_leads_to_another_host)
{
    make_directory("root/sub");
    SERVER(NULL);
    CHECK_EQ(ask_once(GET("//sub")), 301);
    CHECK_STR(header("Location"), "/sub/");
    CHECK_EQ(ask_once(GET("///sub")), 301);
    CHECK_STR(header("Location"), "/sub/");
    CHECK_EQ(ask_once(GET("http://other/sub")), 301);
    CHECK_STR(header("Location"), "/sub/");
    CHECK_EQ(ask_once(GET("/\\other/../sub")), 301);
    CHECK_STR(header("Location"), "/%5Cother/../sub/");
    CHECK_EQ(ask_once(GET("//\\other\\..\\/../sub?\\")), 301);
    CHECK_STR(header("Location"), "/%5Cother%5C..%5C/../sub/?\\");
    server_stop(SIGTERM);
}

/* ---- in part, under conditions ------------------------------------------------------------------- */

static int ask_with(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int ask_with(const char *format, ...)
{
    static char headers[1024], request[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(headers, sizeof headers, format, args);
    va_end(args);
    snprintf(request, sizeof request, "GET /file HTTP/1.1\r\nHost: test\r\n%s\r\n\r\n", headers);
    return ask_once(request);
}

TEST_REAL(a_range_is_a_part_of_the_file)
{
    enum { SIZE = 50000 };
    static const struct {
        const char *range;
        int status;
        size_t first, length;
    } cases[] = {
        {"0-0", 206, 0, 1},
        {"10-19", 206, 10, 10},
        {"10-", 206, 10, SIZE - 10},
        {"-5", 206, SIZE - 5, 5},
        {"-60000", 206, 0, SIZE},
        {"49999-", 206, SIZE - 1, 1},
        {"40000-99999999", 206, 40000, 10000},
        {"0-", 206, 0, SIZE},
        {"50000-", 416, 0, 0},
        {"50000-60000", 416, 0, 0},
        {"-0", 416, 0, 0},
        {"0-1,3-4", 200, 0, SIZE},
        {"9-5", 200, 0, SIZE},
        {"-", 200, 0, SIZE},
        {"a-b", 200, 0, SIZE},
        {"+1-2", 200, 0, SIZE},
        {"99999999999999999999-", 416, 0, 0},
        {"0-99999999999999999999", 206, 0, SIZE},
        {"-99999999999999999999", 206, 0, SIZE},
    };
    make_big("root/file", SIZE);
    SERVER(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char range[64];
        if (ask_with("Range: bytes=%s", cases[i].range) != cases[i].status)
            CHECK_FAIL("%s: %d", cases[i].range, got.status);
        if (got.status == 416) {
            CHECK_STR(header("Content-Range"), "bytes */50000");
            CHECK_STR(header("ETag"), "");
            CHECK_STR(header("Last-Modified"), "");
            continue;
        }
        sprintf(range, "bytes %zu-%zu/%d", cases[i].first, cases[i].first + cases[i].length - 1, SIZE);
        CHECK_STR(header("Content-Range"), got.status == 206 ? range : "");
        check_body(bytes_of(SIZE) + cases[i].first, cases[i].length);
    }
    CHECK_EQ(ask_with("Range: lines=0-1"), 200);
    server_stop(SIGTERM);
}

/* Asks for the file and keeps its tag and its time. */
static void learn(char *tag, char *modified)
{
    CHECK_EQ(ask_once(GET("/file")), 200);
    strcpy(tag, header("ETag"));
    strcpy(modified, header("Last-Modified"));
    CHECK(tag[0] == '"' && modified[0]);
}

TEST_REAL(what_the_client_has_already_is_not_sent)
{
    char tag[100], modified[100];
    make_file("root/file", "text");
    SERVER(NULL);
    learn(tag, modified);
    CHECK_EQ(ask_with("If-None-Match: %s", tag), 304);
    CHECK_STR(header("ETag"), tag);
    CHECK_EQ(ask_with("If-None-Match: W/%s", tag), 304);
    CHECK_EQ(ask_with("If-None-Match: *"), 304);
    CHECK_EQ(ask_with("If-None-Match: \"a\", W/\"b\" , %s ,\"c\"", tag), 304);
    CHECK_EQ(ask_with("If-None-Match: \"a\"\r\nIf-None-Match: %s", tag), 304);
    CHECK_EQ(ask_with("If-None-Match: %s\r\nAccept: */*\r\nif-none-match: \"a\"", tag), 304);
    CHECK_EQ(
        ask_with("If-None-Match:\r\nIf-None-Match: \"a\"\r\nIf-None-Match:  \"b\",%s\r\nIf-None-Match: W/\"c\"", tag),
        304);
    CHECK_EQ(ask_with("If-None-Match: \"a\"\r\nIf-None-Match: \t* "), 304);
    CHECK_EQ(ask_with("If-None-Match: \"a\"\r\nIf-Match: *\r\nIf-None-Match: \"b\"\r\nAccept: %s", tag), 200);
    CHECK_EQ(ask_with("If-None-Match: \"a\", \"b*\""), 200);
    CHECK_STR(got.body, "text");
    CHECK_EQ(ask_with("If-None-Match: %.5s", tag), 200);
    CHECK_EQ(ask_with("If-Modified-Since: %s", modified), 304);
    CHECK_EQ(ask_with("If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"), 304);
    CHECK_EQ(ask_with("If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"), 200);
    CHECK_EQ(ask_with("If-Modified-Since: yesterday"), 200);
    CHECK_EQ(ask_with("If-None-Match: \"a\"\r\nIf-Modified-Since: %s", modified), 200);
    CHECK_EQ(ask_with("If-None-Match: %s\r\nRange: bytes=0-0", tag), 304);
    server_stop(SIGTERM);
}

TEST_REAL(what_is_wanted_of_one_version_is_not_sent_of_another)
{
    char tag[100], modified[100];
    make_file("root/file", "text");
    SERVER(NULL);
    learn(tag, modified);
    CHECK_EQ(ask_with("If-Match: %s", tag), 200);
    CHECK_EQ(ask_with("If-Match: *"), 200);
    CHECK_EQ(ask_with("If-Match: \"a\", %s ", tag), 200);
    CHECK_EQ(ask_with("If-Match: %s\r\nIf-Match: \"a\"", tag), 200);
    CHECK_EQ(ask_with("If-Match: \"a\"\r\nIf-Match: %s", tag), 200);
    CHECK_EQ(ask_with("If-Match: \"a\"\r\nIf-Match: \"b\""), 412);
    CHECK_EQ(ask_with("If-Match: \"a\", \"*\""), 412);
    CHECK_EQ(ask_with("If-Match: W/%s", tag), 412);
    CHECK_EQ(ask_with("If-Match: \"a, *\""), 412);
    CHECK_EQ(ask_with("If-Unmodified-Since: %s", modified), 200);
    CHECK_EQ(ask_with("If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"), 412);
    CHECK_EQ(ask_with("If-Unmodified-Since: yesterday"), 200);
    CHECK_EQ(ask_with("If-Match: %s\r\nIf-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT", tag), 200);
    CHECK_EQ(ask_with("If-Match: \"a\"\r\nIf-None-Match: %s", tag), 412);
    CHECK_EQ(ask_with("If-Match: %s\r\nIf-None-Match: %s", tag, tag), 304);
    CHECK_EQ(ask_with("If-Match: \"a\"\r\nRange: bytes=9-"), 412);
    CHECK_EQ(ask_with("If-Match: %s\r\nRange: bytes=1-2", tag), 206);
    server_stop(SIGTERM);
}

TEST_REAL(a_date_has_one_of_three_forms)
{
    static const struct {
        const char *date;
        int status; /* of what has changed in 1994, on November 6th at 8:49:37 */
    } cases[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 304},
        {"Sun, 06 Nov 1994 08:49:36 GMT", 200},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 304},
        {"Sunday, 06-Nov-94 08:49:36 GMT", 200},
        {"Sun Nov  6 08:49:37 1994", 304},
        {"Sun Nov  6 08:49:36 1994", 200},
        {"Thursday, 01-Jan-70 00:00:00 GMT", 200},
        {"Sun, 06 Nov 1994 08:49:37 CET", 200},
        {"1994-11-06 08:49:37", 200},
        {"Sun, 06 Nov 1994 08:49:37 GMT \t", 304},
    };
    const struct timespec times[2] = {{784111777, 0}, {784111777, 0}};
    make_file("root/file", "text");
    CHECK_EQ(utimensat(AT_FDCWD, path_of("root/file"), times, 0), 0);
    SERVER(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (ask_with("If-Modified-Since: %s", cases[i].date) != cases[i].status)
            CHECK_FAIL("%s: %d", cases[i].date, got.status);
    CHECK_EQ(ask_with("If-Unmodified-Since: Sun Nov  6 08:49:36 1994"), 412);
    CHECK_EQ(ask_with("Range: bytes=0-0\r\nIf-Range: Sunday, 06-Nov-94 08:49:37 GMT"), 206);
    server_stop(SIGTERM);
}

static void touch(const char *name, time_t when)
{
    const struct timespec times[2] = {{when, 0}, {when, 0}};
    CHECK_EQ(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

/* A file that was changed in this second may be changed again within it. */
TEST_REAL(a_range_of_another_version_is_the_whole_file)
{
    char tag[100], modified[100];
    make_file("root/file", "text");
    SERVER(NULL);
    learn(tag, modified);
    CHECK_EQ(ask_with("Range: bytes=1-2\r\nIf-Range: %s", tag), 206);
    touch("root/file", time(NULL) - 1000);
    learn(tag, modified);
    CHECK_EQ(ask_with("Range: bytes=1-2\r\nIf-Range: %s", modified), 206);
    touch("root/file", time(NULL) + 1000);
    learn(tag, modified);
    CHECK_EQ(ask_with("Range: bytes=1-2\r\nIf-Range: %s", modified), 200);
    CHECK_EQ(ask_with("Range: bytes=1-2\r\nIf-Range: W/%s", tag), 200);
    CHECK_EQ(ask_with("Range: bytes=1-2\r\nIf-Range: \"other\""), 200);
    CHECK_EQ(ask_with("Range: bytes=1-2\r\nIf-Range: Thu, 01 Jan 1970 00:00:00 GMT"), 200);
    CHECK_STR(got.body, "text");
    server_stop(SIGTERM);
}

TEST_REAL(a_file_that_changes_has_another_tag)
{
    char tag[100], modified[100], other[100];
    make_file("root/file", "text");
    SERVER(NULL);
    learn(tag, modified);
    rest_ms(20); /* a tick of the file system's clock */
    make_file("root/file", "tex2");
    learn(other, modified);
    CHECK(strcmp(tag, other) != 0);
    server_stop(SIGTERM);
}

TEST_REAL(a_file_that_shrinks_while_it_is_sent_ends_its_connection)
{
    enum { SIZE = 64 << 20 };
    make_file("root/large", "");
    CHECK_EQ(truncate(path_of("root/large"), SIZE), 0);
    SERVER(NULL);
    int fd = dial_small(4096);
    say(fd, GET("/large"));
    CHECK_EQ(recv(fd, got.head, 1, 0), 1); /* the head is on its way, and the rest waits for room */
    CHECK_EQ(truncate(path_of("root/large"), 1000), 0);
    size_t length = 0;
    ssize_t n;
    while ((n = recv(fd, got.head, sizeof got.head, 0)) > 0)
        length += (size_t)n;
    CHECK(length < SIZE);
    close(fd);
    CHECK_EQ(ask_once(GET("/large")), 200);
    CHECK_EQ(got.length, 1000);
    CHECK_EQ(server_stop(SIGTERM).cut, 1);
}

/* ---- no others -------------------------------------------------------------------------------- */

TEST_REAL(no_path_leads_out_of_the_directory)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        {"/../secret", 404},
        {"/sub/../../secret", 404},
        {"/..", 404},
        {"/%2e%2e/secret", 404},
        {"/%2E./secret", 404},
        {"/..%2fsecret", 404},
        {"/%2e%2e%2fsecret", 404},
        {"/..%5csecret", 404},
        {"/sub/..%2f..%2fsecret", 404},
        {"//etc/passwd", 404},
        {"/%2fetc/passwd", 404},
        {"/%2f%2fetc%2fpasswd", 404},
        {"http://test/../secret", 404},
        {"http://test/%2e%2e/secret", 404},
        {"http://test", 404}, /* as http://test/, which has no index */
        {"/secret%00", 400},
        {"/file%00.html", 400},
        {"/%", 400},
        {"/%2", 400},
        {"/%zz", 400},
        {"/outside", 404},
        {"/outside-absolute", 404},
        {"/beside/secret", 404},
        {"/loop", 404},
        {"/inside", 200},
        {"/sub/up", 200},
        {"/sub/../file", 200},
        {"/sub//../file", 200},
        {"/sub/./..//./file", 200},
        {"/nothing/../file", 200},
        {"/sub/nothing/../../file", 200},
        {"/sub/nothing/../up", 200},
        {"/sub/../../file", 404},
        {"/.../file", 404},
        {"/..file", 404},
        {"/file/.", 404},
        {"/file/../", 404},
        {"/./file", 200},
        {"/sub%2f..%2ffile", 200},
        {"http://test/file", 200},
        {"http://test:80/file?x", 200},
        {"https://test/file", 400}, /* not by TLS */
        {"https:///file", 400},
        {"HTTPS://test:443/../secret", 400},
        {"/%66ile", 200},
        {"/file#part", 200},
        {"/fifo", 404},
        {"/file/", 404},
        {"/file/x", 404},
        {"/proc", 404},
    };
    make_file("secret", "a secret");
    make_file("root/file", "public");
    make_directory("root/sub");
    CHECK_EQ(symlink("../secret", path_of("root/outside")), 0);
    CHECK_EQ(symlink("/etc/passwd", path_of("root/outside-absolute")), 0);
    CHECK_EQ(symlink("..", path_of("root/beside")), 0);
    CHECK_EQ(symlink("loop", path_of("root/loop")), 0);
    CHECK_EQ(symlink("file", path_of("root/inside")), 0);
    CHECK_EQ(symlink("../file", path_of("root/sub/up")), 0);
    CHECK_EQ(symlink("/proc", path_of("root/proc")), 0);
    CHECK_EQ(mkfifo(path_of("root/fifo"), 0644), 0);
    SERVER(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[256];
        sprintf(request, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", cases[i].path);
        if (ask_once(request) != cases[i].status)
            CHECK_FAIL("%s: %d", cases[i].path, got.status);
        if (got.status == 200)
            CHECK_STR(got.body, "public");
    }
    server_stop(SIGTERM);
}
