"""The explorer in a real browser: in JupyterLab, in Notebook 7, and as a page.

Not run by default. It needs a Chromium and three packages that nothing else needs:

    pip install playwright notebook jupyterlab
    IDM_NB_BROWSER=$(command -v chromium) python -m pytest tests/test_browser.py
"""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

BROWSER = os.environ.get("IDM_NB_BROWSER")
if not BROWSER:
    pytest.skip("set IDM_NB_BROWSER to a Chromium to run", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
nbformat = pytest.importorskip("nbformat")

CELL = """\
from idm_nb import IteratedDiffusionMap, explore
from idm_nb.datasets import feature_example
X, y, _ = feature_example("annulus radius", 5000, random_state=0)
model = IteratedDiffusionMap(2, regressor="kernel", random_state=0).fit(X, y)
explorer = explore(model)
explorer"""


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=["lab", "notebook"])
def server(request, tmp_path_factory):
    pytest.importorskip("jupyterlab" if request.param == "lab" else "notebook")
    folder, token = tmp_path_factory.mktemp(request.param), secrets.token_hex(16)
    kernel = dict(name="python3", display_name="Python 3", language="python")
    cell = nbformat.v4.new_code_cell(CELL)
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata=dict(kernelspec=kernel))
    nbformat.write(notebook, folder / "explorer.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    module = "jupyterlab" if request.param == "lab" else "notebook"
    options = f"--no-browser --allow-root --ServerApp.ip=127.0.0.1 --ServerApp.port={port}".split()
    options += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    command = [sys.executable, "-m", module, *options]
    with open(folder / "log.txt", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{url}/api/status?token={token}", timeout=2)
                break
            except OSError:
                assert process.poll() is None, (folder / "log.txt").read_text()
                time.sleep(0.5)
        path = "lab/tree" if request.param == "lab" else "notebooks"
        page, kernels = f"{path}/explorer.ipynb", "api/kernels"
        yield request.param, *(f"{url}/{name}?token={token}" for name in (page, kernels))
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:  # on a busy machine
            process.kill()


def kernel_is_ready(address):
    "Wait until the page is connected to a kernel that waits for work: the page shows it too early."
    kernels = []
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                kernels = json.load(answer)
        except OSError:  # the server cannot say while a kernel is being started
            pass
        if any(k["connections"] and k["execution_state"] == "idle" for k in kernels):
            return
        time.sleep(0.25)
    raise AssertionError(f"no kernel became ready: {kernels}")


def run_cell(page, cell):
    "Run the first cell; press again only if the page has not taken the keys."
    prompt = page.locator(".jp-InputArea-prompt").first
    for _ in range(10):
        cell.click()
        cell.press("Control+Enter")  # runs, and stays: a second press is harmless
        for _ in range(20):
            if re.search(r"[\d*]", prompt.inner_text()):
                return
            page.wait_for_timeout(100)
    raise AssertionError("the page did not run the cell")


def status(page):
    found = page.locator(".widget-html-content", has_text="Iteration")
    found.first.wait_for(timeout=180_000)
    return found.first.inner_text()


def moved(page, before):
    "The sentence after it has changed."
    for _ in range(1000):
        if (now := status(page)) != before:
            return now
        page.wait_for_timeout(20)
    raise AssertionError(f"no answer in the browser; the sentence is still {before!r}")


def key(page, label, name):
    page.locator(".widget-slider", has_text=label).locator(".noUi-handle").first.press(name)


def test_explorer_in_jupyter(chromium, server):
    name, address, kernels = server
    page = chromium.new_page(viewport=dict(width=1400, height=1000))
    page.goto(address)
    cell = page.locator(".jp-CodeCell .cm-content").first
    cell.wait_for(timeout=120_000)
    kernel_is_ready(kernels)
    errors = []  # from here on: Notebook 7 has one of its own while it starts
    page.on("pageerror", lambda error: errors.append(str(error)))
    run_cell(page, cell)
    first = status(page)
    assert first.startswith("Iteration 1 of 2")
    page.wait_for_timeout(1500)
    start = time.perf_counter()
    key(page, "iteration", "PageUp")  # Notebook 7 keeps the arrow keys for itself
    second = moved(page, first)
    print(f"{name}: key to sentence in {time.perf_counter() - start:.2f} s")
    assert second.startswith("Iteration 2 of 2")
    page.wait_for_timeout(1500)
    before = status(page)
    key(page, "tau", "PageDown")
    assert "tau = 0.95" not in moved(page, before)
    assert not errors, errors
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 420])
def test_page_without_python(chromium, tmp_path, scheme, width):
    from idm_nb import IteratedDiffusionMap, save_explorer
    from idm_nb.datasets import feature_example

    X, y, _ = feature_example("torus phi", 400, random_state=0)
    model = IteratedDiffusionMap(2, random_state=0).fit(X, y)
    save_explorer(model, tmp_path / "torus.html", title="A torus")
    page = chromium.new_page(viewport=dict(width=width, height=900), color_scheme=scheme)
    errors, wanted = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: wanted.append(request.url))
    page.goto((tmp_path / "torus.html").as_uri())
    sentence = lambda: page.locator("[role=status]").inner_text()
    told, step = sentence(), page.get_by_role("slider", name="from the data to the map")
    assert told.startswith("Among the 20 rows") and step.input_value() == "2"
    canvas = page.locator("canvas.cloud")
    picture = canvas.screenshot()
    step.focus()
    step.press("Home")
    assert "the data" in page.locator("label", has_text="from the data").inner_text()
    assert canvas.screenshot() != picture
    box = canvas.bounding_box()
    middle = dict(x=box["width"] / 2 - box["height"] / 3, y=box["height"] / 2)
    canvas.click(position=middle)
    assert sentence() != told
    picture = canvas.screenshot()
    canvas.focus()
    canvas.press("ArrowLeft")
    assert canvas.screenshot() != picture
    canvas.press("ArrowRight")
    page.get_by_role("combobox", name="colour").select_option("column 2")
    ends = [f"{end(X[:, 2]):.3g}" for end in (min, max)]
    assert page.locator(".scale").inner_text().split() == ends
    row = page.get_by_role("combobox", name="row").input_value()  # that the click has chosen
    assert row in page.locator(".panel td").first.inner_text() and row in sentence()
    page.get_by_role("combobox", name="row").fill("row 17")
    page.keyboard.press("Enter")
    assert "nearest to row 17 in" in sentence()
    canvas.hover(position=dict(x=1, y=1))  # no row is drawn in the corner
    assert page.locator("figcaption").inner_text().startswith("On the map")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert not errors and len(wanted) == 1, (errors, wanted)
    page.close()
