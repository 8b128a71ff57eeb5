build-debug/obj/examples/seeds.o: examples/seeds.c include/strand.h \
 include/strand/chan.h include/strand/select.h include/strand/../strand.h \
 include/strand/sim.h include/strand/pool.h include/strand/sync.h
include/strand.h:
include/strand/chan.h:
include/strand/select.h:
include/strand/../strand.h:
include/strand/sim.h:
include/strand/pool.h:
include/strand/sync.h:
