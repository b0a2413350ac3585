"""Cells with a measured time: this package beside psupertime, Sceptic, CellRank, Palantir and PAGA.

    python bench/cells.py prepare FOLDER          # writes FOLDER/NAME.npz
    python bench/cells.py run FOLDER METHOD ...   # adds lines to FOLDER/cells.jsonl
    python bench/cells.py table FOLDER            # prints the table

The methods need environments of their own (`pip install pypsupertime "scikit-learn<1.6"`, `pip install palantir`, `pip install cellrank sceptic`), so each is run
where it is installed. FOLDER holds the files of four public sets, which are not part of this package: `acinar_hvg_sce.rda` of the
repository wmacnair/psupertime (411 acinar cells of eight donors, their age; reading it needs `pip install rdata`), `expression.txt`
and `expression_type.txt` of Noble-Lab/Sceptic (177 cells at five days), `guo_qpcr.csv` of sods/ods (437 cells of mouse embryos
from one cell to 64, with their fates at 32 and 64), and `oeCufflinkCountData_1000Var.txt`, `oeMetadata.txt` of fperraudeau/singlecellworkflow (its commit 0cb44f4)
with `oeHBCdiff_clusterLabels.txt` of rufletch/p63-HBC-diff (650 olfactory cells at six days, 500 with one of five types). The fifth set is simulated: counts of 2000 genes, eight donors, two fates.

Time: rows of held-out donors, or of five folds, are predicted; R2, and Spearman's rank correlation. (The acinar cells of one age
are those of one donor. If donors are held out, their ages do not occur in training, and all methods fail: R2 is -0.5 for this package and for Sceptic.)
psupertime tries ten penalties (40 by default, for the sake of time), and has a unit of its own: a line through the training cells turns it into time. Sceptic's time is the mean of the times of
training, weighted by its probabilities. Fates: the branches, the clusters or the most probable terminal states of a method, which
receives no fate, against the fates where they are known; adjusted Rand index, and the number of groups.
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, r2_score
from sklearn.model_selection import KFold, LeaveOneGroupOut
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
SETS = ("acinar", "scgem", "guo", "olfactory", "simulated")


# the sets


def r_vectors(node, found, seen):
    "Vectors in an R object that `rdata` has parsed, as they come; promises and classes do not matter."
    if isinstance(node, (list, tuple)):
        for part in node:
            r_vectors(part, found, seen)
    elif hasattr(node, "info") and id(node) not in seen:
        seen.add(id(node))
        if isinstance(node.value, np.ndarray):
            found.append(node.value)
        elif isinstance(node.value, list) and node.value and hasattr(node.value[0], "info"):
            if node.info.type.name == "STR":
                found.append([bytes(word.value or b"").decode() for word in node.value])
        for part in (node.attributes, node.value):
            r_vectors(part, found, seen)
        r_vectors([getattr(node.value, "hash_table", None)], found, seen)


def acinar(folder):
    import rdata

    found = []
    r_vectors(rdata.parser.parse_file(folder / "acinar_hvg_sce.rda").object, found, set())
    names = next(v for v in found if isinstance(v, list) and len(v) == 411)
    logs = next(
        v for v in found if isinstance(v, np.ndarray) and v.size == 411 * 827 and v.max() < 50
    )
    donor = np.array([name.partition("_cell")[0] for name in names])
    age = np.array([float(name.partition("yr")[0]) for name in donor])
    return dict(X=logs.reshape(411, 827), time=age)


def scgem(folder):
    days = np.array([0.0, 8, 16, 24, 30])
    kind = np.loadtxt(folder / "expression_type.txt").astype(int)
    return dict(X=np.loadtxt(folder / "expression.txt"), time=days[kind])


def guo(folder):
    import csv

    rows = list(csv.reader((folder / "guo_qpcr.csv").open()))[1:]
    stage, X = [row[0].split() for row in rows], np.array([row[1:] for row in rows], dtype=float)
    fate = [kind[1] if len(kind) > 1 else "" for kind in stage]
    return dict(X=X, time=np.log2([float(kind[0]) for kind in stage]), fate=np.array(fate))


def olfactory(folder):
    import pandas as pd

    table = lambda name, **more: pd.read_csv(folder / name, sep="\t", index_col=0, **more)
    counts, about = table("oeCufflinkCountData_1000Var.txt").T, table("oeMetadata.txt")
    cluster = table("oeHBCdiff_clusterLabels.txt", header=None)[1]
    kinds = dict(stem=(1, 5, 8), basal=(3,), neuron=(2, 9, 10, 12, 14))
    kinds |= dict(supporting=(4, 7), microvillous=(11, 15))
    name = cluster.map({number: kind for kind, numbers in kinds.items() for number in numbers})
    days = {"24H": 1, "48H": 2, "96H": 4, "7D": 7, "14D": 14}
    day = about.Experiment.str.extract(r"P63CKO_UI_(\d+[HD])PT")[0].map(days)
    day[about.Experiment.str.contains("RRY")] = 0
    size = counts.sum(axis=1)
    kept = day.notna() & (size >= 20_000)
    X = np.log1p(counts[kept].div(size[kept] / 1e4, axis=0)).to_numpy()
    fate = name.reindex(counts.index)[kept].fillna("").to_numpy(str)
    return dict(X=X, time=day[kept].to_numpy(), fate=fate)


def simulated(folder=None, n=1200, m=2000, seed=0):
    "Counts as logarithms: sixty genes follow the hour, forty each of two fates after hour 12."
    rng, hour = np.random.default_rng(seed), np.random.default_rng(seed + 1).uniform(0, 24, n)
    fate, donor, level = rng.random(n) < 0.5, rng.integers(0, 8, n), rng.gamma(0.3, 1, m)
    logs = np.log(level / level.sum()) + 0.15 * rng.normal(size=(8, m))[donor]
    order = rng.permutation(np.argsort(level)[m // 2 :])
    start = rng.uniform(0, 20, 60)
    logs[:, order[:60]] += 2 * (-1) ** np.arange(60) * np.clip((hour[:, None] - start) / 6, 0, 1)
    late = 2 * np.clip((hour - 12) / 6, 0, 1)
    logs[:, order[60:100]] += (late * fate)[:, None]
    logs[:, order[100:140]] += (late * ~fate)[:, None]
    share = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    counts = rng.poisson(share * rng.lognormal(np.log(2500), 0.3, n)[:, None])
    X = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    named = np.where(hour < 15, "", np.where(fate, "A", "B"))
    return dict(X=X[:, counts.any(axis=0)], time=hour, group=donor.astype(str), fate=named)


def folds(data):
    "Pairs of training and held-out rows: whole donors, or a fifth of the cells."
    if "group" in data:
        return LeaveOneGroupOut().split(data["X"], groups=data["group"])
    return KFold(5, shuffle=True, random_state=0).split(data["X"])


# the methods: times of held-out rows, and groups of all rows


def ours(data):
    from idm_nb import IteratedDiffusionMap

    def predicted(old, new):
        groups = data["group"][old] if "group" in data else None
        model = IteratedDiffusionMap(random_state=0).fit(
            data["X"][old], data["time"][old], groups=groups
        )
        return model.predict(data["X"][new])

    def grouped():
        model = IteratedDiffusionMap(random_state=0)
        return model.fit(data["X"], data["time"], groups=data.get("group")).branch_

    return predicted, grouped


def psupertime(data):
    import anndata
    from pypsupertime import Psupertime

    def predicted(old, new):
        scale = StandardScaler().fit(data["X"][old])
        table = anndata.AnnData(scale.transform(data["X"][old]))
        kinds = np.unique(data["time"]) if len(np.unique(data["time"])) < 20 else None
        label = data["time"][old]
        if kinds is None:  # an ordered label is needed: twelve parts of equal size
            label = np.searchsorted(np.quantile(label, np.arange(1, 12) / 12), label)
        penalties = dict(n_params=10, reg_low=0.1 if len(old) > data["X"].shape[1] else 1e-4)
        model = Psupertime(n_jobs=1, preprocessing_class=None, regularization_params=penalties)
        model.run(table, label)
        place = lambda rows: np.asarray(
            scale.transform(data["X"][rows]) @ model.model.coef_
        ).ravel()
        slope = np.polyfit(place(old), data["time"][old], 1)
        return np.polyval(slope, place(new))

    return predicted, None


def sceptic(data):
    from sceptic import sceptic as module

    def predicted(old, new):
        label, times = data["time"].copy(), np.unique(data["time"])
        if len(times) > 20:
            cuts = np.quantile(label, np.arange(13) / 12)
            middle = (cuts[1:] + cuts[:-1]) / 2
            label = middle[np.clip(np.searchsorted(cuts, label) - 1, 0, 11)]
        known = np.unique(label[old])  # a held-out age does not occur in training
        label[new] = np.where(np.isin(label[new], known), label[new], known[0])

        class OneFold:
            def __init__(self, **options):
                pass

            def split(self, rows):
                return [(old, new)]

        module.KFold = OneFold
        return module.run_sceptic_and_evaluate(data["X"], label, method="svm")[2][new]

    return predicted, None


def neighbours(data):
    import anndata
    import scanpy

    table = anndata.AnnData(data["X"].copy())
    table.obs["time"] = data["time"]
    count = min(30, data["X"].shape[1] - 1)
    table.obsm["X_pca"] = PCA(count, random_state=0).fit_transform(data["X"])
    scanpy.pp.neighbors(table, random_state=0)
    return table


def paga(data):
    def grouped():
        import scanpy

        table = neighbours(data)
        scanpy.tl.leiden(table, flavor="igraph", n_iterations=2, random_state=0)
        scanpy.tl.paga(table)
        return table.obs["leiden"].astype(str).to_numpy()

    return None, grouped


def palantir(data):
    def grouped():
        import palantir as package

        table = neighbours(data)
        package.utils.run_diffusion_maps(table, n_components=10)
        package.utils.determine_multiscale_space(table)
        first = table.obs_names[int(np.argmin(data["time"]))]
        package.core.run_palantir(table, first, num_waypoints=min(500, len(table) // 2))
        found = np.asarray(table.obsm["palantir_fate_probabilities"])  # one column per end, or none
        return found.argmax(axis=1) if found.size else np.zeros(len(table))

    return None, grouped


def cellrank(data):
    def grouped():
        import cellrank as package

        table = neighbours(data)
        kernel = package.kernels.PseudotimeKernel(
            table, time_key="time"
        ).compute_transition_matrix()
        found = package.estimators.GPCCA(kernel)
        found.fit(n_states=[2, 8], cluster_key=None)
        found.predict_terminal_states()
        found.compute_fate_probabilities()
        return np.asarray(found.fate_probabilities).argmax(axis=1)

    return None, grouped


METHODS = dict(
    idm_nb=ours,
    psupertime=psupertime,
    sceptic=sceptic,
    paga=paga,
    palantir=palantir,
    cellrank=cellrank,
)


def measured(name, method, data):
    "Scores, seconds of processor time and gigabytes of a method on a set."
    predicted, grouped = METHODS[method](data)
    found = dict(set=name, method=method)
    if predicted is not None:
        start, values = time.process_time(), np.empty(len(data["time"]))
        for old, new in folds(data):
            values[new] = predicted(old, new)
        found |= dict(r2=r2_score(data["time"], values), rank=spearmanr(data["time"], values)[0])
        found |= dict(seconds=time.process_time() - start)
    if grouped is not None and "fate" in data:
        start, groups, known = time.process_time(), grouped(), data["fate"] != ""
        score = adjusted_rand_score(data["fate"][known], groups[known])
        found |= dict(
            rand=score, groups=len(np.unique(groups)), fate_seconds=time.process_time() - start
        )
    return found | dict(gigabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def main(task, folder, *names):
    folder = Path(folder)
    if task == "prepare":
        for name in SETS:
            np.savez_compressed(folder / f"{name}.npz", **globals()[name](folder))
    elif task == "run":
        method, sets = names[0], names[1:] or SETS
        warnings.simplefilter("ignore")
        for name in sets:
            line = json.dumps(measured(name, method, dict(np.load(folder / f"{name}.npz"))))
            print(line, flush=True)
            with (folder / "cells.jsonl").open("a") as file:
                file.write(line + "\n")
    else:
        lines = map(json.loads, (folder / "cells.jsonl").read_text().splitlines())
        last = {(line["set"], line["method"]): line for line in lines}
        heads = ("r2", "rank", "seconds", "rand", "groups", "fate_seconds", "gigabytes")
        print(f"{'set':10} {'method':11}" + "".join(f"{head:>13}" for head in heads))
        for (name, method), line in sorted(last.items()):
            cells = (f"{line[head]:13.3g}" if head in line else f"{'':13}" for head in heads)
            print(f"{name:10} {method:11}" + "".join(cells))


if __name__ == "__main__":
    main(*sys.argv[1:])
