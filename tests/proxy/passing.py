"""What goes through the proxy, and how: heads and bodies in both directions."""

import threading

from harness import Backend, Proxy, answer, check, same, until

HEAD = b"Host: test\r\n"


def hop_by_hop_fields_are_removed(folder):
    def serve(wire):
        while True:
            Backend.take(wire)
            wire.send(
                answer(
                    b"x",
                    b"Connection: keep-alive, X-Gone\r\nX-Gone: 1\r\nKeep-Alive: timeout=5\r\nTrailer: X\r\nX-Stays: 2\r\n"
                    b"Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\n",
                )
            )

    backend = Backend(serve)
    with Proxy(folder, backend) as proxy:
        got = proxy.ask(
            b"GET /a?b=c HTTP/1.1\r\n" + HEAD + b"Connection: X-One ,, x-two,keep-alive\r\nCONNECTION: X-Three\r\n"
            b"x-one: 1\r\nX-Two: 2\r\nX-Three: 3\r\nX-Four: 4\r\nTE: trailers\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\n"
            b"Proxy-Connection: keep-alive\r\nProxy-Authorization: x\r\nProxy: http://evil\r\nTrailer: X\r\n\r\n"
        )
        request = backend.requests[0]
        same(request.first, "GET /a?b=c HTTP/1.1", "the request's line")
        names = {name for name, _ in request.fields}
        same(names, {"host", "x-four", "forwarded", "x-forwarded-for", "x-forwarded-proto", "via"}, "the fields")
        same(request.one("host"), "test", "the host")
        same(request.one("via"), "1.1 strand", "Via")
        same({name for name, _ in got.fields}, {"x-stays", "via", "content-length"}, "the answer's fields")


def the_client_is_named(folder):
    backend = Backend()
    claims = "Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nX-Forwarded-Proto: ftp\r\n"
    with Proxy(folder, backend) as proxy:
        others = "X-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\nX-Real-IP: 1.2.3.4\r\nX_Forwarded_For: 1.2.3.4\r\n"
        proxy.get(extra=claims + others)
        request = backend.requests[-1]
        names = {name for name, _ in request.fields}
        same(names, {"host", "forwarded", "x-forwarded-for", "x-forwarded-proto", "via"}, "the fields")
        same(request.one("forwarded"), 'for=127.0.0.1;host="test";proto=http', "Forwarded")
        same(request.one("x-forwarded-for"), "127.0.0.1", "X-Forwarded-For")
        same(request.one("x-forwarded-proto"), "http", "X-Forwarded-Proto")
    with Proxy(folder, backend, args=["--behind"]) as proxy:
        proxy.get(extra=claims)
        request = backend.requests[-1]
        same(request.one("forwarded"), 'for=1.2.3.4, for=127.0.0.1;host="test";proto=http', "Forwarded")
        same(request.one("x-forwarded-for"), "1.2.3.4, 5.6.7.8, 127.0.0.1", "X-Forwarded-For")
        same(request.one("x-forwarded-proto"), "ftp", "X-Forwarded-Proto")


def targets_that_are_urls(folder):
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        for target, sent, host in [
            ("http://other:80/x?y", "/x?y", "other:80"),
            ("http://other", "/", "other"),
            ("http://other?q", "/?q", "other"),
            ("HTTPS://other/", "/", "other"),
        ]:
            proxy.ask(f"GET {target} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            request = backend.requests[-1]
            same((request.first, request.one("host")), (f"GET {sent} HTTP/1.1", host), target)
        proxy.ask(b"OPTIONS http://other HTTP/1.1\r\nHost: test\r\n\r\n")
        same(backend.requests[-1].first, "OPTIONS * HTTP/1.1", "OPTIONS")
        same(proxy.ask(b"GET /a#b HTTP/1.1\r\nHost: test\r\n\r\n").status, 400, "a fragment")
        for method in (b"TRACE / ", b"CONNECT test:80 "):
            check(proxy.ask(method + b"HTTP/1.1\r\nHost: test\r\n\r\n").status in (400, 405), method)


def bodies_of_any_length_go_both_ways(folder):
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        for size in (0, 1, 100, 16383, 16384, 32768, 65537, 3000000):
            data = bytes(i * 7 & 255 for i in range(size))
            chunked = b"".join(
                b"%x;ext=1\r\n%s\r\n" % (len(data[at : at + 5000]), data[at : at + 5000]) for at in range(0, size, 5000)
            )
            for framing, body in (
                (b"Content-Length: %d\r\n" % size, data),
                (b"Transfer-Encoding: chunked\r\n", chunked + b"0\r\nX-Trailer: y\r\n\r\n"),
            ):
                wire = proxy.dial()
                sender = threading.Thread(target=wire.send, args=(b"POST / HTTP/1.1\r\n" + HEAD + framing + b"\r\n" + body,))
                sender.start()
                got = wire.message()
                sender.join()
                same(backend.requests[-1].body == data, True, f"{size} bytes up")
                check(not size or got.body == data, f"{size} bytes down")
                wire.send(b"GET / HTTP/1.1\r\n" + HEAD + b"\r\n")
                same(wire.message().status, 200, "the next request")
                wire.close()


def answers_in_every_framing(folder):
    data = bytes(i * 3 & 255 for i in range(100000))

    def serve(wire):
        while True:
            request = Backend.take(wire)
            path = request.first.split()[1]
            if path == "/chunks":
                wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, len(data), 777):
                    wire.send(b"%X;a=b\r\n%s\r\n" % (len(data[at : at + 777]), data[at : at + 777]))
                wire.send(b"0\r\nX-Trailer: 1\r\n\r\n")
            elif path == "/end":
                wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + data)
                return
            elif path == "/end10":
                wire.send(b"HTTP/1.0 200\r\n\r\n" + data)
                return
            elif path == "/head":
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
            elif path == "/204":
                wire.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            elif path == "/304":
                wire.send(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: x\r\n\r\n")
            elif path == "/hints":
                wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + answer(data))

    backend = Backend(serve)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        for path in ("/chunks", "/end", "/end10"):
            wire.send(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            got = wire.message()
            check(got.body == data, f"{path}: {len(got.body)} bytes")
            same(got.one("transfer-encoding"), "chunked", path)
            same(got.all("x-trailer"), [], "a trailer")
        wire.send(b"HEAD /head HTTP/1.1\r\nHost: test\r\n\r\nGET /204 HTTP/1.1\r\nHost: test\r\n\r\n")
        same(wire.message(bodiless=True).one("content-length"), "1234", "the length for HEAD")
        got = wire.message()
        same((got.status, got.all("content-length"), got.all("transfer-encoding")), (204, [], []), "204")
        wire.send(b"GET /304 HTTP/1.1\r\nHost: test\r\n\r\nGET /hints HTTP/1.1\r\nHost: test\r\n\r\n")
        got = wire.message()
        same((got.status, got.one("content-length"), got.one("etag")), (304, "77", "x"), "304")
        got = wire.message()
        same((got.status, got.one("link")), (103, "x"), "hints")
        same(wire.message().status, 102, "a second interim answer")
        check(wire.message().body == data, "the answer behind them")
        wire.close()
        for path in ("/chunks", "/end", "/hints"):  # no chunks and no interim answers for HTTP/1.0
            got = proxy.ask(f"GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".encode())
            same((got.status, got.body == data, got.all("transfer-encoding")), (200, True, []), f"{path} by HTTP/1.0")
        until(lambda: len(proxy.lines()) == 10, "lines of the log")


def expectations(folder):
    said = []

    def serve(wire):
        while True:
            request = Backend.take(wire, bodiless=True)
            said.append(request.all("expect"))
            if request.first.split()[1] == "/no":
                wire.send(answer(b"no", status=b"417 No"))
                return
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            wire.send(answer(wire.exactly(5)))

    backend = Backend(serve)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        wire.send(b"POST /yes HTTP/1.1\r\n" + HEAD + b"Expect: 100-Continue\r\nContent-Length: 5\r\n\r\n")
        same(wire.message().status, 100, "the go-ahead")
        wire.send(b"abcde")
        same(wire.message().body, b"abcde", "the body")
        wire.send(b"POST /no HTTP/1.1\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        got = wire.message()
        same((got.status, got.one("connection")), (417, "close"), "the refusal")
        check(wire.is_over(), "the connection goes on")
        wire.close()
        same(said, [["100-Continue"], ["100-continue"]], "expectations that the backend saw")
        same(proxy.ask(b"POST / HTTP/1.1\r\n" + HEAD + b"Expect: x\r\nContent-Length: 0\r\n\r\n").status, 417, "another one")


def an_answer_may_come_before_the_body_has_ended(folder):
    def serve(wire):
        Backend.take(wire, bodiless=True)
        wire.send(answer(b"enough", status=b"413 Too Large"))
        wire.is_over()

    backend = Backend(serve)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        wire.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000000\r\n\r\nabc")
        got = wire.message()
        same((got.status, got.body, got.one("connection")), (413, b"enough", "close"), "the answer")
        wire.close()


def requests_follow_each_other(folder):
    backend = Backend()
    with Proxy(folder, backend, args=["--threads=1"]) as proxy:
        wire = proxy.dial()
        wire.send(b"".join(b"POST /%d HTTP/1.1\r\n%sContent-Length: 3\r\n\r\n%03d" % (i, HEAD, i) for i in range(100)))
        for i in range(100):
            same(wire.message().body, b"%03d" % i, "an answer")
        same(backend.connections, 1, "connections to the backend")
        wire.send(b"GET / HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n")
        same(wire.message().one("connection"), "close", "the last answer")
        same(wire.read(), b"", "what is behind it")
        wire.close()


CASES = [
    hop_by_hop_fields_are_removed,
    the_client_is_named,
    targets_that_are_urls,
    bodies_of_any_length_go_both_ways,
    answers_in_every_framing,
    expectations,
    an_answer_may_come_before_the_body_has_ended,
    requests_follow_each_other,
]
