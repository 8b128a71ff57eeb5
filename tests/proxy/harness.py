"""What the checks of examples/proxy share: the proxy's process, backends that do what a check says, and raw clients.

Nothing here sleeps in the hope that something has happened: each wait is for a condition, and fails after LIMIT."""

import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

LIMIT = 120


class Failure(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Failure(what)


def same(got, wanted, what):
    check(got == wanted, f"{what}: {got!r} instead of {wanted!r}")


def until(condition, what, limit=LIMIT):
    end = time.monotonic() + limit
    while not condition():
        check(time.monotonic() < end, f"waited in vain: {what}")
        time.sleep(0.005)


class Wire:
    """A socket with what was read too far."""

    def __init__(self, sock):
        self.sock, self.rest = sock, b""
        sock.settimeout(LIMIT)

    def send(self, data):
        self.sock.sendall(data)

    def read(self, size=65536):
        """Bytes, or b"" at the end; a reset raises ConnectionResetError."""
        if self.rest:
            data, self.rest = self.rest[:size], self.rest[size:]
            return data
        return self.sock.recv(size)

    def sip(self):
        """Reads a little, if there is anything."""
        try:
            self.sock.recv(200000)
        except ConnectionError:
            pass
        return True

    def until(self, mark):
        data = b""
        while mark not in data:
            more = self.read()
            if not more:
                raise EOFError(data)
            data += more
        at = data.index(mark) + len(mark)
        self.rest = data[at:] + self.rest
        return data[:at]

    def exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.read(size - len(data))
            if not more:
                raise EOFError(data)
            data += more
        return data

    def to_the_end(self):
        data = b""
        while True:
            more = self.read()
            if not more:
                return data
            data += more

    def chunks(self):
        data = b""
        while True:
            size = int(self.until(b"\r\n")[:-2], 16)
            data += self.exactly(size)
            same(self.until(b"\r\n"), b"\r\n", "the end of a chunk")
            if not size:
                return data

    def message(self, bodiless=False):
        """The next request or response, by the strict rules."""
        return Message(self, self.until(b"\r\n\r\n"), bodiless)

    def end(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def is_over(self):
        """Waits for the end, however it comes. False: bytes came."""
        try:
            return self.read() == b""
        except OSError as e:
            check(not isinstance(e, socket.timeout), "the connection does not end")
            return True

    def is_cut(self):
        """Waits for the end, and whether it is one that no reader takes for a proper one: a reset."""
        try:
            while self.read():
                pass
            return False
        except ConnectionResetError:
            return True


class Message:
    def __init__(self, wire, head, bodiless):
        lines = head[:-4].split(b"\r\n")
        self.head, self.first = head, lines[0].decode("latin-1")
        self.fields = []
        for line in lines[1:]:
            match = re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", line)
            check(match, f"a malformed field {line!r}")
            self.fields.append((match[1].decode().lower(), match[2].decode("latin-1")))
        is_response = self.first.startswith("HTTP/")
        self.status = int(self.first.split()[1]) if is_response else 0
        lengths, codings = self.all("content-length"), self.all("transfer-encoding")
        check(len(lengths) + len(codings) <= 1, f"two framings in {head!r}")
        bodiless = bodiless or (is_response and (self.status < 200 or self.status in (204, 304)))
        if bodiless:
            self.body = b""
        elif codings:
            same(codings[0], "chunked", "a coding")
            self.body = wire.chunks()
        elif lengths:
            check(lengths[0].isdigit(), f"a length {lengths[0]!r}")
            self.body = wire.exactly(int(lengths[0]))
        else:
            self.body = wire.to_the_end() if is_response else b""

    def all(self, name):
        return [value for field, value in self.fields if field == name]

    def one(self, name):
        values = self.all(name)
        same(len(values), 1, f"the number of {name} in {self.head!r}")
        return values[0]


def answer(body=b"hello", extra=b"", status=b"200 OK"):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, extra, len(body), body)


class Backend:
    """Runs `serve(wire)` on a thread for each connection; the connection is closed behind it. What a check expects of
    a request is checked in the main thread: `requests` has them."""

    def __init__(self, serve=None, port=0):
        self.serve = serve or Backend.echo
        self.requests, self.connections, self.errors = [], 0, []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(1000)
        self.port = self.listener.getsockname()[1]
        self.name = f"127.0.0.1:{self.port}"
        self.wires = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            wire = Wire(sock)
            wire.backend = self
            self.wires.append(wire)
            threading.Thread(target=self.run, args=(wire,), daemon=True).start()

    def run(self, wire):
        try:
            self.serve(wire)
        except (EOFError, OSError):
            pass
        except Exception as e:
            self.errors.append(repr(e))
        finally:
            wire.close()

    @staticmethod
    def take(wire, bodiless=False):
        message = wire.message(bodiless)
        wire.backend.requests.append(message)
        return message

    @staticmethod
    def echo(wire):
        """Answers each request with its body, or with its head if it has none."""
        while True:
            request = Backend.take(wire)
            body = request.body or request.head
            head = answer(body)
            wire.send(head[: -len(body)] if request.first.startswith("HEAD") else head)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for wire in self.wires:
            wire.close()


class Proxy:
    program = None
    environment = None

    def __init__(self, folder, *backends, args=(), check_end=True, prefix=()):
        self.check_end = check_end
        self.log_path = os.path.join(folder, "log")
        self.errors_path = os.path.join(folder, "errors")
        open(self.log_path, "w").close()
        command = [*prefix, Proxy.program, "--listen=127.0.0.1:0", f"--log={self.log_path}", *args]
        for backend in backends:
            command.append("--backend=" + (backend if isinstance(backend, str) else backend.name))
        with open(self.errors_path, "w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        line = self.process.stdout.readline()
        check(line.startswith("proxy: listening on "), f"{command} said {line!r}: {open(self.errors_path).read()}")
        self.port = int(line.rsplit(":", 1)[1])
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
            self.process.wait()
        elif self.process.returncode is None:
            self.stop()

    def dial(self):
        sock = socket.create_connection(("127.0.0.1", self.port), LIMIT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(sock)

    def ask(self, request, bodiless=False):
        """One request on a connection of its own."""
        wire = self.dial()
        wire.send(request)
        message = wire.message(bodiless)
        wire.close()
        return message

    def get(self, path="/", extra=""):
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: test\r\n{extra}\r\n".encode())

    def lines(self):
        return open(self.log_path).read().splitlines()

    def errors(self):
        return open(self.errors_path).read()

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, ends=False):
        """Ends it, unless it ends already, and checks that nothing was lost. Returns the figures."""
        if not ends:
            self.signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=LIMIT)
        figures = dict(re.findall(r"(\w+)=(\d+)", out))
        errors = self.errors()
        check("Sanitizer" not in errors, errors)
        same(self.process.returncode, 0, f"the exit status ({out!r}, {errors!r})")
        same((figures["lost"], figures["live"]), ("0", "0"), "lost and live")
        lines = self.lines()
        same(len(lines), int(figures["served"]) + int(figures["cut"]), "lines of the log")
        return figures


def vacant_port():
    """A port at which nobody listens: bound, so that nobody gets it meanwhile."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock, f"127.0.0.1:{sock.getsockname()[1]}"
