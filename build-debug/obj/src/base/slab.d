build-debug/obj/src/base/slab.o: src/base/slab.c src/base/slab.h \
 src/base/base.h
src/base/slab.h:
src/base/base.h:
