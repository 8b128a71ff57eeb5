"""Backends that are limited, chosen, found to be unwell; draining; the log."""

import os
import re
import signal
import socket
import threading

from harness import Backend, Proxy, Wire, answer, check, same, until, vacant_port

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
PATIENT = ["--answer=100000", "--wait=100000", "--drain=100000"]


def holding(release):
    """Answers each request when it may."""

    def serve(wire):
        while True:
            Backend.take(wire)
            check(release.acquire(timeout=100), "nobody lets the backend go on")
            wire.send(answer(wire.backend.name.encode()))

    return serve


def requests_wait_for_a_permit_and_no_more_than_a_few(folder):
    release = threading.Semaphore(0)
    backend = Backend(holding(release))
    with Proxy(folder, backend, args=[*PATIENT, "--active=2", "--queue=1"]) as proxy:
        busy = [proxy.dial() for _ in range(2)]
        for i, wire in enumerate(busy):
            wire.send(GET)
            until(lambda: len(backend.requests) == i + 1, "a request")
        late = []
        refused = 0
        while not refused:  # one waits, and all others are refused
            wires = [proxy.dial() for _ in range(2)]
            for wire in wires:
                wire.send(GET)
            for wire in wires:
                late.append(wire)
            refused = wait_for_refusal(wires)
        got, wire = refused
        same((got.status, got.one("retry-after")), (503, "1"), "too many")
        late.remove(wire)
        same(len(backend.requests), 2, "requests at the backend")
        late[0].close()  # it leaves the queue
        until(lambda: any("while it waited" in line or "went away" in line for line in proxy.lines()), "the log")
        waiting = proxy.dial()
        waiting.send(GET)
        release.release(3)
        for wire in (*busy, waiting):
            same(wire.message().status, 200, "an answer")
            wire.close()
        same(len(backend.requests), 3, "requests at the backend")
    with Proxy(folder, backend, args=["--active=1", "--wait=0.1"]) as proxy:
        wire = proxy.dial()
        wire.send(GET)
        until(lambda: len(backend.requests) == 4, "a request")
        same(proxy.get().status, 503, "the time to wait")
        release.release()
        same(wire.message().status, 200, "the one that had the permit")
        wire.close()


def wait_for_refusal(wires):
    import select

    ready, _, _ = select.select([wire.sock for wire in wires], [], [], 100)
    check(ready, "nobody is refused")
    wire = next(wire for wire in wires if wire.sock in ready)
    return wire.message(), wire


def requests_wait_for_any_backend(folder):
    """Each backend works on one request; a third one gets the permit that is free first, whichever that is."""
    for first in (0, 1):
        releases = [threading.Semaphore(0), threading.Semaphore(0)]
        backends = [Backend(holding(release)) for release in releases]
        with Proxy(folder, *backends, args=[*PATIENT, "--active=1"]) as proxy:
            busy = [proxy.dial() for _ in range(2)]
            for i, wire in enumerate(busy):
                wire.send(GET)
                until(lambda: sum(len(backend.requests) for backend in backends) == i + 1, "a request")
            waiting = [proxy.dial() for _ in range(2)]
            for wire in waiting:
                wire.send(GET)
            releases[first].release(3)
            for wire in waiting:
                same(wire.message().body, backends[first].name.encode(), "an answer of the free one")
                wire.close()
            releases[1 - first].release()
            for wire in busy:
                same(wire.message().status, 200, "an answer")
                wire.close()


def backends_take_turns(folder):
    backends = [Backend(lambda wire: Backend.echo(wire)) for _ in range(3)]
    with Proxy(folder, *backends) as proxy:
        wire = proxy.dial()
        for _ in range(30):
            wire.send(GET)
            same(wire.message().status, 200, "an answer")
        wire.close()
        same([len(backend.requests) for backend in backends], [10, 10, 10], "requests")
    release = threading.Semaphore(0)
    busy, free = Backend(holding(release)), Backend()
    with Proxy(folder, busy, free, args=["--balance=least", *PATIENT]) as proxy:
        wire = proxy.dial()
        wire.send(GET)
        until(lambda: busy.requests, "the first request")
        for i in range(10):
            same(proxy.get().status, 200, "an answer of the free one")
            until(lambda: len(proxy.lines()) == i + 1, "the log: the free one is free again")
        same(len(busy.requests), 1, "requests of the busy one")
        release.release(1)
        wire.message()
        wire.close()


