/*
 * crawl: count the words of all files below a directory, with a strand for every directory and every file.
 *
 * What it shows: a tree of strands that mirrors a tree of work, without a lock or an atomic. Every node of the tree of
 * files is written by its own strand only, and read after that strand was joined. And what happens when things go
 * wrong: one subtree has a deadline and a disk too slow for it, one strand is cancelled, one throws. The others go on,
 * and at the end each file is accounted for, as counted or cut, and no strand is left alive.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strand.h>
#include <strand/debug.h>
#include <strand/io.h>
#include <strand/pool.h>

static int64_t slow_pause = 60 * STRAND_S;             /* before each file on a slow disk */
static strand_key slow_disk = STRAND_KEY("slow disk"); /* bound to a pause where files are slow */
static const int64_t patience = 200 * STRAND_MS;       /* with the late subtree */
static const int64_t warm_up = 50 * STRAND_MS;         /* until the strands are a tree worth printing */
static const strand_kind REFUSED = STRAND_KIND("refused", &STRAND_ERROR);

struct crawl {
    const char *directory, *scheduler;
    int threads;
    bool whole;       /* nothing goes wrong */
    bool unprintable; /* bytes that can't be printed make words too: they do for wc since coreutils 9.5 */
    struct node *root;
    long long live; /* strands at the end, besides the root */
};

enum role { ORDINARY, LATE, REFUSING, CANCELLED };
enum state { FOUND, COUNTED, CUT };

struct node {
    const struct crawl *crawl;
    bool directory;
    enum role role;
    strand strand; /* of the root's children: to join it, and to cancel it */
    struct node **children;
    size_t count;
    bool listed;

    /* Of a file. Where two files meet, cat may make one word of two: begins and ends say whether a word stands at that
     * very end, separated, whether the file is more than a part of one. */
    enum state state;
    bool begins, ends, separated;
    long long words;
    struct timespec changed; /* its time of change when it was counted */

    char path[];
};

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

/* ---- what blocks its thread: run by strand_offload, outside of strands; 0 or a negated errno code ---
 */

static void *result_of(int error)
{
    return (void *)(intptr_t)error;
}

static bool is_skipped(const struct node *dir, const char *name)
{
    bool at_top = dir == dir->crawl->root;
    return !strcmp(name, ".") || !strcmp(name, "..") || (at_top && (!strcmp(name, ".git") || !strcmp(name, "build")));
}

/* A link, a pipe, or what is gone again by now is left out, as by find -type f. */
static int add_child(struct node *dir, const char *name)
{
    struct stat status;
    struct node *child = node_new(dir->crawl, dir->path, name);
    if (!child)
        return -ENOMEM;
    bool known = lstat(child->path, &status) == 0;
    child->directory = known && S_ISDIR(status.st_mode);
    if (child->directory || (known && S_ISREG(status.st_mode)))
        dir->children[dir->count++] = child;
    else
        node_free(child);
    return 0;
}

