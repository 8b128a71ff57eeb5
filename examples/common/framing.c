/*
 * Framing: where the head of a request or a response ends, and its body. Two readers that see different ends smuggle
 * messages past each other, so only the one strict form of RFC 9112 passes: lines end in CR LF, nothing is folded,
 * names and methods are tokens, values and targets have no control characters. Each byte is looked at once, whatever
 * pieces come.
 *
 * It knows neither the meaning of what it passes nor the connection; the programs do.
 */
#include "framing.h"

#include <string.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_upper(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z';
}

static bool is_method(unsigned char byte)
{
    return is_upper(byte) || byte == '-' || byte == '_';
}

static bool is_name(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || is_upper(byte) || is_digit(byte) || byte == '-' ||
           (byte && memchr("!#$%&'*+.^_`|~", byte, 14));
}

/* Others than blanks; bytes beyond ASCII are left to those who read them. */
static bool is_visible(unsigned char byte)
{
    return byte > ' ' && byte != 0x7f;
}

static bool is_value(unsigned char byte)
{
    return is_visible(byte) || byte == ' ' || byte == '\t';
}

static int hex_of(unsigned char byte)
{
    return is_digit(byte)               ? byte - '0'
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                        : -1;
}

bool is_host(const char *host, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)host[i];
        bool is_letter = is_upper(byte) || (byte >= 'a' && byte <= 'z');
        if (!is_digit(byte) && !is_letter && !(byte && memchr("-._~%!$&'()*+,;=:[]", byte, 19)))
            return false;
    }
    return true;
}

/* ---- steps: the place behind a byte ------------------------------------------------------------- */

static enum place refuse(struct framing *framing, int status)
{
    framing->status = status;
    return REFUSED;
}

static enum place step_protocol(struct framing *framing, unsigned char byte)
{
    static const char protocol[] = "HTTP/";
    if (byte != (unsigned char)protocol[framing->line++])
        return REFUSED;
    return protocol[framing->line] ? PROTOCOL : MAJOR_FIRST;
}

static enum place step_request_line(struct framing *framing, unsigned char byte)
{
    switch (framing->place) {
    case BLANK_LINE:
        return byte == '\r' ? BLANK_LINE_LF : is_method(byte) ? METHOD : REFUSED;
    case BLANK_LINE_LF:
        return byte == '\n' ? BLANK_LINE : REFUSED;
    case METHOD:
        return is_method(byte) ? METHOD : byte == ' ' ? TARGET_FIRST : REFUSED;
    case TARGET_FIRST:
        return is_visible(byte) ? TARGET : REFUSED;
    case TARGET:
        return is_visible(byte) ? TARGET : byte == ' ' ? PROTOCOL : REFUSED;
    case PROTOCOL:
        return step_protocol(framing, byte);
    case MAJOR_FIRST:
        return is_digit(byte) ? MAJOR : REFUSED;
    case MAJOR:
        return is_digit(byte) ? MAJOR : byte == '.' ? MINOR_FIRST : REFUSED;
    case MINOR_FIRST:
        return is_digit(byte) ? MINOR : REFUSED;
    default:
        return is_digit(byte) ? MINOR : byte == '\r' ? LINE_LF : REFUSED;
    }
}

/* Of HTTP/1.0 and 1.1: there is no other version that a response may have. */
static enum place step_status_line(struct framing *framing, unsigned char byte)
{
    static const char protocol[] = "HTTP/1.";
    switch (framing->place) {
    case STATUS_PROTOCOL:
        return byte != (unsigned char)protocol[framing->line++] ? REFUSED
               : protocol[framing->line]                        ? STATUS_PROTOCOL
                                                                : STATUS_MINOR;
    case STATUS_MINOR:
        framing->line = 0;
        return byte == '0' || byte == '1' ? STATUS_BLANK : REFUSED;
    case STATUS_BLANK:
        return byte == ' ' ? STATUS_FIRST : REFUSED;
    case STATUS_FIRST:
        return byte >= '1' && byte <= '5' ? STATUS : REFUSED;
    case STATUS:
        return !is_digit(byte) ? REFUSED : ++framing->line < 2 ? STATUS : STATUS_END;
    case STATUS_END: /* some servers leave the blank out, if there is no reason */
        return byte == ' ' ? REASON : byte == '\r' ? LINE_LF : REFUSED;
    default:
        return is_value(byte) ? REASON : byte == '\r' ? LINE_LF : REFUSED;
    }
}

static enum place step_field(struct framing *framing, unsigned char byte)
{
    if (framing->chunked && ++framing->fields > TRAILERS_MOST)
        return refuse(framing, 431);
    switch (framing->place) {
    case LINE_LF:
        return byte == '\n' ? NAME_FIRST : REFUSED;
    case NAME_FIRST:
        return byte == '\r' ? FIELDS_LF : is_name(byte) ? NAME : REFUSED;
    case NAME:
        return is_name(byte) ? NAME : byte == ':' ? VALUE : REFUSED;
    case VALUE:
        return is_value(byte) ? VALUE : byte == '\r' ? LINE_LF : REFUSED;
    default:
        return byte == '\n' ? ENDED : REFUSED;
    }
}

