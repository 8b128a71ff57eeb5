build-debug/obj/src/debug/look.o: src/debug/look.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/debug/look.h src/debug/out.h src/debug/../arch/arch.h \
 src/debug/../arch/../base/base.h src/debug/../arch/notes.h \
 src/debug/../arch/notes_none.h src/debug/../arch/notes_image.h \
 src/debug/../arch/context.h src/debug/../strand/core.h \
 src/debug/../strand/../../include/strand.h \
 src/debug/../strand/../../include/strand/pool.h \
 src/debug/../strand/../base/slab.h src/debug/../strand/../base/base.h \
 src/debug/../strand/../sched/thread.h \
 src/debug/../strand/../sched/driver.h \
 src/debug/../strand/../sched/../base/slab.h \
 src/debug/../strand/../sched/sched.h \
 src/debug/../strand/../sched/../arch/arch.h \
 src/debug/../strand/../sched/../base/heap.h \
 src/debug/../strand/../sched/../base/base.h \
 src/debug/../strand/../sched/../base/list.h \
 src/debug/../strand/../sched/../base/rng.h \
 src/debug/../strand/../sched/opened.h \
 src/debug/../strand/../sched/stealing.h \
 src/debug/../strand/../sched/pool.h src/debug/../strand/../sched/runq.h \
 src/debug/../strand/unwinding.h src/debug/../strand/../base/list.h \
 src/debug/../strand/exception.h src/debug/../strand/core.h \
 src/debug/../strand/handle.h src/debug/../strand/misuse.h \
 src/debug/../strand/print.h src/debug/../strand/run.h \
 src/debug/../strand/wait.h src/debug/../sync/chan.h \
 src/debug/../sync/../../include/strand/chan.h \
 src/debug/../sync/../sched/driver.h src/debug/../sync/../strand/core.h \
 src/debug/../sync/mutex.h src/debug/../sync/../../include/strand/sync.h \
 src/debug/../sync/../strand/held.h src/debug/../sync/../strand/core.h \
 src/debug/../sync/gate.h src/debug/../sync/../strand/scope.h \
 src/debug/../sync/../strand/interrupt.h \
 src/debug/../sync/../strand/handle.h src/debug/../sync/../strand/wait.h \
 src/debug/../sync/../strand/wait.h src/debug/../sync/source.h \
 src/debug/../sync/../../include/strand/select.h src/debug/../sync/port.h \
 src/debug/../sync/../../include/strand/port.h \
 src/debug/../sync/../sched/pool.h src/debug/../sync/prio.h \
 src/debug/../sync/../../include/strand/limit.h \
 src/debug/../sync/../base/tree.h src/debug/../sync/../base/base.h
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
src/debug/look.h:
src/debug/out.h:
src/debug/../arch/arch.h:
src/debug/../arch/../base/base.h:
src/debug/../arch/notes.h:
src/debug/../arch/notes_none.h:
src/debug/../arch/notes_image.h:
src/debug/../arch/context.h:
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
src/debug/../strand/exception.h:
src/debug/../strand/core.h:
src/debug/../strand/handle.h:
src/debug/../strand/misuse.h:
src/debug/../strand/print.h:
src/debug/../strand/run.h:
src/debug/../strand/wait.h:
src/debug/../sync/chan.h:
src/debug/../sync/../../include/strand/chan.h:
src/debug/../sync/../sched/driver.h:
src/debug/../sync/../strand/core.h:
src/debug/../sync/mutex.h:
src/debug/../sync/../../include/strand/sync.h:
src/debug/../sync/../strand/held.h:
src/debug/../sync/../strand/core.h:
src/debug/../sync/gate.h:
src/debug/../sync/../strand/scope.h:
src/debug/../sync/../strand/interrupt.h:
src/debug/../sync/../strand/handle.h:
src/debug/../sync/../strand/wait.h:
src/debug/../sync/../strand/wait.h:
src/debug/../sync/source.h:
src/debug/../sync/../../include/strand/select.h:
src/debug/../sync/port.h:
src/debug/../sync/../../include/strand/port.h:
src/debug/../sync/../sched/pool.h:
src/debug/../sync/prio.h:
src/debug/../sync/../../include/strand/limit.h:
src/debug/../sync/../base/tree.h:
src/debug/../sync/../base/base.h:
