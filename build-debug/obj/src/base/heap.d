build-debug/obj/src/base/heap.o: src/base/heap.c src/base/heap.h \
 src/base/base.h
src/base/heap.h:
src/base/base.h:
