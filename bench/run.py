"""Measure the package beside others and beside the machine; write `bench/RESULTS.md` and `bench/results.json`.

    python bench/run.py [PART ...] [--rounds 3]

Parts: limits map plain large first many pairs threads start demo stages; all by default. What was measured by an earlier run stays in
`results.json` until its part is measured again, so that the long parts can be run one by one. Times are processor times of
one thread, medians over rounds in which the competitors take turns. On a busy machine only their ratios mean something.
A package that is missing is skipped.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distributions
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
ONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
PROCESS = {**os.environ, "PYTHONPATH": str(HERE.parent)}


def spent(function, *args):
    "Processor time of a call, and what it returns."
    start = time.process_time()
    found = function(*args)
    return time.process_time() - start, found


def in_new_process(code, **environment):
    "What a piece of code prints as JSON in a process of its own, with its processor time and peak memory."
    code += "\nimport json, resource; use = resource.getrusage(resource.RUSAGE_SELF)"
    code += "\nfound |= dict(process=use.ru_utime + use.ru_stime, gigabytes=use.ru_maxrss / 2**20)"
    code += "\nprint(json.dumps(found))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**PROCESS, **ONE, **environment},
    )
    return json.loads(done.stdout.splitlines()[-1])


# the machine


def limits(rounds):
    "Rates of one core: matrix products, and reading memory."
    square, long = np.random.default_rng(0).normal(size=(1500, 1500)), np.ones(2**24)
    product = median(spent(lambda: square @ square)[0] for _ in range(rounds))
    reading = median(spent(np.add, long, long, np.empty_like(long))[0] for _ in range(rounds))
    return {
        "gflops": 2 * 1500**3 / product / 1e9,
        "gigabytes_per_second": 3 * long.nbytes / reading / 1e9,
    }


# the map beside supervised UMAP


def map_beside_umap(rounds, sizes=(3000, 10000, 30000), largest=3000):
    "Fit and transform of 500 new rows of the annulus, beside supervised UMAP; growth; peak memory."
    from iterated_map import measure, run_map, run_umap

    found = {}
    for n in sizes:
        runners = {"map": run_map, **({"UMAP": run_umap} if n <= largest else {})}
        found[n] = measure("annulus radius", n, rounds, runners, warm=n > largest)
        code = "from idm_nb import IteratedDiffusionMap\n"
        code += "from idm_nb.datasets import feature_example\n"
        code += f"X, y, _ = feature_example('annulus radius', {n}, random_state=0)\n"
        code += "IteratedDiffusionMap(random_state=0).fit(X, y); found = {}"
        found[n]["map"]["gigabytes"] = in_new_process(code)["gigabytes"]
    return found


# the plain map beside its peers


def plain(rounds, sizes=(2000, 5000, 20000)):
    "`DiffusionMap` of a torus with 20 pairs, beside its peers."
    from diffusion_map import available, compare, stages

    from idm_nb.datasets import Torus

    peers, found = available(Torus().sample(500, random_state=0).points), {}
    for n in sizes:
        points = Torus().sample(n, random_state=0).points
        found[n] = {"peers": compare(points, rounds, peers)}
        found[n]["stages"], found[n]["eigsh"], found[n]["difference"] = stages(points)
    return found


def large(rounds):
    "The same with 100000 points."
    return plain(rounds, sizes=(100000,))


def first(rounds, n=5000):
    "The same with 5000 points in a new process: its processor time from start to end, imports included."
    from diffusion_map import available, new_process

    from idm_nb.datasets import Torus

    points = Torus().sample(n, random_state=0).points
    peers = available(points[:500])
    runs = [
        {name: new_process(name, points)["process"] for name in peers} for _ in range(rounds + 1)
    ]
    return {name: median(run[name] for run in runs[1:]) for name in peers}  # the first fills caches


# scale


MANY = """
import time, tempfile, pathlib, numpy as np
from idm_nb import IteratedDiffusionMap, in_parts
from idm_nb.datasets import feature_example
X, y, _ = feature_example({name!r}, 20000, random_state=0)
model = IteratedDiffusionMap(landmarks=10000, random_state=0)
start = time.process_time(); model.fit(X, y); fit = time.process_time() - start
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    rows = np.lib.format.open_memmap(folder / "X.npy", "w+", float, ({count}, X.shape[1]))
    for k in range(0, {count}, 50000):
        rows[k : k + 50000] = feature_example({name!r}, 50000, random_state=1 + k)[0][: {count} - k]
    rows.flush(); del rows
    start = time.process_time()
    in_parts(model.transform, folder / "X.npy", folder / "z.npy")
    found = dict(fit=fit, place=time.process_time() - start, rows={count})
"""
NEAR = """
import numpy as np
from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example
from idm_nb.diffusion import neighbor_recall
X, y, _ = feature_example({name!r}, 21000, random_state=0)
y, found = y.reshape(len(X), -1), {{}}
for landmarks in (None, 10000, 2000):
    model = IteratedDiffusionMap(landmarks=landmarks, random_state=0).fit(X[:20000], y[:20000])
    places = model.transform(X[:20000]), y[:20000], model.transform(X[20000:]), y[20000:]
    found[str(landmarks)] = neighbor_recall(*places, 100)
"""


def many(rounds, name="annulus radius", count=1_000_000):
    "A million rows placed by a model of 10000 landmarks, and the recall that landmarks keep."
    return {
        name: {
            "placed": in_new_process(MANY.format(name=name, count=count)),
            "recall": in_new_process(NEAR.format(name=name)),
        }
    }


PAIRS_CODE = """
import time, numpy as np
from idm_nb.datasets import Torus
from idm_nb.diffusion import KernelSum
from idm_nb.diffusion.eigenpairs import leading_eigenpairs
from idm_nb.diffusion.numerics import RadiusGraph
from idm_nb.diffusion.operator import DiffusionOperator
points = Torus().sample(20000, random_state=0).points
test = KernelSum(points)
graph = RadiusGraph(points, test.kernel.radius(test.epsilon))
kernel = graph.matrix(lambda squares: test.kernel(squares / test.epsilon))
A = DiffusionOperator(kernel, test.epsilon, keep_self=test.keep_self).symmetric
start = time.process_time()
values, vectors = leading_eigenpairs(A, 2000, random_state=0)
found = dict(seconds=time.process_time() - start)
found["residual"] = max(float(np.linalg.norm(A @ vectors[:, k : k + 100] - vectors[:, k : k + 100] * values[k : k + 100],
                              axis=0).max()) for k in range(0, 2000, 100))
"""


def pairs(rounds):
    "2000 eigenpairs of 20000 points."
    return in_new_process(PAIRS_CODE)


# small tables, and the start


SMALL = """
import time, numpy as np
from threadpoolctl import threadpool_limits
from idm_nb import IteratedDiffusionMap
rng = np.random.default_rng(0)
X = rng.normal(size=(180, 100)); y = X[:, 0] + 0.5 * X[:, 1] ** 2
found = {"1": [], "2": []}
for turn in range(%d):
    for threads in (1, 2):
        with threadpool_limits(threads):
            start = time.process_time()
            IteratedDiffusionMap(random_state=0).fit(X, y)
            found[str(threads)].append(time.process_time() - start)
"""


def threads(rounds):
    "Processor time of a fit of 180 rows and 100 columns with one thread and with two."
    two = dict.fromkeys(ONE, "2")
    found = in_new_process(SMALL % (rounds + 1), **two)
    return {key: median(found[key][1:]) for key in "12"}


FIRST = """
import time
start = time.perf_counter(); import idm_nb; imported = time.perf_counter() - start
X, y, _ = idm_nb.datasets.feature_example("annulus radius", 1000, random_state=0)
seconds = []
for _ in range(2):
    start = time.process_time()
    idm_nb.IteratedDiffusionMap(random_state=0).fit(X, y)
    seconds.append(time.process_time() - start)
found = dict(imported=imported, first=seconds[0], second=seconds[1])
"""


def start(rounds):
    "Import, the first fit after installation, and the first and second fit of a new process."
    with tempfile.TemporaryDirectory() as cache:
        new = in_new_process(FIRST, PYTHONPYCACHEPREFIX=cache, NUMBA_CACHE_DIR=cache)
    later = [in_new_process(FIRST) for _ in range(rounds)]
    middle = {key: median(found[key] for found in later) for key in later[0]}
    return {"after installation": new, "new process": middle}


def demo(rounds):
    "Processor and clock time of `idm-nb demo digits`, one run."
    with tempfile.TemporaryDirectory() as folder:
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "idm_nb",
                "demo",
                "digits",
                "--quiet",
                "--out",
                folder + "/found",
            ],
            check=True,
            capture_output=True,
            env=PROCESS,
        )
        clock, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "clock": clock,
    }


# the main stages of a fit beside the limits


def stages(rounds, n=10000):
    "Floating-point operations and bytes of the stages that bound a fit of `n` rows, beside what they took."
    from scipy.linalg import eigh

    from idm_nb.datasets import Torus
    from idm_nb.diffusion import NeighborGraph
    from idm_nb.regression.kernel import KernelFit

    rng, found = np.random.default_rng(0), {}
    few, m = rng.normal(size=(400, 400)), 1000
    few = few @ few.T
    X, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    rows = np.sort(rng.permutation(n)[:m])
    one = np.ones(n)
    # values and vectors of a symmetric matrix of K rows: 9 K^3 (Golub and Van Loan, section 8.3)
    found["eigh of 400 rows"] = {
        "gflop": 9 * 400**3 / 1e9,
        "gigabytes": 400 * 400 * 8 * 3 / 1e9,
        "calls": [lambda: eigh(few, driver="evd")],
    }
    # two triangular solves and a product of M^2 N each, and the kernel M N (m + 20)
    found["landmark regression"] = {
        "gflop": (3 * m * m * n + 25 * m * n) / 1e9,
        "gigabytes": 8 * m * n * 10 / 1e9,
        "calls": [lambda: KernelFit(X, y, None, one, 1.0, 1e-3, landmarks=rows)],
    }
    torus = Torus().sample(n, random_state=0).points
    graph = NeighborGraph(torus, 64)
    edges = len(graph.indices)
    found["neighbour graph"] = {
        "gflop": 8 * edges * np.log2(n) / 1e9,
        "gigabytes": 60 * edges / 1e9,
        "calls": [lambda: NeighborGraph(torus, 64)],
    }
    import scipy.sparse as sp

    matrix, vector = sp.csr_matrix((np.ones(edges), graph.indices, graph.indptr)), np.ones(n)
    found["sparse product, 100 times"] = {
        "gflop": 200 * edges / 1e9,
        "gigabytes": 1200 * edges / 1e9,
        "calls": [lambda: [matrix @ vector for _ in range(100)]],
    }
    for row in found.values():
        call = row.pop("calls")[0]
        call()
        row["seconds"] = median(spent(call)[0] for _ in range(rounds))
    rates = limits(rounds)
    for row in found.values():
        row["limit"] = max(
            row["gflop"] / rates["gflops"], row["gigabytes"] / rates["gigabytes_per_second"]
        )
    return found


PARTS = {
    "limits": limits,
    "map": map_beside_umap,
    "plain": plain,
    "large": large,
    "first": first,
    "many": many,
    "pairs": pairs,
    "threads": threads,
    "start": start,
    "demo": demo,
    "stages": stages,
}


# the table


def table(head, rows):
    "Lines of a Markdown table."
    return [
        "| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)
    ] + [""]


def glance(found):
    "A few ratios of the parts that were measured: growth, and time beside peers."
    rows, total = [], lambda seconds: seconds["fit"] + seconds["transform"]
    if "map" in found:
        ours = {n: row["map"]["seconds"] for n, row in found["map"].items()}
        for stage in ("fit", "branches"):
            power = np.log(ours["30000"][stage] / ours["10000"][stage]) / np.log(3)
            rows.append([f"growth of {stage} from 10000 to 30000 rows, exponent", number(power)])
        if "UMAP" in found["map"]["3000"]:
            share = total(ours["3000"]) / total(found["map"]["3000"]["UMAP"]["seconds"])
            rows.append(["3000 rows and 500 new ones, beside supervised UMAP", number(share)])
    peers = found.get("plain", {}).get("20000", {}).get("peers", {})
    if "graphtools and eigsh" in peers:
        default = peers["idm_nb DiffusionMap"]["seconds"]
        share = default / peers["graphtools and eigsh"]["seconds"]
        rows.append(["DiffusionMap of 20000 points, beside graphtools and eigsh", number(share)])
    return ["## At a glance", "", *table(["share of time, or exponent", ""], rows)]


def page(found):
    "The page of all that was measured."
    lines = [
        "# Results",
        "",
        "Written by `python bench/run.py`. Ratios count; seconds are those of one core of a shared machine.",
        "",
        *glance(found),
    ]
    for name in PARTS:
        if name in found:
            lines += [f"## {PARTS[name].__doc__.strip().rstrip('.')}", ""] + PAGES[name](
                found[name]
            )
    return "\n".join(lines)


def number(value, digits=3):
    return f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def map_page(found):
    rows, lines = [], []
    for n, row in found.items():
        ours = row["map"]["seconds"]
        total = ours["fit"] + ours["transform"]
        rows.append(
            [
                n,
                "map",
                number(ours["fit"]),
                number(ours["transform"]),
                1,
                number(row["map"]["recall"]),
                number(row["map"]["gigabytes"]),
            ]
        )
        if "UMAP" in row:
            theirs = row["UMAP"]["seconds"]
            rows.append(
                [
                    n,
                    "supervised UMAP",
                    number(theirs["fit"]),
                    number(theirs["transform"]),
                    number((theirs["fit"] + theirs["transform"]) / total),
                    number(row["UMAP"]["recall"]),
                    "",
                ]
            )
    lines += table(
        ["rows", "", "fit, s", "500 new rows, s", "times ours", "recall", "peak, GB"], rows
    )
    sizes = list(map(int, found))
    fits = [row["map"]["seconds"]["fit"] for row in found.values()]
    for k in range(len(sizes) - 1):
        power = np.log(fits[k + 1] / fits[k]) / np.log(sizes[k + 1] / sizes[k])
        lines.append(f"Growth from {sizes[k]} to {sizes[k + 1]} rows: exponent {power:.2f}\n")
    return lines


def plain_page(found):
    rows, parts = [], []
    for n, row in found.items():
        ours = row["peers"]["idm_nb DiffusionMap"]["seconds"]
        for name, peer in row["peers"].items():
            errors = (
                f"{peer[key]:.1%}" if key in peer else "" for key in ("error", "scaled error")
            )
            rows.append([n, name, number(peer["seconds"]), number(peer["seconds"] / ours), *errors])
        seconds = *row["stages"].values(), row["eigsh"]
        parts.append([n, *map(number, seconds), f"{row['difference']:.0e}"])
    names = *next(iter(found.values()))["stages"], "(eigsh)"
    head = ["points", *names, "difference of eigenvalues from eigsh"]
    errors = ["eigenvalue error", "after one common factor"]
    return table(["points", "", "seconds", "times ours", *errors], rows) + table(head, parts)


def first_page(found):
    ours = found["idm_nb DiffusionMap"]
    rows = [[name, number(spent), number(spent / ours)] for name, spent in found.items()]
    return table(["", "seconds", "times ours"], rows)


def many_page(found):
    rows = []
    for name, row in found.items():
        placed, recall = row["placed"], row["recall"]
        rows.append(
            [
                name,
                placed["rows"],
                number(placed["rows"] / placed["place"]),
                number(placed["gigabytes"]),
                *(f"{recall[key]:.4f}" for key in ("None", "10000", "2000")),
            ]
        )
    head = [
        "",
        "rows placed",
        "rows a second",
        "peak, GB",
        "recall, all 20000 fitted",
        "10000",
        "2000 landmarks",
    ]
    return table(head, rows)


def stages_page(found):
    rows = [
        [
            name,
            *(number(row[key]) for key in ("gflop", "gigabytes", "limit", "seconds")),
            number(row["seconds"] / row["limit"]),
        ]
        for name, row in found.items()
    ]
    return table(["stage", "GFlop", "GB", "limit, s", "took, s", "times the limit"], rows)


def flat(found):
    "A table of one row."
    return table(list(found), [[number(value) for value in found.values()]])


PAGES = {
    "limits": flat,
    "map": map_page,
    "plain": plain_page,
    "large": plain_page,
    "first": first_page,
    "many": many_page,
    "pairs": flat,
    "threads": flat,
    "demo": flat,
    "stages": stages_page,
    "start": lambda found: table(
        ["", *found["new process"]],
        [[key, *map(number, row.values())] for key, row in found.items()],
    ),
}


def versions():
    "Versions of the packages that are installed."
    from idm_nb import __version__

    names = "numpy scipy scikit-learn pynndescent umap-learn pydiffmap graphtools datafold"
    known = {found.metadata["Name"].lower(): found.version for found in distributions()}
    found = {name: known[name] for name in names.split() if name in known}
    return {"python": sys.version.split()[0], "idm_nb": __version__, **found}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    kept = HERE / "results.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {sorted(unknown)[0]!r}")
    from threadpoolctl import threadpool_limits

    for name in options.parts or PARTS:
        print(name, flush=True)
        with threadpool_limits(1):
            found[name] = json.loads(json.dumps(PARTS[name](options.rounds)))
            found["versions"] = versions()
        kept.write_text(json.dumps(found, indent=1) + "\n")
    (HERE / "RESULTS.md").write_text(page(found))
    print(page(found))


if __name__ == "__main__":
    main()
