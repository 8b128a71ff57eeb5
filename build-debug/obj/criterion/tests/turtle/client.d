build-debug/obj/criterion/tests/turtle/client.o: tests/turtle/client.c
