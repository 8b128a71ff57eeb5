build-debug/obj/src/debug/census.o: src/debug/census.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/debug/../strand/print.h src/debug/../strand/core.h \
 src/debug/../strand/../../include/strand.h \
 src/debug/../strand/../../include/strand/pool.h \
 src/debug/../strand/../base/slab.h src/debug/../strand/../base/base.h \
 src/debug/../strand/../sched/thread.h \
 src/debug/../strand/../sched/driver.h \
 src/debug/../strand/../sched/../base/slab.h \
 src/debug/../strand/../sched/sched.h \
 src/debug/../strand/../sched/../arch/arch.h \
 src/debug/../strand/../sched/../arch/../base/base.h \
 src/debug/../strand/../sched/../arch/notes.h \
 src/debug/../strand/../sched/../arch/notes_none.h \
 src/debug/../strand/../sched/../arch/notes_image.h \
 src/debug/../strand/../sched/../arch/context.h \
 src/debug/../strand/../sched/../base/heap.h \
 src/debug/../strand/../sched/../base/base.h \
 src/debug/../strand/../sched/../base/list.h \
 src/debug/../strand/../sched/../base/rng.h \
 src/debug/../strand/../sched/opened.h \
 src/debug/../strand/../sched/stealing.h \
 src/debug/../strand/../sched/pool.h src/debug/../strand/../sched/runq.h \
 src/debug/../strand/unwinding.h src/debug/../strand/../base/list.h
tools/public.h:
tools/../include/strand.h:
tools/../include/strand/chan.h:
tools/../include/strand/select.h:
tools/../include/strand/../strand.h:
tools/../include/strand/debug.h:
tools/../include/strand/pool.h:
tools/../include/strand/check.h:
tools/../include/strand/io.h:
tools/../include/strand/limit.h:
tools/../include/strand/monitor.h:
tools/../include/strand/pool.h:
tools/../include/strand/port.h:
tools/../include/strand/scheduler.h:
tools/../include/strand/select.h:
tools/../include/strand/sim.h:
tools/../include/strand/sync.h:
src/debug/../strand/print.h:
src/debug/../strand/core.h:
src/debug/../strand/../../include/strand.h:
src/debug/../strand/../../include/strand/pool.h:
src/debug/../strand/../base/slab.h:
src/debug/../strand/../base/base.h:
src/debug/../strand/../sched/thread.h:
src/debug/../strand/../sched/driver.h:
src/debug/../strand/../sched/../base/slab.h:
src/debug/../strand/../sched/sched.h:
src/debug/../strand/../sched/../arch/arch.h:
src/debug/../strand/../sched/../arch/../base/base.h:
src/debug/../strand/../sched/../arch/notes.h:
src/debug/../strand/../sched/../arch/notes_none.h:
src/debug/../strand/../sched/../arch/notes_image.h:
src/debug/../strand/../sched/../arch/context.h:
src/debug/../strand/../sched/../base/heap.h:
src/debug/../strand/../sched/../base/base.h:
src/debug/../strand/../sched/../base/list.h:
src/debug/../strand/../sched/../base/rng.h:
src/debug/../strand/../sched/opened.h:
src/debug/../strand/../sched/stealing.h:
src/debug/../strand/../sched/pool.h:
src/debug/../strand/../sched/runq.h:
src/debug/../strand/unwinding.h:
src/debug/../strand/../base/list.h:
