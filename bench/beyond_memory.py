#!/usr/bin/env python3
"""Fit and place a table that is read in parts from Parquet, by two local workers of dask, one of which is killed.

    python bench/beyond_memory.py [--rows 1000000] [--landmarks 3000] [--compare 30000] [--kill] [--json FILE]

The table: 20 columns, a torus and a circle turned in 20 dimensions, sampled unevenly, with noise in all columns and in
the feature (x of the torus, two branches). Written once, a million rows a file. Then: the fit from the lazy table,
placing of all rows (values and coordinates, to Parquet), and both on 20000 rows that are in no file. R2 is that of the
feature without its noise; recall that of 50 neighbours in the feature on the same side, among 10000 rows; coverage the
share of noisy features within 1.96 standard errors. Beside it a fit of --compare rows of the same table in memory.
"""

import argparse
import json
import os
import resource
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from idm_nb import IteratedDiffusionMap
from idm_nb.diffusion import recall_by_component

COLUMNS, PER_FILE, PER_GROUP = 20, 10**6, 50_000
NAMES = [f"x{k}" for k in range(COLUMNS)]
TURN = np.linalg.qr(np.random.default_rng(7).normal(size=(COLUMNS, COLUMNS)))[0]


def table(n, seed):
    "Rows `(n, 20)`, features `(n,)` with noise and without, and the side of the torus (0 where there is one)."
    rng = np.random.default_rng(seed)
    theta, phi, psi = rng.uniform(0, 2 * np.pi, (3, n))
    theta, phi = theta + 0.8 * np.sin(theta), phi + 0.5 * np.sin(phi)
    ring, places = 2 + np.cos(theta), np.zeros((n, COLUMNS))
    shown = ring * np.cos(phi), ring * np.sin(phi), np.sin(theta), np.cos(psi), np.sin(psi)
    places[:, :5] = np.stack(shown, axis=1)
    exact = places[:, 0].copy()
    side = np.where(np.abs(exact) < 1, np.sign(places[:, 1]), 0)
    X = (places + 0.05 * rng.normal(size=places.shape)) @ TURN
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


def kill_one(client, target, least):
    "Kill a worker when some parts are written; returns the thread that waits for that."

    def act():
        while len(list(target.glob("*.parquet"))) < least:
            time.sleep(0.2)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

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
        model.fit(frame[NAMES], frame["y"])
        fitted = dict(seconds=time.time() - start, processor=time.process_time() - used)
        fitted["gigabytes"] = max(client.run(peak).values())
        thread = kill_one(client, target, 3) if options.kill else None
        start = time.time()
        meta = place_part(frame[NAMES].head(1), model)
        sent = dask.delayed(model, pure=False, traverse=False)
        moved = frame[NAMES].map_partitions(place_part, sent, meta=meta)
        moved.to_parquet(target, write_index=False)
        placed = dict(seconds=time.time() - start, gigabytes=max(client.run(peak).values()))
        if thread is not None:
            thread.join()
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
    assert len(placed.coordinates) == len(placed.values) == len(X)
    return dict(read=read, place=(time.process_time() - start) / len(X))


def in_memory(source, n):
    "The same figures of a fit of the first `n` rows of the table in memory."
    import pandas as pd

    frame = pd.read_parquet(sorted(source.glob("*.parquet"))[0])[:n]
    start = time.process_time()
    model = IteratedDiffusionMap(random_state=0).fit(frame[NAMES].to_numpy(), frame["y"])
    used = time.process_time() - start
    return dict(rows=n, processor=used, **judged(model))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--landmarks", type=int, default=3000)
    parser.add_argument("--compare", type=int, default=30_000, help="0: no fit in memory beside it")
    parser.add_argument("--kill", action="store_true", help="kill a worker while rows are placed")
    parser.add_argument("--folder", type=Path, help="where the table is, or will be; kept")
    parser.add_argument("--json", help="write the figures there, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
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
    print(json.dumps(results, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
