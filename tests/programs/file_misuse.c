/*
 * Misuse of calls on files and their changes.
 */
#include "cases.h"

#include "strand/changes.h"
#include "strand/file.h"

#include <fcntl.h>

static char *bytes;

MISUSE(open_no_path, "strand_file_open", "path is NULL")
DOES(strand_file_open(AT_FDCWD, NULL, O_RDONLY, 0))
MISUSE(read_no_buffer, "strand_file_read", "buffer is NULL")
DOES(strand_file_read(0, NULL, 1, 0))
MISUSE(write_no_bytes, "strand_file_write", "bytes is NULL")
DOES(strand_file_write(1, NULL, 1, 0))
MISUSE(readv_no_list, "strand_file_readv", "list of buffers is NULL")
DOES(strand_file_readv(0, NULL, 1, 0))
MISUSE(writev_no_list, "strand_file_writev", "list of buffers is NULL")
DOES(strand_file_writev(1, NULL, 1, 0))
MISUSE(stat_no_path, "strand_file_stat", "path is NULL")
DOES(struct stat status; strand_file_stat(AT_FDCWD, NULL, 0, &status))
MISUSE(stat_no_room, "strand_file_stat", "buffer for the status is NULL")
DOES(strand_file_stat(AT_FDCWD, ".", 0, NULL))
MISUSE(rename_no_path, "strand_file_rename", "path is NULL")
DOES(strand_file_rename(AT_FDCWD, NULL, AT_FDCWD, "new", 0))
MISUSE(rename_no_new_path, "strand_file_rename", "new path is NULL")
DOES(strand_file_rename(AT_FDCWD, "none", AT_FDCWD, NULL, 0))
MISUSE(link_no_path, "strand_file_link", "path is NULL")
DOES(strand_file_link(AT_FDCWD, NULL, AT_FDCWD, "new", 0))
MISUSE(symlink_no_target, "strand_file_symlink", "target is NULL")
DOES(strand_file_symlink(NULL, AT_FDCWD, "new"))
MISUSE(symlink_no_path, "strand_file_symlink", "path is NULL")
DOES(strand_file_symlink("none", AT_FDCWD, NULL))
MISUSE(read_link_no_path, "strand_file_read_link", "path is NULL")
DOES(char target[8]; strand_file_read_link(AT_FDCWD, NULL, target, sizeof target))
MISUSE(read_link_no_room, "strand_file_read_link", "buffer for the target is NULL")
DOES(strand_file_read_link(AT_FDCWD, "none", NULL, 8))
MISUSE(unlink_no_path, "strand_file_unlink", "path is NULL")
DOES(strand_file_unlink(AT_FDCWD, NULL, 0))
MISUSE(make_directory_no_path, "strand_file_make_directory", "path is NULL")
DOES(strand_file_make_directory(AT_FDCWD, NULL, 0700))
MISUSE(list_no_entries, "strand_file_list", "list for the entries is NULL")
DOES(strand_file_list(0, NULL, 1))
MISUSE(load_no_path, "strand_file_load", "path is NULL")
DOES(strand_file_load(AT_FDCWD, NULL, 0, &bytes))
MISUSE(load_no_place, "strand_file_load", "place for the bytes is NULL")
DOES(strand_file_load(AT_FDCWD, "none", 0, NULL))
MISUSE(changes_no_path, "strand_changes_add", "path is NULL")
DOES((void)!strand_changes_add(0, AT_FDCWD, NULL, 1))
MISUSE(changes_no_list, "strand_changes_receive", "list of changes is NULL")
DOES((void)!strand_changes_receive(0, NULL, 1))
MISUSE(change_no_place, "strand_on_change", "place for the change is NULL")
DOES(strand_on_change(0, NULL))
MISUSE(store_no_path, "strand_file_store", "path is NULL")
DOES(strand_file_store(AT_FDCWD, NULL, "x", 1, 0600))
MISUSE(store_no_bytes, "strand_file_store", "bytes is NULL")
DOES(strand_file_store(AT_FDCWD, "none", NULL, 1, 0600))
