build-debug/obj/src/base/tree.o: src/base/tree.c src/base/tree.h \
 src/base/base.h
src/base/tree.h:
src/base/base.h:
