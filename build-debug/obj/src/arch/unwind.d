build-debug/obj/src/arch/unwind.o: src/arch/unwind.c src/arch/state.h \
 src/arch/arch.h src/arch/../base/base.h src/arch/notes.h \
 src/arch/notes_none.h src/arch/notes_image.h src/arch/context.h \
 src/arch/x86_64.h
src/arch/state.h:
src/arch/arch.h:
src/arch/../base/base.h:
src/arch/notes.h:
src/arch/notes_none.h:
src/arch/notes_image.h:
src/arch/context.h:
src/arch/x86_64.h:
