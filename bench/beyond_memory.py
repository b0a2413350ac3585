#!/usr/bin/env python3
"""Scale: a table that is fitted and placed in parts, and how the fit grows with rows, columns and processes.

    python bench/beyond_memory.py [PART ...] [--rows 10000000] [--landmarks 3000] [--compare 30000] [--kill] [--json FILE]

Parts: table growth columns jobs; the first by default. What was measured by an earlier run stays in FILE until its
part is measured again.

The table: 20 columns, a torus and a circle turned in 20 dimensions, sampled unevenly, with noise in all columns and in
the feature (x of the torus, two branches). Written once, a million rows a file. Then: the fit to a sample of it, drawn by two
local workers of dask, placing of all rows (values and coordinates, to Parquet), and both on 20000 rows that are in no
file. With --kill a worker is killed while rows are placed. R2 is that of the feature without its noise; recall that of
50 neighbours in the feature on the same side, among 10000 rows; coverage the share of noisy features within 1.96
standard errors. Beside it a fit of --compare rows of the same table in memory.

growth, columns, jobs: fits of tables of the same kind in processes of their own, one thread; see their functions.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from idm_nb import IteratedDiffusionMap
from idm_nb.diffusion import recall_by_component

HERE = Path(__file__).resolve().parent
COLUMNS, PER_FILE, PER_GROUP = 20, 10**6, 50_000
NAMES = [f"x{k}" for k in range(COLUMNS)]


def turned(columns):
    "A rotation of so many columns."
    return np.linalg.qr(np.random.default_rng(7).normal(size=(columns, columns)))[0]


TURN = turned(COLUMNS)


def table(n, seed, columns=COLUMNS):
    "Rows `(n, 20)`, features `(n,)` with noise and without, and the side of the torus (0 where there is one)."
    turn = TURN if columns == COLUMNS else turned(columns)
    rng = np.random.default_rng(seed)
    theta, phi, psi = rng.uniform(0, 2 * np.pi, (3, n))
    theta, phi = theta + 0.8 * np.sin(theta), phi + 0.5 * np.sin(phi)
    ring, places = 2 + np.cos(theta), np.zeros((n, columns))
    shown = ring * np.cos(phi), ring * np.sin(phi), np.sin(theta), np.cos(psi), np.sin(psi)
    places[:, :5] = np.stack(shown, axis=1)
    exact = places[:, 0].copy()
    side = np.where(np.abs(exact) < 1, np.sign(places[:, 1]), 0)
    X = (places + 0.05 * rng.normal(size=places.shape)) @ turn
    return X, exact + 0.1 * rng.normal(size=n), exact, side


def write_table(folder, n):
    "Parquet files of the table, in parts."
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n, PER_FILE)):
        X, y, _, _ = table(min(PER_FILE, n - start), 1000 + number)
        frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
        frame.to_parquet(folder / f"part.{number:04d}.parquet", row_group_size=PER_GROUP)


def judged(model):
    "R2, recall and coverage on rows that are in no file."
    X, y, exact, side = table(20_000, 1)
    values, errors = model.predict(X, return_std=True)
    places, old = model.transform(X), np.arange(20_000) < 10_000
    asked = ~old & (np.abs(exact) < 0.8) & (np.cumsum(~old) < 3000)
    known, new = ((a[which] for a in (places, exact[:, None], side)) for which in (old, asked))
    return dict(
        r2=1 - np.mean((values - exact) ** 2) / exact.var(),
        r2_noisy=1 - np.mean((values - y) ** 2) / y.var(),
        said=model.verdict_.r2,
        recall=recall_by_component(*known, *new, 50),
        coverage=np.mean(np.abs(values - y) < 1.96 * errors),
        branches=model.branches_.n_branches,
    )


def place_part(rows, model):
    "Predicted value and coordinates of some rows, each computed once."
    import pandas as pd

    placed = model.place(rows)
    found = np.hstack([placed.values, placed.coordinates])
    names = ["value", *(f"c{k}" for k in range(found.shape[1] - 1))]
    return pd.DataFrame(found, index=rows.index, columns=names)


def peak():
    "Peak memory of this process in GB."
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def worker_time(client):
    "Processor time of the workers that live."
    return sum(client.run(time.process_time).values())


def kill_one(client, target, least, lost):
    "Kill a worker when some parts are written; returns the thread that waits for that, and does it."

    def act():
        while len(list(target.glob("*.parquet"))) < least:
            time.sleep(0.2)
        worker, number = next(iter(client.run(os.getpid).items()))
        lost.append(client.run(time.process_time, workers=[worker])[worker])
        os.kill(number, signal.SIGKILL)

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def beyond_memory(source, target, options):
    "Fit and place the files of `source`; returns the model and what was measured."
    import dask
    import dask.dataframe as dd
    import pyarrow.parquet as pq
    from distributed import Client, LocalCluster

    # dask makes its workers give every freed block back to the system, which costs more than placing
    dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28})
    files = sorted(source.glob("*.parquet"))
    rows = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    given = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="3GB")
    with LocalCluster(**given) as cluster, Client(cluster) as client:
        frame = dd.read_parquet(source, split_row_groups=True)
        start, used = time.time(), time.process_time()
        model = IteratedDiffusionMap(landmarks=options.landmarks, random_state=0)
        pool = frame.sample(frac=min(1.0, 20 * options.landmarks / rows), random_state=0).compute()
        model.fit(pool[NAMES], pool["y"])
        fitted = dict(seconds=time.time() - start, processor=time.process_time() - used)
        fitted["gigabytes"], fitted["workers"] = max(client.run(peak).values()), worker_time(client)
        lost = []
        thread = kill_one(client, target, 3, lost) if options.kill else None
        start = time.time()
        meta = place_part(frame[NAMES].head(1), model)
        sent = dask.delayed(model, pure=False, traverse=False)
        moved = frame[NAMES].map_partitions(place_part, sent, meta=meta)
        moved.to_parquet(target, write_index=False)
        placed = dict(seconds=time.time() - start, gigabytes=max(client.run(peak).values()))
        if thread is not None:
            thread.join()
        placed["workers"] = worker_time(client) + sum(lost) - fitted["workers"]
    written = sum(pq.ParquetFile(file).metadata.num_rows for file in target.glob("*.parquet"))
    assert written == rows, f"{written} rows of {rows} were written"
    bytes_read = sum(file.stat().st_size for file in files)
    return model, dict(
        rows=rows, bytes=bytes_read, landmarks=len(model.landmarks_), fit=fitted, place=placed,
        killed=bool(options.kill), client_gigabytes=peak(),
    )  # fmt: skip


def constants(model, source):
    "Processor seconds a row: of reading, and of placing in parts of 100000 rows."
    import pandas as pd

    file = sorted(source.glob("*.parquet"))[0]
    start = time.process_time()
    frame = pd.read_parquet(file)
    read = (time.process_time() - start) / len(frame)
    X = frame[NAMES][:100_000]
    start = time.process_time()
    placed = model.place(X)
    assert len(placed.embedding) == len(placed.values) == len(X)
    return dict(read=read, place=(time.process_time() - start) / len(X))


def in_memory(source, n):
    "The same figures of a fit of the first `n` rows of the table in memory."
    import pandas as pd

    frame = pd.read_parquet(sorted(source.glob("*.parquet"))[0])[:n]
    start = time.process_time()
    model = IteratedDiffusionMap(random_state=0).fit(frame[NAMES].to_numpy(), frame["y"])
    used = time.process_time() - start
    return dict(rows=n, processor=used, **judged(model))


# a fit in memory, in a process of its own

FIT = """
import json, os, resource, sys, time, warnings
sys.path.insert(0, {here!r})
from beyond_memory import judged, peak, table
from idm_nb import IteratedDiffusionMap
warnings.simplefilter("ignore")
X, y, _, _ = table({rows}, 0, {columns})
before, start, used = peak(), time.time(), time.process_time()
model = IteratedDiffusionMap(random_state=0, **{options}).fit(X, y)
found = dict(seconds=time.time() - start, processor=time.process_time() - used)
found |= dict(before=before, gigabytes=peak(), stages=model.estimate_.seconds_, r2=model.verdict_.r2)
print(json.dumps(found))
"""


def fit_alone(rows, columns=COLUMNS, **options):
    "Seconds, processor seconds and peak memory of a fit in a new process with one thread for linear algebra."
    code = FIT.format(here=str(HERE), rows=rows, columns=columns, options=options)
    one = dict(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=str(HERE.parent))
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, check=True, stdout=subprocess.PIPE, env={**os.environ, **one})
    found = json.loads(done.stdout.splitlines()[-1])
    print(rows, columns, options, found, file=sys.stderr, flush=True)
    return found


def growth(options):
    "Fits of 3000 to 300000 rows of 20 columns: all rows, and 10000 landmarks from 100000 rows on."
    sizes = (3000, 10_000, 30_000, 100_000, 300_000)
    found = {str(n): fit_alone(n) for n in sizes if n <= options.largest}
    return found | {
        f"{n}, 10000 landmarks": fit_alone(n, landmarks=10_000) for n in sizes if n >= 100_000
    }


def columns(options):
    "Fits of 3000 rows of 50, 500 and 5000 columns."
    return {str(m): fit_alone(3000, m) for m in (50, 500, 5000)}


def jobs(options):
    "Fits of 3000 and 30000 rows with `n_jobs` of 1 and 2, in turns."
    found = {}
    for n in (3000, 30_000):
        for count in (1, 2):
            found[f"{n} rows, n_jobs={count}"] = fit_alone(n, n_jobs=count)
    return found


def whole_table(options):
    "The table in parts, and the fit in memory beside it."
    with tempfile.TemporaryDirectory() as home:
        source = options.folder or Path(home) / "table"
        if not source.exists():
            write_table(source, options.rows)
        model, found = beyond_memory(source, Path(home) / "placed", options)
        found |= judged(model)
        found["constants"] = constants(model, source)
        results = {"beyond": found}
        if options.compare:
            results["in memory"] = in_memory(source, options.compare)
    return results


PARTS = {"table": whole_table, "growth": growth, "columns": columns, "jobs": jobs}


def versions():
    "Versions of what was measured."
    names = ("idm_nb", "numpy", "scipy", "scikit-learn", "dask", "pandas", "pyarrow")
    found = {
        name: importlib.metadata.version(name)
        for name in names
        if find_spec(name.replace("scikit-", "sk"))
    }
    return {"python": sys.version.split()[0], **found}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--landmarks", type=int, default=3000)
    parser.add_argument("--compare", type=int, default=30_000, help="0: no fit in memory beside it")
    parser.add_argument("--kill", action="store_true", help="kill a worker while rows are placed")
    parser.add_argument("--folder", type=Path, help="where the table is, or will be; kept")
    parser.add_argument("--largest", type=int, default=300_000, help="most rows of growth")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    unknown = {*options.parts} - {*PARTS}
    if unknown:
        parser.error(f"unknown part {sorted(unknown)[0]!r}")
    warnings.simplefilter("ignore")
    for name in options.parts or ["table"]:
        measured = PARTS[name](options)
        measured = {"versions": versions(), **(measured if name == "table" else {name: measured})}
        print(json.dumps(measured, indent=1))
        if options.json:
            kept = json.loads(options.json.read_text()) if options.json.exists() else {}
            options.json.write_text(json.dumps(kept | measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
