"""usage: run.py PROXY ROWS [CASE...]

Runs the cases of this folder against the program PROXY. ROWS prints the table of requests (rows.c)."""

import os
import sys
import tempfile
import threading
import time
import traceback

import harness


def run(case):
    with tempfile.TemporaryDirectory() as folder:
        try:
            begun = time.monotonic()
            case(folder)
            if os.environ.get("PROXY_TIMES"):
                print(f"proxy: {case.__name__}: {time.monotonic() - begun:.2f} s")
            return True
        except Exception:
            print(f"proxy: {case.__name__}:\n{traceback.format_exc()}")
            return False


def main():
    harness.Proxy.program, harness.ROWS, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    threading.excepthook = lambda args: None  # a thread of a backend whose peer is gone
    import failing
    import managing
    import passing
    import refusing
    import soak
    import speaking

    cases = [case for module in (passing, refusing, failing, managing, speaking, soak) for case in module.CASES if not names or case.__name__ in names]
    failed = [case.__name__ for case in cases if not run(case)]
    print(f"proxy: {len(cases)} cases, {len(failed)} failed {' '.join(failed)}")
    return 1 if failed or not cases else 0


sys.exit(main())
