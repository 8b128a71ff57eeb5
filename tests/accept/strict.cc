/* flags: -Wformat=2 -Wshadow -Wold-style-cast */
/* g++ flags: -Wuseless-cast */
#include "strict.h"
