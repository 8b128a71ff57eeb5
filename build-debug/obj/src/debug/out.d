build-debug/obj/src/debug/out.o: src/debug/out.c tools/public.h \
 tools/../include/strand.h tools/../include/strand/chan.h \
 tools/../include/strand/select.h tools/../include/strand/../strand.h \
 tools/../include/strand/debug.h tools/../include/strand/pool.h \
 tools/../include/strand/check.h tools/../include/strand/io.h \
 tools/../include/strand/limit.h tools/../include/strand/monitor.h \
 tools/../include/strand/pool.h tools/../include/strand/port.h \
 tools/../include/strand/scheduler.h tools/../include/strand/select.h \
 tools/../include/strand/sim.h tools/../include/strand/sync.h \
 src/debug/out.h src/debug/../arch/arch.h \
 src/debug/../arch/../base/base.h src/debug/../arch/notes.h \
 src/debug/../arch/notes_none.h src/debug/../arch/notes_image.h \
 src/debug/../arch/context.h
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
src/debug/out.h:
src/debug/../arch/arch.h:
src/debug/../arch/../base/base.h:
src/debug/../arch/notes.h:
src/debug/../arch/notes_none.h:
src/debug/../arch/notes_image.h:
src/debug/../arch/context.h:
