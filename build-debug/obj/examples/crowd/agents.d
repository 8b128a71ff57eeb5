build-debug/obj/examples/crowd/agents.o: examples/crowd/agents.c \
 examples/crowd/crowd.h include/strand.h include/strand/pool.h \
 include/strand/../strand.h include/strand/sync.h include/strand/select.h
examples/crowd/crowd.h:
include/strand.h:
include/strand/pool.h:
include/strand/../strand.h:
include/strand/sync.h:
include/strand/select.h:
