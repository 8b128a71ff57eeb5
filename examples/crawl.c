/*
 * crawl: count the words of all files below a directory, with a strand for every directory and every file.
 *
 * A tree of strands mirrors the tree of files, without a lock or an atomic: only a node's own strand writes the node,
 * and other strands read it after they have joined that strand. Three things go wrong on purpose: one subtree has a
 * deadline and a disk that is too slow for it, one strand is cancelled, one throws. The others go on. At the end each
 * file is either counted or cut, and no strand is alive.
 */
#include "common/options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
static const int64_t patience = 200 * STRAND_MS;       /* the deadline of the late subtree */
static const int64_t warm_up = 50 * STRAND_MS;         /* until the strands are a tree worth printing */
static const strand_kind REFUSED = STRAND_KIND("refused", &STRAND_ERROR);

struct crawl {
    const char *directory, *scheduler;
    int threads;
    bool whole;       /* nothing goes wrong */
    bool unprintable; /* unprintable bytes make words too, as in wc since coreutils 9.5 */
    struct node *root;
    long long live; /* strands at the end, besides the root */
};

enum role { ORDINARY, LATE, REFUSING, CANCELLED };
enum state { FOUND, COUNTED, CUT };

struct node {
    const struct crawl *crawl;
    bool directory;
    enum role role;
    strand strand; /* set in the root's children, to join and to cancel the strand */
    struct node **children;
    size_t count;
    bool listed;

    /* Set in files. cat may join the last word of a file and the first word of the next one: `begins` and `ends` say
     * whether the file begins and ends with a word, `separated` whether it has white space. */
    enum state state;
    bool begins, ends, separated;
    long long words;
    struct timespec changed; /* the time of change when the file was counted */

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

/* ---- blocking functions: strand_offload runs them outside of strands ---------------------------------------------
 *
 * Each returns 0 or a negated errno code. */

static void *result_of(int error)
{
    return (void *)(intptr_t)error;
}

static bool is_skipped(const struct node *dir, const char *name)
{
    bool at_top = dir == dir->crawl->root;
    return !strcmp(name, ".") || !strcmp(name, "..") || (at_top && (!strcmp(name, ".git") || !strcmp(name, "build")));
}

/* Leaves out links, pipes and files that have disappeared, as find -type f does. */
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

/* Counts words as wc does in the C locale. */
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

/* Throws STRAND_SYSTEM if fn fails. */
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

/* Makes all files below the directory slow: children inherit the binding. */
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

/* The account needs the names of files that are cut, so a cut directory is listed too. */
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

/* Gives the role to the first ordinary child that is not hidden and is a directory, or a file. */
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

/* Joins a child's strand and prints the exception that ended it. */
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

/* A supervisor: a child's failure interrupts nothing, and waits until the child is joined. */
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
        strand_cancel(cancelled->strand, "one strand must be cancelled");
    for (size_t i = 0; i < root->count; i++)
        join(root->children[i]);
    crawl->live = count_living() - 1;
    return NULL;
}

/* ---- the account, after all strands have ended ------------------------------------------------------------------- */

struct account {
    long long files, counted, cut, unlisted, words;
    bool in_word;
    FILE *names; /* the paths of the counted files, each with a NUL */
};

/* Another process may write to a file after it was counted; so does a shell that redirects this program's output. */
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
        account->unlisted++; /* its files are unknown and missing in the account */
}

/* Returns the number that a shell command prints, or -1. */
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

/* Returns whether every file is accounted for, and wc counts as many words in the files that were not cut. */
static bool settle(const struct crawl *crawl)
{
    char command[128];
    struct account account = {.names = tmpfile()};
    if (!account.names) {
        perror("crawl: a temporary file");
        return false;
    }
    add_up(&account, crawl->root);
    rewind(account.names); /* also flushes the buffer */
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

static void read_options(struct crawl *crawl, int argc, char **argv)
{
    const struct option_row options[] = {
        {"threads", 0, "N", "threads (default: one per allowed CPU)", OPTION_NUMBER(crawl->threads, 1, 1024)},
        {"scheduler", 0, "NAME", "stealing (the default) or global",
         OPTION_CHOICE(crawl->scheduler, "stealing global")},
        {"whole", 0, NULL, "nothing is late, cancelled or refused", OPTION_FLAG(crawl->whole)},
        {0},
    };
    const struct program program = {
        "crawl", "Counts the words of all files below DIRECTORY (default .), without its .git and build.\n",
        "DIRECTORY", options};
    const char *directory = options_read(&program, argc, argv);
    if (directory)
        crawl->directory = directory;
    if (chdir(crawl->directory) < 0)
        options_refuse(&program, "%s: %s", crawl->directory, strerror(errno));
}

int main(int argc, char **argv)
{
    struct crawl crawl = {.directory = ".", .scheduler = "stealing", .threads = STRAND_THREADS_ALLOWED};
    read_options(&crawl, argc, argv);
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
