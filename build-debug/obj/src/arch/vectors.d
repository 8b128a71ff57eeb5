build-debug/obj/src/arch/vectors.o: src/arch/vectors.c src/arch/arch.h \
 src/arch/../base/base.h src/arch/notes.h src/arch/notes_none.h \
 src/arch/notes_image.h src/arch/context.h
src/arch/arch.h:
src/arch/../base/base.h:
src/arch/notes.h:
src/arch/notes_none.h:
src/arch/notes_image.h:
src/arch/context.h:
