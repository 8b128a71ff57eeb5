/*
 * crawl: count the words of all files below a directory, with a strand for every directory and every file.
 *
 * What it shows: a tree of strands that mirrors a tree of work, without a lock or an atomic. Every node of the tree of files is
 * written by its own strand only, and read after that strand was joined. And what happens when things go wrong: one subtree has a
 * deadline and a disk that is too slow for it, one strand is cancelled, one throws. The rest goes on, and at the end every file
 * is accounted for: counted or cut, none lost, and no strand is left alive.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strand.h>
#include <strand/debug.h>
#include <strand/io.h>
#include <strand/pool.h>

#define FIND "find . -path ./.git -prune -o -path ./build -prune -o -type f -print0"
#define COUNT "xargs -0 cat | LC_ALL=C wc -w"

static const int64_t slow_pause = 60 * STRAND_S; /* before each file of a slow disk */
static const int64_t patience = 100 * STRAND_MS; /* how long the late subtree may take */
static const int64_t warm_up = 20 * STRAND_MS;   /* until the tree of strands is worth printing */

static const strand_kind REFUSED = {"refused", &STRAND_ERROR};
static const strand_key slow_disk = {"slow disk"}; /* bound to a pause: the files read below it are slow */

enum role { ORDINARY, LATE, CANCELLED, REFUSING };
enum state { FOUND, COUNTED, CUT };

struct node {
    const struct options *options;
    bool directory;
    enum role role;
    strand strand; /* of the root's children: to join, and to cancel */

    /* Of a directory. */
    struct node **children;
    size_t count, room;

    /* Of a file. Words may run on from the file before it, as cat puts them together. */
    enum state state;
    uint64_t words;
    bool begins;    /* a word stands at its very beginning */
    bool ends;      /* and one at its very end */
    bool separated; /* it is not all one word */

    char path[];
};

struct options {
    int threads;
    const char *scheduler;
    bool whole;       /* nothing goes wrong */
    bool unprintable; /* bytes that can't be printed make words too: they do for wc since coreutils 9.5 */
};

struct sums {
    size_t files, counted, cut;
    uint64_t words;
    bool in_word;
    FILE *list; /* of the counted files' names, each with a NUL */
};

/* ---- what may block its thread: it runs by strand_offload, outside of strands, and may not throw ------------------- */

static struct node *node_new(const struct options *options, const char *parent, const char *name)
{
    size_t size = strlen(parent) + strlen(name) + 2;
    struct node *node = calloc(1, sizeof *node + size);
    if (node) {
        node->options = options;
        snprintf(node->path, size, "%s%s%s", parent, *parent ? "/" : "", name);
    }
    return node;
}

static int add_child(struct node *dir, const char *name)
{
    if (dir->count == dir->room) {
        size_t room = dir->room ? 2 * dir->room : 16;
        struct node **more = realloc(dir->children, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        dir->children = more;
        dir->room = room;
    }
    struct node *child = node_new(dir->options, dir->path, name);
    struct stat status;
    if (!child)
        return -ENOMEM;
    if (lstat(child->path, &status) < 0 || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))) {
        free(child); /* gone again, a link, a pipe: not what find -type f finds */
        return 0;
    }
    child->directory = S_ISDIR(status.st_mode);
    dir->children[dir->count++] = child;
    return 0;
}

static bool is_skipped(const struct node *dir, const char *name)
{
    bool at_top = strcmp(dir->path, ".") == 0;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (at_top && (strcmp(name, ".git") == 0 || strcmp(name, "build") == 0));
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(struct node *const *)a)->path, (*(struct node *const *)b)->path);
}

/* Find a directory's children, in the order of their names. Returns 0 or a negated errno code, as a pointer. */
static void *list_directory(void *arg)
{
    struct node *dir = arg;
    struct dirent *entry;
    int error = 0;
    DIR *stream = opendir(dir->path);
    if (!stream)
        return (void *)(intptr_t)-errno;
    while (!error && (errno = 0, entry = readdir(stream)))
        if (!is_skipped(dir, entry->d_name))
            error = add_child(dir, entry->d_name);
    if (!error)
        error = -errno;
    closedir(stream);
    if (dir->count)
        qsort(dir->children, dir->count, sizeof *dir->children, by_path);
    return (void *)(intptr_t)error;
}

static void count_bytes(struct node *file, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = bytes[i];
        if (c == ' ' || (c >= '\t' && c <= '\r')) { /* what separates words in the C locale */
            file->separated = true;
            file->ends = false;
        } else if (!file->ends && (file->options->unprintable || (c > ' ' && c < 0x7f))) {
            file->ends = true;
            file->words++;
            file->begins |= !file->separated;
        }
    }
}

/* Returns 0 or a negated errno code, as a pointer. */
static void *count_words(void *arg)
{
    struct node *file = arg;
    unsigned char buffer[65536];
    ssize_t size = 0;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return (void *)(intptr_t)-errno;
    while ((size = read(fd, buffer, sizeof buffer)) > 0 || (size < 0 && errno == EINTR))
        if (size > 0)
            count_bytes(file, buffer, (size_t)size);
    int error = size < 0 ? -errno : 0;
    close(fd);
    return (void *)(intptr_t)error;
}

/* What a shell command prints, as a number, or NULL; both as a pointer to the number. */
static void *run_command(void *arg)
{
    struct command {
        char text[128];
        uint64_t number;
    } *command = arg;
    FILE *output = popen(command->text, "r");
    bool told = output && fscanf(output, "%" SCNu64, &command->number) == 1;
    return output && pclose(output) == 0 && told ? &command->number : NULL;
}