def backends_that_fail_are_left_alone(folder):
    sock, nobody = vacant_port()
    well = Backend()
    with Proxy(folder, nobody, well, args=["--failures=2", "--down=100000"]) as proxy:
        for _ in range(10):
            same(proxy.get().status, 200, "an answer")
        until(lambda: len(proxy.lines()) == 10, "the log")
        same(sum("retries=1" in line for line in proxy.lines()), 2, "tries of the bad one")
        check("2 failures in a row" in proxy.errors(), proxy.errors())
    sock.close()
    with Proxy(folder, nobody, args=["--failures=1", "--down=100000"]) as proxy:
        same(proxy.get().status, 502, "the only one")
        well_again = Backend(port=int(nobody.rsplit(":", 1)[1]))
        same(proxy.get().status, 200, "the only one is tried all the same")
        well_again.close()


def checks_find_backends_unwell_and_well(folder):
    said = {"status": b"500 Bad"}

    def serve(wire):
        while True:
            if Backend.take(wire).first.split()[1] == "/health":
                if said["status"] == b"silence":
                    wire.to_the_end()
                wire.backend.asked += 1
                wire.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" + answer(b"", status=said["status"]))
            else:
                wire.send(answer(b"served"))

    backend = Backend(serve)
    backend.asked = 0
    args = ["--check=/health", "--check-every=0.01", "--check-time=0.5", "--rise=2", "--fall=2"]
    with Proxy(folder, backend, args=args) as proxy:
        until(lambda: "is not well" in proxy.errors(), "it is found unwell")
        got = proxy.get()
        same((got.status, got.one("retry-after")), (503, "1"), "nobody is well")
        why = "its answer has the status 500"
        for unwell, status in ((b"500 Bad", b"204 No Content"), (b"silence", b"302 Found")):
            said["status"] = unwell
            until(lambda: proxy.errors().rstrip().endswith("is not well: " + why), "it is found unwell")
            why = "a check takes too long"
            said["status"] = status
            until(lambda: proxy.errors().rstrip().endswith("is well"), "it is found well")
            same(proxy.get().body, b"served", "an answer")


def draining_finishes_requests(folder):
    release = threading.Semaphore(0)
    backend = Backend(holding(release))
    proxy = Proxy(folder, backend, args=PATIENT)
    with proxy:
        idle, half, busy = proxy.dial(), proxy.dial(), proxy.dial()
        release.release()
        idle.send(GET)
        same(idle.message().status, 200, "an answer")
        half.send(b"GET /half HTTP/1.1\r\nHo")
        busy.send(GET)
        until(lambda: len(backend.requests) == 2, "a request")
        proxy.signal(signal.SIGTERM)
        same(idle.read(), b"", "an idle connection ends")
        idle.close()
        until(lambda: not listens(proxy.port), "the listener is closed")
        half.send(b"st: test\r\n\r\n")
        until(lambda: len(backend.requests) == 3, "a request that had begun")
        release.release(2)
        for wire in (half, busy):
            got = wire.message()
            same((got.status, got.one("connection")), (200, "close"), "an answer")
            wire.close()
        figures = proxy.stop(ends=True)
        same((figures["served"], figures["cut"]), ("3", "0"), "served and cut")


def draining_ends_connections_that_have_said_nothing(folder):
    with Proxy(folder, Backend(), args=PATIENT) as proxy:
        before = proxy.dial()
        before.send(GET)
        same(before.message().status, 200, "an answer")
        proxy.signal(signal.SIGSTOP)  # what comes now is there at once when it goes on
        waiting = proxy.dial()
        proxy.signal(signal.SIGTERM)
        proxy.signal(signal.SIGCONT)
        for wire in (before, waiting):
            check(wire.is_over(), "bytes")
            wire.close()
        proxy.stop(ends=True)


