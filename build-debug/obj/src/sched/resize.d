build-debug/obj/src/sched/resize.o: src/sched/resize.c src/sched/pinned.h \
 src/sched/driver.h src/sched/../base/slab.h src/sched/../base/base.h \
 src/sched/sched.h src/sched/../arch/arch.h \
 src/sched/../arch/../base/base.h src/sched/../arch/notes.h \
 src/sched/../arch/notes_none.h src/sched/../arch/notes_image.h \
 src/sched/../arch/context.h src/sched/../base/heap.h \
 src/sched/../base/list.h src/sched/../base/rng.h src/sched/pool.h \
 src/sched/stack.h src/sched/thread.h src/sched/opened.h \
 src/sched/stealing.h src/sched/runq.h
src/sched/pinned.h:
src/sched/driver.h:
src/sched/../base/slab.h:
src/sched/../base/base.h:
src/sched/sched.h:
src/sched/../arch/arch.h:
src/sched/../arch/../base/base.h:
src/sched/../arch/notes.h:
src/sched/../arch/notes_none.h:
src/sched/../arch/notes_image.h:
src/sched/../arch/context.h:
src/sched/../base/heap.h:
src/sched/../base/list.h:
src/sched/../base/rng.h:
src/sched/pool.h:
src/sched/stack.h:
src/sched/thread.h:
src/sched/opened.h:
src/sched/stealing.h:
src/sched/runq.h:
