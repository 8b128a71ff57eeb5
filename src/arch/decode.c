/*
 * Decodes instructions of x86-64, 64-bit mode: how long an instruction is, and where it continues. The tables have a
 * letter for each opcode, which says what follows the opcode:
 *
 *     m       ModRM and what that asks for       B, Z    the same, then as b and z
 *     b       8 bits                             6, 7    the same; a test has 8 or 32 bits too
 *     z       32 bits; 16 with the prefix 66     f       the same; some call or jump
 *     q       32 bits; 64 with REX.W             r, l    a branch by 8 or 32 bits
 *     o       64 bits                            s, j    a jump by 8 or 32 bits
 *     e       24 bits                            c       a call by 32 bits
 *     .       nothing                            t, u    nothing; it returns, or traps
 *     x       unknown                            U       as m; it traps
 */
#include "decode.h"

#include <stddef.h>
#include <string.h>

static const char one_byte[] = "mmmmbzxxmmmmbzxx"
                               "mmmmbzxxmmmmbzxx"
                               "mmmmbzxxmmmmbzxx"
                               "mmmmbzxxmmmmbzxx"
                               "xxxxxxxxxxxxxxxx"
                               "................"
                               "xxxmxxxxzZbB...."
                               "rrrrrrrrrrrrrrrr"
                               "BZxBmmmmmmmmmmmm"
                               "..........x....."
                               "oooo....bz......"
                               "bbbbbbbbqqqqqqqq"
                               "BBttxxBZe.ttubxt"
                               "mmmmxxx.mmmmmmmm"
                               "rrrrbbbbcjxs...."
                               "x.xxu.67......mf";
static const char two_bytes[] = "mmmmx.....xuxm.B"
                                "mmmmmmmmmmmmmmmm"
                                "mmmmxxxxmmmmmmmm"
                                "........xxxxxxxx"
                                "mmmmmmmmmmmmmmmm"
                                "mmmmmmmmmmmmmmmm"
                                "mmmmmmmmmmmmmmmm"
                                "BBBBmmm.mmxxmmmm"
                                "llllllllllllllll"
                                "mmmmmmmmmmmmmmmm"
                                "...mBmxx...mBmmm"
                                "mmmmmmmmmUBmmmmm"
                                "mmBmBBBm........"
                                "mmmmmmmmmmmmmmmm"
                                "mmmmmmmmmmmmmmmm"
                                "mmmmmmmmmmmmmmmU";

/* Groups of opcodes, by the numbers that VEX and EVEX have for them. */
enum { MAP_ONE_BYTE, MAP_TWO_BYTES, MAP_38, MAP_3A };

struct decoder {
    const uint8_t *at;
    bool short_operands, wide;
    unsigned extension; /* of the opcode: three bits of ModRM */
    bool has_word;      /* ModRM means a word at a distance from the next instruction */
    int32_t distance;
};

static int32_t read_number(const uint8_t *at, size_t size)
{
    int32_t wide;
    if (size == 1)
        return (int8_t)*at;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void skip_prefixes(struct decoder *d)
{
    static const uint8_t prefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0xf0};
    enum { OPERAND_SIZE = 0x66, REX = 0x40, REX_W = 8 };
    for (; memchr(prefixes, *d->at, sizeof prefixes); d->at++)
        d->short_operands |= *d->at == OPERAND_SIZE;
    if ((*d->at & 0xf0) == REX)
        d->wide = *d->at++ & REX_W;
}

/* Returns the letter of the opcode. */
static char read_opcode(struct decoder *d)
{
    enum { ESCAPE = 0x0f, VEX2 = 0xc5, VEX3 = 0xc4, EVEX = 0x62 };
    unsigned map = MAP_ONE_BYTE;
    uint8_t first = *d->at++;
    if (first == VEX2) {
        map = MAP_TWO_BYTES;
        d->at++;
    } else if (first == VEX3) {
        map = *d->at & 0x1f;
        d->at += 2;
    } else if (first == EVEX) {
        map = *d->at & 7;
        d->at += 3;
    } else if (first != ESCAPE) {
        return one_byte[first];
    } else if (*d->at == 0x38 || *d->at == 0x3a) {
        map = *d->at++ == 0x38 ? MAP_38 : MAP_3A;
    } else {
        map = MAP_TWO_BYTES;
    }
    uint8_t opcode = *d->at++;
    return map == MAP_TWO_BYTES ? two_bytes[opcode] : map == MAP_3A ? 'B' : 'm';
}

static void skip_modrm(struct decoder *d)
{
    enum { REGISTER = 3, BY_SIB = 4, NO_BASE = 5 };
    unsigned modrm = *d->at++, mode = modrm >> 6, base = modrm & 7;
    d->extension = modrm >> 3 & 7;
    if (mode == REGISTER)
        return;
    d->has_word = mode == 0 && base == NO_BASE;
    if (base == BY_SIB)
        base = *d->at++ & 7;
    size_t size = mode == 2 || (mode == 0 && base == NO_BASE) ? 4 : mode;
    if (d->has_word)
        d->distance = read_number(d->at, size);
    d->at += size;
}

static size_t operand_size(const struct decoder *d, char letter)
{
    size_t z = d->short_operands && !d->wide ? 2 : 4;
    switch (letter) {
    case 'b':
    case 'B':
    case 'r':
    case 's':
        return 1;
    case '6':
        return d->extension < 2 ? 1 : 0;
    case '7':
        return d->extension < 2 ? z : 0;
    case 'z':
    case 'Z':
        return z;
    case 'q':
        return d->wide ? 8 : z;
    case 'o':
        return 8;
    case 'e':
        return 3;
    case 'l':
    case 'j':
    case 'c':
        return 4;
    default:
        return 0;
    }
}

static enum arch_way way_of(const struct decoder *d, char letter)
{
    enum { CALL = 2, FAR_CALL = 3, JUMP = 4, FAR_JUMP = 5 };
    switch (letter) {
    case 'r':
    case 'l':
        return ARCH_BRANCHES;
    case 's':
    case 'j':
        return ARCH_JUMPS;
    case 'c':
        return ARCH_CALLS;
    case 't':
        return ARCH_ENDS;
    case 'u':
    case 'U':
        return ARCH_TRAPS;
    case 'f':
        if (d->extension == JUMP || d->extension == FAR_JUMP)
            return d->has_word ? ARCH_JUMPS : ARCH_ENDS;
        return d->extension == CALL || d->extension == FAR_CALL ? ARCH_CALLS : ARCH_GOES_ON;
    default:
        return ARCH_GOES_ON;
    }
}

bool arch_decode(const uint8_t *code, struct arch_instruction *instruction)
{
    struct decoder d = {.at = code};
    skip_prefixes(&d);
    char letter = read_opcode(&d);
    if (letter == 'x')
        return false;
    if (strchr("mBZ67fU", letter))
        skip_modrm(&d);
    size_t size = operand_size(&d, letter);
    bool relative = strchr("rlsjc", letter) != NULL;
    int32_t distance = relative ? read_number(d.at, size) : 0;
    d.at += size;
    instruction->way = way_of(&d, letter);
    instruction->next = d.at;
    instruction->target = relative ? d.at + distance : NULL;
    instruction->word = letter == 'f' && d.has_word ? d.at + d.distance : NULL;
    return true;
}
