build-debug/obj/src/arch/gdb.o: src/arch/gdb.S
