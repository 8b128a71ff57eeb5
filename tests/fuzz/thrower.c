/*
 * Who threw an exception: its trace says so to people only, so this looks behind the interface.
 */
#include "../../src/strand/exception.h"

uint64_t thrower_of(const strand_exception *e);

uint64_t thrower_of(const strand_exception *e)
{
    return e->segments_count && e->segments[0].type == SEGMENT_THROWN ? e->segments[0].id : 0;
}
