"""Each test process computes on one thread: the processes share the cores. And each can be interrupted."""

import os
import signal

import pytest

# where a shell starts the tests in the background
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_terminal_summary(terminalreporter, config):
    "Keep the seconds of each test: tools/check.py runs quick ones first."
    if not hasattr(config, "cache"):  # pytest -p no:cacheprovider
        return
    passed, setup = (terminalreporter.stats.get(kind, []) for kind in ("passed", ""))
    seconds = {report.nodeid: report.duration for report in passed}
    for report in setup:
        if report.nodeid in seconds:
            seconds[report.nodeid] += report.duration
    config.cache.set("idm_nb/seconds", {**config.cache.get("idm_nb/seconds", {}), **seconds})


@pytest.hookimpl(tryfirst=True)  # tools/check.py has another order
def pytest_collection_modifyitems(items):
    "Notebooks first: the last tests are short, and all processes end together."
    items.sort(key=lambda item: "test_notebooks" not in item.nodeid)