static enum place step_chunk_size(struct framing *framing, unsigned char byte)
{
    int hex = hex_of(byte);
    if (hex < 0)
        return framing->place == CHUNK_SIZE_FIRST ? REFUSED
               : byte == ';'                      ? CHUNK_EXTENSION
               : byte == '\r'                     ? CHUNK_LINE_LF
                                                  : REFUSED;
    framing->left = framing->left * 16 + (unsigned)hex;
    return framing->body + framing->left > framing->most ? refuse(framing, 413) : CHUNK_SIZE;
}

static enum place begin_chunk(struct framing *framing)
{
    framing->line = 0;
    framing->body += framing->left;
    return framing->left ? CHUNK : NAME_FIRST;
}

static enum place step_chunk(struct framing *framing, unsigned char byte)
{
    if (framing->place <= CHUNK_LINE_LF && ++framing->line > CHUNK_LINE_MOST)
        return REFUSED;
    switch (framing->place) {
    case CHUNK_SIZE_FIRST:
    case CHUNK_SIZE:
        return step_chunk_size(framing, byte);
    case CHUNK_EXTENSION:
        return is_value(byte) ? CHUNK_EXTENSION : byte == '\r' ? CHUNK_LINE_LF : REFUSED;
    case CHUNK_LINE_LF:
        return byte == '\n' ? begin_chunk(framing) : REFUSED;
    case CHUNK_CR:
        return byte == '\r' ? CHUNK_LF : REFUSED;
    default:
        return byte == '\n' ? CHUNK_SIZE_FIRST : REFUSED;
    }
}

static enum place step(struct framing *framing, unsigned char byte)
{
    return framing->place < STATUS_PROTOCOL ? step_request_line(framing, byte)
           : framing->place < LINE_LF       ? step_status_line(framing, byte)
           : framing->place < BODY          ? step_field(framing, byte)
                                            : step_chunk(framing, byte);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool is_data(const struct framing *framing)
{
    return framing->place == BODY || framing->place == CHUNK || framing->place == TO_THE_END;
}

/* Skips bytes of a body or a chunk. Returns how many of them have arrived. */
static size_t skip(struct framing *framing, size_t length)
{
    if (framing->place == TO_THE_END)
        return length;
    size_t skipped = length < framing->left ? length : (size_t)framing->left;
    framing->left -= skipped;
    if (!framing->left)
        framing->place = framing->place == BODY ? ENDED : CHUNK_CR;
    return skipped;
}

/* Most bytes of a head are in the middle of a name, a value or a target. Returns how many bytes follow that leave the
 * place as it is. Trailers go byte by byte: their bytes are counted. */
static size_t run_of(const struct framing *framing, const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
    if (framing->chunked)
        return 0;
    if (framing->place == VALUE || framing->place == REASON)
        while (at < end && is_value(*at))
            at++;
    else if (framing->place == NAME)
        while (at < end && is_name(*at))
            at++;
    else if (framing->place == TARGET)
        while (at < end && is_visible(*at))
            at++;
    return (size_t)(at - (const unsigned char *)bytes);
}

/* After a step that began at `begun`. */
static enum framed result_of(struct framing *framing, enum place begun)
{
    if (framing->place == REFUSED)
        framing->status = framing->status ? framing->status : 400;
    if (framing->place != ENDED)
        return framing->place == REFUSED ? FRAMED_WRONG : FRAMED_MORE;
    return begun < BODY && !framing->chunked ? FRAMED_HEAD : FRAMED_ALL;
}

enum framed frame(struct framing *framing, const char *bytes, size_t length, size_t *used)
{
    size_t at = 0;
    enum place begun = framing->place;
    while (at < length && framing->place < ENDED) {
        if (is_data(framing)) {
            at += skip(framing, length - at);
            continue;
        }
        framing->place = step(framing, (unsigned char)bytes[at++]);
        at += run_of(framing, bytes + at, length - at);
    }
    *used = at;
    return result_of(framing, begun);
}

enum framed frame_data(struct framing *framing, const char *bytes, size_t length, size_t *used, size_t *data)
{
    size_t at = 0;
    while (at < length && framing->place < ENDED && !is_data(framing))
        framing->place = step(framing, (unsigned char)bytes[at++]);
    *data = is_data(framing) ? skip(framing, length - at) : 0;
    *used = at + *data;
    return result_of(framing, BODY);
}

void frame_body(struct framing *framing, uint64_t length)
{
    framing->left = length;
    framing->place = length ? BODY : ENDED;
}

void frame_chunks(struct framing *framing)
{
    framing->chunked = true;
    framing->line = 0;
    framing->place = CHUNK_SIZE_FIRST;
}

void frame_to_the_end(struct framing *framing)
{
    framing->place = TO_THE_END;
}