static void *list_directory(void *arg)
{
    struct node *dir = arg;
    struct dirent **entries;
    int count = scandir(dir->path, &entries, NULL, alphasort), error = 0;
    if (count < 0)
        return result_of(-errno);
    dir->children = calloc((size_t)count + 1, sizeof *dir->children);
    if (!dir->children)
        error = -ENOMEM;
    for (int i = 0; i < count; i++) {
        if (!error && !is_skipped(dir, entries[i]->d_name))
            error = add_child(dir, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
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
    unsigned char buffer[16384];
    struct stat status = {0};
    ssize_t size;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return result_of(-errno);
    int error = fstat(fd, &status) < 0 ? -errno : 0;
    file->changed = status.st_mtim;
    while (!error && (size = read(fd, buffer, sizeof buffer)) != 0) {
        if (size > 0)
            count_bytes(file, buffer, (size_t)size);
        else
            error = -errno;
    }
    close(fd);
    return result_of(error);
}

/* ---- the strands ------------------------------------------------------------------------------------------------- */

/* Throws STRAND_SYSTEM where fn has no success. */
STRAND_BLOCKS static void offload(strand_fn *fn, struct node *node)
{
    strand_must((intptr_t)strand_offload(fn, node));
}

/* Runs on every way out of a file's strand. */
static void account_for(struct node **file)
{
    if ((*file)->state == FOUND)
        (*file)->state = CUT;
}

static void *crawl_file(void *arg)
{
    struct node *file __attribute__((cleanup(account_for))) = arg;
    const int64_t *pause = file->role == CANCELLED ? &slow_pause : strand_local(&slow_disk);
    if (pause)
        strand_sleep(*pause);
    if (file->role == REFUSING)
        strand_throw(&REFUSED, "%s is not to be read", file->path);
    offload(count_words, file);
    file->state = COUNTED;
    return NULL;
}

static void *crawl_directory(void *dir);

/* Its files are slow, and those of the directories in it: children inherit the binding. */
static void *crawl_late(void *dir)
{
    STRAND_LOCAL(&slow_disk, &slow_pause);
    STRAND_DEADLINE(strand_in(patience));
    return crawl_directory(dir);
}

static strand spawn(strand_scope scope, struct node *node)
{
    strand_fn *fn = !node->directory ? crawl_file : node->role == LATE ? crawl_late : crawl_directory;
    return strand_spawn_with(scope, STRAND_ATTR(.name = strrchr(node->path, '/') + 1), fn, node, 0);
}

/* What is cut has to be known: a directory is listed even if it is cut itself. */
static void list(struct node *dir)
{
    STRAND_SHIELD;
    offload(list_directory, dir);
    dir->listed = true;
}

static void *crawl_directory(void *arg)
{
    struct node *dir = arg;
    list(dir);
    STRAND_SCOPE(scope);
    for (size_t i = 0; i < dir->count; i++)
        spawn(scope, dir->children[i]);
    strand_scope_join(scope);
    return NULL;
}

/* ---- the root ---------------------------------------------------------------------------------------------------- */

/* The first child without a role that is a directory, or a file, and not hidden. */
static struct node *give_role(struct node *root, bool directory, enum role role)
{
    for (size_t i = 0; i < root->count; i++) {
        struct node *node = root->children[i];
        if (node->directory == directory && node->role == ORDINARY && node->path[2] != '.') {
            node->role = role;
            return node;
        }
    }
    printf("There is no %s to go wrong.\n", directory ? "subdirectory" : "file");
    return NULL;
}

static long long count_living(void)
{
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    return (long long)stats.live;
}

static void print_tree(void)
{
    printf("%lld strands are alive:\n\n", count_living());
    fflush(stdout);
    strand_must(strand_dump(STDOUT_FILENO, NULL));
}

/* Join a child, and say so if it ended by an exception. */
static void join(const struct node *node)
{
    STRAND_TRY {
        strand_join(node->strand);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        printf("\n%s was not finished:\n", node->path);
        fflush(stdout);
        strand_exception_print(e, STDOUT_FILENO);
    }
    STRAND_END
}

/* A supervisor: its children's failures wait until they are joined, and interrupt nobody. */
static void *supervise(void *arg)
{
    struct crawl *crawl = arg;
    struct node *root = crawl->root, *cancelled = NULL;
    list(root);
    if (!crawl->whole) {
        give_role(root, true, LATE);
        give_role(root, false, REFUSING);
        cancelled = give_role(root, false, CANCELLED);
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
    crawl->live = count_living() - 1;
    return NULL;
}

/* ---- the account, after all strands have ended ------------------------------------------------------------------- */

struct account {
    long long files, counted, cut, unlisted, words;
    bool in_word;
    FILE *names; /* of the files that were counted, each with a NUL */
};

/* What was counted is not there any more: somebody writes to it, such as who redirects this program's output. */
static bool has_changed(const struct node *file)
{
    struct stat now;
    return lstat(file->path, &now) < 0 || now.st_mtim.tv_sec != file->changed.tv_sec ||
           now.st_mtim.tv_nsec != file->changed.tv_nsec;
}

static void add_file(struct account *account, const struct node *node)
{
    bool cut = node->state == CUT || (node->state == COUNTED && has_changed(node));
    account->files++;
    account->cut += cut;
    if (cut || node->state != COUNTED)
        return;
    account->counted++;
    account->words += node->words - (account->in_word && node->begins);
    account->in_word = node->separated ? node->ends : account->in_word || node->begins;
    fwrite(node->path, 1, strlen(node->path) + 1, account->names);
}

static void add_up(struct account *account, const struct node *node)
{
    for (size_t i = 0; i < node->count; i++)
        add_up(account, node->children[i]);
    if (!node->directory)
        add_file(account, node);
    else if (!node->listed)
        account->unlisted++; /* what is in it is not known, and so not accounted for */
}

/* The number that a shell command prints, or -1. */
static long long number_from(const char *command)
{
    long long number = -1;
    FILE *output = popen(command, "r");
    if (!output)
        return -1;
    if (fscanf(output, "%lld", &number) != 1)
        number = -1;
    return pclose(output) == 0 ? number : -1;
}

#define FIND "find . -path ./.git -prune -o -path ./build -prune -o -type f -print0"
#define COUNT "xargs -0 cat | LC_ALL=C wc -w"

/* Whether every file is accounted for, and wc counts as many words in those that were not cut. */
static bool settle(const struct crawl *crawl)
{
    char command[128];
    struct account account = {.names = tmpfile()};
    if (!account.names) {
        perror("crawl: a temporary file");
        return false;
    }
    add_up(&account, crawl->root);
    rewind(account.names); /* writes out what is buffered, too */
    snprintf(command, sizeof command, "<&%d " COUNT, fileno(account.names));
    long long by_wc = number_from(command), lost = account.files - account.counted - account.cut;
    fclose(account.names);
    printf(
        "\nwc counts %lld words in the %lld files that were not cut. Were all of them counted, the command would be:\n",
        by_wc, account.counted);
    printf("cd %s && " FIND " | " COUNT "\n", crawl->directory);
    if (account.unlisted)
        printf("%lld directories could not be listed: what is in them is not accounted for\n", account.unlisted);
    printf("demo: files=%lld words=%lld cut=%lld lost=%lld live=%lld\n", account.files, account.words, account.cut,
           lost, crawl->live);
    return account.words == by_wc && account.unlisted == 0 && lost == 0 && crawl->live == 0;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const char usage[] = "usage: crawl [OPTION]... [DIRECTORY]\n"
                            "Count the words of all files below DIRECTORY (.), but for its .git and build.\n\n"
                            "  --threads N       run on N threads (one per allowed CPU)\n"
                            "  --scheduler NAME  stealing (the default) or global\n"
                            "  --whole           nothing is late, cancelled or refused\n"
                            "  --help            print this\n";

__attribute__((noreturn)) static void reject(const char *what, const char *why)
{
    fprintf(stderr, "crawl: %s: %s; see crawl --help\n", what, why);
    exit(2);
}

static int threads_from(const char *text)
{
    char *end;
    long threads = strtol(text, &end, 10);
    if (*end || end == text || threads < 1 || threads > 1024)
        reject(text, "not a number of threads from 1 to 1024");
    return (int)threads;
}

static void parse(struct crawl *crawl, int argc, char **argv)
{
    static const struct option options[] = {{"threads", required_argument, NULL, 't'},
                                            {"scheduler", required_argument, NULL, 's'},
                                            {"whole", no_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 't')
            crawl->threads = threads_from(optarg);
        else if (option == 's')
            crawl->scheduler = optarg;
        else if (option == 'w')
            crawl->whole = true;
        else if (option == 'h')
            exit(fputs(usage, stdout) < 0);
        else
            exit(2); /* getopt_long has said why */
    }
    if (strcmp(crawl->scheduler, "stealing") && strcmp(crawl->scheduler, "global"))
        reject(crawl->scheduler, "no scheduler has that name");
    if (argc - optind > 1)
        reject(argv[optind + 1], "there may be one directory only");
    if (optind < argc)
        crawl->directory = argv[optind];
    if (chdir(crawl->directory) < 0)
        reject(crawl->directory, strerror(errno));
}

int main(int argc, char **argv)
{
    struct crawl crawl = {.directory = ".", .scheduler = "stealing", .threads = STRAND_THREADS_ALLOWED};
    parse(&crawl, argc, argv);
    crawl.unprintable = number_from("printf '\\377' | LC_ALL=C wc -w") == 1;
    crawl.root = node_new(&crawl, "", ".");
    if (!crawl.root)
        return EXIT_FAILURE;
    crawl.root->directory = true;
    strand_run(STRAND_OPTIONS(.threads = crawl.threads, .scheduler = crawl.scheduler), supervise, &crawl);
    bool settled = settle(&crawl);
    node_free(crawl.root);
    return settled ? EXIT_SUCCESS : EXIT_FAILURE;
}
