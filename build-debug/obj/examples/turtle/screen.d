build-debug/obj/examples/turtle/screen.o: examples/turtle/screen.c \
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
