/*
 * Pages that are generated. Those that wait are watched: when their client goes away, all that works for it is
 * cancelled.
 */
#include "httpd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const strand_kind CLIENT_GONE = STRAND_KIND("client gone", &STRAND_ERROR);

enum { NAPS_MOST = 100 };
static const int64_t nap_most_ms = 3600 * 1000;

/* Fails when the client goes away, and so interrupts the strand that serves its request. One that has only closed its
 * sending side looks the same from here, and counts as gone: no browser does that, and nginx takes it so as well. A
 * connection that drains or makes room has been shut down for reading by the server itself. */
static void *watch_client(void *arg)
{
    const struct connection *c = arg;
    (void)strand_wait_ready(c->fd, STRAND_GONE);
    if (!c->server->draining && !c->leaving)
        strand_throw(&CLIENT_GONE, "%s went away", c->peer);
    return NULL;
}

static void *nap(void *ns)
{
    strand_sleep(*(const int64_t *)ns);
    return NULL;
}

static int64_t number_of(const char *query, const char *name, int64_t otherwise, int64_t most)
{
    size_t length = strlen(name);
    for (const char *at = query; at && *at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL) {
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        char *end;
        long long number = strtoll(at + length + 1, &end, 10);
        if (end == at + length + 1 || (*end && *end != '&') || number < 0)
            return -1;
        return number < most ? number : most;
    }
    return otherwise;
}

/* /slow?ms=N&strands=K sleeps for N ms in K strands. */
static void answer_slowly(struct connection *c, const char *query)
{
    int64_t ms = number_of(query, "ms", 1000, nap_most_ms), strands = number_of(query, "strands", 1, NAPS_MOST);
    int64_t ns = ms * STRAND_MS;
    char text[64];
    if (ms < 0 || strands < 0) {
        answer_status(c, 400, NULL);
        return;
    }
    {
        strand naps[NAPS_MOST];
        STRAND_DEADLINE(strand_in(c->server->timeout));
        STRAND_SCOPE(request);
        strand watcher = strand_spawn_with(request, STRAND_ATTR(.name = "watch client"), watch_client, c, 0);
        for (int i = 0; i < strands; i++)
            naps[i] = strand_spawn_with(request, STRAND_ATTR(.name = "nap"), nap, &ns, 0);
        for (int i = 0; i < strands; i++)
            strand_join(naps[i]);
        strand_cancel(watcher, "the request is done");
    }
    int length = snprintf(text, sizeof text, "slept for %lld ms\n", (long long)ms);
    answer(c, &(struct answer){.status = 200, .body = text, .length = (size_t)length});
}

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void free_text(char **text)
{
    free(*text);
}

/* /strands: the live tree of this very server. */
static void answer_tree(struct connection *c)
{
    int file __attribute__((cleanup(close_fd))) = memfd_create("strands", MFD_CLOEXEC);
    off_t length = file >= 0 && strand_dump(file, NULL) == 0 ? lseek(file, 0, SEEK_CUR) : -1;
    char *text __attribute__((cleanup(free_text))) = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text && pread(file, text, (size_t)length, 0) == length)
        answer(c, &(struct answer){
                      .status = 200, .body = text, .length = (size_t)length, .extra = "Cache-Control: no-store\r\n"});
    else
        answer_status(c, 500, NULL);
}

bool answer_page(struct connection *c, const char *path, const char *query)
{
    static const char hello[] = "Hello, world!\n";
    if (strcmp(path, "/hello") == 0)
        answer(c, &(struct answer){.status = 200, .body = hello, .length = sizeof hello - 1});
    else if (strcmp(path, "/slow") == 0)
        answer_slowly(c, query);
    else if (strcmp(path, "/strands") == 0)
        answer_tree(c);
    else
        return false;
    return true;
}
