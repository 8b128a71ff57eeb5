/* flags: -Wformat=2 -Wshadow -Wstrict-prototypes */
#include "strict.h"
