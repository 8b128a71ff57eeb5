build-debug/obj/examples/pipeline/report.o: examples/pipeline/report.c \
 examples/pipeline/pipeline.h include/strand.h include/strand/chan.h \
 include/strand/select.h include/strand/../strand.h include/strand/io.h \
 include/strand/pool.h
examples/pipeline/pipeline.h:
include/strand.h:
include/strand/chan.h:
include/strand/select.h:
include/strand/../strand.h:
include/strand/io.h:
include/strand/pool.h:
