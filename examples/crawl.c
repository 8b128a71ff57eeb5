/*
 * crawl: count the words of all files below a directory, with a strand for every directory and every file.
 *
 * What it shows: a tree of strands that mirrors a tree of work, without a lock or an atomic. Every node of the tree of
 * files is written by its own strand only, and read after that strand was joined. And what happens when things go wrong:
 * one subtree has a deadline and a disk too slow for it, one strand is cancelled, one throws. The others go on, and at
 * the end each file is accounted for, as counted or cut, and no strand is left alive.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
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

static const int64_t slow_pause = 60 * STRAND_S; /* before each file on a slow disk */
static const int64_t patience = 100 * STRAND_MS; /* for the late subtree */
static const int64_t warm_up = 20 * STRAND_MS;   /* until the strands are a tree worth printing */

static const strand_kind REFUSED = {"refused", &STRAND_ERROR};
static const strand_key slow_disk = {"slow disk"}; /* bound to a pause: files read below are slow */

struct crawl {
    int threads;
    const char *scheduler;
    bool whole;       /* nothing goes wrong */
    bool unprintable; /* bytes that can't be printed make words too, as for wc of coreutils 9.5 and later */
    struct node *root;
    uint64_t live; /* strands at the end, besides the root */
};

enum role { ORDINARY, LATE, CANCELLED, REFUSING };
enum state { FOUND, COUNTED, CUT };

struct node {
    const struct crawl *crawl;
    bool directory;
    enum role role;
    strand strand; /* of the root's children: to join it, and to cancel it */
    struct node **children;
    size_t count, room;

    /* Of a file. Where two files meet, cat may make one word of two. */
    enum state state;
    uint64_t words;
    bool begins;    /* a word stands at its very beginning */
    bool separated; /* it is not all one word */
    bool ends;      /* a word stands at its very end */

    char path[];
};

/* ---- the tree of files ------------------------------------------------------------------------------------------- */

static struct node *node_new(const struct crawl *crawl, const char *parent, const char *name)
{
    size_t size = strlen(parent) + strlen(name) + 2;
    struct node *node = calloc(1, sizeof *node + size);
    if (node) {
        node->crawl = crawl;
        snprintf(node->path, size, "%s%s%s", parent, *parent ? "/" : "", name);
    }
    return node;
}

static void node_free(struct node *node)
{
    for (size_t i = 0; i < node->count; i++)
        node_free(node->children[i]);
    free(node->children);
    free(node);
}

/* Returns 0 or a negated errno code. */
static int node_add(struct node *dir, struct node *child)
{
    if (dir->count == dir->room) {
        size_t room = dir->room ? 2 * dir->room : 16;
        struct node **more = realloc(dir->children, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        dir->children = more;
        dir->room = room;
    }
    dir->children[dir->count++] = child;
    return 0;
}

/* ---- what blocks its thread: it runs by strand_offload, outside of strands, and returns 0 or a negated errno code --- */

static void *result_of(int error)
{
    return (void *)(intptr_t)error;
}

/* A link, a pipe, or what is gone again by now is nothing that find -type f would find. */
static int add_entry(struct node *dir, const char *name)
{
    struct stat status;
    struct node *child = node_new(dir->crawl, dir->path, name);
    if (!child)
        return -ENOMEM;
    bool known = lstat(child->path, &status) == 0;
    child->directory = known && S_ISDIR(status.st_mode);
    bool wanted = child->directory || (known && S_ISREG(status.st_mode));
    int error = wanted ? node_add(dir, child) : 0;
    if (!wanted || error)
        node_free(child);
    return error;
}

static bool is_skipped(const struct node *dir, const char *name)
{
    bool at_top = dir == dir->crawl->root;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (at_top && (strcmp(name, ".git") == 0 || strcmp(name, "build") == 0));
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(struct node *const *)a)->path, (*(struct node *const *)b)->path);
}

static void *list_directory(void *arg)
{
    struct node *dir = arg;
    struct dirent *entry;
    int error = 0;
    DIR *stream = opendir(dir->path);
    if (!stream)
        return result_of(-errno);
    while (!error && (errno = 0, entry = readdir(stream)))
        error = is_skipped(dir, entry->d_name) ? 0 : add_entry(dir, entry->d_name);
    if (!error)
        error = -errno;
    closedir(stream);
    if (dir->count)
        qsort(dir->children, dir->count, sizeof *dir->children, by_path);
    return result_of(error);
}

/* What a word is, wc in the C locale decides. */
static void count_bytes(struct node *file, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = bytes[i];
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            file->separated = true;
            file->ends = false;
        } else if (!file->ends && (file->crawl->unprintable || (c > ' ' && c < 0x7f))) {
            file->begins |= !file->separated;
            file->ends = true;
            file->words++;
        }
    }
}

static void *count_words(void *arg)
{
    struct node *file = arg;
    unsigned char buffer[65536];
    ssize_t size;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return result_of(-errno);
    while ((size = read(fd, buffer, sizeof buffer)) > 0)
        count_bytes(file, buffer, (size_t)size);
    int error = size < 0 ? -errno : 0;
    close(fd);
    return result_of(error);
}

/* ---- the strands --------------------------------------------------------------------------------------------------- */

/* Throws STRAND_SYSTEM if fn had no success. */
STRAND_BLOCKS static void offload(strand_fn *fn, struct node *node)
{
    strand_must((intptr_t)strand_offload(fn, node));
}

/* Runs on every way out of the strand of a file. */
static void account_for(struct node **file)
{
    if ((*file)->state == FOUND)
        (*file)->state = CUT;
}

static void *crawl_file(void *arg)
{
    struct node *file __attribute__((cleanup(account_for))) = arg;
    const int64_t *pause = strand_local(&slow_disk);
    if (pause)
        strand_sleep(*pause);
    if (file->role == REFUSING)
        strand_throw(&REFUSED, "%s is not to be read", file->path);
    offload(count_words, file);
    file->state = COUNTED;
    return NULL;
}

static void *crawl_directory(void *arg);

/* A binding is inherited by what is spawned below it. */
static strand spawn(strand_scope scope, struct node *node)
{
    const strand_attr attr = {.size = sizeof attr, .name = strrchr(node->path, '/') + 1};
    STRAND_LOCAL(&slow_disk, node->role == CANCELLED ? (void *)(intptr_t)&slow_pause : strand_local(&slow_disk));
    return strand_spawn_with(scope, &attr, node->directory ? crawl_directory : crawl_file, node, 0);
}

/* What is cut has to be known: so a directory is listed even if it is cut itself. */
static void list_all(struct node *dir)
{
    STRAND_SHIELD;
    offload(list_directory, dir);
}

static void crawl_children(struct node *dir)
{
    list_all(dir);
    STRAND_SCOPE(scope);
    for (size_t i = 0; i < dir->count; i++)
        spawn(scope, dir->children[i]);
    strand_scope_join(scope);
}

static void *crawl_directory(void *arg)
{
    struct node *dir = arg;
    if (dir->role == LATE) {
        STRAND_LOCAL(&slow_disk, (void *)(intptr_t)&slow_pause);
        STRAND_DEADLINE(strand_in(patience));
        crawl_children(dir);
    } else {
        crawl_children(dir);
    }
    return NULL;
}

/* ---- the root ------------------------------------------------------------------------------------------------------ */

/* The first of them that is a file or a directory, as asked, has no role yet, and is not hidden. */
static struct node *cast(struct node *root, bool directory, enum role role)
{
    for (size_t i = 0; i < root->count; i++) {
        struct node *node = root->children[i];
        if (node->directory == directory && node->role == ORDINARY && node->path[2] != '.') {
            node->role = role;
            return node;
        }
    }
    printf("there is no %s for the role of one that is %s\n", directory ? "directory" : "file",
           role == LATE ? "late" : role == CANCELLED ? "cancelled" : "refusing");
    return NULL;
}

static void print_tree(void)
{
    struct strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    printf("%" PRIu64 " strands are alive:\n\n", stats.live);
    fflush(stdout);
    strand_must(strand_dump(STDOUT_FILENO));
}

/* Join a child and say by what it ended, if by an exception. */
static void join(const struct node *node)
{
    STRAND_TRY
    {
        strand_join(node->strand);
    }
    STRAND_CATCH(&STRAND_ERROR, e)
    {
        printf("\n%s was not finished:\n", node->path);
        fflush(stdout);
        strand_exception_print(e, STDOUT_FILENO);
    }
    STRAND_END
}

/* A supervisor: failures of its children wait to be fetched, here by joining them, and interrupt nobody. */
static void supervise(struct crawl *crawl)
{
    struct node *root = crawl->root, *cancelled = NULL;
    list_all(root);
    if (!crawl->whole) {
        cast(root, true, LATE);
        cast(root, false, REFUSING);
        cancelled = cast(root, false, CANCELLED);
    }
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (size_t i = 0; i < root->count; i++)
        root->children[i]->strand = spawn(scope, root->children[i]);
    strand_sleep(warm_up);
    print_tree();
    if (cancelled)
        strand_cancel(cancelled->strand, "one strand is to be cancelled");
    for (size_t i = 0; i < root->count; i++)
        join(root->children[i]);
}

static void *run(void *arg)
{
    struct crawl *crawl = arg;
    struct strand_stats stats = {.size = sizeof stats};
    supervise(crawl);
    strand_stats_get(&stats);
    crawl->live = stats.live - 1;
    return NULL;
}

/* ---- the account, when all strands have ended ------------------------------------------------------------------------ */

struct account {
    size_t files, counted, cut;
    uint64_t words;
    bool in_word;
    FILE *names; /* of the files that were counted, each with a NUL */
};

static void add_up(struct account *account, const struct node *node)
{
    for (size_t i = 0; i < node->count; i++)
        add_up(account, node->children[i]);
    if (node->directory)
        return;
    account->files++;
    account->cut += node->state == CUT;
    if (node->state != COUNTED)
        return;
    account->counted++;
    account->words += node->words - (account->in_word && node->begins);
    account->in_word = node->separated ? node->ends : account->in_word || node->begins;
    fwrite(node->path, 1, strlen(node->path) + 1, account->names);
}

/* The number that a shell command prints; UINT64_MAX if it fails. */
static uint64_t number_from(const char *command)
{
    uint64_t number = UINT64_MAX;
    FILE *output = popen(command, "r");
    bool told = output && fscanf(output, "%" SCNu64, &number) == 1;
    return output && pclose(output) == 0 && told ? number : UINT64_MAX;
}

/* Whether everything is accounted for, and the words are as many as wc counts in the same files. */
static bool settle(const struct crawl *crawl)
{
    char command[128];
    struct account account = {.names = tmpfile()};
    if (!account.names) {
        perror("crawl: a temporary file");
        return false;
    }
    add_up(&account, crawl->root);
    rewind(account.names); /* flushes, too */
    snprintf(command, sizeof command, "<&%d " COUNT, fileno(account.names));
    uint64_t by_wc = number_from(command);
    fclose(account.names);
    size_t lost = account.files - account.counted - account.cut;
    printf("\nwc counts %" PRIu64 " words in the %zu files that were not cut; in all of them: " FIND " | " COUNT "\n", by_wc,
           account.counted);
    printf("demo: files=%zu words=%" PRIu64 " cut=%zu lost=%zu live=%" PRIu64 "\n", account.files, account.words, account.cut,
           lost, crawl->live);
    return account.words == by_wc && !lost && !crawl->live;
}

/* ---- the command line ------------------------------------------------------------------------------------------------ */

static const char usage[] = "usage: crawl [OPTION]... [DIRECTORY]\n"
                            "Count the words of all files below DIRECTORY (.), but for its .git and build.\n\n"
                            "  --threads N       run on N threads (one per allowed CPU)\n"
                            "  --scheduler NAME  stealing (the default) or global\n"
                            "  --whole           nothing is late, cancelled or refused\n"
                            "  --help            print this\n";

__attribute__((noreturn, format(printf, 1, 2))) static void reject(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("crawl: ", stderr);
    vfprintf(stderr, format, args);
    fputs("; try crawl --help\n", stderr);
    va_end(args);
    exit(2);
}

static int threads_from(const char *text)
{
    char *end;
    long threads = strtol(text, &end, 10);
    if (*end || end == text || threads < 1 || threads > 1024)
        reject("'%s' is no number of threads from 1 to 1024", text);
    return (int)threads;
}

static struct crawl parse(int argc, char **argv)
{
    enum { THREADS = 't', SCHEDULER = 's', WHOLE = 'w', HELP = 'h' };
    static const struct option options[] = {{"threads", required_argument, NULL, THREADS},
                                            {"scheduler", required_argument, NULL, SCHEDULER},
                                            {"whole", no_argument, NULL, WHOLE},
                                            {"help", no_argument, NULL, HELP},
                                            {NULL, 0, NULL, 0}};
    struct crawl crawl = {.threads = STRAND_THREADS_ALLOWED};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == THREADS) {
            crawl.threads = threads_from(optarg);
        } else if (option == SCHEDULER) {
            crawl.scheduler = optarg;
        } else if (option == WHOLE) {
            crawl.whole = true;
        } else if (option == HELP) {
            fputs(usage, stdout);
            exit(0);
        } else {
            reject("that is not understood");
        }
    }
    if (crawl.scheduler && strcmp(crawl.scheduler, "stealing") != 0 && strcmp(crawl.scheduler, "global") != 0)
        reject("there is no scheduler '%s'", crawl.scheduler);
    if (argc - optind > 1)
        reject("one directory at a time");
    if (optind < argc && chdir(argv[optind]) < 0)
        reject("%s: %s", argv[optind], strerror(errno));
    return crawl;
}

int main(int argc, char **argv)
{
    struct crawl crawl = parse(argc, argv);
    crawl.unprintable = number_from("printf '\\377' | LC_ALL=C wc -w") == 1;
    crawl.root = node_new(&crawl, "", ".");
    if (!crawl.root)
        reject("there is no memory");
    crawl.root->directory = true;
    strand_run(STRAND_OPTIONS(.threads = crawl.threads, .scheduler = crawl.scheduler), run, &crawl);
    bool settled = settle(&crawl);
    node_free(crawl.root);
    return settled ? EXIT_SUCCESS : EXIT_FAILURE;
}
