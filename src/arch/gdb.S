/*
 * For gdb, which loads it with a program or the shared library: a section that is not in memory when they run, and that
 * strip removes with the debug information.
 */
        .section .debug_gdb_scripts, "MS", @progbits, 1
gdb_script:
        .byte   4 /* a script in Python, here */
        .ascii  "gdb.inlined-script.strand\n"
        .incbin "tools/gdb/strand.py"
        .byte   0

        .section .note.GNU-stack, "", @progbits
