/*
 * Included before everything else where libstrand-tls is compiled, which hides what is not declared here.
 */
#pragma GCC visibility push(default)
#include "../../include/strand/tls.h"
#pragma GCC visibility pop
