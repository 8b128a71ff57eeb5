build-debug/obj/src/sync/prio.o: src/sync/prio.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/sync/prio.h src/sync/../../include/strand/limit.h \
 src/sync/../base/tree.h src/sync/../base/base.h \
 src/sync/../sched/driver.h src/sync/../sched/../base/slab.h \
 src/sync/../sched/../base/base.h src/sync/../sched/sched.h \
 src/sync/../sched/../arch/arch.h \
 src/sync/../sched/../arch/../base/base.h \
 src/sync/../sched/../arch/notes.h src/sync/../sched/../arch/notes_none.h \
 src/sync/../sched/../arch/notes_image.h \
 src/sync/../sched/../arch/context.h src/sync/../sched/../base/heap.h \
 src/sync/../sched/../base/list.h src/sync/../sched/../base/rng.h \
 src/sync/../strand/core.h src/sync/../strand/../../include/strand.h \
 src/sync/../strand/../../include/strand/pool.h \
 src/sync/../strand/../base/slab.h src/sync/../strand/../sched/thread.h \
 src/sync/../strand/../sched/driver.h \
 src/sync/../strand/../sched/opened.h src/sync/../strand/../sched/sched.h \
 src/sync/../strand/../sched/stealing.h \
 src/sync/../strand/../sched/pool.h src/sync/../strand/../sched/runq.h \
 src/sync/../strand/unwinding.h src/sync/../strand/../base/list.h \
 src/sync/../strand/cancel.h src/sync/../strand/core.h \
 src/sync/../strand/exception.h src/sync/../strand/fibre.h \
 src/sync/../strand/interrupt.h src/sync/../strand/handle.h \
 src/sync/../strand/wait.h src/sync/../strand/misuse.h \
 src/sync/../strand/scope.h src/sync/../strand/interrupt.h \
 src/sync/../strand/wait.h src/sync/source.h \
 src/sync/../../include/strand/select.h
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
src/sync/prio.h:
src/sync/../../include/strand/limit.h:
src/sync/../base/tree.h:
src/sync/../base/base.h:
src/sync/../sched/driver.h:
src/sync/../sched/../base/slab.h:
src/sync/../sched/../base/base.h:
src/sync/../sched/sched.h:
src/sync/../sched/../arch/arch.h:
src/sync/../sched/../arch/../base/base.h:
src/sync/../sched/../arch/notes.h:
src/sync/../sched/../arch/notes_none.h:
src/sync/../sched/../arch/notes_image.h:
src/sync/../sched/../arch/context.h:
src/sync/../sched/../base/heap.h:
src/sync/../sched/../base/list.h:
src/sync/../sched/../base/rng.h:
src/sync/../strand/core.h:
src/sync/../strand/../../include/strand.h:
src/sync/../strand/../../include/strand/pool.h:
src/sync/../strand/../base/slab.h:
src/sync/../strand/../sched/thread.h:
src/sync/../strand/../sched/driver.h:
src/sync/../strand/../sched/opened.h:
src/sync/../strand/../sched/sched.h:
src/sync/../strand/../sched/stealing.h:
src/sync/../strand/../sched/pool.h:
src/sync/../strand/../sched/runq.h:
src/sync/../strand/unwinding.h:
src/sync/../strand/../base/list.h:
src/sync/../strand/cancel.h:
src/sync/../strand/core.h:
src/sync/../strand/exception.h:
src/sync/../strand/fibre.h:
src/sync/../strand/interrupt.h:
src/sync/../strand/handle.h:
src/sync/../strand/wait.h:
src/sync/../strand/misuse.h:
src/sync/../strand/scope.h:
src/sync/../strand/interrupt.h:
src/sync/../strand/wait.h:
src/sync/source.h:
src/sync/../../include/strand/select.h:
