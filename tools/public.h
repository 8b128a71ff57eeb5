/*
 * Included before everything else where the library is compiled, which hides what is not declared here. So the public
 * headers need no marks of their own for it.
 */
#define STRAND_OUT_OF_LINE_ /* what user code has inline is defined there */
#pragma GCC visibility push(default)
#include "../include/strand.h"
#include "../include/strand/actor.h"
#include "../include/strand/chan.h"
#include "../include/strand/changes.h"
#include "../include/strand/check.h"
#include "../include/strand/date.h"
#include "../include/strand/debug.h"
#include "../include/strand/file.h"
#include "../include/strand/io.h"
#include "../include/strand/limit.h"
#include "../include/strand/monitor.h"
#include "../include/strand/pool.h"
#include "../include/strand/port.h"
#include "../include/strand/process.h"
#include "../include/strand/scheduler.h"
#include "../include/strand/select.h"
#include "../include/strand/sim.h"
#include "../include/strand/socket.h"
#include "../include/strand/sync.h"
#pragma GCC visibility pop
