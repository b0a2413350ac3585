"""Every number between the rows and the embedding, halved and doubled.

The numbers are found in the code: constants in capitals, grids of numbers, numbers of classes, and
numeric defaults of the functions that run while a model is fitted. A default that is a constant counts
as that constant. For each the script prints the largest change of R2 and of the recall of held-out
rows over six examples of the book, with and without noise, three measured tables, and a table with
more rows than the kernels have centres. Run it from the root:

    python bench/constants.py [rows] [part of a name]
"""

import importlib
import inspect
import sys
import threading
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example, rotated_digits
from idm_nb.diffusion import recall_by_component

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("core.rows", "regression", "branches", "flow.closed", "idm.fitted")
NOT_ON_THE_WAY = (
    "regression.errors",
    "regression.verdict",
    "branches.support",
    "branches.contrast",
    "regression.held_out",  # sentences of the verdict
)
NAMES = ("annulus radius", "annulus angle", "torus theta", "torus phi", "torus x", "sphere x")


def modules():
    "Modules that a fit passes through."
    for part in PARTS:
        path = ROOT / "idm_nb" / part.replace(".", "/")
        files = sorted(path.glob("[a-z]*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in files:
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if not name.endswith(NOT_ON_THE_WAY):
                yield importlib.import_module(name)


def numeric(value):
    if isinstance(value, (tuple, np.ndarray)):
        return len(value) > 0 and all(isinstance(v, (int, float, np.number)) for v in value)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value not in (0, 1)


def times(value, factor):
    "A value of the same kind, multiplied."
    if isinstance(value, tuple):
        return tuple(times(v, factor) for v in value)
    return type(value)(round(value * factor)) if isinstance(value, int) else value * factor


def executed(tasks):
    "Code objects that run while models are fitted."
    seen = set()

    def note(frame, event, _):
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        for task in tasks:
            fit(task)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def places(seen):
    "Dict from the name of a number to its value and the functions that set it."
    found, names = defaultdict(list), {name for code in seen for name in code.co_names}
    constants = {}  # from the object to the name; small integers are one object for all uses

    def note(name, value, put):
        if numeric(value):
            found[constants.get(id(value), name)].append((value, put))

    for module in modules():
        for name, value in vars(module).items():
            if name.isupper() and numeric(value) and not isinstance(value, int):
                same = [n for n in constants.values() if n.split(".")[0] == name]
                constants.setdefault(id(value), f"{name}.{len(same)}" if same else name)
    for module in modules():
        space = vars(module)
        own = [o for o in space.values() if getattr(o, "__module__", "") == module.__name__]
        functions = [o for o in own if inspect.isfunction(o)]
        for name, value in list(space.items()):
            if name.isupper() and name in names:  # the same in each module that imports it
                note(name, value, lambda v, space=space, name=name: space.__setitem__(name, v))
        for cls in filter(inspect.isclass, own):
            for name, value in list(vars(cls).items()):
                if not name.startswith("_") and name in names:
                    put = lambda v, cls=cls, name=name: setattr(cls, name, v)
                    note(f"{cls.__name__}.{name}", value, put)
            functions += [f for f in vars(cls).values() if inspect.isfunction(f)]
        for function in (f for f in functions if inspect.unwrap(f).__code__ in seen):
            defaults, spec = function.__kwdefaults__ or {}, inspect.signature(function).parameters
            for name, value in list(defaults.items()):
                put = lambda v, table=defaults, name=name: table.__setitem__(name, v)
                note(f"{function.__qualname__}({name})", value, put)
            named = [
                p for p in spec.values() if p.default is not p.empty and p.name not in defaults
            ]
            for k, p in enumerate(named):

                def put(v, function=function, k=k):
                    old = function.__defaults__
                    function.__defaults__ = (*old[:k], v, *old[k + 1 :])

                note(f"{function.__qualname__}({p.name})", p.default, put)
    return found


def examples(n):
    "Tuples of a name, rows, features and branches that are known."
    for name in NAMES:
        X, y, _ = feature_example(name, n + 200, random_state=0)
        side = np.zeros(len(X))
        if name == "torus x":
            side = np.where(np.abs(y[:, 0]) < 1, np.sign(X[:, 1]), 0)
        yield name, X, y, y, side
        noise = 0.1 * y.std(axis=0) * np.random.default_rng(0).normal(size=y.shape)
        yield f"{name}, noise", X, y + noise, y, side
    table, target = load_diabetes(return_X_y=True)
    yield "diabetes", table, target[:, None], target[:, None], np.zeros(len(table))
    cells = StandardScaler().fit_transform(load_breast_cancer().data)[:, :20]
    target = load_breast_cancer().data[:, [27]]  # worst concave points, from means and errors
    yield "cells", cells, target, target, np.zeros(len(cells))
    turned = [rotated_digits(digit, n_angles=1, random_state=0) for digit in (3, 4, 7)]
    X, angle = (np.concatenate([part[k] for part in turned]) for k in (0, 1))
    digit = np.repeat(np.arange(3), [len(part[1]) for part in turned])
    order = np.random.default_rng(0).permutation(len(X))
    yield "digits", X[order], angle[order, None], angle[order, None], digit[order]
    X, y, _ = feature_example("annulus radius", 2000, random_state=0)
    noise = 0.1 * y.std(axis=0) * np.random.default_rng(0).normal(size=y.shape)
    yield "annulus radius, 1800 rows", X, y + noise, y, np.zeros(len(X))


def rows_to_fit(task):
    return len(task[1]) - min(200, len(task[1]) // 4)


def fit(task):
    "A model of all rows but those held out."
    n = rows_to_fit(task)
    return IteratedDiffusionMap(random_state=0).fit(task[1][:n], task[2][:n])


def measure(task):
    "R2 and recall of held-out rows."
    _, X, _, y, side = task
    model, n = fit(task), rows_to_fit(task)
    known = model.embedding_, y[:n], side[:n]
    new = model.place(X[n:])
    missed = np.sum((new.values - y[n:]) ** 2) / np.sum((y[n:] - y[n:].mean(axis=0)) ** 2)
    k = max(n // 20, 5)
    return 1 - missed, recall_by_component(*known, new.coordinates, y[n:], side[n:], k)


def main(n, part=""):
    "Print the table for examples of `n` rows and the numbers with `part` in their name."
    warnings.simplefilter("ignore")
    tasks = list(examples(n))
    found = places(executed(tasks))
    base = np.array([measure(task) for task in tasks])
    for task, (r2, recall) in zip(tasks, base, strict=True):
        print(f"{task[0]:26} R2 {r2:.4f}, recall {recall:.3f}")
    print(f"\n{len(found)} numbers; the largest change of R2 and recall, halved and doubled")
    print(f"{'number':40} {'value':>12} {'R2':>7} {'recall':>7} {'mean':>7}   where")
    nothing = []
    for name, owners in sorted((n, o) for n, o in found.items() if part in n):
        change = np.full((2, len(tasks), 2), np.nan)
        for i, factor in enumerate((0.5, 2)):
            try:
                for value, put in owners:
                    put(times(value, factor))
                for j, task in enumerate(tasks):
                    change[i, j] = np.subtract(measure(task), base[j])
            except Exception as error:  # a value that is not possible
                print(f"{name:40} times {factor}: {type(error).__name__}")
            finally:
                for value, put in owners:
                    put(value)
        value = owners[0][0]
        shown = f"{value:12.4g}" if np.isscalar(value) else f"{value[0]:.2g}..{value[-1]:.2g}"
        if not np.nanmax(np.abs(change)) > 0:
            nothing.append(f"{name} ({shown.strip()})")
            continue
        worst = np.nanmax(np.abs(change), axis=(0, 1))
        i, j = np.unravel_index(np.nanargmax(np.abs(change[..., 1])), change.shape[:2])
        where = f"{tasks[j][0]}, {('halved', 'doubled')[i]}" if worst[1] >= 0.01 else ""
        mean = np.nanmean(np.abs(change[..., 1]))
        print(
            f"{name:40} {shown:>12} {worst[0]:7.3f} {worst[1]:7.3f} {mean:7.4f}   {where}",
            flush=True,
        )
    print("no change at all:", ", ".join(nothing) or "none")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300, *sys.argv[2:3])
