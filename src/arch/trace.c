/*
 * Stack traces. A strand's or thread's own stack is traced by cached rules (unwind_cached.c). Where those can't follow
 * a frame, libgcc_s takes the whole trace, which is ten times slower: it needs no lock of the loader's (loader.c), with
 * a glibc since 2.35. libunwind walks suspended contexts and the frames that a signal has interrupted, and finds names.
 *
 * libunwind is loaded by name with its symbols kept local, and never linked: libunwind.so also exports the _Unwind_*
 * functions, and if linked before libgcc_s it would take over all C++ exceptions of the program. (Its static libraries
 * are not position-independent, so they can't be linked into this one.) If it can't be loaded, as in a static program,
 * a suspended context shows one address. libunwind.so is for the process's own frames and names; libunwind-x86_64.so
 * walks any stack, through the accessors below.
 *
 * The library's own frames are left out at both ends of a trace, by the section that contains all its code
 * (tools/own-text.sh). Counting them would not work: the compiler inlines them and turns calls into jumps.
 */
#include "trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

/* ---- selection of frames ------------------------------------------------------------------------------------ */

/* Drop the library's frames at the outer end. On a thread that the library has made, frames of the C library lie
 * outside of these. */
size_t trace_without_entry(void **ips, size_t count)
{
    size_t own = count;
    while (own > 0 && !trace_is_own(ips[own - 1]))
        own--;
    bool ours = own > 0 &&
                (own == count || (uintptr_t)_Unwind_FindEnclosingFunction(ips[own - 1]) == (uintptr_t)arch_thread_main);
    if (ours)
        for (count = own; count > 0 && trace_is_own(ips[count - 1]);)
            count--;
    return count;
}

/* ---- the calling thread's stack -------------------------------------------------------------------------- */

static _Unwind_Reason_Code gather(struct _Unwind_Context *context, void *arg)
{
    return trace_take(arg, (void *)_Unwind_GetIP(context)) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

size_t arch_trace_throw(void **ips, size_t max, uint32_t *generation)
{
    struct taken taken = {.ips = ips, .max = max};
    *generation = arch_unwind_trace(&taken);
    if (UNLIKELY(!*generation)) {
        taken.count = 0;
        (void)_Unwind_Backtrace(gather, &taken);
    }
    return trace_without_entry(ips, taken.count);
}

size_t arch_trace(void **ips, size_t max)
{
    uint32_t unused;
    return arch_trace_throw(ips, max, &unused);
}

/* The first address is not a return address but that of the interrupted instruction. One is added, so that all
 * addresses of a trace are read alike: the instruction lies before the address. */
size_t arch_trace_signal(void *ucontext, void **ips, size_t max)
{
    const struct arch_tracer *tracer = arch_state.tracer;
    const ucontext_t *interrupted = ucontext;
    struct taken taken = {.ips = ips, .max = max};
    trace_take(&taken, (char *)interrupted->uc_mcontext.gregs[REG_RIP] + 1);
    unw_cursor_t cursor;
    unw_word_t ip;
    bool counted = arch_loader_enter();
    if (tracer && tracer->local.init(&cursor, ucontext, UNW_INIT_SIGNAL_FRAME) >= 0)
        while (tracer->local.step(&cursor) > 0 && tracer->local.reg(&cursor, UNW_REG_IP, &ip) == 0 &&
               trace_take(&taken, (void *)ip))
            continue;
    if (counted)
        arch_loader_leave();
    return trace_without_entry(ips, taken.count);
}

/* ---- a suspended context --------------------------------------------------------------------------------- */

/* A thread may have been interrupted where no table describes its frames, and then libunwind guesses. The system checks
 * the mask's address before it rejects the request. */
static bool is_readable(struct remains *remains, uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(arch_page_size() - 1);
    if (page && page == remains->readable)
        return true;
    if (syscall(SYS_rt_sigprocmask, ~0, page, NULL, sizeof(uint64_t)) == 0 || errno != EINVAL)
        return false;
    remains->readable = page;
    return true;
}

static int remains_find(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need, void *arg)
{
    (void)space;
    const struct arch_tracer *tracer = arch_state.tracer;
    return tracer->remote.process->find_proc_info(tracer->remote.process_space, ip, info, need, arg);
}

static void remains_put(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
    (void)space;
    const struct arch_tracer *tracer = arch_state.tracer;
    tracer->remote.process->put_unwind_info(tracer->remote.process_space, info, arg);
}

static int remains_dynamic(unw_addr_space_t space, unw_word_t *list, void *arg)
{
    (void)space, (void)list, (void)arg;
    return -UNW_ENOINFO;
}

/* An address may be arbitrary where libunwind guesses, or is given a mere candidate for a frame. */
typedef unw_word_t loose_word __attribute__((aligned(1), may_alias));

/* Words of a stack, among them words that ASan has poisoned. */
__attribute__((no_sanitize_address, no_sanitize_thread)) int trace_memory(unw_addr_space_t space, unw_word_t address,
                                                                          unw_word_t *value, int write, void *arg)
{
    (void)space;
    struct remains *remains = arg;
    size_t offset = address - remains->saved_base;
    if (write)
        return -UNW_EINVAL;
    if (remains->saved && offset < remains->saved_size && remains->saved_size - offset >= sizeof *value)
        address = (uintptr_t)remains->saved + offset;
    else if (address + sizeof *value > remains->saved_base && address < remains->hidden)
        return -UNW_EINVAL;
    else if (remains->registers &&
             !(is_readable(remains, address) && is_readable(remains, address + sizeof *value - 1)))
        return -UNW_EINVAL;
    *value = *(const loose_word *)address;
    return 0;
}

/* The frame of a context: see context.h. */
static int remains_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *arg)
{
    static const unsigned char offsets[] = {
        [UNW_X86_64_R12] = 0x08, [UNW_X86_64_R13] = 0x10, [UNW_X86_64_R14] = 0x18, [UNW_X86_64_R15] = 0x20,
        [UNW_X86_64_RBX] = 0x28, [UNW_X86_64_RBP] = 0x30, [UNW_X86_64_RIP] = 0x38};
    struct remains *remains = arg;
    if (remains->registers) {
        if (write || number < 0 || number > UNW_X86_64_RIP)
            return -UNW_EBADREG;
        *value = remains->registers[number];
        return 0;
    }
    if (number == UNW_X86_64_RSP) {
        *value = remains->frame + 0x40;
        return 0;
    }
    unsigned at = number >= 0 && (size_t)number < sizeof offsets ? offsets[number] : 0;
    return at && !write ? trace_memory(space, remains->frame + at, value, 0, arg) : -UNW_EBADREG;
}

