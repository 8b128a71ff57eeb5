/*
 * Predicts where an exception would land, before anything is unwound: whether a C++ function on the stack ends the
 * program instead of letting it through (noexcept). The unwinder shows the frames; for each frame this reads the table
 * that the function's personality would read (the LSDA of the Itanium C++ ABI, as gcc and clang write it). Anything
 * unknown counts as letting it through.
 *
 * g++ leaves a call that must not throw out of its function's table. clang++ gives it a handler for everything, which
 * calls a function that ends the program; the handler is recognised by its instructions.
 */
#include "state.h"

#include <string.h>
#include <unwind.h>

/* The encoding of a value in a table: its format, its base, and whether it is the address of the value. */
enum {
    FORMAT = 0x0f,
    FORMAT_POINTER = 0x00,
    FORMAT_ULEB128 = 0x01,
    FORMAT_UDATA2 = 0x02,
    FORMAT_UDATA4 = 0x03,
    FORMAT_UDATA8 = 0x04,
    FORMAT_SDATA4 = 0x0b,
    FORMAT_SDATA8 = 0x0c,
    RELATIVE = 0x70,
    RELATIVE_TO_ITSELF = 0x10,
    INDIRECT = 0x80,
    OMITTED = 0xff
};

static uint64_t read_uleb128(const uint8_t **at)
{
    uint64_t value = 0;
    uint8_t byte;
    unsigned shift = 0;
    do {
        byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 64);
    return value;
}

static int64_t read_sleb128(const uint8_t **at)
{
    const uint8_t *begin = *at;
    uint64_t value = read_uleb128(at);
    unsigned bits = 7 * (unsigned)(*at - begin);
    bool negative = (*at)[-1] & 0x40;
    return (int64_t)(negative && bits < 64 ? value | ~UINT64_C(0) << bits : value);
}

/* The size of the fixed formats; 0: none. */
static size_t size_of(uint8_t encoding)
{
    switch (encoding & FORMAT) {
    case FORMAT_UDATA2:
        return 2;
    case FORMAT_UDATA4:
    case FORMAT_SDATA4:
        return 4;
    case FORMAT_POINTER:
    case FORMAT_UDATA8:
    case FORMAT_SDATA8:
        return 8;
    default:
        return 0;
    }
}

/* Read a number; the caller adds the base. */
static uint64_t read_value(uint8_t encoding, const uint8_t **at)
{
    size_t size = size_of(encoding);
    uint64_t value = 0;
    if (!size)
        return read_uleb128(at);
    memcpy(&value, *at, size);
    *at += size;
    return (encoding & FORMAT) == FORMAT_SDATA4 ? (uint64_t)(int32_t)value : value;
}

/* Read an address; NULL: the encoding is unknown. */
static void *read_address(uint8_t encoding, const uint8_t *at)
{
    uintptr_t itself = (uintptr_t)at, value;
    if (encoding == OMITTED || !size_of(encoding))
        return NULL;
    value = read_value(encoding, &at);
    if ((encoding & RELATIVE) == RELATIVE_TO_ITSELF)
        value += itself;
    else if (encoding & RELATIVE)
        return NULL;
    return encoding & INDIRECT ? *(void **)value : (void *)value; /* NOLINT: an address out of a table */
}

/* ---- the language of a frame -------------------------------------------------------------------------------- */

/* libgcc's, and exported by LLVM's libunwind as well. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *ip, struct dwarf_eh_bases *bases) __attribute__((weak));

/* The personality in the function's description: in the augmentation of its CIE. The second word of its FDE is the
 * distance to the CIE. */
static void *personality_of(uintptr_t ip)
{
    struct dwarf_eh_bases bases;
    const uint8_t *fde = _Unwind_Find_FDE ? _Unwind_Find_FDE((void *)ip, &bases) : NULL; /* NOLINT: as above */
    int32_t distance;
    if (!fde)
        return NULL;
    memcpy(&distance, fde + 4, sizeof distance);
    const uint8_t *cie = fde + 4 - distance;
    const char *augmentation = (const char *)cie + 9;
    const uint8_t *at = cie + 9 + strlen(augmentation) + 1;
    if (*augmentation != 'z' || cie[8] != 1)
        return NULL;
    (void)read_uleb128(&at); /* factors of code and data, the return address's register, the augmentation's size */
    (void)read_sleb128(&at);
    at++;
    (void)read_uleb128(&at);
    while (*++augmentation == 'L' || *augmentation == 'R')
        at++;
    return *augmentation == 'P' ? read_address(at[0], at + 1) : NULL;
}

/* The personality of C code, which runs clean-ups and catches nothing. */
extern const char __gcc_personality_v0[];

bool arch_frame_is_c_(struct _Unwind_Context *context)
{
    return personality_of(_Unwind_GetIP(context) - 1) == __gcc_personality_v0;
}

static bool is_cxx(struct _Unwind_Context *context)
{
    const void *cxx = arch_state.cxx.personality;
    return cxx && personality_of(_Unwind_GetIP(context) - 1) == cxx;
}

/* ---- what a frame does with the exception ------------------------------------------------------------------- */

enum landing { LETS_THROUGH, CATCHES, ENDS_THE_PROGRAM };

/* A function's table. */
struct table {
    const uint8_t *calls, *actions, *types; /* types: NULL: it has none */
    uint8_t call_encoding, type_encoding;
};

/* Returns false if the encoding is unknown. */
static bool read_table(const uint8_t *lsda, struct table *table)
{
    if (*lsda++ != OMITTED) /* landing pads have another base than the function */
        return false;
    table->type_encoding = *lsda++;
    table->types = NULL;
    if (table->type_encoding != OMITTED) {
        uint64_t distance = read_uleb128(&lsda);
        table->types = lsda + distance;
    }
    table->call_encoding = *lsda++;
    uint64_t size = read_uleb128(&lsda);
    table->calls = lsda;
    table->actions = lsda + size;
    return true;
}

static const uint8_t *skip_endbr64(const uint8_t *code)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    return memcmp(code, endbr64, sizeof endbr64) == 0 ? code + sizeof endbr64 : code;
}

/* clang's landing pad for calls that must not throw passes the exception to a function inside the program,
 * __clang_call_terminate, at once. A handler passes it to __cxa_begin_catch: usually in another library, through a
 * stub. */
static bool calls_terminate(const uint8_t *code)
{
    static const uint8_t give_exception[] = {0x48, 0x89, 0xc7, 0xe8}; /* mov %rax, %rdi; call */
    static const uint8_t jump[] = {0xff, 0x25};                       /* to the address in a word */
    enum { BND = 0xf2 };
    int32_t distance;
    code = skip_endbr64(code);
    if (memcmp(code, give_exception, sizeof give_exception) != 0)
        return false;
    code += sizeof give_exception;
    memcpy(&distance, code, sizeof distance);
    const uint8_t *callee = code + sizeof distance + distance;
    if ((uintptr_t)callee == (uintptr_t)arch_state.cxx.begin_catch)
        return false;
    callee = skip_endbr64(callee);
    callee += *callee == BND;
    return memcmp(callee, jump, sizeof jump) != 0;
}

/* Follow a list of actions: it catches everything, or nothing (an empty list of types that may be thrown). */
static enum landing follow(const struct table *table, uint64_t first, const uint8_t *pad)
{
    const uint8_t *action = table->actions + first - 1;
    for (;;) {
        int64_t filter = read_sleb128(&action);
        const uint8_t *next = action;
        int64_t distance = read_sleb128(&next);
        if (filter && !table->types)
            return LETS_THROUGH;
        if (filter < 0 && !table->types[-filter - 1])
            return ENDS_THE_PROGRAM;
        if (filter > 0) {
            static const uint8_t everything[8];
            size_t size = size_of(table->type_encoding);
            if (size && memcmp(table->types - (size_t)filter * size, everything, size) == 0)
                return calls_terminate(pad) ? ENDS_THE_PROGRAM : CATCHES;
        }
        if (!distance)
            return LETS_THROUGH;
        action += distance;
    }
}

/* What the C++ personality would do in the frame. */
static enum landing landing_in(struct _Unwind_Context *context)
{
    const uint8_t *lsda = _Unwind_GetLanguageSpecificData(context);
    struct table table;
    if (!lsda || !is_cxx(context) || !read_table(lsda, &table))
        return LETS_THROUGH;
    uintptr_t function = _Unwind_GetRegionStart(context), at = _Unwind_GetIP(context) - 1 - function;
    while (table.calls < table.actions) {
        uint64_t begin = read_value(table.call_encoding, &table.calls);
        uint64_t size = read_value(table.call_encoding, &table.calls);
        uint64_t pad = read_value(table.call_encoding, &table.calls);
        uint64_t action = read_uleb128(&table.calls);
        if (at < begin)
            break;
        if (at < begin + size)
            return pad && action ? follow(&table, action, (const uint8_t *)(function + pad)) /* NOLINT: as above */
                                 : LETS_THROUGH;
    }
    return ENDS_THE_PROGRAM;
}

struct walk {
    uintptr_t limit;
    enum landing landing;
};

/* The frame that contains the limit is examined too: a noexcept function may be inlined there, inside its try block. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *walk = arg;
    walk->landing = _Unwind_GetCFA(context) > walk->limit ? CATCHES : landing_in(context);
    return walk->landing == LETS_THROUGH ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

NOINLINE bool arch_unwind_lands(const void *limit)
{
    struct walk walk = {(uintptr_t)limit, LETS_THROUGH};
    (void)_Unwind_Backtrace(step, &walk);
    return walk.landing != ENDS_THE_PROGRAM;
}
