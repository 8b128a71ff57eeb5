#!/usr/bin/env python3
"""usage: tools/check-calls.py [--list] FOLDER

Reads the objects of the library, FOLDER/obj/src/LAYER/FILE.o, and fails where

  - a layer uses a function or variable of a layer above it, but for those in UPWARD,
  - io, actor, sim or debug uses a function or variable of another of these four, but for what LEAVES allows,
  - a file of sched's first half (FIRST_HALF) calls a function of the second half, except FIRST_HALF_MAY_CALL, or
  - more files call each other in a circle than LARGEST allows in the whole library, and in each layer.

UPWARD and LARGEST may only get shorter: an entry that is not needed any more fails too. --list prints the circles.
"""
import collections
import pathlib
import subprocess
import sys

LAYERS = "base arch stack sched strand sync io actor sim debug run".split()

# An assertion that does not hold ends here: base declares it, arch prints, and it never returns.
ENDS = {"base_bug"}

# user: what it uses of a layer above
UPWARD = {}

# Only run names these layers; debug reads two of them.
LEAVES = {"io": (), "actor": (), "sim": (), "debug": ("io", "actor")}

# The files of sched that decide which fibre runs next (src/sched/pool.h).
FIRST_HALF = {"sched/" + file for file in "runq inbox stealing global dedicated pinned balance shared_mail".split()}
# Files whose functions they may call all the same: the platform relaxes in a spin loop.
FIRST_HALF_MAY_CALL = {"sched/platform"}

# The number of files of the largest circle of calls, of the whole library ("") and of each layer.
LARGEST = {"": 7, "arch": 3, "stack": 3, "sched": 4, "sync": 3, "io": 2, "actor": 7, "sim": 2, "debug": 3}


def symbols(folder):
    """Where each symbol is defined, and whether it is a function; and what each file uses."""
    defined, used = {}, collections.defaultdict(set)
    for path in sorted(pathlib.Path(folder, "obj", "src").glob("*/*.o")):
        name = f"{path.parent.name}/{path.stem}"
        if not any(pathlib.Path("src", name + end).exists() for end in (".c", ".S")):
            continue  # an object of a file that is gone
        if path.parent.name not in LAYERS:
            continue  # of a satellite, which links with the library as a program does
        out = subprocess.run(["nm", "-P", str(path)], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            symbol, kind = line.split()[:2]
            if kind in "Uw":
                used[name].add(symbol)
            elif kind.isupper():
                defined[symbol] = name, kind in "TW"
        used.setdefault(name, set())
    return defined, used


def circles(edges):
    """The strongly connected components of more than one file, the largest first (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in edges[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
                on_stack.discard(circle[-1])
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for node in edges:
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def within(edges, layer):
    inside = {file for file in edges if file.startswith(f"{layer}/")}
    return {file: edges[file] & inside for file in inside}


def broken_rules(file, target, is_function):
    """Yields what is wrong with the use of a name of target, beside its being upward."""
    layer, other = file.split("/")[0], target.split("/")[0]
    if layer in LEAVES and other in LEAVES and other != layer and other not in LEAVES[layer]:
        yield f"only run may name {other}"
    if file in FIRST_HALF and is_function and other == "sched" and target not in FIRST_HALF | FIRST_HALF_MAY_CALL:
        yield "a file of sched's first half wakes, parks and stops no thread"


def main(arguments):
    listing = "--list" in arguments
    (folder,) = [a for a in arguments if a != "--list"]
    defined, used = symbols(folder)
    if not defined:
        sys.exit(f"calls: there are no objects in {folder}/obj/src")
    status, edges, upward = 0, {file: set() for file in used}, set()
    for file in sorted(FIRST_HALF | FIRST_HALF_MAY_CALL):
        if not pathlib.Path("src", file + ".c").exists():
            print(f"calls: there is no src/{file}.c")
            status = 1
    for file, names in sorted(used.items()):
        for name in sorted(names):
            target, is_function = defined.get(name, (file, False))
            if target == file or name in ENDS:
                continue
            if is_function:
                edges[file].add(target)
            for wrong in broken_rules(file, target, is_function):
                print(f"calls: src/{file}.c uses {name} of src/{target}.c: {wrong}")
                status = 1
            layer, other = file.split("/")[0], target.split("/")[0]
            if LAYERS.index(other) > LAYERS.index(layer):
                upward.add((file, name))
                if name not in UPWARD.get(file, ()):
                    print(f"calls: src/{file}.c uses {name} of src/{target}.c, a layer above")
                    status = 1
    for file, names in UPWARD.items():
        for name in names:
            if (file, name) not in upward:
                print(f"calls: UPWARD need not have {name} for {file} any more")
                status = 1
    figures = []
    for layer in ["", *LAYERS]:
        found = circles(within(edges, layer) if layer else edges)
        size, limit = len(found[0]) if found else 0, LARGEST.get(layer, 0)
        if listing and found:
            for circle in found:
                print(f"circle of {len(circle)} in {layer or 'all'}: {' '.join(circle)}")
        if size != limit:
            print(f"calls: the largest circle of {layer or 'all layers'} has {size} files; LARGEST has {limit}")
            status = 1
        if size:
            figures.append(f"{layer or 'all'} {size}")
    if status == 0:
        print(f"calls: ok ({len(upward)} upward; largest circles of {len(edges)} files: {', '.join(figures)})")
    return status


sys.exit(main(sys.argv[1:]))