static int remains_float(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write, void *arg)
{
    (void)space, (void)number, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static int remains_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
    (void)space, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

/* If the registers are not those of a saved context, the first address is shown as arch_trace_signal shows it. whole,
 * unless NULL: receives whether the last frame is a strand's first. */
static size_t walk(const struct remains *remains, void **ips, size_t max, bool *whole)
{
    const struct arch_tracer *tracer = arch_state.tracer;
    struct taken taken = {.ips = ips, .max = max};
    void *arg = (void *)(uintptr_t)remains;
    unw_word_t ip = 0;
    if (remains_register(NULL, UNW_X86_64_RIP, &ip, 0, arg) == 0)
        trace_take(&taken, (char *)ip + (remains->registers != NULL));
    unw_cursor_t cursor;
    bool counted = arch_loader_enter();
    if (tracer && tracer->remote.init(&cursor, tracer->remote.space, arg) >= 0)
        while (tracer->remote.step(&cursor) > 0 && tracer->remote.reg(&cursor, UNW_REG_IP, &ip) == 0 &&
               trace_take(&taken, (void *)ip))
            continue;
    if (counted)
        arch_loader_leave();
    if (whole)
        *whole = taken.count == max || (taken.count > 0 && trace_is_own(ips[taken.count - 1]));
    return trace_without_entry(ips, taken.count);
}

size_t arch_trace_context(arch_context context, const void *saved, uintptr_t saved_base, size_t saved_size, void **ips,
                          size_t max)
{
    struct remains remains = {
        .frame = (uintptr_t)context, .saved = saved, .saved_base = saved_base, .saved_size = saved_size};
    return walk(&remains, ips, max, NULL);
}

/* Whether this is a return address: the instruction before it is a call, of an address or through a register or a word
 * of memory. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static bool follows_a_call(struct remains *remains,
                                                                                    uintptr_t address)
{
    enum { NEAR_CALL = 0xe8, GROUP = 0xff, CALL = 2, LONGEST = 7 };
    const unsigned char *at = (const unsigned char *)address;
    if (address < arch_page_size() || !is_readable(remains, address - LONGEST) || !is_readable(remains, address))
        return false;
    for (int length = 2; length <= LONGEST; length++)
        if (at[-length] == GROUP && (at[1 - length] >> 3 & 7) == CALL)
            return true;
    return at[-5] == NEAR_CALL;
}

/* Most functions of the C library that wait in the system have saved RBP: its value is unknown, and a caller may find
 * its frame by it. It then is the address of a stack word that a return address follows: the first such word from which
 * the walk reaches the strand's beginning is taken. If none does, the trace found without it stays. */
static size_t walk_without_rbp(struct remains *remains, uint64_t *registers, void **ips, size_t max)
{
    bool whole;
    size_t count = walk(remains, ips, max, &whole), guessed;
    for (size_t at = 0; !whole && at + 2 * sizeof(uintptr_t) <= remains->saved_size; at += sizeof(uintptr_t)) {
        uintptr_t returns;
        void *others[max];
        memcpy(&returns, remains->saved + at + sizeof returns, sizeof returns);
        if (!follows_a_call(remains, returns))
            continue;
        registers[UNW_X86_64_RBP] = remains->saved_base + at;
        guessed = walk(remains, others, max, &whole);
        if (!whole)
            continue;
        memcpy(ips, others, guessed * sizeof *ips);
        count = guessed;
    }
    return count;
}

size_t arch_trace_asked(const struct arch_asked *asked, void **ips, size_t max)
{
    uint64_t registers[sizeof asked->registers / sizeof *asked->registers];
    memcpy(registers, asked->registers, sizeof registers);
    struct remains remains = {.saved = asked->copy,
                              .saved_base = registers[UNW_X86_64_RSP],
                              .saved_size = asked->size,
                              .hidden = asked->end,
                              .registers = registers};
    return asked->waits ? walk_without_rbp(&remains, registers, ips, max) : walk(&remains, ips, max, NULL);
}

/* ---- names ----------------------------------------------------------------------------------------------- */

static bool symbol_of(const struct arch_tracer *tracer, void *ip, char *buf, size_t size, uintptr_t *offset)
{
    unw_cursor_t cursor;
    unw_context_t context;
    unw_word_t distance;
    memset(&context, 0, sizeof context);
    context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)ip;
    bool counted = arch_loader_enter();
    int error = -UNW_EUNSPEC;
    if (tracer->local.init(&cursor, &context, 0) >= 0)
        error = tracer->local.name(&cursor, buf, size, &distance);
    if (counted)
        arch_loader_leave();
    if (error != 0 && error != -UNW_ENOMEM)
        return false; /* the second means: shortened */
    uintptr_t start = (uintptr_t)_Unwind_FindEnclosingFunction(ip);
    if (start > (uintptr_t)ip - distance && start < (uintptr_t)ip)
        return false; /* it took the symbol below; this function's own has been stripped */
    /* A start at ip itself is useless: libunwind, if the program links it, looks up ip and not the call before. */
    *offset = distance;
    return true;
}

static void copy_text(char *buf, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(buf, text, length);
    buf[length] = '\0';
}

bool arch_symbol(void *ip, char *buf, size_t size, uintptr_t *offset)
{
    const struct arch_tracer *tracer = arch_state.tracer;
    Dl_info info;
    struct link_map *object = NULL;
    ASSERT(size > 0);
    if (tracer && symbol_of(tracer, ip, buf, size, offset))
        return true;
    bool known = dladdr1((char *)ip - 1, &info, (void **)&object, RTLD_DL_LINKMAP) != 0;
    bool named = known && info.dli_sname;
    const char *file = known && info.dli_fname ? info.dli_fname : "?";
    const char *slash = strrchr(file, '/');
    copy_text(buf, size, named ? info.dli_sname : slash ? slash + 1 : file);
    *offset = (uintptr_t)ip - (named ? (uintptr_t)info.dli_saddr : known && object ? (uintptr_t)object->l_addr : 0);
    return named;
}

extern char *__cxa_demangle(const char *name, char *out, size_t *size, int *status) __attribute__((weak));

void arch_demangle(char *name, size_t size)
{
    __typeof__(&__cxa_demangle) demangle = __cxa_demangle;
    if (!demangle)
        *(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    char *words = demangle && name[0] == '_' && name[1] == 'Z' ? demangle(name, NULL, NULL, NULL) : NULL;
    if (words)
        copy_text(name, size, words);
    free(words);
}

/* ---- the start ------------------------------------------------------------------------------------------- */

static bool bind(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool bind_all(struct arch_tracer *tracer, void *local, void *remote)
{
    unw_accessors_t accessors = {remains_find,     remains_put,   remains_dynamic, trace_memory,
                                 remains_register, remains_float, remains_resume,  NULL};
    __typeof__(&unw_create_addr_space) create_space;
    __typeof__(&unw_get_accessors) accessors_of;
    __typeof__(&unw_set_caching_policy) set_caching;
    unw_addr_space_t *process_space;
    const struct {
        void *object;
        const char *name;
        void *function;
    } all[] = {{local, "_ULx86_64_init_local2", &tracer->local.init},
               {local, "_ULx86_64_step", &tracer->local.step},
               {local, "_ULx86_64_get_reg", &tracer->local.reg},
               {local, "_ULx86_64_get_proc_name", &tracer->local.name},
               {remote, "_Ux86_64_init_remote", &tracer->remote.init},
               {remote, "_Ux86_64_step", &tracer->remote.step},
               {remote, "_Ux86_64_get_reg", &tracer->remote.reg},
               {remote, "_Ux86_64_get_save_loc", &tracer->remote.saved},
               {remote, "_Ux86_64_local_addr_space", &process_space},
               {remote, "_Ux86_64_create_addr_space", &create_space},
               {remote, "_Ux86_64_get_accessors", &accessors_of},
               {remote, "_Ux86_64_set_caching_policy", &set_caching}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!bind(all[i].object, all[i].name, all[i].function))
            return false;
    tracer->remote.space = create_space(&accessors, 0);
    if (!tracer->remote.space)
        return false;
    (void)set_caching(tracer->remote.space, UNW_CACHE_GLOBAL);
    tracer->remote.process_space = *process_space;
    tracer->remote.process = accessors_of(*process_space);
    return true;
}

enum { STANDARD = 3 };

/* Occupy the free standard descriptors. Returns how many are in `taken` now. */
static int take_standard(int taken[STANDARD])
{
    int count = 0, fd = 0;
    while (count < STANDARD && (fd = open("/", O_PATH | O_CLOEXEC)) >= 0 && fd < STANDARD)
        taken[count++] = fd;
    if (fd >= STANDARD)
        (void)close(fd);
    return count;
}

/* libunwind opens a pipe per library on its first use and keeps it. This triggers it now, not in a fault handler or in
 * the middle of a program that counts its descriptors. */
static void warm_up(const struct arch_tracer *tracer)
{
    unw_cursor_t cursor;
    unw_context_t context;
    uint64_t nothing[8] = {0};
    struct remains remains = {.frame = (uintptr_t)nothing};
    memset(&context, 0, sizeof context);
    (void)tracer->local.init(&cursor, &context, 0);
    (void)tracer->remote.init(&cursor, tracer->remote.space, &remains);
}

/* A program without a loader can load libraries too, but threads made later lack their thread-locals. */
bool arch_can_load(void)
{
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    for (unsigned long left = header ? getauxval(AT_PHNUM) : 0; left > 0; left--, header++)
        if (header->p_type == PT_INTERP)
            return true;
    return false;
}

/* Everything is bound now: a lazy binding would take much of a small stack. */
static void load(void)
{
    void *local = arch_can_load() ? dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL) : NULL;
    void *remote = local ? dlopen("libunwind-x86_64.so.8", RTLD_NOW | RTLD_LOCAL) : NULL;
    struct arch_tracer *tracer = remote ? calloc(1, sizeof *tracer) : NULL;
    if (!tracer || !bind_all(tracer, local, remote)) {
        free(tracer);
        return;
    }
    warm_up(tracer);
    arch_state.tracer = tracer;
}

/* libunwind's pipes must not become standard descriptors of a program that was started without those. */
void arch_trace_start(void)
{
    int taken[STANDARD], count = take_standard(taken);
    load();
    while (count > 0)
        (void)close(taken[--count]);
}
