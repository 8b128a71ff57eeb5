build-debug/obj/examples/turtle/pen.o: examples/turtle/pen.c \
 examples/turtle/turtle.h include/strand.h include/strand/chan.h \
 include/strand/select.h include/strand/../strand.h include/strand/pool.h \
 include/strand/io.h
examples/turtle/turtle.h:
include/strand.h:
include/strand/chan.h:
include/strand/select.h:
include/strand/../strand.h:
include/strand/pool.h:
include/strand/io.h:
