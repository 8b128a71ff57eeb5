build-debug/obj/src/strand/monitor.o: src/strand/monitor.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/strand/misuse.h src/strand/core.h src/strand/../../include/strand.h \
 src/strand/../../include/strand/pool.h src/strand/../base/slab.h \
 src/strand/../base/base.h src/strand/../sched/thread.h \
 src/strand/../sched/driver.h src/strand/../sched/../base/slab.h \
 src/strand/../sched/sched.h src/strand/../sched/../arch/arch.h \
 src/strand/../sched/../arch/../base/base.h \
 src/strand/../sched/../arch/notes.h \
 src/strand/../sched/../arch/notes_none.h \
 src/strand/../sched/../arch/notes_image.h \
 src/strand/../sched/../arch/context.h src/strand/../sched/../base/heap.h \
 src/strand/../sched/../base/base.h src/strand/../sched/../base/list.h \
 src/strand/../sched/../base/rng.h src/strand/../sched/opened.h \
 src/strand/../sched/stealing.h src/strand/../sched/pool.h \
 src/strand/../sched/runq.h src/strand/unwinding.h \
 src/strand/../base/list.h src/strand/section.h \
 src/strand/../../include/strand/monitor.h
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
src/strand/misuse.h:
src/strand/core.h:
src/strand/../../include/strand.h:
src/strand/../../include/strand/pool.h:
src/strand/../base/slab.h:
src/strand/../base/base.h:
src/strand/../sched/thread.h:
src/strand/../sched/driver.h:
src/strand/../sched/../base/slab.h:
src/strand/../sched/sched.h:
src/strand/../sched/../arch/arch.h:
src/strand/../sched/../arch/../base/base.h:
src/strand/../sched/../arch/notes.h:
src/strand/../sched/../arch/notes_none.h:
src/strand/../sched/../arch/notes_image.h:
src/strand/../sched/../arch/context.h:
src/strand/../sched/../base/heap.h:
src/strand/../sched/../base/base.h:
src/strand/../sched/../base/list.h:
src/strand/../sched/../base/rng.h:
src/strand/../sched/opened.h:
src/strand/../sched/stealing.h:
src/strand/../sched/pool.h:
src/strand/../sched/runq.h:
src/strand/unwinding.h:
src/strand/../base/list.h:
src/strand/section.h:
src/strand/../../include/strand/monitor.h:
