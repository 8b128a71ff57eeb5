/*
 * Trees of directories: how they are removed, which entries stay, and changes by other processes meanwhile.
 */
#define _GNU_SOURCE
#define SUITE file_tree
#define ONE_SEED_IN 50 /* the system makes and removes files in most of the time */
#include "paths.h"

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static int remove_all(int dir, const char *path)
{
    char failed[64] = "nothing";
    int error = strand_file_remove_tree(dir, path, failed, sizeof failed);
    if (!error)
        CHECK_STR(failed, "nothing");
    return error;
}

TEST_INSIDE(a_tree_is_removed_and_what_its_links_name_stays)
{
    PLACE(dir);
    make_tree();
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t") && is_there("outside/kept"));
    CHECK_EQ(remove_all(dir, "t"), 0); /* it is not there */
    CHECK_EQ(remove_all(dir, "none/t"), 0);
    CHECK_EQ(remove_all(dir, "outside/kept"), 0);
    CHECK_EQ(count_entries("outside"), 0);
}

TEST_INSIDE(a_path_in_front_of_a_tree_may_have_links)
{
    PLACE(dir);
    make_tree();
    CHECK_EQ(symlink("t/d", "s"), 0);
    CHECK_EQ(remove_all(dir, "s//e/"), 0);
    CHECK(!is_there("t/d/e") && is_there("t/d"));
    CHECK_EQ(remove_all(dir, "s/"), 0); /* the link itself */
    CHECK(!is_there("s") && is_there("t/d"));
}

TEST_INSIDE(a_path_that_ends_without_a_name_is_no_tree)
{
    static const char *const paths[] = {"", ".", "..", "/", "//", "t/.", "t/..", "t/./"};
    PLACE(dir);
    char failed[64];
    make_tree();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        CHECK_EQ(strand_file_remove_tree(dir, paths[i], failed, sizeof failed), -EINVAL);
        CHECK_STR(failed, paths[i]);
    }
    CHECK_EQ(remove_all(dir, "t/a/b"), -ENOTDIR);
    CHECK_EQ(strand_file_remove_tree(987654, "t", failed, sizeof failed), -EBADF);
    CHECK_STR(failed, "t");
    CHECK(is_there("t/d/e/b") && is_there("t/a"));
}

/* More entries than a list has at a time, and lists that go on after directories in the middle of them. */
TEST_INSIDE(a_wide_tree_is_removed)
{
    PLACE(dir);
    char path[64];
    int count = test_seed() ? 60 : 400;
    make_directory("t");
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "t/file-%d", i);
        make_file(path);
        snprintf(path, sizeof path, "t/directory-%d", i);
        make_directory(path);
        if (i % 3)
            make_file(strcat(path, "/a"));
    }
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
}

/* "t" with directories in each other, which are named "level", and a file "b" in the last but one. */
static void make_deep(int dir, int depth)
{
    int last = dup(dir);
    make_directory("t");
    for (int i = 0; i < depth; i++) {
        int next = REAL(openat)(last, i ? "level" : "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        CHECK_EQ(mkdirat(next, "level", 0700), 0);
        close(last);
        last = next;
    }
    CHECK_EQ(mknodat(last, "b", S_IFREG | 0600, 0), 0);
    close(last);
}

static void *remove_deep(void *dir)
{
    CHECK_EQ(remove_all(*(int *)dir, "t"), 0);
    return dir;
}

/* Deeper than a path may be long, and than a small stack has room for. */
TEST_INSIDE(a_deep_tree_needs_neither_stack_nor_descriptors)
{
    PLACE(dir);
    make_deep(dir, test_seed() ? 50 : 1000);
    STRAND_SCOPE(scope);
    strand_attr attr = {.size = sizeof attr, .stack_size = 1};
    strand_join(strand_spawn_with(scope, &attr, remove_deep, &dir, 0));
    CHECK(!is_there("t"));
}

/* ---- entries that can't be removed ------------------------------------------------------------------------------- */

static int refuse(void)
{
    return EACCES;
}

TEST_INSIDE(an_entry_that_cannot_be_removed_stays_and_all_else_is_removed)
{
    PLACE(dir);
    char failed[64] = "", cut[6] = "";
    make_tree();
    make_file("t/d/e/c");
    HOOK(UNLINKS, "b", refuse);
    CHECK_EQ(strand_file_remove_tree(dir, "t/", failed, sizeof failed), -EACCES);
    CHECK_STR(failed, "t/d/e/b");
    CHECK_EQ(count_entries("t"), 1);
    CHECK_EQ(count_entries("t/d"), 1);
    CHECK_EQ(count_entries("t/d/e"), 1);
    CHECK_EQ(strand_file_remove_tree(dir, "t", cut, sizeof cut), -EACCES);
    CHECK_STR(cut, "t/d/e");
    CHECK_EQ(strand_file_remove_tree(dir, "t", NULL, 0), -EACCES);
}

TEST_INSIDE(the_path_of_a_failure_may_be_longer_than_one_of_the_system)
{
    PLACE(dir);
    enum { LONGEST = 8000 };
    char *failed = malloc(LONGEST);
    int depth = test_seed() ? 50 : 700;
    make_deep(dir, depth);
    HOOK(UNLINKS, "b", refuse);
    CHECK_EQ(strand_file_remove_tree(dir, "t", failed, LONGEST), -EACCES);
    CHECK_EQ(strlen(failed), strlen("t") + (size_t)(depth - 1) * strlen("/level") + strlen("/b"));
    CHECK_STR(failed + strlen(failed) - strlen("/level/b"), "/level/b");
    free(failed);
}

/* The removal of "t" fails with this error, first at this path. */
static void check_failure(int dir, int error, const char *path)
{
    char failed[64] = "";
    CHECK_EQ(strand_file_remove_tree(dir, "t//", failed, sizeof failed), error);
    CHECK_STR(failed, path);
}

TEST_INSIDE(a_directory_that_may_not_be_removed_is_emptied)
{
    PLACE(dir);
    make_tree();
    HOOK(UNLINKS, "e", refuse);
    check_failure(dir, -EACCES, "t/d/e");
    CHECK_EQ(count_entries("t/d/e"), 0);
    CHECK_EQ(count_entries("t"), 1);
    HOOK(UNLINKS, "t", refuse);
    check_failure(dir, -EACCES, "t"); /* without the slashes at its end */
    CHECK_EQ(count_entries("t"), 0);
}

TEST_INSIDE(a_directory_that_cannot_be_opened_stays)
{
    PLACE(dir);
    make_tree();
    HOOK(OPENS, "e", have_no_descriptors);
    check_failure(dir, -EMFILE, "t/d/e");
    CHECK_EQ(count_entries("t"), 1);
    CHECK(is_there("t/d/e/b"));
    HOOK(OPENS, "..", have_no_descriptors); /* there is no way on */
    check_failure(dir, -EMFILE, "t/d/e");
    CHECK_EQ(count_entries("t/d/e"), 0);
}

static int be_closed(void);

static int refuse_to_enter(void)
{
    HOOK(OPENS, "e", be_closed);
    return EACCES;
}

static int be_closed(void)
{
    HOOK(STATS, ".", refuse_to_enter);
    return 0;
}

TEST_INSIDE(a_directory_that_can_be_listed_but_not_entered_stays_alone)
{
    PLACE(dir);
    make_tree();
    make_file("t/z");
    HOOK(OPENS, "e", be_closed);
    check_failure(dir, -EACCES, "t/d/e");
    CHECK(is_there("t/d/e/b") && !is_there("t/z"));
    CHECK_EQ(count_entries("t/d"), 1);
}

static int be_mounted(void)
{
    mounted = true;
    return 0;
}

/* Its outer directory may be one that the caller may not change: then the system says that, and nothing of the mount.
 */
TEST_INSIDE(a_directory_on_which_a_file_system_is_mounted_stays_with_all_that_is_in_it)
{
    PLACE(dir);
    make_tree();
    make_file("t/z");
    HOOK(OPENS, "e", be_mounted);
    check_failure(dir, -EBUSY, "t/d/e");
    CHECK(is_there("t/d/e/b") && !is_there("t/z"));
    HOOK(OPENS, "t", be_mounted);
    check_failure(dir, -EBUSY, "t");
    CHECK(is_there("t/d/e/b"));
}

/* Some file systems list names that they do not find. */
TEST_INSIDE(an_entry_that_is_listed_and_never_there_stays)
{
    PLACE(dir);
    make_tree();
    HOOK(UNLINKS, "b", have_none);
    check_failure(dir, -ENOTEMPTY, "t/d/e");
}

TEST_INSIDE(a_directory_whose_entries_are_hidden_stays)
{
    PLACE(dir);
    make_tree();
    HOOK(LISTS, NULL, have_none);
    CHECK_EQ(remove_all(dir, "t"), -ENOTEMPTY);
    CHECK(is_there("t/d/e/b"));
}

/* ---- others change the tree -------------------------------------------------------------------------------------- */

static int turn_into_a_link(void)
{
    CHECK_EQ(rename("t/d", "moved"), 0);
    CHECK_EQ(symlink("../outside", "t/d"), 0);
    hook.call = NO_CALL;
    return 0;
}

TEST_INSIDE(a_directory_that_others_turn_into_a_link_leads_nowhere)
{
    PLACE(dir);
    make_tree();
    HOOK(OPENS, "d", turn_into_a_link);
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
    CHECK(is_there("outside/kept"));
    CHECK(is_there("moved/e/b"));
}

static int move_out(void)
{
    CHECK_EQ(rename("t/d", "outside/d"), 0);
    hook.call = NO_CALL;
    return 0;
}

TEST_INSIDE(a_directory_that_others_move_out_does_not_lead_out)
{
    PLACE(dir);
    char failed[64] = "";
    make_tree();
    CHECK_EQ(remove_all(dir, "t/d/e"), 0);
    make_directory("outside/z");
    HOOK(OPENS, "..", move_out);
    CHECK_EQ(strand_file_remove_tree(dir, "t", failed, sizeof failed), -EAGAIN);
    CHECK_STR(failed, "t/d");
    CHECK(is_there("outside/kept") && is_there("outside/z"));
    CHECK_EQ(count_entries("outside/d"), 0); /* it was emptied before */
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(is_there("outside/kept") && !is_there("t"));
}

static int times_filled;

static int fill(void)
{
    char path[32];
    snprintf(path, sizeof path, "t/d/e/new-%d", times_filled);
    if (times_filled++ < 5)
        make_file(path);
    return 0;
}

TEST_INSIDE(an_entry_that_others_make_meanwhile_is_removed_too)
{
    PLACE(dir);
    make_tree();
    times_filled = 0;
    HOOK(UNLINKS, "e", fill);
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
    CHECK(times_filled > 5);
}

static int take_away(void)
{
    (void)!unlink("t/a");
    (void)!unlink("t/d/e/b");
    (void)!rmdir("t/d/e");
    return 0;
}

TEST_INSIDE(an_entry_that_others_remove_meanwhile_is_no_error)
{
    PLACE(dir);
    make_tree();
    HOOK(LISTS, NULL, take_away);
    CHECK_EQ(remove_all(dir, "t"), 0);
    HOOK(OPENS, "e", take_away);
    make_directory("t");
    make_directory("t/d");
    make_directory("t/d/e");
    make_file("t/d/e/b");
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
}

/* ---- interruptions ----------------------------------------------------------------------------------------------- */

static struct blocker blocker;
static _Atomic int unlinked;

static int block_in_the_middle(void)
{
    if (++unlinked == 100)
        block_until_released(&blocker);
    return 0;
}

static void *remove_and_go_on(void *dir)
{
    uint64_t removed = 0;
    STRAND_TRY {
        strand_file_remove_tree(*(int *)dir, "t", NULL, 0);
        CHECK_FAIL("the call was not interrupted");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        removed = strand_exception_progress(e);
    }
    STRAND_END
    return (void *)(uintptr_t)removed;
}

static int open_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

TEST_INSIDE(an_interruption_comes_between_two_names)
{
    enum { FILES = 500 };
    PLACE(dir);
    char path[32];
    make_directory("t");
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "t/%d", i);
        make_file(path);
    }
    int before = open_descriptors();
    blocker_reset(&blocker);
    unlinked = 0;
    HOOK(UNLINKS, NULL, block_in_the_middle);
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, remove_and_go_on, &dir);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    blocker.released = 1;
    int removed = (int)(uintptr_t)strand_join(child);
    CHECK(removed >= 98 && removed <= 100 + 32); /* two calls fail: there are entries */
    CHECK_EQ(count_entries("t"), FILES - removed);
    CHECK(open_descriptors() <= before + 1); /* the first thread of the crew may have one */
}
