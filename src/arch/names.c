/*
 * Source names for the addresses of a trace: C++ names as the program writes them, file and line. The lines come from
 * libdw, which is loaded by name when a trace is printed, never linked; without it, or without debug information, there
 * are none. Debug information is read only from the program's and its libraries' own files: libdw would otherwise ask
 * servers for it.
 *
 * libdw and the C++ runtime need much stack and memory, and change errno. So they run on a stack that is mapped for one
 * print, on behalf of a strand or a plain thread, and nothing of them stays after the print. Printing needs no lock:
 * two concurrent prints have a stack and a session each.
 *
 * Under a sanitizer or valgrind none of this is used: they would see a switch to an unknown stack, and have lines of
 * their own. Nor is it used in a signal handler.
 */
#include "state.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 20, NAME_BYTES = 4096, FRAMES_MOST = 64, SCOPES_MOST = 64 };

/* Declarations as in libdw's headers (elfutils/libdwfl.h, elfutils/libdw.h and dwarf.h), which are not needed to
 * build. */
typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;
typedef struct Dwarf_Line Dwarf_Line;
typedef struct Dwarf_Files Dwarf_Files;
typedef struct {
    void *words[4];
} Dwarf_Die, Dwarf_Attribute;
enum {
    TAG_INLINED = 0x1d,
    AT_NAME = 0x03,
    AT_FOLDER = 0x1b,
    AT_ARTIFICIAL = 0x34,
    AT_CALL_FILE = 0x58,
    AT_CALL_LINE = 0x59
};
struct dwfl_callbacks {
    int (*find_elf)(Dwfl_Module *module, void **data, const char *name, uint64_t base, char **file, void **elf);
    int (*find_debuginfo)(Dwfl_Module *module, void **data, const char *name, uint64_t base, const char *file,
                          const char *link, uint32_t crc, char **out);
    void *section_address, *debuginfo_path;
};

struct arch_names {
    arch_context inside, outside; /* the one that waits is valid */
    void *ip;                     /* the question; NULL: end */
    char *name, *line;
    size_t name_size, line_size;
    uintptr_t offset;
    char symbol[NAME_BYTES];

    Dwfl *session; /* NULL: no lines */
    struct dwfl_callbacks callbacks;
    Dwfl *(*begin)(const struct dwfl_callbacks *callbacks);
    int (*report)(Dwfl *dwfl, pid_t pid);
    int (*report_end)(Dwfl *dwfl, void *removed, void *arg);
    Dwfl_Module *(*module_at)(Dwfl *dwfl, uint64_t address);
    Dwarf_Die *(*unit_at)(Dwfl_Module *module, uint64_t address, uint64_t *bias);
    Dwarf_Die *(*next_unit)(Dwfl_Module *module, Dwarf_Die *last, uint64_t *bias);
    int (*has_address)(Dwarf_Die *unit, uint64_t address);
    Dwarf_Line *(*line_at)(Dwarf_Die *unit, uint64_t address);
    int (*line_number)(Dwarf_Line *line, int *out);
    const char *(*line_file)(Dwarf_Line *line, uint64_t *mtime, uint64_t *length);
    int (*child)(Dwarf_Die *die, Dwarf_Die *out);
    int (*sibling)(Dwarf_Die *die, Dwarf_Die *out);
    int (*tag_of)(Dwarf_Die *die);
    Dwarf_Attribute *(*attribute)(Dwarf_Die *die, unsigned name, Dwarf_Attribute *out);
    int (*number)(Dwarf_Attribute *attribute, uint64_t *out);
    const char *(*text)(Dwarf_Attribute *attribute);
    int (*files_of)(Dwarf_Die *unit, Dwarf_Files **files, size_t *count);
    const char *(*file_name)(Dwarf_Files *files, size_t index, uint64_t *mtime, uint64_t *length);
    void (*end)(Dwfl *dwfl);
};

/* ---- on the mapped stack ------------------------------------------------------------------------------------ */

static int no_other_file(Dwfl_Module *module, void **data, const char *name, uint64_t base, const char *file,
                         const char *link, uint32_t crc, char **out)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)out;
    return -1;
}

