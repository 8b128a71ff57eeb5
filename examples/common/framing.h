/*
 * Framing: where the head of a message of HTTP/1.1 ends, and its body. See framing.c.
 */
#ifndef EXAMPLES_FRAMING_H
#define EXAMPLES_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of the parts of a chunked body that no reader of bodies gets: all trailers together, and the line of one
 * chunk. */
enum { TRAILERS_MOST = 4096, CHUNK_LINE_MOST = 256 };

/* What the next byte of a message belongs to. */
enum place {
    BLANK_LINE, /* before a request */
    BLANK_LINE_LF,
    METHOD,
    TARGET_FIRST,
    TARGET,
    PROTOCOL, /* "HTTP/" */
    MAJOR_FIRST,
    MAJOR,
    MINOR_FIRST,
    MINOR,
    STATUS_PROTOCOL, /* a response begins here: the "HTTP/1." */
    STATUS_MINOR,
    STATUS_BLANK,
    STATUS_FIRST, /* a digit from 1 to 5; two more follow */
    STATUS,
    STATUS_END,
    REASON,
    LINE_LF,
    NAME_FIRST, /* of a header or a trailer */
    NAME,
    VALUE,
    FIELDS_LF, /* ends the empty line behind them */
    BODY,
    CHUNK_SIZE_FIRST,
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_LINE_LF,
    CHUNK,
    CHUNK_CR,
    CHUNK_LF,
    TO_THE_END, /* a body that the end of the connection ends */
    ENDED,
    REFUSED
};

/* Set before the first byte: place and most. */
struct framing {
    enum place place;      /* BLANK_LINE for a request, STATUS_PROTOCOL for a response */
    int status;            /* once it is refused */
    bool chunked;          /* the fields that come now are trailers */
    uint32_t line, fields; /* lengths so far: the chunk's line, or "HTTP/"; the trailers */
    uint64_t left, body;   /* the rest of the body or the chunk; the length of all chunks so far */
    uint64_t most;         /* for all chunks together, up to FRAMING_MOST */
};

#define FRAMING_MOST (UINT64_C(1) << 59)

enum framed { FRAMED_MORE, FRAMED_HEAD, FRAMED_ALL, FRAMED_WRONG };
/* Looks at what has come, up to the end of the head or of the message; *used: how much that was. After FRAMED_HEAD the
 * caller says by frame_body or frame_chunks what follows, unless nothing does. */
enum framed frame(struct framing *framing, const char *bytes, size_t length, size_t *used);
void frame_body(struct framing *framing, uint64_t length);
void frame_chunks(struct framing *framing);
void frame_to_the_end(struct framing *framing); /* FRAMED_ALL never comes */
/* The same for a body, up to the next of its bytes that are no framing: *data of them lie before *used. */
enum framed frame_data(struct framing *framing, const char *bytes, size_t length, size_t *used, size_t *data);

/* Only of what names, addresses and ports are written with; an empty one is legal. */
bool is_host(const char *host, size_t length);

#endif
