build-debug/obj/src/sim/player.o: src/sim/player.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/sim/sim.h src/sim/../../include/strand/sim.h \
 src/sim/../sched/driver.h src/sim/../sched/../base/slab.h \
 src/sim/../sched/../base/base.h src/sim/../sched/sched.h \
 src/sim/../sched/../arch/arch.h src/sim/../sched/../arch/../base/base.h \
 src/sim/../sched/../arch/notes.h src/sim/../sched/../arch/notes_none.h \
 src/sim/../sched/../arch/notes_image.h \
 src/sim/../sched/../arch/context.h src/sim/../sched/../base/heap.h \
 src/sim/../sched/../base/list.h src/sim/../sched/../base/rng.h \
 src/sim/../sched/pool.h src/sim/../sched/thread.h \
 src/sim/../sched/driver.h src/sim/../sched/opened.h \
 src/sim/../sched/stealing.h src/sim/../sched/pool.h \
 src/sim/../sched/runq.h
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
src/sim/sim.h:
src/sim/../../include/strand/sim.h:
src/sim/../sched/driver.h:
src/sim/../sched/../base/slab.h:
src/sim/../sched/../base/base.h:
src/sim/../sched/sched.h:
src/sim/../sched/../arch/arch.h:
src/sim/../sched/../arch/../base/base.h:
src/sim/../sched/../arch/notes.h:
src/sim/../sched/../arch/notes_none.h:
src/sim/../sched/../arch/notes_image.h:
src/sim/../sched/../arch/context.h:
src/sim/../sched/../base/heap.h:
src/sim/../sched/../base/list.h:
src/sim/../sched/../base/rng.h:
src/sim/../sched/pool.h:
src/sim/../sched/thread.h:
src/sim/../sched/driver.h:
src/sim/../sched/opened.h:
src/sim/../sched/stealing.h:
src/sim/../sched/pool.h:
src/sim/../sched/runq.h:
