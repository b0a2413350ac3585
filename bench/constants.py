"""Every number between the rows and the embedding, halved and doubled.

The numbers are found in the code: constants of modules and classes in capitals or lower case, and
numeric defaults of functions, in the modules that a fit passes through. For each the script prints the
largest change of R2 and of the recall of neighbours over several data sets. Run it from the root:

    python bench/constants.py [rows]
"""

import importlib
import inspect
import sys
import warnings
from pathlib import Path

import numpy as np

from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example
from idm_nb.diffusion import recall_by_component

ROOT = Path(__file__).resolve().parent.parent
PARTS = (
    "core.rows",
    "diffusion.neighbors",
    "regression",
    "branches",
    "flow.closed",
    "idm.rows",
    "idm.estimator",
)
NAMES = ("annulus radius", "annulus angle", "torus theta", "torus phi", "torus x", "sphere x")


def modules():
    "Modules that a fit passes through."
    for part in PARTS:
        path = ROOT / "idm_nb" / part.replace(".", "/")
        files = sorted(path.glob("[a-z]*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in files:
            yield importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value not in (0, 1)


def constants():
    "Pairs of a name and a function that sets the constant to a multiple of its value."
    seen = set()
    for module in modules():
        for name, value in vars(module).items():
            if name.isupper() and number(value) and (module.__name__, name) not in seen:
                yield f"{module.__name__[7:]}.{name}", value, setter(vars(module), name, value)
        owners = [
            o for o in vars(module).values() if getattr(o, "__module__", "") == module.__name__
        ]
        functions = [o for o in owners if inspect.isfunction(o)]
        for cls in filter(inspect.isclass, owners):
            for name, value in list(vars(cls).items()):
                if number(value) and not name.startswith("_"):
                    yield (
                        f"{module.__name__[7:]}.{cls.__name__}.{name}",
                        value,
                        class_setter(cls, name, value),
                    )
            functions += [f for f in vars(cls).values() if inspect.isfunction(f)]
        for function in functions:
            defaults = function.__kwdefaults__ or {}
            for name, value in list(defaults.items()):
                if number(value):
                    yield (
                        f"{module.__name__[7:]}.{function.__qualname__}({name})",
                        value,
                        setter(defaults, name, value),
                    )


def setter(table, name, value):
    def put(factor):
        table[name] = (
            type(value)(round(value * factor)) if isinstance(value, int) else value * factor
        )

    return put


def class_setter(cls, name, value):
    def put(factor):
        setattr(
            cls,
            name,
            type(value)(round(value * factor)) if isinstance(value, int) else value * factor,
        )

    return put


def measure(name, n, noise=0.0):
    "R2 and recall of held-out rows."
    X, y, _ = feature_example(name, n + 200, random_state=0)
    side = (
        np.where(np.abs(y[:, 0]) < 1, np.sign(X[:, 1]), 0)
        if name == "torus x"
        else np.zeros(len(X))
    )
    seen = y + noise * np.random.default_rng(0).normal(size=y.shape)
    model = IteratedDiffusionMap(random_state=0).fit(X[:n], seen[:n])
    known = model.embedding_, y[:n], side[:n]
    new = model.place(X[n:])
    missed = np.sum((new.values - y[n:]) ** 2) / np.sum((y[n:] - y[n:].mean(axis=0)) ** 2)
    return np.array(
        [1 - missed, recall_by_component(*known, new.coordinates, y[n:], side[n:], n // 20)]
    )


def main(n):
    "Print the table for data sets of `n` rows."
    warnings.simplefilter("ignore")
    tasks = [(name, n, noise) for name in NAMES for noise in (0.0, 0.1)]
    base = np.array([measure(*task) for task in tasks])
    print(
        f"{len(tasks)} data sets of {n} rows; R2 {base[:, 0].mean():.4f}, recall {base[:, 1].mean():.4f}"
    )
    print(f"{'constant':62} {'value':>9} {'R2':>8} {'recall':>8}   where")
    for name, value, put in constants():
        change = np.zeros((2, len(tasks), 2))
        try:
            for i, factor in enumerate((0.5, 2)):
                put(factor)
                try:
                    change[i] = [measure(*task) for task in tasks] - base
                except Exception as error:  # a value that is not possible
                    change[i] = np.nan
                    print(f"{name:62} {value:9.4g} times {factor}: {type(error).__name__}")
        finally:
            put(1)
        if np.isfinite(change).any():
            worst = np.nanmax(np.abs(change), axis=(0, 1))
            place = np.unravel_index(np.nanargmax(np.abs(change[..., 1])), change.shape[:2])
            where = (
                f"{tasks[place[1]][0]}, {('halved', 'doubled')[place[0]]}"
                if worst[1] >= 0.01
                else ""
            )
            print(f"{name:62} {value:9.4g} {worst[0]:8.4f} {worst[1]:8.4f}   {where}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
