#!/usr/bin/env python3
"""usage: bench/report.py RECORD REPORT

Makes REPORT, one HTML file that needs no other, from the record that bench/run has written. Fails if the record shows
that a program failed or printed what can't be compared. The plots need gnuplot; without it the report says so.

The fields of the record's lines are separated by tabs:

    date      TEXT
    machine   TEXT
    runtime   RUNTIME TEXT                                          version and flags
    missing   RUNTIME PACKAGE                                       the runtime is not installed
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

MORE_IS_BETTER = {"trips/s", "req/s"}
COLOURS = {"strand": "0x2a9d4a", "floor": "0x999999", "peer": "0x4878b0", "unfair": "0xc9a227"}
LINES = ["0x4878b0", "0xc9a227", "0xb04848", "0x8048b0", "0x303030", "0x48b0a8", "0xd07030"]
SHOWN = {"strand": "libstrand"}

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 1500px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border: 1px solid #ccc; padding: 3px 7px; text-align: right; white-space: nowrap; }
th { background: #f0f0f0; } td:first-child, th:first-child { text-align: left; }
td.text { text-align: left; white-space: normal; }
.first { background: #bfe8c6; } .partly { background: #e6f5d0; } .behind { background: #f8dcd4; }
.failed { background: #e05050; color: #fff; } .none { color: #999; }
.scroll { overflow-x: auto; } .least { color: #666; } sup { color: #a06000; }
img { margin: 4px; border: 1px solid #ddd; }
"""


def text(value):
    return html.escape(str(value))


def number(value):
    if value >= 1e6:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


class Values:
    """The samples of one runtime in one row."""

    def __init__(self, role):
        self.role, self.values, self.threads, self.unit = role, [], "", ""

    @property
    def median(self):
        return statistics.median(self.values)


class Record:
    def __init__(self, path):
        self.date, self.machine, self.runtimes, self.missing = "", "", {}, []
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

    def read_runtime(self, runtime, about):
        self.runtimes[runtime] = about

    def read_missing(self, runtime, package):
        self.missing.append((runtime, package))

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


class Table:
    def __init__(self, record):
        self.record = record
        self.marks = {}  # text: number
        self.first = self.partly = self.behind = 0
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

    def cell(self, runtimes, runtime, command, label=""):
        if runtime in runtimes:
            values = runtimes[runtime]
            return (f"<td>{number(values.median)} <span class=least>({number(min(values.values))})</span>"
                    f"{self.mark(runtime, command)}{label}</td>")
        return self.empty(runtime, command)

    def empty(self, runtime, command):
        if self.record.is_failed(runtime, command):
            return "<td class=failed>failed</td>"
        why = self.record.why_left_out(runtime, command)
        if why is not None:
            return f"<td class=none title='{html.escape(why, quote=True)}'>left out</td>"
        return "<td class=none>–</td>"

    def verdict(self, runtimes, command, unit):
        """The ratio to the best peer that does the same work, and to a marked one that is ahead of it."""
        if "strand" not in runtimes:
            return "<td class=none>–</td>"
        mine = runtimes["strand"].median
        others = [name for name, values in runtimes.items() if values.role == "peer" or
                  values.role == "floor" and name != "floor"]
        fair = best(runtimes, [name for name in others if not self.record.mark(name, command)], unit)
        leader = best(runtimes, others, unit)
        if leader is None:
            return "<td class=none>–</td>"
        shown = fair or leader
        times = ratio(mine, runtimes[shown].median, unit)
        label = f"{times:.2f} ({text(shown)})"
        if ratio(mine, runtimes[leader].median, unit) <= 1:
            self.first += 1
            return f"<td class=first>{label}</td>"
        if fair is None or times <= 1:
            self.partly += 1
            over = ratio(mine, runtimes[leader].median, unit)
            same = label + ", " if fair else ""
            return f"<td class=partly>{same}{over:.2f} ({text(leader)}{self.mark(leader, command)})</td>"
        self.behind += 1
        return f"<td class=behind>{label}</td>"

    def row(self, row, command, runtimes):
        mine = runtimes.get("strand")
        sample = mine or next(iter(runtimes.values()))
        floor = next((name for name, values in runtimes.items() if values.role == "floor"), None)
        over = "<td class=none>–</td>"
        if mine and floor:
            over = f"<td>{ratio(mine.median, runtimes[floor].median, sample.unit):.2f}</td>"
        cells = [f"<td>{text(row)}</td><td>{text(sample.threads)}</td><td>{text(sample.unit)}</td>"]
        label = "" if floor in (None, "floor") else " " + text(floor)
        cells.append(self.cell(runtimes, floor or "floor", command, label))
        cells.append(self.cell(runtimes, "strand", command))
        cells += [self.cell(runtimes, peer, command) for peer in self.peers]
        return "<tr>" + "".join(cells) + over + self.verdict(runtimes, command, sample.unit) + "</tr>"

    # A command none of whose programs has printed a sample still has a line.
    def lost_rows(self):
        shown = {command for _, command, _ in self.record.compared()}
        for command in dict.fromkeys(entry[1] for entry in self.record.failed):
            if command not in shown and command != "build":
                cells = "".join(self.empty(name, command) for name in ["floor", "strand"] + self.peers)
                yield f"<tr><td>{text(command)}</td><td></td><td></td>{cells}<td></td><td></td></tr>"

    def html(self):
        names = "".join(f"<th>{text(name)}</th>" for name in self.peers)
        lines = [self.row(*entry) for entry in self.record.compared()] + list(self.lost_rows())
        return (f"<div class=scroll><table><tr><th>row</th><th>threads</th><th>unit</th><th>floor</th>"
                f"<th>libstrand</th>{names}<th>by the floor</th><th>by the best peer</th></tr>\n"
                + "\n".join(lines) + "</table></div>")

    def legend(self):
        marks = "".join(f"<li>{text(why)}</li>" for why in self.marks)
        return (f"<p>A cell has the median and, in brackets, the least of all samples. A ratio above one means that "
                f"libstrand is worse. <span class=first>Green</span>: libstrand is first ({self.first} rows). "
                f"<span class=partly>Pale green</span>: it is first among the peers that do the same work, and a marked "
                f"one is ahead ({self.partly}). <span class=behind>Red</span>: a peer that does the same work is ahead "
                f"({self.behind}). Where the least of two runtimes lie closer than their medians, the rows do not "
                f"decide which one is faster.</p>" + (f"<p>Marks, for what is unfair:</p><ol>{marks}</ol>" if marks else ""))


# ---- the plots -------------------------------------------------------------------------------------------------------

def quoted(value):
    return '"' + value.replace("\\", "").replace('"', "'") + '"'


class Plots:
    def __init__(self, record):
        self.record, self.images, self.failed = record, [], False
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
            lines.append(f"{quoted(SHOWN.get(name, name))} {values.median} {min(values.values)} {max(values.values)} {colour}")
        medians = [values.median for values in runtimes.values()]
        scale = "set yrange [0:*]"
        if max(medians) > 20 * min(medians):
            least = min(min(values.values) for values in runtimes.values())
            scale = f"set logscale y\nset yrange [{least / 2}:*]"
        data = "\n".join(lines)
        return self.draw(f"{row}, {sample.threads} thread{'s' * (sample.threads != '1')}, {sample.unit}", "400,280",
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
        peers = [runtime for runtime in points if runtime not in COLOURS]
        colours = COLOURS | {peer: LINES[index % len(LINES)] for index, peer in enumerate(peers)}
        blocks = "\n".join(f"$data{index} << END\n" + "\n".join(f"{x} {y}" for x, y in sorted(points[runtime])) + "\nEND"
                           for index, runtime in enumerate(points))
        curves = ", ".join(f"$data{index} using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.5 "
                           f"linecolor rgb {colours[runtime]} title {quoted(SHOWN.get(runtime, runtime))} noenhanced"
                           for index, runtime in enumerate(points))
        every = [y for values in points.values() for _, y in values]
        scale = "set logscale y" if max(every) > 20 * min(every) > 0 else "set yrange [0:*]"
        return self.draw(f"{name}: {counts}", "640,340",
                         f"{blocks}\nset logscale x\nset xlabel {quoted(counts)} noenhanced\n"
                         f"set ylabel {quoted(unit)} noenhanced\nset grid\nset key outside right\n{scale}\n"
                         f"set offsets graph 0.03, graph 0.03\n"
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


# ---- the page --------------------------------------------------------------------------------------------------------

def lines_of(heading, rows, style):
    if not rows:
        return ""
    cells = "".join("<tr>" + "".join(f"<td class='text {style}'>{text(field)}</td>" for field in row) + "</tr>"
                    for row in rows)
    return f"<h2>{heading}</h2><table>{cells}</table>"


def page(record, table, plots):
    body = table.html()
    runtimes = sorted(record.runtimes.items(), key=lambda item: item[0] != "strand")
    missing = [(name, f"package {package or 'unknown'}") for name, package in record.missing]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>libstrand and its peers</title><style>{STYLE}</style></head><body>
<h1>libstrand and its peers</h1>
<p>{text(record.date)}. {text(record.machine)}.</p>
{lines_of("Failed", record.failed, "failed")}
<h2>Table</h2>
{body}
{table.legend()}
{lines_of("Left out", record.left_out, "")}
{lines_of("Not installed", missing, "")}
{plots.html()}
{lines_of("Versions and flags", runtimes, "")}
</body></html>
"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    record = Record(pathlib.Path(sys.argv[1]))
    plots = Plots(record)
    pathlib.Path(sys.argv[2]).write_text(page(record, Table(record), plots), encoding="utf-8")
    for runtime, command, why in record.failed:
        print(f"report: {runtime}, {command}: {why}", file=sys.stderr)
    if not record.compared():
        sys.exit("report: there is no row that a peer has")
    sys.exit(bool(record.failed or plots.failed))


if __name__ == "__main__":
    main()
