build-debug/obj/examples/turtle/main.o: examples/turtle/main.c \
 examples/turtle/turtle.h include/strand.h include/strand/chan.h \
 include/strand/select.h include/strand/../strand.h include/strand/pool.h
examples/turtle/turtle.h:
include/strand.h:
include/strand/chan.h:
include/strand/select.h:
include/strand/../strand.h:
include/strand/pool.h:
