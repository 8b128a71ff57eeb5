"""No smuggling: a message that could be understood in two ways goes no further, in either direction."""

import subprocess
import threading

import harness
from harness import Backend, Proxy, answer, check, same, until

# Fields of which examples/httpd takes one only, and which mean nothing to a proxy.
NOT_OURS = (b"Range: bytes=0-\r\nRange", b"If-Range: a\r\nIf", b"-Since: a\r\nIf-", b"//%zz", b"/%00")


def requests_in_the_table(folder):
    """Each row is refused, and the backend sees nothing of it; or it goes through as one request with one framing,
    which the backend's reader checks, and the connection goes on behind it."""
    rows = [line.split() for line in subprocess.run([harness.ROWS], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
    check(len(rows) > 200, "the table is short")
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        for wanted, _, data in rows:
            check_row(proxy, backend, int(wanted), bytes.fromhex(data.decode()))
        same(backend.errors, [], "what the backend could not read")


def check_row(proxy, backend, wanted, data):
    ours = not any(mark in data for mark in NOT_OURS)
    for pieces in (len(data) + 1, 1, 7):
        before = len(backend.requests)
        wire = proxy.dial()
        try:
            for at in range(0, len(data), pieces):
                wire.send(data[at : at + pieces])
            if wanted == 200:
                wire.send(b"GET /next HTTP/1.1\r\nHost: test\r\n\r\n")
            elif lacks_body(wanted, data):  # the backend's reader takes no part of a request for one
                wire.end()
        except OSError:
            pass  # it was refused before its end
        status = first_status(wire, data)
        if wanted == 200:
            same((status, wire.message().status), (200, 200), data)
        over = wanted == 400 and ours and wire.is_over()
        passed = len(backend.requests) - before
        if wanted == 200:
            same((passed, backend.requests[-1].first), (2, "GET /next HTTP/1.1"), data)
        elif wanted == 400 and ours:
            check(status in (400, 501, 505), f"{data}: {status}")
            same(passed, 0, data)
            check(over, f"{data}: the connection goes on")
        else:
            check(status in (0, 200, 400, 405, 408, 413, 417, 431, 501, 505) and passed <= 1, f"{data}: {status}, {passed}")
        wire.close()


def lacks_body(wanted, data):
    return wanted == 413 or b"Length: 99999999" in data or (wanted == 417 and b"Length: 5" in data)


def first_status(wire, data):
    try:
        message = wire.message(bodiless=data.startswith(b"HEAD"))
        return wire.message().status if message.status == 100 else message.status
    except (EOFError, OSError):
        return 0


def heads_that_are_too_long(folder):
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        for request, status in (
            (b"GET /" + b"x" * 20000, 414),
            (b"GET / HTTP/1.1\r\nHost: test\r\nX: " + b"y" * 20000, 431),
            (b"GET / HTTP/1.1\r\nHost: test\r\n" + b"X: y\r\n" * 4000, 431),
            (b"\r\n" * 10000, 414),
        ):
            wire = proxy.dial()
            wire.send(request)
            same(wire.message().status, status, request[:40])
            wire.close()
        chunks = b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        same(proxy.ask(chunks + b"X: y\r\n" * 2000).status, 431, "trailers")
        same(proxy.ask(chunks[:-3] + b"1" + b"0" * 15 + b"\r\n").status, 413, "a chunk")
        same(proxy.ask(chunks[:-3] + b"1;" + b"x" * 300).status, 400, "a chunk's line")
        same(backend.errors, [], "what the backend could not read")


OK = b"HTTP/1.1 200 OK\r\n"
BAD_HEADS = [
    b"",
    b"garbage\r\n\r\n",
    b"\0\0\0\0\0\0\0\0\0\0\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\r\n" + OK + b"Content-Length: 0\r\n\r\n",
    b"HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 \r\n\r\n",
    b"HTTP/1.1 20\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n",
    b"HTTP/1.1 099 OK\r\n\r\n",
    b"HTTP/1.1 600 OK\r\n\r\n",
    b"HTTP/1.1 2x0 OK\r\n\r\n",
    b"HTTP/1.1  200 OK\r\n\r\n",
    b"HTTP/1.1\t200 OK\r\n\r\n",
    b"HTTP/2.0 200 OK\r\n\r\n",
    b"HTTP/1.2 200 OK\r\n\r\n",
    b"HTTP/1.10 200 OK\r\n\r\n",
    b"http/1.1 200 OK\r\n\r\n",
    b"ICY 200 OK\r\n\r\n",
    b"HTTP/1.1 200 O\0K\r\n\r\n",
    b"HTTP/1.1 200 O\rK\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    OK + b"Content-Length: 0\n\r\n",
    OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
    OK + b"Content-Length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    OK + b"Content-Length: 5, 5\r\n\r\nabcde",
    OK + b"Content-Length: -1\r\n\r\n",
    OK + b"Content-Length: +5\r\n\r\nabcde",
    OK + b"Content-Length: 0x5\r\n\r\nabcde",
    OK + b"Content-Length: 5 5\r\n\r\nabcde",
    OK + b"Content-Length:\r\n\r\n",
    OK + b"Content-Length: 18446744073709551621\r\n\r\nabcde",
    OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: identity\r\n\r\nabcde",
    OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding:\r\n\r\n",
    OK + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    OK + b"X: a\r\n\tb\r\nContent-Length: 0\r\n\r\n",
    OK + b" X: a\r\nContent-Length: 0\r\n\r\n",
    OK + b"X : a\r\nContent-Length: 0\r\n\r\n",
    OK + b": a\r\nContent-Length: 0\r\n\r\n",
    OK + b"no colon\r\nContent-Length: 0\r\n\r\n",
    OK + b"X\0: a\r\nContent-Length: 0\r\n\r\n",
    OK + b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
    OK + b"X: a\rb\r\nContent-Length: 0\r\n\r\n",
    OK + b"X: a\x7fb\r\nContent-Length: 0\r\n\r\n",
    OK + b"X: " + b"y" * 20000 + b"\r\n\r\n",
    OK + b"X: y\r\n" * 4000 + b"\r\n",
    OK + b"Content-Length: 5\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    b"HTTP/1.1 100 Continue\r\n\r\n",
]


def answers_with_malformed_heads(folder):
    said = {}

    def serve(wire):
        while True:
            path = Backend.take(wire).first.split()[1]
            wire.send(said.get(path) if path in said else answer())
            if path in said:
                return

    backend = Backend(serve)
    with Proxy(folder, backend, args=["--failures=1000000"]) as proxy:
        wire = proxy.dial()
        for i, head in enumerate(BAD_HEADS):
            said[f"/{i}"] = head
            for method in ("GET", "DELETE"):
                wire.send(f"{method} /{i} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
                got = wire.message()
                while got.status == 100:
                    got = wire.message()
                same(got.status, 502, f"{method} {i} {head[:200]!r}")
            wire.send(b"GET /well HTTP/1.1\r\nHost: test\r\n\r\n")
            same(wire.message().body, b"hello", "the next request")
        wire.close()
        until(lambda: len(proxy.lines()) == 3 * len(BAD_HEADS), "the log")
        check(all(' 502 ' in line and 'end="ok"' not in line for line in proxy.lines() if "/well" not in line), "the log")


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
BAD_BODIES = [
    CHUNKED,
    CHUNKED + b"0\r\n",
    CHUNKED + b"5\r\nabc",
    CHUNKED + b"x\r\n",
    CHUNKED + b"-1\r\n",
    CHUNKED + b"0x1\r\nx\r\n0\r\n\r\n",
    CHUNKED + b" 1\r\nx\r\n0\r\n\r\n",
    CHUNKED + b"1 \r\nx\r\n0\r\n\r\n",
    CHUNKED + b"1\nx\r\n0\r\n\r\n",
    CHUNKED + b"1\r\nxy\r\n0\r\n\r\n",
    CHUNKED + b"1\r\nx\n0\r\n\r\n",
    CHUNKED + b"1;a\0\r\nx\r\n0\r\n\r\n",
    CHUNKED + b"1;" + b"x" * 300 + b"\r\nx\r\n0\r\n\r\n",
    CHUNKED + b"10000000000000001\r\nx\r\n0\r\n\r\n",
    CHUNKED + b"ffffffffffffffff\r\nx\r\n0\r\n\r\n",
    CHUNKED + b"0\r\nX : y\r\n\r\n",
    CHUNKED + b"0\r\nX: y\r\n z\r\n\r\n",
    CHUNKED + b"0\r\n\rx",
    OK + b"Content-Length: 10\r\n\r\nabcde",
]


def answers_with_malformed_bodies(folder):
    said = []

    def serve(wire):
        Backend.take(wire)
        wire.send(said[-1])

    backend = Backend(serve)
    with Proxy(folder, backend, args=["--failures=1000000"]) as proxy:
        for data in BAD_BODIES:
            said.append(data)
            for version in (b"1.1", b"1.0"):
                wire = proxy.dial()
                wire.send(b"GET / HTTP/%s\r\nHost: test\r\n\r\n" % version)
                # By 1.1 the end of a body shows; a client of 1.0 knows only by the reset.
                cut = wire_is_cut(wire)
                check(cut, f"{data!r} by HTTP/{version} ends as if it were whole")
                wire.close()
        until(lambda: len(proxy.lines()) == 2 * len(BAD_BODIES), "the log")
        check(all(("cut" in line or "malformed" in line) for line in proxy.lines()), "the log")


def wire_is_cut(wire):
    try:
        message = wire.message()
        return message.status == 502
    except (EOFError, ConnectionResetError):
        return True


def what_is_behind_an_answer_is_not_the_next_one(folder):
    def serve(wire):
        Backend.take(wire)
        wire.send(answer(b"first") + answer(b"smuggled"))
        Backend.take(wire)
        wire.send(answer(b"second"))

    backend = Backend(serve)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        for _ in range(2):
            wire.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            same(wire.message().body, b"first", "an answer")
        wire.close()
        same(backend.connections, 2, "connections")


def what_comes_later_is_not_the_next_one(folder):
    """A second answer comes when the link waits for its next request, which is another client's."""

    def serve(wire):
        Backend.take(wire)
        wire.send(answer(b"first"))
        if wire.backend.connections == 1:
            wire.backend.go.acquire()
            wire.send(answer(b"smuggled"))
            wire.backend.sent.release()
        Backend.take(wire)
        wire.send(answer(b"second"))

    backend = Backend(serve)
    backend.go, backend.sent = threading.Semaphore(0), threading.Semaphore(0)
    with Proxy(folder, backend) as proxy:
        same(proxy.get().body, b"first", "an answer")
        until(lambda: len(proxy.lines()) == 1, "the link is idle")
        backend.go.release()
        backend.sent.acquire()
        same(proxy.get().body, b"first", "the answer to another client")
        same(backend.connections, 2, "connections")


def an_early_answer_leaves_no_part_of_a_body_behind(folder):
    """The answer comes with the last part of a body. If its link is used again, all of the body is there."""
    size = 30000

    def serve(wire):
        while True:
            head = wire.until(b"\r\n\r\n")
            if head.startswith(b"GET"):
                wire.send(answer(b"got"))
                continue
            wire.exactly(size)
            wire.backend.half.release()
            wire.backend.go.acquire()
            wire.send(answer(b"early", status=b"413 Content Too Large"))
            same(wire.exactly(size), b"x" * size, "the rest of the body")

    backend = Backend(serve)
    backend.half, backend.go = threading.Semaphore(0), threading.Semaphore(0)
    with Proxy(folder, backend, args=["--failures=1000"]) as proxy:
        for _ in range(100):
            wire = proxy.dial()
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % (2 * size) + b"x" * size)
            backend.half.acquire()
            backend.go.release()
            wire.send(b"x" * size)
            same(wire.message().status, 413, "an early answer")
            wire.close()
            same(proxy.get().body, b"got", "the next request")
        same(backend.errors, [], "errors")


def connection_lists_are_short(folder):
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        most = b"Connection: " + b", ".join(b"x-%d" % i for i in range(32)) + b"\r\n"
        same(proxy.ask(b"GET / HTTP/1.1\r\nHost: test\r\n" + most + b"\r\n").status, 200, "32 elements")
        more = most + b"Connection: x-33\r\n"
        same(proxy.ask(b"GET / HTTP/1.1\r\nHost: test\r\n" + more + b"\r\n").status, 400, "33 elements")
        same(len(backend.requests), 1, "requests at the backend")


CASES = [
    requests_in_the_table,
    heads_that_are_too_long,
    answers_with_malformed_heads,
    answers_with_malformed_bodies,
    what_is_behind_an_answer_is_not_the_next_one,
    what_comes_later_is_not_the_next_one,
    an_early_answer_leaves_no_part_of_a_body_behind,
    connection_lists_are_short,
]
