"""Time, memory and growth of `IteratedDiffusionMap` by stage, beside supervised UMAP.

    python bench/iterated_map.py [--sizes 3000 10000 30000] [--rounds 5] [--json FILE]

Processor time of `fit` and of `transform` of 500 new rows, medians over rounds in which the two take turns, after
one round that is not counted (compilation). A stage is an object that `fit` makes; what is left is "other".
"""

import argparse
import json
import resource
import time
import warnings
from contextlib import contextmanager
from statistics import median

import numpy as np

from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example
from idm_nb.diffusion import neighbor_recall
from idm_nb.idm import estimator as idm

STAGES = {
    "estimate": (idm.FeatureRegressor, "fit_rows"),
    "branches": (idm.Branches, "__init__"),
    "flow": (idm.ClosedFlow, "run"),
    "errors": (idm.ErrorModel, "__init__"),
    "merged": (idm.Branches, "merged"),
}


@contextmanager
def timed_stages(seconds):
    "While it lasts, the time of each stage is added to the dict `seconds`; that of a stage inside another, to itself."
    kept, inside = {name: getattr(*place) for name, place in STAGES.items()}, [0.0]

    def timed(name):
        def call(*args, **options):
            start = time.process_time()
            inside.append(0.0)
            try:
                return kept[name](*args, **options)
            finally:
                whole = time.process_time() - start
                seconds[name] = seconds.get(name, 0.0) + whole - inside.pop()
                inside[-1] += whole

        return call

    for name, (owner, method) in STAGES.items():
        setattr(owner, method, timed(name))
    try:
        yield
    finally:
        for name, (owner, method) in STAGES.items():
            setattr(owner, method, kept[name])


def run_map(X, y, new):
    "Seconds by stage, and the embeddings of training and new rows."
    seconds = {}
    with timed_stages(seconds):
        start = time.process_time()
        model = IteratedDiffusionMap(random_state=0).fit(X, y)
        seconds["fit"] = time.process_time() - start
    seconds["other"] = seconds["fit"] - sum(seconds.get(name, 0) for name in STAGES)
    start = time.process_time()
    moved = model.transform(new)
    seconds["transform"] = time.process_time() - start
    return seconds, model.embedding_, moved


def run_umap(X, y, new):
    "Seconds of `fit` and `transform`, and the embeddings."
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = UMAP(target_metric="l2", random_state=0).fit(X, y[:, 0])
        fit = time.process_time() - start
        start = time.process_time()
        moved = model.transform(new)
    return {"fit": fit, "transform": time.process_time() - start}, model.embedding_, moved


def measure(name, n, rounds, runners, warm=False):
    "Median seconds of each runner and its recall of 50 neighbours; the first round counts if all is `warm`."
    X, y, _ = feature_example(name, n + 500, random_state=0)
    y, found = y.reshape(len(X), -1), {}
    for turn in range(int(warm), rounds + 1):
        for label, runner in runners.items():
            seconds, embedding, moved = runner(X[:n], y[:n], X[n:])
            row = found.setdefault(label, {"seconds": []})
            row["recall"] = neighbor_recall(embedding, y[:n], moved, y[n:], 50)
            row["seconds"] += [seconds] if turn else []
    for row in found.values():
        row["seconds"] = {
            key: median(s.get(key, 0.0) for s in row["seconds"]) for key in row["seconds"][0]
        }
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--example", default="annulus radius")
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000, 10000, 30000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--largest-umap", type=int, default=10000, help="no UMAP beyond this size")
    parser.add_argument("--json", help="write all figures there, too")
    options = parser.parse_args()
    table = {}
    print(
        "| rows | method | fit | "
        + " | ".join([*STAGES, "other"])
        + " | transform | recall | peak memory |"
    )
    print("|" + "---|" * (len(STAGES) + 7))
    for n in options.sizes:
        runners = {"map": run_map}
        try:
            import umap  # noqa: F401

            runners |= {"UMAP": run_umap} if n <= options.largest_umap else {}
        except ImportError:
            print("umap-learn is missing: not compared")
        table[n] = measure(options.example, n, options.rounds, runners)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        for label, row in table[n].items():
            s = row["seconds"]
            parts = " | ".join(f"{s[key]:.2f}" if key in s else "" for key in [*STAGES, "other"])
            print(
                f"| {n} | {label} | {s['fit']:.1f} s | {parts} | {s['transform']:.2f} s | {row['recall']:.3f} "
                f"| {peak:.2f} GB |",
                flush=True,
            )
    times = [row["map"]["seconds"]["fit"] for row in table.values()]
    for (a, s), (b, t) in zip(zip(table, times), list(zip(table, times))[1:]):
        print(f"growth from {a} to {b} rows: exponent {np.log(t / s) / np.log(b / a):.2f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
