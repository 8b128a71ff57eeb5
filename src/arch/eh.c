/*
 * Reading the tables that compilers write for unwinding.
 */
#include "eh.h"

#include <string.h>

enum {
    FORMAT_POINTER = 0x00,
    FORMAT_ULEB128 = 0x01,
    FORMAT_UDATA2 = 0x02,
    FORMAT_UDATA4 = 0x03,
    FORMAT_UDATA8 = 0x04,
    FORMAT_SDATA4 = 0x0b,
    FORMAT_SDATA8 = 0x0c
};

uint64_t arch_eh_uleb128(const uint8_t **at)
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

int64_t arch_eh_sleb128(const uint8_t **at)
{
    const uint8_t *begin = *at;
    uint64_t value = arch_eh_uleb128(at);
    unsigned bits = 7 * (unsigned)(*at - begin);
    bool negative = (*at)[-1] & 0x40;
    return (int64_t)(negative && bits < 64 ? value | ~UINT64_C(0) << bits : value);
}

size_t arch_eh_size(uint8_t encoding)
{
    switch (encoding & EH_FORMAT) {
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

uint64_t arch_eh_value(uint8_t encoding, const uint8_t **at)
{
    size_t size = arch_eh_size(encoding);
    uint64_t value = 0;
    if (!size)
        return arch_eh_uleb128(at);
    memcpy(&value, *at, size);
    *at += size;
    return (encoding & EH_FORMAT) == FORMAT_SDATA4 ? (uint64_t)(int32_t)value : value;
}

bool arch_eh_address(uint8_t encoding, const uint8_t **at, uintptr_t *address)
{
    uint8_t base = encoding & EH_RELATIVE;
    uintptr_t itself = (uintptr_t)*at;
    if (encoding == EH_OMITTED || !arch_eh_size(encoding) || (base && base != EH_RELATIVE_TO_ITSELF))
        return false;
    uintptr_t value = arch_eh_value(encoding, at);
    if (value && base)
        value += itself;
    if (value && encoding & EH_INDIRECT)
        value = *(uintptr_t *)value; /* NOLINT: an address out of a table */
    *address = value;
    return true;
}

bool arch_eh_table_read(const uint8_t *lsda, uintptr_t function, struct arch_eh_table *table)
{
    uint8_t encoding = *lsda++;
    table->pads = function;
    if (encoding != EH_OMITTED && (!arch_eh_address(encoding, &lsda, &table->pads) || !table->pads))
        return false;
    table->type_encoding = *lsda++;
    table->types = NULL;
    if (table->type_encoding != EH_OMITTED) {
        uint64_t distance = arch_eh_uleb128(&lsda);
        table->types = lsda + distance;
    }
    table->call_encoding = *lsda++;
    uint64_t size = arch_eh_uleb128(&lsda);
    table->calls = lsda;
    table->actions = lsda + size;
    return true;
}

struct arch_eh_site arch_eh_site_read(const struct arch_eh_table *table, const uint8_t **at)
{
    struct arch_eh_site site;
    site.begin = arch_eh_value(table->call_encoding, at);
    site.size = arch_eh_value(table->call_encoding, at);
    uint64_t pad = arch_eh_value(table->call_encoding, at);
    site.pad = pad ? (const uint8_t *)(table->pads + pad) : NULL; /* NOLINT: an address out of a table */
    site.action = arch_eh_uleb128(at);
    return site;
}

bool arch_eh_site_find(const struct arch_eh_table *table, uint64_t offset, struct arch_eh_site *site)
{
    for (const uint8_t *at = table->calls; at < table->actions;) {
        *site = arch_eh_site_read(table, &at);
        if (offset < site->begin)
            break;
        if (offset < site->begin + site->size)
            return true;
    }
    return false;
}
