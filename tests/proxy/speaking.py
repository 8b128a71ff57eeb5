"""WebSockets, TLS and curl."""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading

from harness import LIMIT, Backend, Proxy, Wire, answer, check, same, until

UPGRADE = b"GET /chat HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n"


def talking(wire):
    """A WebSocket that sends back what comes, and after the end "bye"."""
    Backend.take(wire)
    wire.send(SWITCH + b"early")
    while data := wire.read():
        wire.send(data)
    wire.send(b"bye")


def websockets_pass(folder):
    backend = Backend(talking)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        wire.send(UPGRADE + b"first")
        got = wire.message()
        same((got.status, got.one("upgrade").lower(), got.one("connection").lower()), (101, "websocket", "upgrade"), "101")
        same(got.one("sec-websocket-accept"), "y", "a field")
        same(wire.exactly(10), b"earlyfirst", "what came with the heads")
        same(backend.requests[0].one("upgrade"), "websocket", "the backend's head")
        data = os.urandom(1000000)
        sender = threading.Thread(target=wire.send, args=(data,))
        sender.start()
        check(wire.exactly(len(data)) == data, "what comes back differs")
        sender.join()
        wire.end()
        same(wire.to_the_end(), b"bye", "what comes after the end of one side")
        wire.close()
        until(lambda: len(proxy.lines()) == 1, "the log")
        check('" 101 ' in proxy.lines()[0] and 'end="ok"' in proxy.lines()[0], proxy.lines()[0])


def websockets_end_from_the_other_side(folder):
    def serve(wire):
        Backend.take(wire)
        wire.send(SWITCH)
        wire.end()
        wire.backend.heard = wire.to_the_end()

    backend = Backend(serve)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        wire.send(UPGRADE)
        same(wire.message().status, 101, "101")
        same(wire.read(), b"", "the end of the backend's side")
        wire.send(b"last words")
        wire.end()
        until(lambda: getattr(backend, "heard", None) == b"last words", "the client's last words")
        wire.close()

    def vanish(wire):
        Backend.take(wire)
        wire.send(SWITCH + b"x")
        wire.exactly(1)
        wire.reset()

    backend = Backend(vanish)
    with Proxy(folder, backend) as proxy:
        wire = proxy.dial()
        wire.send(UPGRADE)
        same(wire.message().status, 101, "101")
        wire.exactly(1)
        wire.send(b"x")
        check(wire.is_cut(), "a backend that vanishes ends a WebSocket as if it were whole")
        wire.close()


def silent_websockets_end(folder):
    backend = Backend(talking)
    with Proxy(folder, backend, args=["--idle=0.2"]) as proxy:
        wire = proxy.dial()
        wire.send(UPGRADE)
        same(wire.message().status, 101, "101")
        check(wire.is_cut(), "silence")
        wire.close()


def upgrades_that_do_not_pass(folder):
    backend = Backend()
    with Proxy(folder, backend) as proxy:
        for fields in (
            "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n",
            "Upgrade: websocket\r\n",
            "Connection: upgrade\r\nUpgrade: h2c, websocket\r\n",
            "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
        ):
            proxy.ask(f"GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\nx".encode())
            same(backend.requests[-1].all("upgrade"), [], fields)
    refusing = Backend()
    with Proxy(folder, refusing) as proxy:
        wire = proxy.dial()
        for _ in range(2):  # the backend does not want it: a request like any other
            wire.send(UPGRADE)
            same(wire.message().status, 200, "an answer without an upgrade")
        wire.close()


# ---- TLS ----


def certificate(folder, name):
    path = os.path.join(folder, name)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", path + ".key", "-out", path + ".pem", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"],
        check=True, stderr=subprocess.DEVNULL,
    )
    return path + ".pem", path + ".key"


def speak(proxy, trust, server_name="localhost"):
    context = ssl.create_default_context(cafile=trust)
    context.set_alpn_protocols(["h2", "http/1.1"])
    context.suppress_ragged_eofs = False
    sock = socket.create_connection(("127.0.0.1", proxy.port), LIMIT)
    return Wire(context.wrap_socket(sock, server_hostname=server_name, suppress_ragged_eofs=False))


def tls_in_front(folder):
    def serve(wire):
        while True:
            request = Backend.take(wire)
            if request.first.split()[1] == "/cut":
                wire.send(b"HTTP/1.1 200 OK\r\n\r\nabc")
                wire.reset()
                return
            wire.send(answer(request.body or b"hello"))

    backend = Backend(serve)
    pem, key = certificate(folder, "first")
    other, other_key = certificate(folder, "second")
    with Proxy(folder, backend, args=[f"--certificate={pem}", f"--key={key}", "--handshake=0.2"]) as proxy:
        wire = speak(proxy, pem)
        same(wire.sock.selected_alpn_protocol(), "http/1.1", "the protocol")
        data = os.urandom(500000)
        wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        check(wire.message().body == data, "a body by TLS")
        same(backend.requests[-1].one("x-forwarded-proto"), "https", "the protocol that the backend sees")
        wire.send(b"GET /cut HTTP/1.0\r\n\r\n")
        try:
            wire.to_the_end()
            check(False, "a cut connection ends as if it were whole")
        except (ssl.SSLError, OSError):
            pass
        wire.close()
        plain = proxy.dial()
        plain.send(b"GET / HTTP/1.1\r\n\r\n")
        check(plain.is_over() or True, "")
        plain.close()
        silent = proxy.dial()
        check(silent.is_over(), "a handshake has no limit")
        silent.close()
        before = speak(proxy, pem)
        shutil.copy(other, pem)
        shutil.copy(other_key, key)
        proxy.signal(signal.SIGHUP)
        until(lambda: is_served_by(proxy, other), "the new certificate")
        before.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        same(before.message().status, 200, "a connection from before")
        before.close()
        open(pem, "w").close()
        proxy.signal(signal.SIGHUP)
        until(lambda: "stays as it was" in proxy.errors(), "a bad certificate")
        check(is_served_by(proxy, other), "the certificate stays")


def is_served_by(proxy, trust):
    try:
        wire = speak(proxy, trust)
    except ssl.SSLError:
        return False
    wire.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
    status = wire.message().status
    wire.close()
    return status == 200


class ByHand:
    """A client of TLS that sends its bytes in the parts that a test wants."""

    def __init__(self, proxy, trust):
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=trust)
        self.tls = context.wrap_bio(self.into, self.out, server_hostname="localhost")
        self.sock = socket.create_connection(("127.0.0.1", proxy.port), LIMIT)
        self.call(self.tls.do_handshake)
        self.sock.sendall(self.out.read())

    def call(self, step, *args):
        while True:
            try:
                return step(*args)
            except ssl.SSLWantReadError:
                self.sock.sendall(self.out.read())
                got = self.sock.recv(65536)
                check(got, "the connection ends without an end of TLS")
                self.into.write(got)

    def record(self, data):
        self.tls.write(data)
        return self.out.read()

    def read(self):
        return self.call(self.tls.read, 65536)


def tls_requests_in_parts_are_answered_while_draining(folder):
    get = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
    pem, key = certificate(folder, "parts")
    args = [f"--certificate={pem}", f"--key={key}", "--drain=100000", "--keep-alive=100000", "--head=100000"]
    with Proxy(folder, Backend(), args=args) as proxy:
        half, idle = ByHand(proxy, pem), ByHand(proxy, pem)
        for client in (half, idle):
            client.sock.sendall(client.record(get))
            check(client.read().startswith(b"HTTP/1.1 200 "), "the first answer")
        record = half.record(get)
        half.sock.sendall(record[:20])
        proxy.signal(signal.SIGTERM)
        same(idle.read(), b"", "an idle connection ends")
        half.sock.sendall(record[20:])
        got = half.read()
        check(got.startswith(b"HTTP/1.1 200 ") and b"close" in got, f"the second answer: {got}")
        for client in (half, idle):
            client.sock.close()
        proxy.stop(ends=True)


def websockets_pass_through_tls(folder):
    backend = Backend(talking)
    pem, key = certificate(folder, "own")
    with Proxy(folder, backend, args=[f"--certificate={pem}", f"--key={key}"]) as proxy:
        wire = speak(proxy, pem)
        wire.send(UPGRADE)
        same(wire.message().status, 101, "101")
        wire.send(b"and")
        same(wire.exactly(8), b"earlyand", "what comes back")
        wire.close()


def curl_is_content(folder):
    if not shutil.which("curl"):
        print("proxy: skipped: curl is not installed")
        return
    backend = Backend()
    pem, key = certificate(folder, "own")
    data = os.path.join(folder, "data")
    with open(data, "wb") as file:
        file.write(os.urandom(300000))
    with Proxy(folder, backend, args=[f"--certificate={pem}", f"--key={key}"]) as proxy:
        base = ["curl", "-sS", "--max-time", str(LIMIT), "--cacert", pem, "--resolve", f"localhost:{proxy.port}:127.0.0.1"]
        url = f"https://localhost:{proxy.port}/"
        for arguments in (
            ["--data-binary", "@" + data],
            ["-H", "Transfer-Encoding: chunked", "--data-binary", "@" + data],
            ["-T", data, "-H", "Expect:"],
        ):
            got = subprocess.run([*base, *arguments, url], stdout=subprocess.PIPE, check=True).stdout
            check(got == open(data, "rb").read(), f"{arguments}: {len(got)} bytes")
        subprocess.run([*base, "--fail", "-I", url, url, url], stdout=subprocess.DEVNULL, check=True)


CASES = [
    websockets_pass,
    websockets_end_from_the_other_side,
    silent_websockets_end,
    upgrades_that_do_not_pass,
    tls_in_front,
    tls_requests_in_parts_are_answered_while_draining,
    websockets_pass_through_tls,
    curl_is_content,
]
