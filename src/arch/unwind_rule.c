/*
 * Reading call frame information: DWARF 5, section 6.4, as .eh_frame has it (System V ABI of x86-64, Linux Standard
 * Base). What gcc and clang write for C functions is understood. Everything else, such as expressions, signal frames,
 * functions that realign the stack, or tables that a program registers at run time, makes the rule ARCH_RULE_NONE, and
 * another language's personality ARCH_RULE_TRACE.
 */
#include "unwind_rule.h"

#include "eh.h"
#include "state.h"

#include <link.h>
#include <string.h>

/* ---- the description of a function ---------------------------------------------------------------------------- */

/* What a part of a function's FDE says, and the CIE that the FDE refers to. */
struct description {
    uintptr_t begin, size;       /* of the code */
    uintptr_t personality, lsda; /* 0: none */
    uint64_t code_factor;
    int64_t data_factor;
    const uint8_t *first, *first_end; /* instructions that hold at the function's begin */
    const uint8_t *rest, *rest_end;
};

/* Returns how many bytes follow the first word of a CIE or FDE. 0: a terminator, or the 64-bit format. */
static uint32_t length_of(const uint8_t *entry)
{
    uint32_t length;
    memcpy(&length, entry, sizeof length);
    return length == UINT32_MAX ? 0 : length;
}

struct augmentation {
    uint8_t code_encoding, lsda_encoding;
    bool sized; /* entries have a size of their augmentation's data */
};

static bool read_augmentation(const char *letters, const uint8_t **at, struct augmentation *augmentation,
                              uintptr_t *personality)
{
    *augmentation = (struct augmentation){0, EH_OMITTED, *letters == 'z'};
    if (!*letters)
        return true;
    if (*letters++ != 'z')
        return false;
    const uint8_t *end = *at;
    uint64_t size = arch_eh_uleb128(&end);
    *at = end;
    end += size;
    for (; *letters; letters++) {
        uint8_t encoding = *(*at)++;
        if (*letters == 'R')
            augmentation->code_encoding = encoding;
        else if (*letters == 'L')
            augmentation->lsda_encoding = encoding;
        else if (*letters != 'P' || !arch_eh_address(encoding, at, personality))
            return false; /* a signal frame, or unknown */
    }
    *at = end;
    return true;
}

static bool read_cie(const uint8_t *cie, struct description *d, struct augmentation *augmentation)
{
    enum { RETURN_ADDRESS = 16 };
    uint32_t length = length_of(cie);
    const uint8_t *at = cie + 9;
    if (!length || (cie[8] != 1 && cie[8] != 3))
        return false;
    at += strlen((const char *)at) + 1;
    d->code_factor = arch_eh_uleb128(&at);
    d->data_factor = arch_eh_sleb128(&at);
    if (arch_eh_uleb128(&at) != RETURN_ADDRESS) /* one byte in version 1: the same */
        return false;
    if (!read_augmentation((const char *)cie + 9, &at, augmentation, &d->personality))
        return false;
    d->first = at;
    d->first_end = cie + 4 + length;
    return true;
}

static bool read_fde(const uint8_t *fde, struct description *d)
{
    struct augmentation augmentation;
    uint32_t length = length_of(fde), distance;
    const uint8_t *at = fde + 8;
    memset(d, 0, sizeof *d);
    memcpy(&distance, fde + 4, sizeof distance);
    if (!length || !distance || !read_cie(fde + 4 - distance, d, &augmentation))
        return false;
    if (!arch_eh_address(augmentation.code_encoding, &at, &d->begin) ||
        !arch_eh_size(augmentation.code_encoding & EH_FORMAT))
        return false;
    d->size = arch_eh_value(augmentation.code_encoding & EH_FORMAT, &at);
    d->rest_end = fde + 4 + length;
    if (augmentation.sized) {
        uint64_t size = arch_eh_uleb128(&at);
        d->rest = at + size;
        if (augmentation.lsda_encoding != EH_OMITTED && !arch_eh_address(augmentation.lsda_encoding, &at, &d->lsda))
            return false;
    } else {
        d->rest = at;
    }
    return true;
}

/* ---- finding it ----------------------------------------------------------------------------------------------- */

struct search {
    uintptr_t code;
    const uint8_t *header; /* .eh_frame_hdr of the object that has the code; NULL: not found */
};

static int is_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    const ElfW(Phdr) *header = NULL;
    bool has = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && search->code - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
            has = true;
        else if (p->p_type == PT_GNU_EH_FRAME)
            header = p;
    }
    if (has && header)
        search->header = (const uint8_t *)(info->dlpi_addr + header->p_vaddr); /* NOLINT: an address out of a table */
    return has;
}

/* The table in .eh_frame_hdr is sorted by the begin of the code: pairs of that and of the FDE, relative to the header.
 * Returns NULL if there is none, or in another format. */
static const uint8_t *find_fde(uintptr_t code)
{
    enum { VERSION = 1, COUNT = 0x03, ENTRIES = 0x3b };
    struct search search = {code, NULL};
    uintptr_t frames;
    (void)dl_iterate_phdr(is_object, &search);
    const uint8_t *header = search.header, *at = header + 4;
    if (!header || header[0] != VERSION || header[2] != COUNT || header[3] != ENTRIES ||
        !arch_eh_address(header[1], &at, &frames))
        return NULL;
    uint64_t low = 0, high = arch_eh_value(COUNT, &at);
    int32_t entry[2], offset = 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        memcpy(entry, at + middle * sizeof entry, sizeof entry);
        if ((uintptr_t)header + (uintptr_t)(intptr_t)entry[0] <= code) {
            offset = entry[1];
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return offset ? header + offset : NULL;
}

/* ---- its instructions ----------------------------------------------------------------------------------------- */

/* Registers by DWARF's numbers. */
enum { DW_RBX = 3, DW_RBP = 6, DW_RSP = 7, DW_R12 = 12, DW_R13 = 13, DW_R14 = 14, DW_R15 = 15, DW_IP = 16 };

/* Those that a function preserves, in the order of struct arch_rule, and two that are no register of a frame. */
enum { ROW_SP = ARCH_RULE_SAVED, ROW_IP, ROW_REGISTERS };
static const uint8_t row_registers[ROW_REGISTERS] = {DW_RBX, DW_RBP, DW_R12, DW_R13, DW_R14, DW_R15, DW_RSP, DW_IP};

/* Small: a throw reads rules on the strand's stack. */
struct row {
    int32_t saved[ROW_REGISTERS]; /* relative to the CFA; 0: not saved */
    int32_t cfa_offset;
    uint8_t cfa_register;
};

struct machine {
    const struct description *d;
    struct row row, first; /* first: when the CIE's instructions are done */
    struct row stack[8];
    unsigned depth;
    uint64_t pushed;
    uintptr_t at, code; /* code: the address that is looked for */
};

/* Where the register is in a row; ROW_REGISTERS: in none, because the callers do not rely on it. */
static int index_of(uint64_t reg)
{
    int i = 0;
    while (i < ROW_REGISTERS && row_registers[i] != reg)
        i++;
    return i;
}

static bool set_saved(struct machine *m, uint64_t reg, int64_t offset)
{
    int index = index_of(reg);
    int64_t saved = offset * m->d->data_factor;
    if (index < ROW_REGISTERS)
        m->row.saved[index] = (int32_t)saved;
    return offset != 0 && saved == (int32_t)saved;
}

static void set_unsaved(struct machine *m, uint64_t reg)
{
    int index = index_of(reg);
    if (index < ROW_REGISTERS)
        m->row.saved[index] = 0;
}

static bool restore(struct machine *m, uint64_t reg)
{
    int index = index_of(reg);
    if (index < ROW_REGISTERS)
        m->row.saved[index] = m->first.saved[index];
    return true;
}

static bool set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
    m->row.cfa_register = (uint8_t)reg;
    m->row.cfa_offset = (int32_t)offset;
    return reg <= DW_IP && offset == (int32_t)offset;
}

static bool remember(struct machine *m)
{
    if (m->depth == sizeof m->stack / sizeof *m->stack)
        return false;
    m->stack[m->depth++] = m->row;
    return true;
}

static bool go_back(struct machine *m)
{
    if (!m->depth)
        return false;
    m->row = m->stack[--m->depth];
    return true;
}

static bool advance(struct machine *m, uint64_t distance)
{
    m->at += distance * m->d->code_factor;
    return true;
}

/* Executes one instruction that has its operands behind it. Returns false if it is not understood. */
static bool execute(struct machine *m, uint8_t instruction, const uint8_t **at)
{
    enum {
        NOTHING = 0x00,
        ADVANCE1 = 0x02,
        ADVANCE2 = 0x03,
        ADVANCE4 = 0x04,
        OFFSET_EXTENDED = 0x05,
        RESTORE_EXTENDED = 0x06,
        UNDEFINED = 0x07,
        SAME_VALUE = 0x08,
        REMEMBER = 0x0a,
        GO_BACK = 0x0b,
        CFA = 0x0c,
        CFA_REGISTER = 0x0d,
        CFA_OFFSET = 0x0e,
        PUSHED = 0x2e
    };
    uint64_t reg;
    switch (instruction) {
    case NOTHING:
        return true;
    case ADVANCE1:
        return advance(m, *(*at)++);
    case ADVANCE2:
        return advance(m, arch_eh_value(0x02, at));
    case ADVANCE4:
        return advance(m, arch_eh_value(0x03, at));
    case OFFSET_EXTENDED:
        reg = arch_eh_uleb128(at);
        return set_saved(m, reg, (int64_t)arch_eh_uleb128(at));
    case RESTORE_EXTENDED:
        return restore(m, arch_eh_uleb128(at));
    case UNDEFINED:
        reg = arch_eh_uleb128(at);
        set_unsaved(m, reg);
        return reg != DW_RSP;
    case SAME_VALUE:
        reg = arch_eh_uleb128(at);
        set_unsaved(m, reg);
        return reg != DW_IP;
    case REMEMBER:
        return remember(m);
    case GO_BACK:
        return go_back(m);
    case CFA:
        reg = arch_eh_uleb128(at);
        return set_cfa(m, reg, (int64_t)arch_eh_uleb128(at));
    case CFA_REGISTER:
        return set_cfa(m, arch_eh_uleb128(at), m->row.cfa_offset);
    case CFA_OFFSET:
        return set_cfa(m, m->row.cfa_register, (int64_t)arch_eh_uleb128(at));
    case PUSHED:
        m->pushed = arch_eh_uleb128(at);
        return true;
    default:
        return false;
    }
}

/* Executes what comes before the code that is looked for. Returns false if anything is not understood. */
static bool run(struct machine *m, const uint8_t *at, const uint8_t *end)
{
    enum { ADVANCE = 1, SAVED = 2, RESTORE = 3 }; /* in the two upper bits */
    bool good = true;
    while (good && at < end && m->at <= m->code) {
        uint8_t instruction = *at++, low = instruction & 0x3f;
        switch (instruction >> 6) {
        case ADVANCE:
            good = advance(m, low);
            break;
        case SAVED:
            good = set_saved(m, low, (int64_t)arch_eh_uleb128(&at));
            break;
        case RESTORE:
            good = restore(m, low);
            break;
        default:
            good = execute(m, instruction, &at);
        }
    }
    return good;
}

/* ---- the rule --------------------------------------------------------------------------------------------------- */

static bool set_frame(const struct machine *m, struct arch_rule *rule)
{
    const struct row *row = &m->row;
    if ((row->cfa_register != DW_RSP && row->cfa_register != DW_RBP) || row->saved[ROW_IP] != -8 ||
        row->saved[ROW_SP] || m->pushed > UINT16_MAX)
        return false;
    rule->cfa_is_rbp = row->cfa_register == DW_RBP;
    rule->cfa_offset = row->cfa_offset;
    rule->pushed = (uint16_t)m->pushed;
    for (int i = 0; i < ARCH_RULE_SAVED; i++) {
        rule->saved[i] = (int16_t)row->saved[i];
        if (rule->saved[i] != row->saved[i])
            return false;
    }
    return true;
}

/* The frame of arch_call lets the library's own exceptions pass. */
extern const char arch_call_personality_[];

/* The clean-up at that code, as the personality of C would choose it. */
static enum arch_rule_type find_pad(const struct description *d, uintptr_t code, uint64_t *pad)
{
    struct arch_eh_table table;
    struct arch_eh_site site;
    if (!d->personality || d->personality == (uintptr_t)arch_call_personality_)
        return ARCH_RULE_FOLLOW;
    if (d->personality != (uintptr_t)__gcc_personality_v0)
        return ARCH_RULE_TRACE;
    if (!d->lsda)
        return ARCH_RULE_FOLLOW;
    if (!arch_eh_table_read((const uint8_t *)d->lsda, d->begin, &table)) /* NOLINT: an address out of a table */
        return ARCH_RULE_TRACE;
    if (!arch_eh_site_find(&table, code - d->begin, &site) || !site.pad)
        return ARCH_RULE_FOLLOW;
    *pad = (uintptr_t)site.pad;
    return ARCH_RULE_LAND;
}

struct arch_rule arch_rule_read(uintptr_t ip)
{
    struct arch_rule rule = {.type = ARCH_RULE_NONE};
    struct description d;
    uintptr_t code = ip - 1; /* the call: what it returns to may belong to another function */
    const uint8_t *fde = find_fde(code);
    if (!fde || !read_fde(fde, &d) || code - d.begin >= d.size)
        return rule;
    struct machine m = {.d = &d, .at = d.begin, .code = code};
    if (!run(&m, d.first, d.first_end))
        return rule;
    m.first = m.row;
    if (!run(&m, d.rest, d.rest_end))
        return rule;
    if (!m.row.saved[ROW_IP])
        rule.type = ARCH_RULE_END;
    else if (set_frame(&m, &rule))
        rule.type = (uint8_t)find_pad(&d, code, &rule.pad);
    return rule;
}
