#!/bin/sh
# usage: tools/own-text.sh OBJECT
#
# Gives all sections of code in a relocatable object one name, strand_text, in place. Every linker puts sections of one
# name together, and defines __start_strand_text and __stop_strand_text at their ends, because the name is an identifier
# of C: so the library knows which frames of a trace are its own (src/arch/trace.c), without their symbols. OBJCOPY and
# READELF name the tools.
set -eu
export LC_ALL=C

[ $# -eq 1 ] || {
    echo "own-text: usage: tools/own-text.sh OBJECT" >&2
    exit 1
}

# "NAME FLAGS" of each section follows its number in brackets, and flags stand before three numbers.
renamings=$("${READELF:-readelf}" -SW "$1" |
    sed -n 's/^ *\[ *[0-9]*\] \([^ ]*\) *PROGBITS .* \([A-Z]*X[A-Z]*\)  *[0-9]*  *[0-9]*  *[0-9]*$/\1/p' | sort -u |
    sed '/^strand_text$/d; s/.*/--rename-section &=strand_text/')
[ -z "$renamings" ] || "${OBJCOPY:-objcopy}" $renamings "$1"
