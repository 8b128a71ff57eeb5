/*
 * start: from the start of a process until its first strand has ended, and then the process: what a short command that
 * is written with strands pays. The process is this program itself, with an argument.
 */
#include "start.h"

#include <strand.h>

static void *nothing(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    if (start_is_child(argc, argv))
        return strand_run(NULL, nothing, NULL) != NULL;
    start_measure("strand");
    return 0;
}
