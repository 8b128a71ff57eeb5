build-debug/obj/examples/crawl.o: examples/crawl.c include/strand.h \
 include/strand/debug.h include/strand/../strand.h include/strand/pool.h \
 include/strand/io.h include/strand/select.h include/strand/pool.h
include/strand.h:
include/strand/debug.h:
include/strand/../strand.h:
include/strand/pool.h:
include/strand/io.h:
include/strand/select.h:
include/strand/pool.h:
