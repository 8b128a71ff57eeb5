#!/usr/bin/env python3
"""usage: bench/report.py RECORD FILE...

Writes each FILE from the record that bench/run has written. Fails if the record shows that a program failed or printed
what can't be compared.

FILE.html is the report, one file that needs no other. Its plots need gnuplot; without it the report says so.

FILE.md is a document with a line `<!-- peers: short -->` or `<!-- peers: full -->`. The table of the record replaces all
between that line and `<!-- end of peers -->`. A document is not written from a record with a failed program or of a
single round.

The fields of the record's lines are separated by tabs:

    date      TEXT
    machine   TEXT
    rounds    NUMBER                                                how often each program of a row has run
    runtime   RUNTIME TEXT                                          version and flags
    missing   RUNTIME TEXT                                          why the runtime is not measured
    failed    RUNTIME COMMAND TEXT                                  its samples are dropped
    left-out  RUNTIME COMMAND TEXT                                  the program lacks what it needs
    unfair    RUNTIME NAME TEXT                                     the mark of a program
    sample    COMMAND ROLE ROW RUNTIME THREADS UNIT VALUE           ROLE: floor, strand, variant or peer
    plot      NAME ROWS TEXT UNIT                                   a growth plot: what its parameter counts
    growth    NAME PARAMETER COMMAND ROLE ROW RUNTIME THREADS UNIT VALUE
"""
import base64
import collections
import fnmatch
import html
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

MORE_IS_BETTER = {"trips/s", "req/s", "starts/s", "reads/s"}
COLOURS = {"strand": "0x2a9d4a", "floor": "0x999999", "peer": "0x4878b0", "unfair": "0xc9a227"}
LINES = ["0x4878b0", "0xc9a227", "0xb04848", "0x8048b0", "0x303030", "0x48b0a8", "0xd07030", "0xe07ab0", "0x7a5230",
         "0x90a040", "0x60c0f0", "0xb0a0e0", "0x006060", "0xff5050"]
SHOWN = {"strand": "libstrand", "boost_fiber": "Boost.Fiber", "caf": "CAF", "cxx": "C++", "erlang": "Erlang", "go": "Go",
         "massivethreads": "MassiveThreads", "argobots": "Argobots", "openmp": "OpenMP", "tbb": "oneTBB"}

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 1500px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border: 1px solid #ccc; padding: 3px 7px; text-align: right; white-space: nowrap; }
th { background: #f0f0f0; } td:first-child, th:first-child { text-align: left; }
td.text { text-align: left; white-space: normal; }
.scroll td:first-child { position: sticky; left: 0; background: #fff; }
tr:hover td { border-bottom-color: #333; } td[title] { cursor: help; }
.first { background: #bfe8c6; } .partly { background: #e6f5d0; } .behind { background: #f8dcd4; }
.failed { background: #e05050; color: #fff; } .none { color: #999; }
.scroll { overflow-x: auto; } td.none { color: #ccc; } .least { color: #666; } sup { color: #a06000; }
img { margin: 4px; border: 1px solid #ddd; }
"""


def text(value):
    return html.escape(str(value))


def shown(runtime):
    return SHOWN.get(runtime, runtime)


def digits(value):
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def number(value):
    for least, size, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            return f"{digits(value / size)} {letter}"
    return digits(value)


class Values:
    """The samples of one runtime in one row."""

    def __init__(self, role):
        self.role, self.values, self.threads, self.unit = role, [], "", ""

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def best(self):
        return max(self.values) if self.unit in MORE_IS_BETTER else min(self.values)

    def text(self):
        """The median, and in brackets the best sample of several."""
        best = f" ({number(self.best)})" if len(self.values) > 1 else ""
        return number(self.median), best


class Record:
    def __init__(self, path):
        self.date, self.machine, self.rounds, self.runtimes, self.missing = "", "", 0, {}, []
        self.failed, self.left_out, self.unfair = [], [], {}
        self.rows = collections.defaultdict(dict)  # (row, command): runtime: Values
        self.plots, self.growth = [], collections.defaultdict(lambda: collections.defaultdict(list))
        for line_number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            kind, *fields = line.split("\t")
            reader = getattr(self, "read_" + kind.replace("-", "_"), None)
            try:
                reader(*fields)
            except (TypeError, ValueError):
                sys.exit(f"report: {path}:{line_number}: this is no line of a record: {line}")
        self.drop_wrong_units()

    def read_date(self, value):
        self.date = value

    def read_machine(self, value):
        self.machine = value

    def read_rounds(self, value):
        self.rounds = int(value)

    def read_runtime(self, runtime, about):
        self.runtimes[runtime] = about

    def read_missing(self, runtime, why):
        self.missing.append((runtime, why))

    def read_failed(self, runtime, command, why):
        self.failed.append((runtime, command, why))

    def read_left_out(self, runtime, command, why):
        self.left_out.append((runtime, command, why))

    def read_unfair(self, runtime, name, why):
        self.unfair[runtime, name] = why

    def read_sample(self, command, role, row, runtime, threads, unit, value):
        values = self.rows[row, command].setdefault(runtime, Values(role))
        values.values.append(float(value))
        values.threads, values.unit = threads, unit

    def read_plot(self, name, rows, counts, unit):
        self.plots.append((name, rows.split(), counts, unit))

    def read_growth(self, name, parameter, _command, _role, row, runtime, _threads, _unit, value):
        self.growth[name, row][runtime, int(parameter)].append(float(value))

    def drop_wrong_units(self):
        for (row, command), runtimes in self.rows.items():
            if "strand" not in runtimes:
                continue
            unit = runtimes["strand"].unit
            for runtime in [name for name, values in runtimes.items() if values.unit != unit]:
                self.failed.append((runtime, command, f"it gives {row} in {runtimes[runtime].unit}, not in {unit}"))
                del runtimes[runtime]

    def is_failed(self, runtime, command):
        return any((runtime, command) == entry[:2] for entry in self.failed)

    def why_left_out(self, runtime, command):
        return next((why for *entry, why in self.left_out if entry == [runtime, command]), None)

    def mark(self, runtime, command):
        return self.unfair.get((runtime, command.split()[0]))

    # The rows whose samples are compared: those that another runtime has too.
    def compared(self):
        return [(row, command, runtimes) for (row, command), runtimes in self.rows.items()
                if any(name != "strand" for name in runtimes) or "strand" not in runtimes]


# ---- the table -------------------------------------------------------------------------------------------------------

def ratio(mine, other, unit):
    """More than one: mine is worse."""
    return other / mine if unit in MORE_IS_BETTER else mine / other


def best(runtimes, names, unit):
    choose = max if unit in MORE_IS_BETTER else min
    return choose(names, key=lambda name: runtimes[name].median, default=None)


class Verdict:
    """How libstrand stands in a row: first; partly, where only peers with a mark are ahead; behind; none without peers.
    `ratios` has the best peer that does the same work, then a marked one that is ahead of libstrand."""

    def __init__(self, record, runtimes, command):
        self.style, self.ratios = "none", []
        mine = runtimes.get("strand")
        others = [name for name, values in runtimes.items() if values.role == "peer" or
                  values.role == "floor" and name != "floor"]
        if mine is None or not others:
            return
        marked = [name for name in others if record.mark(name, command)]
        fair = best(runtimes, [name for name in others if name not in marked], mine.unit)
        unfair = best(runtimes, marked, mine.unit)
        self.ratios = [(name, ratio(mine.median, runtimes[name].median, mine.unit)) for name in (fair, unfair) if name]
        behind = [name for name, times in self.ratios if times > 1]
        self.style = "behind" if fair in behind else "partly" if behind else "first"
        if fair and unfair not in behind:
            self.ratios = self.ratios[:1]


def rows_of_readme():
    """What each row measures, as the table of bench/README.md has it."""
    rows = {}
    readme = pathlib.Path(__file__).resolve().parent / "README.md"
    for line in readme.read_text(encoding="utf-8").splitlines() if readme.exists() else ():
        fields = [field.strip() for field in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(fields) == 5:
            for row in fields[0].replace("`", "").split():
                rows[row] = fields[2].replace("`", "")
    return rows


class Table:
    def __init__(self, record):
        self.record = record
        self.marks = {}  # text: number
        self.first = self.partly = self.behind = self.none = 0
        self.rows = rows_of_readme()
        peers = {name for _, _, runtimes in record.compared() for name, values in runtimes.items()
                 if values.role == "peer"}
        peers |= {name for name, _, _ in record.failed + record.left_out if name not in ("floor", "strand", "variant")}
        self.peers = sorted(peers)

    def mark(self, runtime, command):
        why = self.record.mark(runtime, command)
        if why is None:
            return ""
        index = self.marks.setdefault(why, len(self.marks) + 1)
        return f"<sup title='{html.escape(why, quote=True)}'>{index}</sup>"

    def cell(self, runtimes, runtime, command, label="", style=""):
        if runtime in runtimes:
            median, best = runtimes[runtime].text()
            return (f"<td class='{style}'>{median}<span class=least>{best}</span>"
                    f"{self.mark(runtime, command)}{label}</td>")
        return self.empty(runtime, command)

    def empty(self, runtime, command):
        if self.record.is_failed(runtime, command):
            return "<td class=failed>failed</td>"
        why = self.record.why_left_out(runtime, command)
        if why is not None:
            return f"<td class=none title='{html.escape(why, quote=True)}'>left out</td>"
        return "<td class=none>–</td>"

    def verdict(self, runtimes, command):
        """Whether libstrand is first, and the cell with its ratio to the best peer that does the same work and, where
        a marked one is ahead, to that."""
        verdict = Verdict(self.record, runtimes, command)
        setattr(self, verdict.style, getattr(self, verdict.style) + 1)
        ratios = ", ".join(f"{times:.2f} ({text(shown(name))}{self.mark(name, command)})" for name, times in verdict.ratios)
        return verdict.style, f"<td class={verdict.style}>{ratios or '–'}</td>"

    def row(self, row, command, runtimes):
        mine = runtimes.get("strand")
        sample = mine or next(iter(runtimes.values()))
        floor = next((name for name, values in runtimes.items() if values.role == "floor"), None)
        over = "<td class=none>–</td>"
        if mine and floor:
            over = f"<td>{ratio(mine.median, runtimes[floor].median, sample.unit):.2f}</td>"
        what = html.escape(self.rows.get(row, ""), quote=True)
        cells = [f"<td title='{what}'>{text(row)}</td><td>{text(sample.threads)}</td><td>{text(sample.unit)}</td>"]
        label = "" if floor in (None, "floor") else " " + text(shown(floor))
        style, ratios = self.verdict(runtimes, command)
        cells.append(self.cell(runtimes, "strand", command, style="" if style == "none" else style))
        cells += [ratios, over, self.cell(runtimes, floor or "floor", command, label)]
        cells += [self.cell(runtimes, peer, command) for peer in self.peers]
        return "<tr>" + "".join(cells) + "</tr>"

    # A command none of whose programs has printed a sample still has a line.
    def lost_rows(self):
        known = {command for _, command, _ in self.record.compared()}
        for command in dict.fromkeys(entry[1] for entry in self.record.failed):
            if command not in known and command != "build":
                mine, floor, *peers = (self.empty(name, command) for name in ["strand", "floor"] + self.peers)
                yield f"<tr><td>{text(command)}</td><td></td><td></td>{mine}<td></td><td></td>{floor}{''.join(peers)}</tr>"

    def html(self):
        names = "".join(f"<th>{text(shown(name))}</th>" for name in self.peers)
        lines = [self.row(*entry) for entry in self.record.compared()] + list(self.lost_rows())
        return (f"<div class=scroll><table><tr><th>row</th><th>threads</th><th>unit</th><th>libstrand</th>"
                f"<th>by the best peer</th><th>by the floor</th><th>floor</th>{names}</tr>\n"
                + "\n".join(lines) + "</table></div>")

    def legend(self):
        return (f"<p>A cell has the median and, in brackets, the best of all samples; k, M and G are thousands, millions "
                f"and billions. A ratio above one means that libstrand is worse. <span class=first>Green</span>: libstrand "
                f"is first ({self.first} rows). <span class=partly>Pale green</span>: it is first among the peers that do "
                f"the same work, and a marked one is ahead ({self.partly}). <span class=behind>Red</span>: a peer that "
                f"does the same work is ahead ({self.behind}). Where the best samples of two runtimes lie closer than "
                f"their medians, the rows do not decide which one is faster. The name of a row shows what it measures "
                f"when the pointer rests there.</p>")

    def unfair(self):
        marks = "".join(f"<li>{text(why)}</li>" for why in self.marks)
        return f"<p>Marks, for what is unfair:</p><ol>{marks}</ol>" if marks else ""


# ---- the plots -------------------------------------------------------------------------------------------------------

def quoted(value):
    return '"' + value.replace("\\", "").replace('"', "'") + '"'


class Plots:
    def __init__(self, record):
        self.record, self.failed = record, False
        # A runtime has one colour in all plots.
        self.peers = sorted({runtime for values in record.growth.values() for runtime, _ in values} - set(COLOURS))
        self.program = shutil.which("gnuplot")
        if self.program is None:
            print("report: there are no plots: gnuplot is not installed (package gnuplot-nox)", file=sys.stderr)

    def draw(self, title, size, commands):
        with tempfile.TemporaryDirectory() as folder:
            image = pathlib.Path(folder, "plot.svg")
            script = (f"set terminal svg size {size} font 'sans,11' background 'white'\nset output '{image}'\n"
                      f"set title {quoted(title)} noenhanced\n{commands}\nunset output\n")
            result = subprocess.run([self.program], input=script, text=True, capture_output=True, check=False)
            if result.returncode or not image.exists():
                print(f"report: gnuplot can't draw {title}: {result.stderr.strip()}", file=sys.stderr)
                self.failed = True
                return f"<p class=failed>The plot “{text(title)}” is missing.</p>"
            code = base64.b64encode(image.read_bytes()).decode()
            return f"<img alt='{html.escape(title, quote=True)}' src='data:image/svg+xml;base64,{code}'>"

    def bars(self, row, command, runtimes):
        lines, sample = [], next(iter(runtimes.values()))
        for name, values in sorted(runtimes.items(), key=lambda item: item[1].median):
            kind = values.role if name != "strand" else "strand"
            if self.record.mark(name, command):
                kind = "unfair"
            colour = COLOURS.get(kind, COLOURS["peer"])
            lines.append(f"{quoted(shown(name))} {values.median} {min(values.values)} {max(values.values)} {colour}")
        medians = [values.median for values in runtimes.values()]
        scale = "set yrange [0:*]"
        if max(medians) > 20 * min(medians):
            least = min(min(values.values) for values in runtimes.values())
            scale = f"set logscale y\nset yrange [{least / 2}:*]"
        data = "\n".join(lines)
        return self.draw(f"{row}, {sample.threads} thread{'s' * (sample.threads != '1')}, {sample.unit}", "350,270",
                         f"$data << END\n{data}\nEND\n{scale}\nset style fill solid\nset boxwidth 0.7\n"
                         f"set xtics rotate by -35 noenhanced\nset grid y\nset xrange [-0.6:{len(lines) - 0.4}]\n"
                         f"plot $data using 0:2:5:xtic(1) with boxes linecolor rgb variable notitle, "
                         f"'' using 0:2:3:4 with yerrorbars linecolor rgb '#222222' pointsize 0 notitle")

    def curve(self, plot):
        name, patterns, counts, unit = plot
        points = collections.defaultdict(list)
        for (plot_name, row), values in self.record.growth.items():
            if plot_name == name and any(fnmatch.fnmatchcase(row, pattern) for pattern in patterns):
                for (runtime, parameter), samples in values.items():
                    points[runtime].append((parameter, statistics.median(samples)))
        if not points:
            print(f"report: {name}: the growth plot has no samples", file=sys.stderr)
            self.failed = True
            return f"<p class=failed>{text(name)}: no program has printed a sample.</p>"
        colours = COLOURS | {peer: LINES[index % len(LINES)] for index, peer in enumerate(self.peers)}
        blocks = "\n".join(f"$data{index} << END\n" + "\n".join(f"{x} {y}" for x, y in sorted(points[runtime])) + "\nEND"
                           for index, runtime in enumerate(points))
        curves = ", ".join(f"$data{index} using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.5 "
                           f"linecolor rgb {colours[runtime]} title {quoted(shown(runtime))} noenhanced"
                           for index, runtime in enumerate(points))
        measured = sorted({x for values in points.values() for x, _ in values})
        ticks = ", ".join(f"{quoted(number(x).replace(' ', ''))} {x}" for x in measured)
        every = [y for values in points.values() for _, y in values]
        scale = "set logscale y" if max(every) > 20 * min(every) > 0 else "set yrange [0:*]"
        return self.draw(f"{name}: {counts}", "640,340",
                         f"{blocks}\nset logscale x\nset xtics ({ticks})\nset xlabel {quoted(counts)} noenhanced\n"
                         f"set ylabel {quoted(unit)} noenhanced\nset grid\nset key outside right\n{scale}\n"
                         f"set xrange [{measured[0] / 1.2}:{measured[-1] * 1.2}]\n"
                         f"plot {curves}")

    def html(self):
        if self.program is None:
            return "<p class=failed>There are no plots: gnuplot is not installed (package gnuplot-nox).</p>"
        parts = ["<h2>Rows</h2><p>Bars are medians; lines reach from the least to the most. Green: libstrand; grey: the "
                 "floor; yellow: marked as unfair. The axis is logarithmic where a row spans more than a factor of 20.</p>"]
        parts += [self.bars(*entry) for entry in self.record.compared()]
        if self.record.plots:
            parts.append("<h2>Growth</h2>")
            parts += [self.curve(plot) for plot in self.record.plots]
        return "\n".join(parts)


# ---- the tables of the documents -------------------------------------------------------------------------------------

def markdown(cells):
    return "| " + " | ".join(cells) + " |"


def setting(record):
    return f"Measured on {record.date} by `make bench-peers`, in {record.rounds} rounds: {record.machine}."


def short_table(record):
    lines = [f"{setting(record)} Medians; a ratio above one, in bold, means that libstrand is worse. A peer in italics does "
             f"not do the same work. All runtimes, with what is unfair: [figures](docs/figures.md#libstrand-and-its-peers).",
             "", markdown(["row", "threads", "libstrand", "best peer", "ratio"]), "|---|---|---|---|---|"]
    for row, command, runtimes in record.compared():
        verdict = Verdict(record, runtimes, command)
        if not verdict.ratios:
            continue
        mine = runtimes["strand"]
        names = [(f"*{shown(name)}*" if record.mark(name, command) else shown(name)) + " " + number(runtimes[name].median)
                 for name, _ in verdict.ratios]
        ratios = [f"**{times:.2f}**" if times > 1 else f"{times:.2f}" for _, times in verdict.ratios]
        lines.append(markdown([f"`{row}`", mine.threads, f"{number(mine.median)} {mine.unit}", ", ".join(names),
                               ", ".join(ratios)]))
    return lines


def full_table(record):
    table, marks = Table(record), {}

    def cell(runtimes, name, command):
        if name not in runtimes:
            return "left out" if record.why_left_out(name, command) is not None else ""
        why = record.mark(name, command)
        return "".join(runtimes[name].text()) + (f" [{marks.setdefault(why, len(marks) + 1)}]" if why else "")

    lines = [f"{setting(record)} A cell has the median and, in brackets, the best of all samples; a number in square brackets "
             f"is a mark, explained below.", "",
             markdown(["row", "threads", "unit", "libstrand", "floor"] + [shown(name) for name in table.peers]),
             "|---" * (5 + len(table.peers)) + "|"]
    for row, command, runtimes in record.compared():
        mine = runtimes.get("strand") or next(iter(runtimes.values()))
        floor = next((name for name, values in runtimes.items() if values.role == "floor"), "floor")
        lines.append(markdown([f"`{row}`", mine.threads, mine.unit, cell(runtimes, "strand", command),
                               cell(runtimes, floor, command) + ("" if floor == "floor" else " " + shown(floor))]
                              + [cell(runtimes, name, command) for name in table.peers]))
    lines += ["", "Marks, for what is unfair:", ""] + [f"{index}. {why}" for why, index in marks.items()]
    lines += ["", "Versions and flags:", ""]
    lines += [f"- {shown(name)}: {about}" for name, about in record.runtimes.items()]
    if record.missing:
        lines += ["", "Not measured:", ""] + [f"- {shown(name)}: {why}" for name, why in record.missing]
    return lines


def write_document(record, path):
    lines, tables = [], 0
    rest = iter(path.read_text(encoding="utf-8").splitlines())
    for line in rest:
        lines.append(line)
        make = {"<!-- peers: short -->": short_table, "<!-- peers: full -->": full_table}.get(line)
        if make is None:
            continue
        end = next((other for other in rest if other == "<!-- end of peers -->"), None)
        if end is None:
            sys.exit(f"report: {path}: there is no line <!-- end of peers --> after {line}")
        lines += make(record) + [end]
        tables += 1
    if not tables:
        sys.exit(f"report: {path}: there is no line <!-- peers: short --> or <!-- peers: full -->")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---- the page --------------------------------------------------------------------------------------------------------

def lines_of(heading, rows, style):
    if not rows:
        return ""
    cells = "".join("<tr>" + "".join(f"<td class='text {style}'>{text(field)}</td>" for field in row) + "</tr>"
                    for row in rows)
    return f"<h2>{heading}</h2><table>{cells}</table>"


def named(lines):
    return [(shown(runtime), *fields) for runtime, *fields in lines]


def page(record, table, plots):
    body = table.html()
    runtimes = sorted(named(record.runtimes.items()), key=lambda line: line[0] != shown("strand"))
    rounds = f"{record.rounds} rounds" if record.rounds != 1 else "One round, whose figures decide nothing"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>libstrand and its peers</title><style>{STYLE}</style></head><body>
<h1>libstrand and its peers</h1>
<p>{text(record.date)}. {text(record.machine)}. {rounds}.</p>
{lines_of("Failed", named(record.failed), "failed")}
{table.legend()}
{body}
{table.unfair()}
{lines_of("Not measured", named(record.missing), "")}
{lines_of("Left out", named(record.left_out), "")}
{plots.html()}
{lines_of("Versions and flags", runtimes, "")}
</body></html>
"""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    record, status = Record(pathlib.Path(sys.argv[1])), 0
    for runtime, command, why in record.failed:
        print(f"report: {runtime}, {command}: {why}", file=sys.stderr)
        status = 1
    if not record.compared():
        sys.exit("report: there is no row that a peer has")
    for path in map(pathlib.Path, sys.argv[2:]):
        if path.suffix == ".md":
            if record.failed or record.rounds < 2:
                sys.exit(f"report: {path} is not written from a record with a failed program or of a single round")
            write_document(record, path)
            continue
        plots = Plots(record)
        path.write_text(page(record, Table(record), plots), encoding="utf-8")
        status = status or plots.failed
    sys.exit(int(status))


if __name__ == "__main__":
    main()
