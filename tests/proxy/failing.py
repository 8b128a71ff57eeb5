"""A backend or a client that fails affects its own request only, and a request happens once."""

import re
import select
import threading

from harness import Backend, Proxy, answer, check, same, until, vacant_port

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
LONG = "--answer=100000"


def a_backend_that_does_not_listen_or_answer(folder):
    sock, nobody = vacant_port()
    silent = Backend(lambda wire: wire.to_the_end())
    with Proxy(folder, nobody) as proxy:
        wire = proxy.dial()
        for _ in range(2):
            wire.send(GET)
            same(wire.message().status, 502, "nobody listens")
        wire.close()
    with Proxy(folder, silent, args=["--answer=0.1"]) as proxy:
        wire = proxy.dial()
        wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx")
        same(wire.message().status, 504, "no answer")
        wire.send(GET)
        same(wire.message().status, 504, "no answer on the same connection")
        wire.close()
        until(lambda: silent.connections == 2, "no retry after a time-out")
    with Proxy(folder, silent, args=["--whole=0.1", LONG]) as proxy:
        same(proxy.get().status, 504, "the whole time")
    sock.close()


def the_log_says_why_there_is_no_connection(folder):
    sock, nobody = vacant_port()
    cases = {
        "a..b:80": r"a\.\.b: the name is malformed",  # which is no question for a name server
        nobody: r"127\.0\.0\.1: 127\.0\.0\.1: Connection refused",
    }
    for backend, pattern in cases.items():
        with Proxy(folder, backend, args=["--retries=0", "--failures=1", "--connect=100"]) as proxy:
            same(proxy.get().status, 502, backend)
            until(lambda: len(proxy.lines()) == 1, "the log")
            end = proxy.lines()[0].split(' end="')[1][:-1]
            check(re.fullmatch(pattern, end), f"{backend}: {end}")
            check(f"1 failures in a row: {end}\n" in proxy.errors(), f"{backend}: {proxy.errors()}")
    sock.close()


def a_backend_that_dies(folder):
    parts = {
        "/nothing": b"",
        "/head": b"HTTP/1.1 200 OK\r\nContent-Le",
        "/length": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
        "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "/end": b"HTTP/1.1 200 OK\r\n\r\nabc",
    }

    def serve(wire):
        path, how = Backend.take(wire).first.split()[1].split("?")
        wire.send(parts[path])
        if how == "slow":
            wire.backend.go.acquire(timeout=60)
        wire.reset() if how in ("reset", "slow") else wire.close()

    backend, well = Backend(serve), Backend()
    backend.go = threading.Semaphore(0)
    with Proxy(folder, backend, args=["--retries=0", "--failures=1000"]) as proxy:
        for path, part in parts.items():
            for how in ("close", "reset", "slow"):
                wire = proxy.dial()
                wire.send(f"POST {path}?{how} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n".encode())
                if how == "slow" and part.count(b"\r\n\r\n"):
                    check(b"200 OK" in wire.until(b"\r\n\r\n"), "the head goes on at once")
                backend.go.release()
                if not part.count(b"\r\n\r\n"):
                    same(wire.message().status, 502, path)
                elif path == "/end" and how == "close":
                    same(wire.message().body, b"abc", path)
                elif path != "/end":  # a reset may overtake what came before it
                    check(wire.is_cut(), f"{path} {how} ends as if it were whole")
                wire.close()
        same(backend.errors, [], "errors")
    well.close()


def requests_that_may_be_tried_again(folder):
    def once(wire):
        """A connection serves one request, and says nothing of that."""
        request = Backend.take(wire)
        wire.send(answer(request.first.encode()))
        wire.backend.served.release()
        wire.close()

    backend = Backend(once)
    backend.served = threading.Semaphore(0)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        for i in range(20):
            wire.send(b"%s /%d HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n" % (b"GET" if i % 2 else b"PUT", i))
            check(wire.message().status == 200, "a closed link is no failure")
            backend.served.acquire()
        wire.close()
        same(len(backend.requests), 20, "requests")

    def drop(wire):
        Backend.take(wire)

    sock, nobody = vacant_port()
    dropping, well = Backend(drop), Backend()
    with Proxy(folder, dropping, well, args=["--failures=1000"]) as proxy:
        wire = proxy.dial()
        for method in (b"GET", b"PUT", b"DELETE", b"OPTIONS"):
            for _ in range(2):
                wire.send(method + b" / HTTP/1.1\r\nHost: test\r\n\r\n")
                same(wire.message().status, 200, method)
        statuses = []
        for _ in range(4):
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n")
            statuses.append(wire.message().status)
        same(sorted(statuses), [200, 200, 502, 502], "POST is not tried again")
        statuses = []
        for _ in range(4):
            wire.send(b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx")
            statuses.append(wire.message().status)
        same(sorted(statuses), [200, 200, 502, 502], "a body is not sent again")
        wire.close()
        until(lambda: len(proxy.lines()) == 16, "the log")
        check(sum("retries=1" in line for line in proxy.lines()) == 4, "retries in the log")
    with Proxy(folder, nobody, well, args=["--failures=1000"]) as proxy:
        for _ in range(4):  # no connection: nothing has happened
            got = proxy.ask(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx")
            same((got.status, got.body), (200, b"x"), "POST, when nobody listens")
    sock.close()


def links_that_the_backend_has_closed(folder):
    """All idle links are closed at once: one further try is enough, since that makes a link of its own."""
    gates = [threading.Semaphore(0), threading.Semaphore(0)]

    def serve(wire):
        while True:
            Backend.take(wire)
            holds = wire.backend.holds
            if holds:
                gates[0].acquire()
            wire.send(answer())
            if holds:
                gates[1].acquire()
                return

    backend = Backend(serve)
    backend.holds = True
    with Proxy(folder, backend, args=["--retries=1", "--failures=1"]) as proxy:
        wires = [proxy.dial() for _ in range(5)]
        for i, wire in enumerate(wires):
            wire.send(GET)
            until(lambda: len(backend.requests) == i + 1, "a request")
        gates[0].release(5)
        for wire in wires:
            same(wire.message().status, 200, "an answer")
        until(lambda: len(proxy.lines()) == 5, "the log")
        backend.holds = False
        gates[1].release(5)
        same(proxy.get().status, 200, "a request behind the links' end")
        for wire in wires:
            wire.close()


def links_that_were_reset(folder):
    """A reset is an end too: POST, which may not be tried again, gets another link."""

    def serve(wire):
        Backend.take(wire)
        wire.send(answer())
        if wire.backend.connections == 1:
            wire.backend.go.acquire()
            wire.reset()
            wire.backend.gone.release()
        Backend.take(wire)
        wire.send(answer())

    backend = Backend(serve)
    backend.go, backend.gone = threading.Semaphore(0), threading.Semaphore(0)
    with Proxy(folder, backend) as proxy:
        same(proxy.get().status, 200, "an answer")
        until(lambda: len(proxy.lines()) == 1, "the link is idle")
        backend.go.release()
        backend.gone.acquire()
        same(proxy.ask(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx").status, 200, "POST")


def a_backend_that_does_not_ask_for_the_body(folder):
    """The client waits for it by right, so it is the backend that is too slow."""
    silent = Backend(lambda wire: wire.to_the_end())
    for idle in ("0.1", "100000"):
        with Proxy(folder, silent, args=["--answer=0.5", f"--idle={idle}"]) as proxy:
            got = proxy.ask(b"POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
            same(got.status, 504, f"no answer, --idle={idle}")


def a_part_of_a_body_is_not_sent_again(folder):
    def serve(wire):
        wire.until(b"\r\n\r\n")
        wire.exactly(1)

    first, second = Backend(serve), Backend(serve)
    with Proxy(folder, first, second, args=["--failures=1000"]) as proxy:
        for _ in range(2):
            wire = proxy.dial()
            wire.send(b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nx")
            same(wire.message().status, 502, "a backend that dies in the middle of a body")
            wire.close()
        same(first.connections + second.connections, 2, "tries")


def clients_that_go_away(folder):
    gone = []

    def serve(wire):
        path = Backend.take(wire, bodiless=True).first.split()[1]
        if path == "/body":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nabc")
        if path == "/stream":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            while True:
                wire.send(b"x" * 10000)
        gone.append((path, wire.is_over()))

    backend = Backend(serve)
    with Proxy(folder, backend, args=[LONG, "--idle=100000"]) as proxy:
        files = proxy.open_files()
        for i, (path, how) in enumerate((p, h) for p in ("/head", "/body", "/upload") for h in ("close", "reset")):
            wire = proxy.dial()
            length = b"100" if path == "/upload" else b"0"
            wire.send(b"POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: %s\r\n\r\n" % (path.encode(), length))
            until(lambda: len(backend.requests) == i + 1, "a request")
            if path == "/body":
                wire.until(b"abc")
            getattr(wire, how)()
            until(lambda: len(gone) == i + 1, f"{path} {how}: the backend notices")
            same(gone[-1], (path, True), how)
        for _ in range(3):
            wire = proxy.dial()
            wire.send(b"GET /stream HTTP/1.1\r\nHost: test\r\n\r\n")
            wire.until(b"xxx")
            wire.reset()
        until(lambda: len(proxy.lines()) == 9, "the log")
        check(all("went away" in line for line in proxy.lines()), "the log")
        until(lambda: proxy.open_files() == files, "descriptors")


def clients_that_are_slow(folder):
    backend = Backend()
    with Proxy(folder, backend, args=["--head=0.1", "--idle=0.1", "--keep-alive=0.1"]) as proxy:
        wire = proxy.dial()
        wire.send(b"GET / HTTP/1.1\r\nHo")
        got = wire.message()
        same((got.status, got.one("connection")), (408, "close"), "a slow head")
        wire.close()
        wire = proxy.dial()
        wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\nabc")
        same(wire.message().status, 408, "a slow body")
        wire.close()
        wire = proxy.dial()
        wire.send(GET)
        same(wire.message().status, 200, "an answer")
        same(wire.read(), b"", "an idle connection ends")
        wire.close()


def drip(wire, byte, pause):
    """Until the other side has had enough."""
    try:
        while not select.select([wire.sock], [], [], pause)[0]:
            wire.send(byte)
    except ConnectionError:
        pass


def pour(wire):
    """A backend's answer of a gigabyte."""
    Backend.take(wire)
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    while True:
        wire.send(b"x" * 100000)


def clients_that_are_slow_on_purpose(folder):
    """Each byte comes in time, and all of them take for ever."""
    with Proxy(folder, Backend(pour), args=["--idle=1", "--rate=1000000000"]) as proxy:
        wire = proxy.dial()
        wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3000\r\n\r\n")
        drip(wire, b"x", 0.01)
        same(wire.message().status, 408, "a body in drops")
        wire.close()
        until(lambda: len(proxy.lines()) == 1, "the log")
        wire = proxy.dial()
        wire.send(GET)
        until(lambda: wire.sip() and len(proxy.lines()) == 2, "the log")
        check("too slowly" in proxy.lines()[1], proxy.lines()[1])
        wire.close()


def a_client_that_does_not_read(folder):
    with Proxy(folder, Backend(pour), args=["--idle=0.3"]) as proxy:
        wire = proxy.dial()
        wire.send(GET)
        until(lambda: len(proxy.lines()) == 1, "the log")
        check("too slowly" in proxy.lines()[0], proxy.lines()[0])
        check(wire.is_cut(), "the connection is not cut")
        wire.close()


def a_backend_that_is_slow_in_the_middle(folder):
    def serve(wire):
        path = Backend.take(wire, bodiless=True).first.split()[1]
        if path == "/down":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        wire.backend.hold.acquire(timeout=60)

    backend = Backend(serve)
    backend.hold = threading.Semaphore(0)
    with Proxy(folder, backend, args=["--idle=0.2", LONG, "--failures=1000"]) as proxy:
        wire = proxy.dial()
        wire.send(b"GET /down HTTP/1.1\r\nHost: test\r\n\r\n")
        check(wire.is_cut(), "a slow body is not cut")
        wire.close()
        wire = proxy.dial()
        size = 100000000
        wire.send(b"POST /up HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % size)

        def fill():
            try:
                for _ in range(size // 1000000):
                    wire.send(b"x" * 1000000)
            except OSError:
                pass

        sender = threading.Thread(target=fill)
        sender.start()
        same(wire.message().status, 504, "a backend that takes no body")
        wire.reset()
        sender.join()
        backend.hold.release(2)


def few_descriptors(folder):
    backend = Backend()
    limit = ["prlimit", "--nofile=60:60"]
    with Proxy(folder, backend, args=["--keep-alive=100000"], prefix=limit) as proxy:
        wires = []
        for _ in range(150):  # more than there are descriptors: the oldest idle ones make room
            wire = proxy.dial()
            wire.send(GET)
            same(wire.message().status, 200, "an answer")
            wires.append(wire)
        for wire in wires:
            wire.close()


CASES = [
    a_backend_that_does_not_listen_or_answer,
    the_log_says_why_there_is_no_connection,
    a_backend_that_dies,
    requests_that_may_be_tried_again,
    links_that_the_backend_has_closed,
    links_that_were_reset,
    a_backend_that_does_not_ask_for_the_body,
    a_part_of_a_body_is_not_sent_again,
    clients_that_go_away,
    clients_that_are_slow,
    clients_that_are_slow_on_purpose,
    a_client_that_does_not_read,
    a_backend_that_is_slow_in_the_middle,
    few_descriptors,
]
