build-debug/obj/src/arch/x86_64.o: src/arch/x86_64.S
