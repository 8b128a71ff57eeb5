"""usage: soak.py PROXY SECONDS

Clients and backends at the proxy, of which a tenth is cut in the middle, or says garbage, at random. Each answer is
whole and right, or a 50x, or the connection is cut. At the end nothing is lost, and descriptors and memory are what they
were after the first part of the time. The checks of every day run it for a few seconds."""

import random
import sys
import tempfile
import threading
import time

import harness
from harness import Backend, Proxy, answer, check, same, until

CLIENTS, TENTH = 40, 0.1
BLOCK = bytes(range(256)) * 400
STEADY = "/steady"  # what is answered whole in any case


def body_of(path):
    return BLOCK[: int(path.rsplit("/", 1)[1])]


def say_in_part(wire, data):
    """And then the end, or a reset."""
    wire.send(data[: random.randrange(len(data))])
    random.choice((wire.close, wire.reset))()


def serve(wire):
    while True:
        request = Backend.take(wire)
        wire.backend.requests.clear()
        path = request.first.split()[1]
        body = request.body or body_of(path)
        data = answer(body)
        if random.random() < 0.3:
            data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        if not path.startswith(STEADY) and random.random() < TENTH:
            random.choice((say_in_part, lambda to, _: to.send(b"garbage\r\n\r\n"), lambda to, _: None))(wire, data)
            return
        wire.send(data)


class Clients:
    def __init__(self, proxy):
        self.proxy, self.over, self.whole, self.failed, self.cut, self.wrong = proxy, False, 0, 0, 0, []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.over:
            wire = self.proxy.dial()
            try:
                while not self.over and self.ask(wire):
                    pass
            except (EOFError, ConnectionError, ValueError):
                with self.lock:
                    self.cut += 1
            except Exception as e:
                self.wrong.append(repr(e))
            wire.close()

    def ask(self, wire):
        """False: the connection is over."""
        size = random.choice((1, 100, 5000, 100000))
        data = b"GET /%d HTTP/1.1\r\nHost: soak\r\n\r\n" % size
        if random.random() < 0.4:
            data = b"POST /%d HTTP/1.1\r\nHost: soak\r\nContent-Length: %d\r\n\r\n%s" % (size, size, BLOCK[:size])
        if random.random() < TENTH:
            say_in_part(wire, data)
            return False
        wire.send(data)
        message = wire.message()
        with self.lock:
            self.whole += message.status == 200
            self.failed += message.status != 200
        check(message.status in (200, 502, 503, 504), f"status {message.status}")
        check(message.status != 200 or message.body == BLOCK[:size], "an answer is not the right one")
        return "close" not in message.all("connection")

    def end(self):
        self.over = True
        for thread in self.threads:
            thread.join(harness.LIMIT)
            check(not thread.is_alive(), "a client waits for ever")


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def is_sanitized():
    """Sanitizers keep memory that was freed."""
    with open(Proxy.program, "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def run(clients, seconds, answers):
    """For so long, and longer where a busy machine has not given so many answers by then."""
    end, whole = time.monotonic() + seconds, clients.whole + answers
    until(lambda: time.monotonic() >= end and clients.whole >= whole, "clients are answered", seconds + harness.LIMIT)


def soak(folder, seconds):
    backends = [Backend(serve) for _ in range(3)]
    with Proxy(folder, *backends, args=["--pool-time=1", "--failures=1000000"]) as proxy:
        while not proxy.lines():  # from then on there are those descriptors too that the first request opens
            proxy.get(f"{STEADY}/1")
        before = proxy.open_files()
        clients = Clients(proxy)
        run(clients, seconds / 3, answers=10 * CLIENTS)
        memory = resident(proxy.pid)
        run(clients, seconds - seconds / 3, answers=20 * CLIENTS)
        last = resident(proxy.pid)
        clients.end()
        same(clients.wrong, [], "what clients saw")
        until(lambda: proxy.open_files() <= before, "descriptors are given back")
        print(f"proxy: soak: {clients.whole} answers, {clients.failed} failures, {clients.cut} cut; resident {memory} KiB "
              f"after a third, {last} KiB at the end")
        check(clients.whole > clients.failed, "most answers are failures")
        check(is_sanitized() or last <= memory + memory / 3 + 8192, f"the memory has grown from {memory} to {last} KiB")
        for backend in backends:
            same(backend.errors, [], "what a backend could not read")


def a_tenth_of_all_peers_is_cut(folder):
    soak(folder, 3)


CASES = [a_tenth_of_all_peers_is_cut]

if __name__ == "__main__":
    Proxy.program = sys.argv[1]
    threading.excepthook = lambda args: None  # a thread of a backend whose peer is gone
    with tempfile.TemporaryDirectory() as place:
        soak(place, float(sys.argv[2]))
