/*
 * Predicts where an exception would land, before anything is unwound: whether a C++ function on the stack ends the
 * program instead of letting it through (noexcept). The unwinder shows the frames; for each frame this reads the table
 * that the function's personality would read (the LSDA of the Itanium C++ ABI, as gcc and clang write it). Anything
 * unknown counts as letting it through.
 *
 * g++ leaves a call that must not throw out of its function's table, unless objects are destroyed or types are caught
 * on the way. clang++ gives it a handler for everything. What a landing pad does then, its instructions tell (pad.c).
 */
#include "landing.h"
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

/* A function's table. Landing pads are relative to `pads`. */
struct table {
    const uint8_t *calls, *actions, *types; /* types: NULL: it has none */
    uint8_t call_encoding, type_encoding;
    uintptr_t pads;
};

/* Returns false if an encoding is unknown. */
static bool read_table(const uint8_t *lsda, uintptr_t function, struct table *table)
{
    uint8_t encoding = *lsda++;
    table->pads = function;
    if (encoding != OMITTED) {
        const uint8_t *at = lsda;
        table->pads = (uintptr_t)read_address(encoding, at);
        if (!table->pads)
            return false;
        (void)read_value(encoding, &lsda);
    }
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

/* A range of calls in a table. */
struct call_site {
    uint64_t begin, size;
    const uint8_t *pad; /* NULL: none */
    uint64_t action;    /* 0: to clean up */
};

static struct call_site read_call_site(const struct table *table, const uint8_t **at)
{
    struct call_site site;
    site.begin = read_value(table->call_encoding, at);
    site.size = read_value(table->call_encoding, at);
    uint64_t pad = read_value(table->call_encoding, at);
    site.pad = pad ? (const uint8_t *)(table->pads + pad) : NULL; /* NOLINT: as above */
    site.action = read_uleb128(at);
    return site;
}

static bool is_pad(const void *of, const uint8_t *code)
{
    const struct table *table = of;
    for (const uint8_t *at = table->calls; at < table->actions;)
        if (read_call_site(table, &at).pad == code)
            return true;
    return false;
}

/* Which exceptions a list of actions stops at its landing pad: those of no type, or of some. */
enum stops { STOPS_NONE, STOPS_TO_CLEAN_UP, STOPS_TO_CATCH, STOPS_TO_END };

/* A list ends by a clean-up where one has to be done for an exception of another type, or the program ends then. */
static enum stops stops_of(const struct table *table, uint64_t first)
{
    static const uint8_t everything[8];
    const uint8_t *action = table->actions + first - 1;
    size_t size = size_of(table->type_encoding);
    for (;;) {
        int64_t filter = read_sleb128(&action);
        const uint8_t *next = action;
        int64_t distance = read_sleb128(&next);
        if (!filter)
            return STOPS_TO_CLEAN_UP;
        if (!table->types)
            return STOPS_NONE;
        if (filter < 0 && !table->types[-filter - 1]) /* an empty list of types that may be thrown */
            return STOPS_TO_END;
        if (filter > 0 && size && memcmp(table->types - (size_t)filter * size, everything, size) == 0)
            return STOPS_TO_CATCH;
        if (!distance)
            return STOPS_NONE;
        action += distance;
    }
}

static enum landing landing_at(const struct table *table, const struct call_site *site,
                               const struct arch_catcher *catcher, uintptr_t frame)
{
    if (!site->pad)
        return LETS_THROUGH;
    enum stops stops = site->action ? stops_of(table, site->action) : STOPS_TO_CLEAN_UP;
    if (stops == STOPS_NONE)
        return LETS_THROUGH;
    unsigned ends = PAD_TERMINATES;
    if (stops != STOPS_TO_END)
        ends = arch_pad_ends(site->pad, catcher, catcher->count_passed(catcher, frame), is_pad, table);
    if (ends & PAD_TERMINATES && !(ends & (PAD_RESUMES | PAD_UNKNOWN)))
        return ENDS_THE_PROGRAM;
    /* g++ -O0 lists the clean-ups before what catches: then all paths lead to the handler. */
    return stops == STOPS_TO_CATCH || ends == PAD_CATCHES ? CATCHES : LETS_THROUGH;
}

/* What the C++ personality would do in the frame. */
static enum landing landing_in(struct _Unwind_Context *context, const struct arch_catcher *catcher)
{
    const uint8_t *lsda = _Unwind_GetLanguageSpecificData(context);
    uintptr_t function = _Unwind_GetRegionStart(context), ip = _Unwind_GetIP(context) - 1 - function;
    struct table table;
    if (!lsda || !is_cxx(context) || !read_table(lsda, function, &table))
        return LETS_THROUGH;
    for (const uint8_t *at = table.calls; at < table.actions;) {
        struct call_site site = read_call_site(&table, &at);
        if (ip < site.begin)
            break;
        if (ip < site.begin + site.size)
            return landing_at(&table, &site, catcher, _Unwind_GetCFA(context));
    }
    return ENDS_THE_PROGRAM;
}

struct walk {
    uintptr_t limit;
    const struct arch_catcher *catcher;
    void *ends_at;
};

/* The frame that contains the limit is examined too: a noexcept function may be inlined there, inside its try block. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *walk = arg;
    enum landing landing = _Unwind_GetCFA(context) > walk->limit ? CATCHES : landing_in(context, walk->catcher);
    if (landing == ENDS_THE_PROGRAM)
        walk->ends_at = (void *)_Unwind_GetIP(context); /* NOLINT: an address of code */
    return landing == LETS_THROUGH ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

NOINLINE void *arch_unwind_ends_at(const void *limit, const struct arch_catcher *catcher)
{
    struct walk walk = {(uintptr_t)limit, catcher, NULL};
    (void)_Unwind_Backtrace(step, &walk);
    return walk.ends_at;
}