static bool bind_all(struct arch_names *names, void *libdw)
{
    const struct {
        const char *name;
        void *at;
    } functions[] = {
        {"dwfl_begin", &names->begin},
        {"dwfl_linux_proc_report", &names->report},
        {"dwfl_linux_proc_find_elf", &names->callbacks.find_elf},
        {"dwfl_report_end", &names->report_end},
        {"dwfl_end", &names->end},
        {"dwfl_addrmodule", &names->module_at},
        {"dwfl_module_addrdie", &names->unit_at},
        {"dwfl_module_nextcu", &names->next_unit},
        {"dwarf_haspc", &names->has_address},
        {"dwarf_getsrc_die", &names->line_at},
        {"dwarf_lineno", &names->line_number},
        {"dwarf_linesrc", &names->line_file},
        {"dwarf_child", &names->child},
        {"dwarf_siblingof", &names->sibling},
        {"dwarf_tag", &names->tag_of},
        {"dwarf_attr_integrate", &names->attribute},
        {"dwarf_formudata", &names->number},
        {"dwarf_formstring", &names->text},
        {"dwarf_getsrcfiles", &names->files_of},
        {"dwarf_filesrc", &names->file_name},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(libdw, functions[i].name);
        if (!found)
            return false;
        memcpy(functions[i].at, &found, sizeof found);
    }
    names->callbacks.find_debuginfo = no_other_file;
    return true;
}

/* The library stays loaded, for the next print. */
static void begin_lines(struct arch_names *names)
{
    const char *wanted = arch_env("STRAND_LINES");
    if (wanted && strcmp(wanted, "none") == 0)
        return;
    void *libdw = arch_can_load() ? dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    Dwfl *session = libdw && bind_all(names, libdw) ? names->begin(&names->callbacks) : NULL;
    if (!session)
        return;
    if (names->report(session, getpid()) == 0 && names->report_end(session, NULL, NULL) == 0)
        names->session = session;
    else
        names->end(session);
}

static bool number_of(struct arch_names *names, Dwarf_Die *die, unsigned attribute, uint64_t *out)
{
    Dwarf_Attribute room, *found = names->attribute(die, attribute, &room);
    return found && names->number(found, out) == 0;
}

/* clang makes no table of addresses: then all units are searched. */
static Dwarf_Die *unit_of(struct arch_names *names, Dwfl_Module *module, uint64_t at, uint64_t *bias)
{
    Dwarf_Die *unit = names->unit_at(module, at, bias);
    if (!unit)
        while ((unit = names->next_unit(module, unit, bias)) && names->has_address(unit, at - *bias) <= 0)
            continue;
    return unit;
}

/* A function of the public headers, like strand_throw, is represented by its call where it is inlined. The headers mark
 * such functions as artificial. gcc's LTO loses the mark, but not the name, which has the library's prefix. */
static bool stands_for_call(struct arch_names *names, Dwarf_Die *scope)
{
    Dwarf_Attribute room, *name;
    if (names->tag_of(scope) != TAG_INLINED)
        return false;
    if (names->attribute(scope, AT_ARTIFICIAL, &room))
        return true;
    name = names->attribute(scope, AT_NAME, &room);
    const char *text = name ? names->text(name) : NULL;
    return text && strncmp(text, "strand_", strlen("strand_")) == 0;
}

static bool find_child(struct arch_names *names, Dwarf_Die *die, uint64_t at, Dwarf_Die *child)
{
    int end = names->child(die, child);
    while (end == 0 && names->has_address(child, at) <= 0)
        end = names->sibling(child, child);
    return end == 0;
}

/* The function that has the address, and the functions and blocks inlined into it, outermost first. Returns how many.
 * dwarf_getscopes finds none if LTO has put the inlined function's own entry into another unit. Namespaces are not
 * searched: g++ puts a function's entry into one only under LTO. */
static int scopes_at(struct arch_names *names, Dwarf_Die *unit, uint64_t at, Dwarf_Die *scopes)
{
    int count = 0;
    for (Dwarf_Die *die = unit; count < SCOPES_MOST && find_child(names, die, at, &scopes[count]); count++)
        die = &scopes[count];
    return count;
}

static void leave_inlined(struct arch_names *names, Dwarf_Die *unit, uint64_t at, const char **file, int *line)
{
    Dwarf_Die scopes[SCOPES_MOST];
    Dwarf_Files *files;
    size_t files_count;
    if (names->files_of(unit, &files, &files_count) < 0)
        return;
    for (int i = scopes_at(names, unit, at, scopes); i && stands_for_call(names, &scopes[i - 1]); i--) {
        uint64_t index, number;
        if (!number_of(names, &scopes[i - 1], AT_CALL_FILE, &index) ||
            !number_of(names, &scopes[i - 1], AT_CALL_LINE, &number))
            return;
        *file = names->file_name(files, index, NULL, NULL);
        *line = (int)number;
    }
}

/* Relative to the compiler's working directory, if it lies below. */
static const char *shorter(struct arch_names *names, Dwarf_Die *unit, const char *file)
{
    Dwarf_Attribute room, *found = names->attribute(unit, AT_FOLDER, &room);
    const char *folder = found ? names->text(found) : NULL;
    size_t length = folder ? strlen(folder) : 0;
    return length && strncmp(file, folder, length) == 0 && file[length] == '/' ? file + length + 1 : file;
}

static void find_line(struct arch_names *names)
{
    uint64_t bias, at = (uintptr_t)names->ip - 1;
    int number = 0;
    Dwfl_Module *module = names->session ? names->module_at(names->session, at) : NULL;
    Dwarf_Die *unit = module ? unit_of(names, module, at, &bias) : NULL;
    Dwarf_Line *line = unit ? names->line_at(unit, at - bias) : NULL;
    const char *file = line ? names->line_file(line, NULL, NULL) : NULL;
    if (!file || names->line_number(line, &number) < 0)
        return;
    leave_inlined(names, unit, at - bias, &file, &number);
    if (file)
        snprintf(names->line, names->line_size, "%s:%d", shorter(names, unit, file), number);
}

static void answer(struct arch_names *names)
{
    arch_symbol(names->ip, names->symbol, sizeof names->symbol, &names->offset);
    arch_demangle(names->symbol, sizeof names->symbol);
    snprintf(names->name, names->name_size, "%s", names->symbol);
    find_line(names);
}

static void answers(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct arch_names *names = transfer.data;
    begin_lines(names);
    for (;;) {
        if (names->ip)
            answer(names);
        names->outside = transfer.from;
        transfer = arch_context_jump(names->outside, NULL);
        if (names->ip)
            continue;
        if (names->session)
            names->end(names->session);
        names->session = NULL;
    }
}

/* ---- the interface ------------------------------------------------------------------------------------------ */

static NOINLINE void go_inside(struct arch_names *names)
{
    int saved_errno = errno;
    names->inside = arch_context_jump(names->inside, names).from;
    errno = saved_errno;
}

/* A handler may have interrupted malloc, which is needed here. */
static NOINLINE bool is_in_handler(void)
{
    void *ips[FRAMES_MOST];
    size_t count = arch_trace(ips, FRAMES_MOST);
    for (size_t i = 0; i < count; i++)
        if (arch_is_signal_return(ips[i]))
            return true;
    return false;
}

struct arch_names *arch_names_open(void)
{
    void *memory;
    if (arch_tool || is_in_handler() || arch_map(STACK_BYTES, &memory) < 0)
        return NULL;
    struct arch_names *names = memory;
    char *top = (char *)memory + STACK_BYTES;
    names->inside = arch_context_make(top, STACK_BYTES - sizeof *names, answers);
    return names;
}

void arch_names_find(struct arch_names *names, void *ip, char *name, size_t name_size, uintptr_t *offset, char *line,
                     size_t line_size)
{
    line[0] = '\0';
    if (!names) {
        (void)arch_symbol(ip, name, name_size, offset);
        return;
    }
    names->ip = ip;
    names->name = name;
    names->name_size = name_size;
    names->line = line; /* empty, until it is known */
    names->line_size = line_size;
    go_inside(names);
    *offset = names->offset;
}

void arch_names_close(struct arch_names *names)
{
    if (!names)
        return;
    names->ip = NULL;
    if (names->session)
        go_inside(names);
    arch_unmap(names, STACK_BYTES);
}
