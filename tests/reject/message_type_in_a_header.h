#include "strand/actor.h"

STRAND_MESSAGE(point, { int x; });