def draining_answers_what_has_come(folder):
    """Requests that are in sockets when the proxy begins to drain are answered, and a body still comes."""
    release, count = threading.Semaphore(0), 10
    backend = Backend(holding(release))
    proxy = Proxy(folder, backend, args=PATIENT)
    with proxy:
        wires = [proxy.dial() for _ in range(count)]
        for wire in wires:
            wire.send(GET)
        release.release(count)
        for wire in wires:
            same(wire.message().status, 200, "an answer")
        proxy.signal(signal.SIGSTOP)
        wires += [proxy.dial() for _ in range(count)]
        for wire in wires:
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nx")
        proxy.signal(signal.SIGTERM)
        proxy.signal(signal.SIGCONT)
        until(lambda: not listens(proxy.port), "the listener is closed")
        for wire in wires:
            wire.send(b"y")
        until(lambda: len(backend.requests) == 3 * count, "requests")
        release.release(2 * count)
        for wire in wires:
            got = wire.message()
            same((got.status, got.one("connection")), (200, "close"), "an answer")
            wire.close()
        figures = proxy.stop(ends=True)
        same((figures["served"], figures["cut"]), (str(3 * count), "0"), "served and cut")


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 100).close()
        return True
    except ConnectionError:
        return False


def draining_has_a_limit(folder):
    for args, signals in ((["--drain=0.1"], 1), (["--drain=100000"], 2)):
        backend = Backend(lambda wire: (Backend.take(wire), wire.to_the_end()))
        with Proxy(folder, backend, args=["--answer=100000", *args]) as proxy:
            wire = proxy.dial()
            wire.send(GET)
            until(lambda: len(backend.requests) == 1, "a request")
            proxy.signal(signal.SIGTERM)
            if signals == 2:
                until(lambda: not listens(proxy.port), "the listener is closed")
                proxy.signal(signal.SIGTERM)
            check(wire.is_over(), "an answer")
            wire.close()
            same(proxy.stop(ends=True)["cut"], "1", "cut")
            check("no time to drain" in proxy.lines()[0], proxy.lines()[0])


def the_log_has_a_line_for_each_request(folder):
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        requests = [
            b'GET /a"b\\c\xc3\xa4 HTTP/1.1\r\nHost: test\r\n\r\n',
            b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc",
            b"garbage\r\n\r\n",
        ]
        for i, request in enumerate(requests):
            proxy.ask(request)
            until(lambda: len(proxy.lines()) == i + 1, "a line")
        lines = proxy.lines()
        form = re.compile(
            r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 127\.0\.0\.1:\d+ "(\S+) (\S+)" (\d+) bytes=(\d+) backend=(\S+) '
            r'retries=0 queued=([\d.]+) connected=([\d.]+) sent=([\d.]+) head=([\d.]+) total=([\d.]+) end="(.+)"'
        )
        got = [form.fullmatch(line) for line in lines]
        check(all(got), lines)
        same([match[1] for match in got], ["GET", "POST", "-"], "methods")
        same(got[0][2], r"/a\x22b\x5cc\xc3\xa4", "a target")
        same([match[3] for match in got], ["200", "200", "400"], "statuses")
        same((got[1][4], got[1][5], got[1][11]), ("3", backend.name, "ok"), "a line")
        for match in got[:2]:
            times = [float(time) for time in match.groups()[5:10]]
            check(times == sorted(times) and times[0] > 0, f"times {times}")
        os.rename(proxy.log_path, proxy.log_path + ".1")
        proxy.signal(signal.SIGHUP)
        until(lambda: os.path.exists(proxy.log_path), "the log is opened again")
        proxy.get()
        until(lambda: len(proxy.lines()) == 1, "a line")
        figures = dict(re.findall(r"(\w+)=(\d+)", finish(proxy)))
        same(figures["served"], "4", "served")


def an_output_that_nobody_reads_does_not_hold_up_the_end(folder):
    proxy = Proxy(folder, Backend(), args=["--log=-", "--drain=0.1"])
    output = os.open(f"/proc/{proxy.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(output, b"x" * 4096)
    except BlockingIOError:
        pass
    os.close(output)
    proxy.signal(signal.SIGTERM)
    same(proxy.process.wait(timeout=100), 0, "the exit status")
    proxy.process.stdout.close()


def finish(proxy):
    proxy.signal(signal.SIGTERM)
    out, _ = proxy.process.communicate(timeout=100)
    return out


CASES = [
    requests_wait_for_a_permit_and_no_more_than_a_few,
    requests_wait_for_any_backend,
    backends_take_turns,
    backends_that_fail_are_left_alone,
    checks_find_backends_unwell_and_well,
    draining_finishes_requests,
    draining_answers_what_has_come,
    draining_ends_connections_that_have_said_nothing,
    draining_has_a_limit,
    the_log_has_a_line_for_each_request,
    an_output_that_nobody_reads_does_not_hold_up_the_end,
]
