/*
 * Included before everything else where libstrand-names is compiled, which hides what is not declared here.
 */
#pragma GCC visibility push(default)
#include "../../include/strand/names.h"
#pragma GCC visibility pop
