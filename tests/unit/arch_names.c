/*
 * What addresses are called in the source: with libdw, without it, and when it fails at anything.
 */
#include "arch_check.h"

#include <dlfcn.h>
#include <errno.h>

#if !SANITIZED /* no lines are looked for there */

enum { MOST = 16 };

static void *ips[MOST];
static int line_of[2]; /* of the calls that the first two return to */

#define HERE(call, i) line_of[i] = __LINE__, (call)
#define NOT_A_TAIL_CALL() __asm__ volatile("")

static inline __attribute__((always_inline, artificial)) void stands_for_its_call(void)
{
    (void)arch_trace(ips, MOST);
}

static NOINLINE void bottom(void)
{
    HERE(stands_for_its_call(), 0);
    NOT_A_TAIL_CALL();
}

static NOINLINE void caller(void)
{
    HERE(bottom(), 1);
    NOT_A_TAIL_CALL();
}

/* ---- libdw's functions, as they are wanted ------------------------------------------------------------------- */

static const char *missing, *fails[2];

static void *fails_by_null(void)
{
    return NULL;
}

static int fails_by_code(void)
{
    return -1;
}

static bool returns_a_code(const char *name)
{
    static const char *const codes[] = {"dwfl_linux_proc_report", "dwfl_report_end", "dwarf_haspc",
                                        "dwarf_lineno",           "dwarf_child",     "dwarf_formudata",
                                        "dwarf_getsrcfiles"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(name, codes[i]) == 0)
            return true;
    return false;
}

/* This stands before the C library's. */
void *dlsym(void *library, const char *name)
{
    static void *(*real)(void *, const char *);
    void *instead;
    if (missing && strcmp(name, missing) == 0)
        return NULL;
    for (int i = 0; i < 2; i++) {
        if (!fails[i] || strcmp(name, fails[i]) != 0)
            continue;
        if (returns_a_code(name))
            *(int (**)(void)) & instead = fails_by_code;
        else
            *(void *(**)(void)) & instead = fails_by_null;
        return instead;
    }
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real(library, name);
}

/* ---- what is found ------------------------------------------------------------------------------------------- */

static char name[64], line[2][160];

static void find(void)
{
    uintptr_t offset = 0;
    struct arch_names *names = arch_names_open();
    CHECK(names != NULL);
    for (int i = 0; i < 2; i++) {
        arch_names_find(names, ips[i], name, sizeof name, &offset, line[i], sizeof line[i]);
        CHECK(strcmp(name, i ? "caller" : "bottom") == 0);
        CHECK(offset > 0);
    }
    arch_names_close(names);
}

static bool is_right(int i)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "tests/unit/arch_names.c:%d", line_of[i]);
    const char *found = strstr(line[i], wanted);
    return found && strlen(found) == strlen(wanted);
}

static void a_call_is_found_by_file_and_line(void)
{
    find();
    CHECK(is_right(0) && is_right(1));
    CHECK(line[1][0] != '/'); /* relative to where the compiler ran */
}

static void errno_stays(void)
{
    errno = ESRCH;
    find();
    CHECK_EQUAL(errno, ESRCH);
}

static void there_are_no_lines_where_they_are_not_wanted(void)
{
    setenv("STRAND_LINES", "none", 1);
    find();
    CHECK(!line[0][0] && !line[1][0]);
    unsetenv("STRAND_LINES");
}

static struct arch_names *in_handler;

static void open_in_handler(int number)
{
    (void)number;
    in_handler = arch_names_open();
}

static void in_a_handler_symbols_are_known_and_nothing_else(void)
{
    uintptr_t offset;
    signal(SIGUSR1, open_in_handler);
    raise(SIGUSR1);
    CHECK(in_handler == NULL);
    arch_names_find(NULL, ips[1], name, sizeof name, &offset, line[1], sizeof line[1]);
    CHECK(strcmp(name, "caller") == 0 && !line[1][0]);
    arch_names_close(NULL);
}

static void without_libdw_there_are_no_lines(void)
{
    static const char *const all[] = {"dwfl_begin",
                                      "dwfl_linux_proc_report",
                                      "dwfl_linux_proc_find_elf",
                                      "dwfl_report_end",
                                      "dwfl_end",
                                      "dwfl_addrmodule",
                                      "dwfl_module_addrdie",
                                      "dwfl_module_nextcu",
                                      "dwarf_haspc",
                                      "dwarf_getsrc_die",
                                      "dwarf_lineno",
                                      "dwarf_linesrc",
                                      "dwarf_child",
                                      "dwarf_siblingof",
                                      "dwarf_tag",
                                      "dwarf_attr_integrate",
                                      "dwarf_formudata",
                                      "dwarf_formstring",
                                      "dwarf_getsrcfiles",
                                      "dwarf_filesrc"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        missing = all[i];
        find();
        CHECK(!line[0][0] && !line[1][0]);
    }
    missing = NULL;
}

/* Whether the lines of the artificial function's call, and of the other one, are found still. */
static void what_libdw_fails_at_is_left_out(void)
{
    static const struct {
        const char *fails[2];
        bool first, second;
    } cases[] = {
        {{"dwfl_begin"}, false, false},
        {{"dwfl_linux_proc_report"}, false, false},
        {{"dwfl_report_end"}, false, false},
        {{"dwfl_addrmodule"}, false, false},
        {{"dwfl_module_addrdie"}, true, true},
        {{"dwfl_module_addrdie", "dwfl_module_nextcu"}, false, false},
        {{"dwfl_module_addrdie", "dwarf_haspc"}, false, false},
        {{"dwarf_getsrc_die"}, false, false},
        {{"dwarf_linesrc"}, false, false},
        {{"dwarf_lineno"}, false, false},
        {{"dwarf_child"}, false, true},
        {{"dwarf_getsrcfiles"}, false, true},
        {{"dwarf_attr_integrate"}, false, true},
        {{"dwarf_formudata"}, false, true},
        {{"dwarf_formstring"}, true, true},
        {{"dwarf_filesrc"}, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(fails, cases[i].fails, sizeof fails);
        find();
        if (is_right(0) != cases[i].first || is_right(1) != cases[i].second) {
            failures++;
            fprintf(stderr, "without %s: '%s', '%s'\n", fails[0], line[0], line[1]);
        }
    }
    memset(fails, 0, sizeof fails);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    caller();
    if (!dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "there is no libdw\n");
        return 0;
    }
    a_call_is_found_by_file_and_line();
    errno_stays();
    there_are_no_lines_where_they_are_not_wanted();
    in_a_handler_symbols_are_known_and_nothing_else();
    without_libdw_there_are_no_lines();
    what_libdw_fails_at_is_left_out();
    return failures != 0;
}

#else
int main(void)
{
    return 0;
}
#endif
