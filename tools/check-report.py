#!/usr/bin/env python3
"""usage: tools/check-report.py

Tests bench/run and bench/report.py: runs bench/run on programs that print fixed samples, and on peers that fail in each
way that bench/README.md names, and compares what the record, the report and the tables of documents have of them.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
wrong = 0


def expect(holds, what):
    global wrong
    if not holds:
        print(f"report: {what}")
        wrong += 1


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)


def samples(row, runtime, *values, threads=1, unit="ns"):
    return "".join(f"printf '{row}\\t{runtime}\\t{threads}\\t{unit}\\t{value}\\n'\n" for value in values)


def run(folder, *rows, **variables):
    """bench/run in a folder without peers of its own; the programs are those of folder/bin."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("BENCH_", "STRAND_"))}
    environment |= {"STRAND_BENCH_BIN": str(folder / "bin"), "BENCH_RECORD": str(folder / "record.txt"),
                    "BENCH_PEERS": str(folder / "peers"), "BENCH_ROUNDS": "2", "BENCH_COMPARE": "1"} | variables
    return subprocess.run(["sh", str(folder / "run"), *rows], env=environment, text=True, capture_output=True, check=False)


def report(folder, *files, record="record.txt"):
    return subprocess.run([str(ROOT / "bench/report.py"), str(folder / record), *map(str, files)],
                          text=True, capture_output=True, check=False)


def lines(path, kind):
    return [line.split("\t")[1:] for line in path.read_text(encoding="utf-8").splitlines()
            if line.split("\t")[0] == kind]


# ---- bench/run -------------------------------------------------------------------------------------------------------

def make_programs(folder):
    shutil.copy(ROOT / "bench/run", folder / "run")
    binaries, peers = folder / "bin", folder / "peers"
    program(binaries / "switch", samples("switch", "strand", 20, 10))
    program(binaries / "floor_switch", samples("switch", "floor", 5))
    program(binaries / "fib30", samples("fib30", "strand", 80, unit="ms"))
    program(peers / "good/switch", samples("switch", "good", 30, 40))
    program(peers / "good/fib30", samples("fib30", "good", 40, unit="ms"))
    (peers / "good/about").write_text("good 1.0\n", encoding="utf-8")
    program(peers / "easy/switch", samples("switch", "easy", 4))
    (peers / "easy/switch.unfair").write_text("it does nothing.\n", encoding="utf-8")
    return peers


FAILURES = {
    "crashes": ("kill -SEGV $$\n", "signal 11 ended it"),
    "ends": ("echo 'wrong: a sum' >&2; exit 1\n", "exit status 1: wrong: a sum"),
    "hangs": ("sleep 60\n", "did not end within 1 s"),
    "mute": ("", "it prints nothing"),
    "other": (samples("yield1000", "other", 1), "it prints no sample of the row switch"),
    "posing": (samples("switch", "strand", 1), "it calls itself strand"),
    "chatty": ("echo hello\n", "it prints \"hello\", which is no sample"),
    "negative": (samples("switch", "negative", -1), "which is no sample"),
}


def check_run(folder):
    record = folder / "record.txt"
    result = run(folder, "switch", "fib30")
    expect(result.returncode == 0, f"bench/run fails although all programs end well: {result.stderr}")
    row = "switch strand 1 15.000 ns 10 20 4".replace(" ", "\t")
    expect(row in result.stdout.splitlines(), f"the row of switch is not there: {result.stdout}")
    expect(len([line for line in lines(record, "sample") if line[3] == "good" and line[2] == "switch"]) == 4,
           "the record has not two rounds of two samples of the peer")
    expect(["good", "good 1.0"] in lines(record, "runtime"), "the record lacks the version of a peer")
    expect(["easy", "switch", "it does nothing."] in lines(record, "unfair"), "the record lacks the mark of a peer")
    expect("libdill" in [line[0] for line in lines(record, "missing")], "a peer without a package is silently left out")
    run(folder, "fib30", BENCH_GROWTH="short")
    values = [line[1] for line in lines(record, "growth") if line[0] == "fib30" and line[5] == "good"]
    expect(values == ["1", "2"], f"the short growth plot of fib30 has the values {values}")
    expect("spawn_join" not in record.read_text(encoding="utf-8"), "a row was run that was not asked for")


def check_failures(folder, peers):
    for name, (text, why) in FAILURES.items():
        program(peers / name / "switch", text)
    program(peers / "nameless/swich", "")
    program(peers / "poor/switch", "echo 'left out: no memory' >&2; exit 77\n")
    result = run(folder, "switch", BENCH_LIMIT_S="1", BENCH_ROUNDS="1")
    record = folder / "record.txt"
    failed = {line[0]: line[-1] for line in lines(record, "failed")}
    expect(result.returncode == 1, "bench/run succeeds although peers fail")
    for name, (_, why) in FAILURES.items():
        expect(why in failed.get(name, ""), f"the failure of a peer that {name!r} names is: {failed.get(name)}")
    expect("the program of no row" in failed.get("nameless", ""), "a program of no row is silently left out")
    expect(["poor", "switch 2", "no memory"] in lines(record, "left-out"), "a peer that ends by 77 is not left out")
    expect("poor" not in failed, "a peer that ends by 77 has failed")
    measured = {line[3] for line in lines(record, "sample")}
    expect(measured == {"floor", "strand", "good", "easy"}, f"the record has samples of {measured}")
    result = report(folder, folder / "failed.html")
    page = (folder / "failed.html").read_text(encoding="utf-8")
    expect(result.returncode == 1, "the report succeeds although peers failed")
    for name in FAILURES:
        expect(f"<td class='text failed'>{name}</td>" in page, f"the report does not list the failure of {name}")
    (folder / "failed.md").write_text("<!-- peers: short -->\n<!-- end of peers -->\n", encoding="utf-8")
    report(folder, folder / "failed.md")
    expect("switch" not in (folder / "failed.md").read_text(encoding="utf-8"),
           "a document is written from a record with failures")


# ---- bench/report.py -------------------------------------------------------------------------------------------------

RECORD = """date	2000-01-01 00:00 UTC
machine	A machine, 2 processors
rounds	3
runtime	strand	abc, gcc
runtime	good	good <1.0>
missing	absent	the package absent is not installed
unfair	easy	switch	it does nothing.
sample	switch 2	floor	switch	floor	1	ns	5
sample	switch 2	strand	switch	strand	1	ns	10
sample	switch 2	strand	switch	strand	1	ns	20
sample	switch 2	peer	switch	good	1	ns	30
sample	switch 2	peer	switch	easy	1	ns	5
sample	fib30 1	strand	fib30	strand	1	ms	80
sample	fib30 1	peer	fib30	good	1	ms	40
sample	echo 1	strand	echo1	strand	1	trips/s	200000
sample	echo 1	peer	echo1	good	1	trips/s	100000
sample	scope	strand	scope	strand	1	ns	11
plot	threads	fib30	threads	ms
growth	threads	1	fib30 X	strand	fib30	strand	1	ms	80
growth	threads	2	fib30 X	strand	fib30	strand	2	ms	50
"""

DOCUMENT = """# Title
<!-- peers: short -->
old
<!-- end of peers -->
between
<!-- peers: full -->
<!-- end of peers -->
end
"""


def row_of(page, name):
    return next((line for line in page.splitlines() if line.startswith("<tr>") and f">{name}</td>" in line), "")


def check_report(folder):
    (folder / "fixed.txt").write_text(RECORD, encoding="utf-8")
    result = report(folder, folder / "fixed.html", record="fixed.txt")
    expect(result.returncode == 0, f"the report fails: {result.stderr}")
    page = (folder / "fixed.html").read_text(encoding="utf-8")
    for name, style, ratios in (("switch", "partly", "0.50 (good), 3.00 (easy"), ("fib30", "behind", "2.00 (good)"),
                                ("echo1", "first", "0.50 (good)")):
        line = row_of(page, name)
        expect(f"<td class={style}>{ratios}" in line, f"{name} is not {style} by {ratios}: {line}")
        expect(f"<td class='{style}'>" in line, f"the cell of libstrand in {name} is not {style}")
    expect("15<span class=least> (10)</span>" in row_of(page, "switch"), "median and best sample of switch are not there")
    expect("<td>3.00</td>" in row_of(page, "switch"), "the ratio of switch to its floor is not there")
    expect("200 k<" in row_of(page, "echo1"), "a large number is not shortened")
    expect(row_of(page, "scope") == "", "a row without other runtimes is in the table")
    expect("the package absent is not installed" in page, "a runtime that is missing is silently left out")
    expect("<li>it does nothing.</li>" in page, "the mark of a peer is not explained")
    expect("good &lt;1.0&gt;" in page, "text of the record is not escaped")
    expect(not re.search(r"(src|href)='(?!data:)", page), "the report refers to another file")
    if shutil.which("gnuplot"):
        expect(page.count("<img ") == 4, f"there are {page.count('<img ')} plots, not 3 of rows and 1 of growth")
    else:
        expect("gnuplot is not installed" in page, "the report does not say why it has no plots")


def check_documents(folder):
    document = folder / "document.md"
    document.write_text(DOCUMENT, encoding="utf-8")
    result = report(folder, document, record="fixed.txt")
    expect(result.returncode == 0, f"no document is written: {result.stderr}")
    written = document.read_text(encoding="utf-8")
    for line in ("| `switch` | 1 | 15 ns | good 30, *easy* 5 | 0.50, **3.00** |", "| `fib30` | 1 | 80 ms | good 40 | **2.00** |",
                 "| `echo1` | 1 | 200 k trips/s | good 100 k | 0.50 |", "1. it does nothing.", "- libstrand: abc, gcc",
                 "| `switch` | 1 | ns | 15 (10) | 5 | 5 [1] | 30 |", "- absent: the package absent is not installed"):
        expect(line in written.splitlines(), f"the document lacks: {line}\n{written}")
    for line in ("# Title", "between", "end"):
        expect(line in written.splitlines(), f"the document has lost the line {line}")
    expect("old" not in written.splitlines(), "the document keeps its old table")
    expect(written.count("<!-- end of peers -->") == 2, "the document has lost the end of a table")
    report(folder, document, record="fixed.txt")
    expect(document.read_text(encoding="utf-8") == written, "a second writing changes the document")
    (folder / "single.txt").write_text(RECORD.replace("rounds\t3", "rounds\t1"), encoding="utf-8")
    result = report(folder, document, record="single.txt")
    expect(result.returncode != 0, "a document is written from a single round")
    document.write_text("no table\n", encoding="utf-8")
    expect(report(folder, document, record="fixed.txt").returncode != 0, "a document without a place for a table succeeds")
    for damaged in ("fib30\tnonsense\n", "sample\tfib30 1\tpeer\tfib30\tgood\t1\tms\tfast\n", "what\tis\tthis\n"):
        (folder / "damaged.txt").write_text(RECORD + damaged, encoding="utf-8")
        expect(report(folder, folder / "x.html", record="damaged.txt").returncode != 0,
               f"a record with this line is read: {damaged!r}")
    (folder / "units.txt").write_text(RECORD + "sample\tswitch 2\tpeer\tswitch\tslow\t1\tms\t1\n", encoding="utf-8")
    result = report(folder, folder / "units.html", record="units.txt")
    expect(result.returncode == 1 and "it gives switch in ms, not in ns" in result.stderr, "different units are compared")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        peers = make_programs(folder)
        check_run(folder)
        check_failures(folder, peers)
        check_report(folder)
        check_documents(folder)
    if wrong == 0:
        print("report: ok")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
