build-debug/obj/src/io/signal.o: src/io/signal.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/io/../../include/strand/io.h src/io/descriptor.h \
 src/io/../sched/driver.h src/io/../sched/../base/slab.h \
 src/io/../sched/../base/base.h src/io/../sched/sched.h \
 src/io/../sched/../arch/arch.h src/io/../sched/../arch/../base/base.h \
 src/io/../sched/../arch/notes.h src/io/../sched/../arch/notes_none.h \
 src/io/../sched/../arch/notes_image.h src/io/../sched/../arch/context.h \
 src/io/../sched/../base/heap.h src/io/../sched/../base/list.h \
 src/io/../sched/../base/rng.h src/io/../sched/fds.h \
 src/io/../sched/polled.h src/io/../strand/core.h \
 src/io/../strand/../../include/strand.h \
 src/io/../strand/../../include/strand/pool.h \
 src/io/../strand/../base/slab.h src/io/../strand/../sched/thread.h \
 src/io/../strand/../sched/driver.h src/io/../strand/../sched/opened.h \
 src/io/../strand/../sched/sched.h src/io/../strand/../sched/stealing.h \
 src/io/../strand/../sched/pool.h src/io/../strand/../sched/runq.h \
 src/io/../strand/unwinding.h src/io/../strand/../base/list.h \
 src/io/../strand/interrupt.h src/io/../strand/handle.h \
 src/io/../strand/core.h src/io/../strand/wait.h \
 src/io/../strand/misuse.h
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
src/io/../../include/strand/io.h:
src/io/descriptor.h:
src/io/../sched/driver.h:
src/io/../sched/../base/slab.h:
src/io/../sched/../base/base.h:
src/io/../sched/sched.h:
src/io/../sched/../arch/arch.h:
src/io/../sched/../arch/../base/base.h:
src/io/../sched/../arch/notes.h:
src/io/../sched/../arch/notes_none.h:
src/io/../sched/../arch/notes_image.h:
src/io/../sched/../arch/context.h:
src/io/../sched/../base/heap.h:
src/io/../sched/../base/list.h:
src/io/../sched/../base/rng.h:
src/io/../sched/fds.h:
src/io/../sched/polled.h:
src/io/../strand/core.h:
src/io/../strand/../../include/strand.h:
src/io/../strand/../../include/strand/pool.h:
src/io/../strand/../base/slab.h:
src/io/../strand/../sched/thread.h:
src/io/../strand/../sched/driver.h:
src/io/../strand/../sched/opened.h:
src/io/../strand/../sched/sched.h:
src/io/../strand/../sched/stealing.h:
src/io/../strand/../sched/pool.h:
src/io/../strand/../sched/runq.h:
src/io/../strand/unwinding.h:
src/io/../strand/../base/list.h:
src/io/../strand/interrupt.h:
src/io/../strand/handle.h:
src/io/../strand/core.h:
src/io/../strand/wait.h:
src/io/../strand/misuse.h:
