#!/bin/sh
# usage: tools/check-layers.sh
#
# A file of src/ includes only its own folder and those above it in the list, by a relative path. The public headers are
# known from the structure's layer on. A satellite (tools/satellites) includes its own folder and the public headers. Tests of the public interface, examples and benchmarks know nothing of src/.
set -u

layers="base arch stack sched strand sync io actor sim debug run"
knows_public="strand sync io actor sim debug run"
satellites=$(awk '/^[a-z]/ { print $1 }' tools/satellites | tr '\n' ' ')
status=0

complain()
{
    echo "layers: $*"
    status=1
}

# includes FILE: "LINE HEADER" of each #include with quotes
includes()
{
    sed -n '/^[[:space:]]*#[[:space:]]*include[[:space:]]*"/{
        =
        s/^[^"]*"\([^"]*\)".*/\1/p
    }' "$1" | paste -d ' ' - -
}

# contains LIST WORD
contains()
{
    case " $1 " in
    *" $2 "*) return 0 ;;
    esac
    return 1
}

# up_to LAYER: itself and all above it
up_to()
{
    echo "${layers%%"$1"*}$1"
}

# check_include LAYER FILE LINE HEADER
check_include()
{
    target=$(realpath --relative-to=. "$(dirname "$2")/$4")
    case $target in
    "src/$1"/*) ;;
    src/*/*)
        to=${target#src/}
        { contains "$layers" "$1" && contains "$(up_to "$1")" "${to%%/*}"; } || complain "$2:$3: $1 may not include ${to%%/*} ($4)"
        ;;
    include/*)
        contains "$knows_public $satellites" "$1" || complain "$2:$3: $1 knows nothing of the public headers ($4)"
        ;;
    *) complain "$2:$3: includes $4, which is neither in src/ nor in include/" ;;
    esac
    [ -e "$target" ] || complain "$2:$3: there is no $target"
}

for file in src/*/*.[chS]; do
    layer=${file#src/}
    layer=${layer%%/*}
    contains "$layers $satellites" "$layer" || complain "$file is in no known layer"
    while read -r line header; do
        [ -z "$header" ] || check_include "$layer" "$file" "$line" "$header"
    done <<END
$(includes "$file")
END
done

for file in include/*.h include/*/*.h; do
    while read -r line header; do
        [ -n "$header" ] || continue
        case $(realpath --relative-to=. "$(dirname "$file")/$header") in
        include/*) ;;
        *) complain "$file:$line: a public header may not include $header" ;;
        esac
    done <<END
$(includes "$file")
END
done

outside=$(grep -nE '^[[:space:]]*#[[:space:]]*include.*[</"]src/|include "\.\./\.\./src' \
    tests/spec/* tests/stress/* tests/programs/* tests/harness/* tests/reject/* bench/*.* examples/* 2>/dev/null)
[ -z "$outside" ] || complain "these may use the public headers only:
$outside"
[ $status -ne 0 ] || echo "layers: ok"
exit $status
