/*
 * The files of a directory: whole and in part, with conditions. The "." and ".." of a path are resolved in its text, as
 * in any URL. The system itself keeps what is opened inside of the directory (openat2, RESOLVE_BENEATH): absolute paths
 * and links that lead out of it are refused.
 */
#include "httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PATH_MOST = 4096, SMALL = 8 * 1024 };
/* A stack keeps the pages that were ever touched, and all of a frame is: so only those have a big one who need it. */
#define BIG_FRAME __attribute__((noinline))

struct file {
    int fd;
    bool waited; /* a call of the library knows the descriptor */
    struct stat status;
    char tag[64];
    char modified[64];      /* the header's line; empty for a date that HTTP can't write */
    uint64_t first, length; /* of what is sent */
};

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_segment(const char *at, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(at, name, length) == 0;
}

/* Removes "." and ".." from a path that begins with a slash (RFC 3986, 5.2.4), and empty segments too, as the system
 * ignores them. In place. False: the path leads above the root. */
static bool remove_dots(char *path)
{
    char *const first = path + 1, *to = first; /* `to` follows a slash, or is the end */
    size_t length;
    for (const char *from = first; *from; from += length) {
        length = strcspn(from, "/");
        size_t name = length;
        length += from[length] == '/';
        if (is_segment(from, name, "..")) {
            if (to == first)
                return false;
            for (to--; to > first && to[-1] != '/';)
                to--;
        } else if (name && !is_segment(from, name, ".")) {
            memmove(to, from, length);
            to += length;
        }
    }
    *to = '\0';
    return true;
}

/* A descriptor or a negated errno code: EAGAIN if the system has not all names of the path in memory, EINVAL if it
 * can't tell. errno is read here, where no switch can come in between. The library tries the same, but then it knows
 * the descriptor, and that makes a request for a file of 4 KiB 7 % dearer. */
__attribute__((noinline)) static int open_at_once(int root, const char *path)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

/* The same; other strands run while the system waits for a disk. Pipes and devices don't block the open, and are
 * refused after it. The system refuses to follow the ".." of a link while a directory is renamed anywhere (EAGAIN): it
 * is asked again for as long as a request may be worked on. */
static int open_patiently(const struct server *server, const char *path, bool *waited)
{
    int fd = open_at_once(server->root, path);
    if (fd != -EAGAIN && fd != -EINVAL)
        return fd;
    *waited = true;
    int64_t end = strand_in(server->timeout).ns;
    while ((fd = strand_file_open(server->root, path, O_RDONLY | STRAND_FILE_BENEATH, 0)) == -EAGAIN &&
           strand_now().ns < end)
        strand_yield();
    return fd;
}

/* A status of HTTP; 0: it is open. */
static int open_beneath(const struct server *server, const char *path, struct file *file)
{
    file->fd = -1; /* what it was is closed, also if this is interrupted */
    file->waited = false;
    file->fd = open_patiently(server, path, &file->waited);
    switch (file->fd) {
    case -EAGAIN:
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        return 503;
    case -EACCES:
    case -EPERM:
        return 403;
    default:
        return file->fd < 0 || fstat(file->fd, &file->status) < 0 ? 404 : 0;
    }
}

static void close_file(const struct file *file)
{
    if (file->fd >= 0 && file->waited)
        strand_close(file->fd);
    else if (file->fd >= 0)
        close(file->fd); /* the library has never heard of it */
}

BIG_FRAME static int open_index(const struct server *server, const char *path, struct file *file)
{
    char index[PATH_MOST + 16];
    snprintf(index, sizeof index, "%sindex.html", path);
    int status = open_beneath(server, index, file);
    return status ? status : S_ISREG(file->status.st_mode) ? 0 : 404;
}

/* Relative to the root, which is "."; a directory means its index.html. */
static int open_path(const struct server *server, const char *path, struct file *file)
{
    int status = open_beneath(server, *path ? path : ".", file);
    if (status || !S_ISDIR(file->status.st_mode))
        return status ? status : S_ISREG(file->status.st_mode) ? 0 : 404;
    if (*path && path[strlen(path) - 1] != '/')
        return 301;
    close_file(file);
    return open_index(server, path, file);
}

/* ---- conditions and ranges --------------------------------------------------------------------- */

static const char http_date[] = "%a, %d %b %Y %H:%M:%S GMT";

/* Years have four digits. */
static void describe_date(struct file *file)
{
    struct tm tm;
    file->modified[0] = '\0';
    if (gmtime_r(&file->status.st_mtim.tv_sec, &tm) && tm.tm_year >= 1000 - 1900 && tm.tm_year <= 9999 - 1900)
        strftime(file->modified, sizeof file->modified, "Last-Modified: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
}

/* Printing the tag would take as long as the calls of the system for a small file. Returns the end of what it wrote. */
static char *put_hex(char *at, uint64_t number, char after)
{
    int shift = 0;
    while (shift < 60 && number >> (shift + 4))
        shift += 4;
    for (; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[number >> shift & 15];
    *at++ = after;
    return at;
}

static void describe(struct file *file)
{
    char *at = file->tag;
    *at++ = '"';
    at = put_hex(at, (uint64_t)file->status.st_mtim.tv_sec, '-');
    at = put_hex(at, (uint64_t)file->status.st_mtim.tv_nsec, '-');
    at = put_hex(at, (uint64_t)file->status.st_size, '"');
    *at = '\0';
    describe_date(file);
    file->first = 0;
    file->length = (uint64_t)file->status.st_size;
}

/* One of the three forms that a date may have, or nothing; what is none of them is as if it was not there. Years of two
 * digits are those from 1969 to 2068. */
static bool read_date(const char *text, time_t *date)
{
    static const char *const forms[] = {http_date, "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"};
    for (size_t i = 0; *text && i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        if (end && !*end) {
            *date = timegm(&tm);
            return true;
        }
    }
    return false;
}

/* Whether a line of a list of tags names the file's, or all. The file's is a strong one; by strong comparison weak ones
 * are others. */
static bool names_tag(const char *list, const char *tag, bool strongly)
{
    size_t length = strlen(tag);
    list += strspn(list, " \t");
    if (*list == '*' && !list[1 + strspn(list + 1, " \t")])
        return true;
    for (const char *at = list;;) {
        at += strspn(at, " \t,");
        bool weak = strncmp(at, "W/", 2) == 0;
        at += weak ? 2 : 0;
        const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
        if (!end)
            return false;
        if (!(weak && strongly) && (size_t)(end + 1 - at) == length && strncmp(at, tag, length) == 0)
            return true;
        at = end + 1;
    }
}

static bool lists_tag(struct connection *c, enum header header, const char *tag, bool strongly)
{
    const char *line = header_of(c, header);
    while (line && !names_tag(line, tag, strongly))
        line = next_line_of(c, header, line);
    return line != NULL;
}

/* The conditions in the order of RFC 9110, 13.2.2: 412, 304, or 200: none is against it. If-Range comes later. */
static int check_conditions(struct connection *c, const struct file *file)
{
    const char *match = header_of(c, IF_MATCH), *unmodified = header_of(c, IF_UNMODIFIED_SINCE);
    const char *none_match = header_of(c, IF_NONE_MATCH), *modified = header_of(c, IF_MODIFIED_SINCE);
    time_t changed = file->status.st_mtim.tv_sec, date;
    if (*match ? !lists_tag(c, IF_MATCH, file->tag, true) : read_date(unmodified, &date) && changed > date)
        return 412;
    if (*none_match ? lists_tag(c, IF_NONE_MATCH, file->tag, false) : read_date(modified, &date) && changed <= date)
        return 304;
    return 200;
}

/* By its date a file is known for the same only if it can't have changed again within that second. */
static bool is_same_version(const char *only_if, const struct file *file)
{
    time_t date, changed = file->status.st_mtim.tv_sec;
    return strcmp(only_if, file->tag) == 0 ||
           (read_date(only_if, &date) && date == changed && changed < time(NULL) - 1);
}

/* A number that is too large is the largest. */
static bool digits(const char **at, uint64_t *number)
{
    if (**at < '0' || **at > '9')
        return false;
    char *end;
    *number = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

/* Sets the range to send. Returns 206, 416, or 200 if there is no range, or one that is not supported, such as several:
 * RFC 9110, 14.2, lets a server ignore the field, and answers of several parts are a way to make it work hard. */
static int choose_range(struct connection *c, struct file *file)
{
    const char *range = header_of(c, RANGE), *only_if = header_of(c, IF_RANGE);
    uint64_t size = file->length, first = 0, last = 0;
    if (c->parser.method != HTTP_GET || !*range || (*only_if && !is_same_version(only_if, file)))
        return 200;
    if (strncmp(range, "bytes=", 6) != 0)
        return 200;
    range += 6;
    bool from = digits(&range, &first);
    if (*range++ != '-')
        return 200;
    bool to = digits(&range, &last);
    if (*range || (!from && !to) || (from && to && last < first))
        return 200;
    if (!from) { /* the last so many */
        first = last < size ? size - last : 0;
        if (!last)
            return 416;
    }
    if (first >= size)
        return 416;
    if (!from || !to || last >= size)
        last = size - 1;
    file->first = first;
    file->length = last - first + 1;
    return 206;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A directory has the type of its index. */
static const char *type_of(const char *path)
{
    static const char *const types[][2] = {
        {"html", "text/html; charset=utf-8"},
        {"htm", "text/html; charset=utf-8"},
        {"css", "text/css"},
        {"js", "text/javascript"},
        {"json", "application/json"},
        {"txt", "text/plain; charset=utf-8"},
        {"md", "text/markdown; charset=utf-8"},
        {"svg", "image/svg+xml"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"gif", "image/gif"},
        {"ico", "image/x-icon"},
        {"pdf", "application/pdf"},
        {"wasm", "application/wasm"},
        {"xml", "application/xml"},
    };
    const char *dot = strrchr(path[strlen(path) - 1] == '/' ? "index.html" : path, '.');
    for (size_t i = 0; dot && !strchr(dot, '/') && i < sizeof types / sizeof *types; i++)
        if (strcmp(dot + 1, types[i][0]) == 0)
            return types[i][1];
    return "application/octet-stream";
}

/* What the system has in memory is read at once. The library waits for the rest, on a thread that may block. */
static bool read_small(struct file *file, char *bytes)
{
    const struct iovec part = {bytes, file->length};
    if (preadv2(file->fd, &part, 1, (off_t)file->first, RWF_NOWAIT) == (ssize_t)file->length)
        return true;
    file->waited = true;
    return strand_file_read(file->fd, bytes, file->length, (int64_t)file->first) == (int64_t)file->length;
}

BIG_FRAME static void send_small(struct connection *c, struct file *file, struct answer *head)
{
    char bytes[SMALL];
    if (c->parser.method == HTTP_HEAD || !file->length)
        head->body = "";
    else if (read_small(file, bytes))
        head->body = bytes;
    if (head->body)
        answer(c, head);
    else
        answer_status(c, 500, NULL);
}

static void send_opened(struct connection *c, struct file *file, struct answer *head)
{
    head->length = file->length;
    if (c->parser.method == HTTP_HEAD || file->length <= SMALL) {
        send_small(c, file, head);
        return;
    }
    send_head(c, head);
    file->waited = true;
    send_file(c, file->fd, file->first, file->length);
    answer_sent(c, head->status, file->length);
}

/* The head says nothing of the file but its size: what is sent is another text. */
static void answer_no_range(struct connection *c, const struct file *file)
{
    char extra[64];
    snprintf(extra, sizeof extra, "Content-Range: bytes */%llu\r\n", (unsigned long long)file->status.st_size);
    answer_status(c, 416, extra);
}

static void answer_with(struct connection *c, const char *path, struct file *file)
{
    char extra[256];
    describe(file);
    char *rest = stpcpy(stpcpy(stpcpy(stpcpy(extra, "ETag: "), file->tag), "\r\n"), file->modified);
    rest = stpcpy(rest, "Accept-Ranges: bytes\r\n");
    int status = check_conditions(c, file);
    if (status == 412) {
        answer_status(c, 412, NULL);
        return;
    }
    if (status == 304) {
        answer(c, &(struct answer){.status = 304, .extra = extra, .body = ""});
        return;
    }
    status = choose_range(c, file);
    if (status == 416) {
        answer_no_range(c, file);
        return;
    }
    if (status == 206)
        snprintf(rest, sizeof extra - (size_t)(rest - extra), "Content-Range: bytes %llu-%llu/%llu\r\n",
                 (unsigned long long)file->first, (unsigned long long)(file->first + file->length - 1),
                 (unsigned long long)file->status.st_size);
    send_opened(c, file, &(struct answer){.status = status, .type = type_of(path), .extra = extra});
}

/* To the same path with a slash. The path is encoded already, but for backslashes: browsers take them for slashes.
 * False: there is not enough room. */
static bool put_location(struct connection *c, const char *query, char *to, size_t room)
{
    size_t used = (size_t)snprintf(to, room, "Location: ");
    struct span span = path_span(c);
    const char *path = c->in + span.at, *end = path + span.length;
    while (end - path > 1 && path[1] == '/')
        path++; /* two slashes would begin the name of another host */
    for (; path < end && used + 4 < room; path++) {
        if (*path == '\\') {
            memcpy(to + used, "%5C", 3);
            used += 3;
        } else {
            to[used++] = *path;
        }
    }
    size_t rest = strlen("/?\r\n") + (query ? strlen(query) : 0);
    if (path < end || rest >= room - used)
        return false;
    snprintf(to + used, room - used, "/%s%s\r\n", query ? "?" : "", query ? query : "");
    return true;
}

BIG_FRAME static void redirect(struct connection *c, const char *query)
{
    char extra[PATH_MOST + 64];
    bool fits = put_location(c, query, extra, sizeof extra);
    answer_status(c, fits ? 301 : 414, fits ? extra : NULL);
}

void answer_file(struct connection *c, char *path, const char *query)
{
    struct file file __attribute__((cleanup(close_file))) = {.fd = -1};
    int status = !remove_dots(path) ? 404 : strlen(path) < PATH_MOST ? open_path(c->server, path + 1, &file) : 414;
    if (status == 0)
        answer_with(c, path, &file);
    else if (status == 301)
        redirect(c, query);
    else
        answer_status(c, status, NULL);
}
