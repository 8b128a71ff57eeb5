#!/bin/sh
# usage: tools/check-models.sh
#
# Models and code name each other. The head of a model lists what it models, a file of src/ and its functions each:
#
#    * MODELS    src/sched/runq.c: runq_enter_slow_, runq_break_in
#
# Each of these files exists and has these functions, and says which model it has: in itself, in the header that it says
# its protocol block is in, or on the page that one of the two names. A model that is named in src/ exists, and models
# that file or one whose protocol block is there. A page of docs/protocols names each model. A macro of a "must" line
# stands in the model's code and in its MACROS.
set -u
export LC_ALL=C

status=0

complain()
{
    echo "models: $*"
    status=1
}

# modelled MODEL: "FILE FUNCTION" of all that its head lists
modelled()
{
    awk '
        /^ \* MODELS / { inside = 1; sub(/^ \* MODELS/, " *       ") }
        inside && !/^ \*          / { exit }
        inside {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^src\/.*:$/) { file = substr($i, 1, length($i) - 1); more = 1 }
                else if (more && $i ~ /^[a-z_0-9]+[,;.]?$/) {
                    name = $i
                    more = sub(/,$/, "", name)
                    sub(/[;.]$/, "", name)
                    print file, name
                }
                else more = 0
            }
        }' "$1"
}

# blocks FILE: itself, and the headers of its folder that its first comment says its protocol block is in
blocks()
{
    echo "$1"
    awk '{ print } /\*\// { exit }' "$1" | tr '\n' ' ' | sed 's/  *\* / /g' |
        grep -oE 'protocol block (is|stands) in [a-z_]*\.h( and [a-z_]*\.h)?' | grep -oE '[a-z_]*\.h' |
        sed "s#^#$(dirname "$1")/#"
}

# names FILE MODEL
# shellcheck disable=SC2046,SC2086
names()
{
    grep -qF "$2" $(blocks "$1") && return 0
    pages=$(grep -ohE 'docs/protocols/[a-z_]*\.md' $(blocks "$1") | sort -u)
    [ -n "$pages" ] && grep -qF "$2" $pages
}

count=0
for model in tests/models/*.pml; do
    list=$(modelled "$model")
    [ -n "$list" ] || complain "$model does not say what it models"
    for file in $(echo "$list" | cut -d ' ' -f 1 | sort -u); do
        if [ ! -e "$file" ]; then
            complain "$model models $file, which does not exist"
            continue
        fi
        names "$file" "$model" || complain "$file does not name $model, which models it"
        for function in $(echo "$list" | sed -n "s#^$file ##p"); do
            count=$((count + 1))
            grep -E "^[A-Za-z_][A-Za-z0-9_ *()]*[ *]$function\(" "$file" | grep -qv ';$' ||
                complain "$model models $function, which is not in $file"
        done
    done
    grep -qF "$model" docs/protocols/*.md || complain "no page of docs/protocols names $model"
    for macro in $(sed -n 's#^/\* must [a-z ]*: \(.*\) \*/$#\1#p' "$model" | tr ' ' '\n' | sed 's/^-D//' | sort -u); do
        grep -Eq "^ \* (MACROS)? +$macro +[^ ]" "$model" || complain "$model does not say what $macro does"
        grep -Eq "^#.*[ (]$macro\>" "$model" || complain "$model has nothing of $macro"
    done
done

for file in $(grep -rlF tests/models/ src); do
    for model in $(grep -o 'tests/models/[a-z_]*\.pml' "$file" | sort -u); do
        if [ ! -e "$model" ]; then
            complain "$file names $model, which does not exist"
            continue
        fi
        for modelled in $(modelled "$model" | cut -d ' ' -f 1 | sort -u); do
            blocks "$modelled"
        done | grep -qxF "$file" || complain "$model does not say that it models $file, which names it"
    done
done

[ $status -eq 0 ] && echo "models: ok ($count functions modelled)"; exit $status
