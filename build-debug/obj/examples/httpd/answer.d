build-debug/obj/examples/httpd/answer.o: examples/httpd/answer.c \
 examples/httpd/httpd.h include/strand.h include/strand/debug.h \
 include/strand/../strand.h include/strand/pool.h include/strand/io.h \
 include/strand/select.h include/strand/pool.h
examples/httpd/httpd.h:
include/strand.h:
include/strand/debug.h:
include/strand/../strand.h:
include/strand/pool.h:
include/strand/io.h:
include/strand/select.h:
include/strand/pool.h:
