#!/usr/bin/env python3
"""Time `DiffusionMap` beside its peers: random points of a torus, 20 eigenpairs; the peers take 64 neighbours.

Usage: python bench/diffusion_map.py [--sizes 5000 20000] [--repeats 5]

Prints medians of processor time on one thread, their ratios to ours, and the largest error of the eigenvalues against
the exact ones: as they are, for the packages that return eigenvalues of the Laplacian, and after the best common factor. A peer that cannot be imported is skipped with a message. datafold
needs older versions of numpy and scikit-learn: it runs in the Python that the variable DATAFOLD_PYTHON names.

With `--once NAME FILE [--warm]` it runs one peer on the points of a file and prints its time as JSON.
With `--alone N [DEVICE]` it fits N points of a flat torus in this process, on all cores or as a tensor on a DEVICE of torch.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

# everything else is imported where it is used: the first call in a new process pays for its own imports only

NEIGHBORS, PAIRS = 64, 20


def ours(points):
    from idm_nb import DiffusionMap

    return DiffusionMap(PAIRS, random_state=0).fit(points).laplacian_eigenvalues_[1:]


def pydiffmap(points):
    from pydiffmap.diffusion_map import DiffusionMap as Peer

    model = Peer.from_sklearn(
        alpha=1.0, k=NEIGHBORS, n_evecs=PAIRS, epsilon="bgh", neighbor_params={"n_jobs": 1}
    )
    return np.sort(np.real(model.fit(points).evals))[::-1]


def graphtools(points):
    # it stops at the diffusion operator, so the eigenpairs of its symmetric form are computed here by ARPACK.
    # Bandwidth: the distance to neighbour 16, point by point; all entries up to neighbour 64 are above its threshold
    import graphtools as peer
    from scipy.sparse.linalg import eigsh

    options = dict(knn=16, knn_max=NEIGHBORS, decay=2, anisotropy=1, n_jobs=1, random_state=0)
    operator = peer.Graph(points, **options).diff_aff
    values, _ = eigsh(operator, PAIRS + 1, which="LA", v0=np.ones(len(points)))
    return np.log(np.sort(values)[-2::-1])  # up to a factor: its bandwidth varies


def datafold(points):
    # the cut-off is the mean distance of neighbour 64; the kernel there is exp(-4), as ours
    from datafold.dynfold import DiffusionMaps
    from datafold.pcfold import GaussianKernel
    from scipy.spatial import cKDTree

    reach = cKDTree(points).query(points[:1000], NEIGHBORS + 1)[0][:, -1].mean()
    epsilon, options = reach**2 / 8, dict(cut_off=reach, backend="scipy.kdtree")
    kernel = GaussianKernel(epsilon=epsilon, distance=options)
    model = DiffusionMaps(kernel, n_eigenpairs=PAIRS + 1, alpha=1).fit(points)
    return 2 / epsilon * np.log(np.sort(np.real(model.eigenvalues_))[-2::-1])


def spectral_embedding(points):
    # its affinity has no bandwidth: neighbours count 1
    from sklearn.manifold import SpectralEmbedding

    options = dict(affinity="nearest_neighbors", n_neighbors=NEIGHBORS, random_state=0, n_jobs=1)
    SpectralEmbedding(PAIRS, **options).fit(points)


PEERS = {
    "idm_nb DiffusionMap": ours,
    "pydiffmap": pydiffmap,
    "graphtools and eigsh": graphtools,
    "datafold": datafold,
    "scikit-learn SpectralEmbedding": spectral_embedding,
}
# datafold factorises the matrix, and SpectralEmbedding takes five minutes for 100000 points
LARGEST = {"datafold": 20000, "scikit-learn SpectralEmbedding": 20000}


def timed(function, *args):
    start = process_time()
    result = function(*args)
    return process_time() - start, result


def new_process(name, points, *options):
    "One peer in a process of its own: dict of the seconds of the call and of the process, and the eigenvalues."
    python = os.environ.get("DATAFOLD_PYTHON") if name == "datafold" else sys.executable
    if not python:
        raise ImportError("DATAFOLD_PYTHON is not set")
    one = {f"{kind}_NUM_THREADS": "1" for kind in ("OMP", "OPENBLAS", "NUMBA", "NUMEXPR")}
    path = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    with tempfile.TemporaryDirectory() as folder:
        np.save(folder + "/points.npy", points)
        command = [python, __file__, "--once", name, folder + "/points.npy", *options]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **one, **path}
        )
    if done.returncode:
        raise ImportError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


def once(name, file, warm):
    "Run a peer on the points of a file, and print what `new_process` returns."
    points = np.load(file)
    if warm:
        PEERS[name](points[:500])
    seconds, values = timed(PEERS[name], points)
    use = resource.getrusage(resource.RUSAGE_SELF)
    found = {"seconds": seconds, "process": use.ru_utime + use.ru_stime}
    print(json.dumps(found | {"values": None if values is None else list(values)}))


def measure(name, points):
    "Processor time of a peer that is warm, and its eigenvalues."
    if name != "datafold":
        return timed(PEERS[name], points)
    found = new_process(name, points, "--warm")
    return found["seconds"], found["values"]


def available(points):
    "The names of the peers that run, each once as a warm-up."
    found = []
    for name in PEERS:
        try:
            measure(name, points)
        except ImportError as error:
            print(f"skipped {name}: {error}")
        else:
            found.append(name)
    return found


def compare(points, repeats, peers):
    "Seconds and errors of the peers: name -> dict."
    from idm_nb.datasets import Torus

    exact = Torus().laplacian_eigenvalues(PAIRS + 1)[1:]
    peers = [name for name in peers if len(points) <= LARGEST.get(name, np.inf)]
    seconds, row = {name: [] for name in peers}, {name: {} for name in peers}
    for _ in range(repeats):  # in turn, so that a slow moment of the machine hits all
        for name in peers:
            spent, values = measure(name, points)
            seconds[name].append(spent)
            if values is not None:
                ratio = np.asarray(values)[:PAIRS] / exact
                if name != "graphtools and eigsh":  # its eigenvalues have no unit
                    row[name]["error"] = float(np.abs(ratio - 1).max())
                scaled = ratio / ((ratio.min() + ratio.max()) / 2)
                row[name]["scaled error"] = float(np.abs(scaled - 1).max())
    for name in peers:
        row[name]["seconds"] = median(seconds[name])
    return row


def stages(points):
    "Seconds of each stage of our map; seconds of ARPACK for its eigenpairs; how far the Markov eigenvalues are from ARPACK's."
    from scipy.sparse.linalg import eigsh
    from scipy.spatial import cKDTree

    from idm_nb.diffusion import KernelSum
    from idm_nb.diffusion.eigenpairs import leading_eigenpairs
    from idm_nb.diffusion.numerics import RadiusGraph
    from idm_nb.diffusion.operator import DiffusionOperator

    out = {}
    out["bandwidth"], test = timed(KernelSum, points)
    graph = RadiusGraph(points, test.kernel.radius(test.epsilon))
    value = lambda squares: test.kernel(squares / test.epsilon)
    out["kernel"], kernel = timed(graph.matrix, value, cKDTree(points).indices)
    build = lambda: DiffusionOperator(kernel, test.epsilon, keep_self=test.keep_self)
    out["operator"], operator = timed(build)
    matrix = operator.ordered
    solve = lambda: leading_eigenpairs(matrix, PAIRS + 1, random_state=0)[0]
    out["eigenpairs"], values = timed(solve)
    slow = lambda: eigsh(matrix, PAIRS + 1, which="LA", return_eigenvectors=False)
    seconds, known = timed(slow)
    return out, seconds, float(np.abs(np.sort(values) - np.sort(known)).max())


def alone(n, device=None):
    "Print seconds, mean errors of 5 and 20 eigenvalues and peak memory for `n` points of a flat torus."
    from time import time

    from idm_nb import DiffusionMap
    from idm_nb.datasets import FlatTorus

    points, start = FlatTorus((1, 0.7)).sample(n, random_state=3).points, time()
    if device:
        import torch

        points = torch.as_tensor(points, device=device)
    found = DiffusionMap(PAIRS, random_state=0).fit(points).laplacian_eigenvalues_[1:]
    steps = np.arange(-20, 21)
    exact = -np.sort((steps[:, None] ** 2 + (steps / 0.7) ** 2).ravel())[1 : PAIRS + 1]
    error = np.abs(found / exact - 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{n} points: {time() - start:.1f} s by the clock, mean error of the first five {error[:5].mean():.4f}, "
        f"of {PAIRS} {error.mean():.4f}, peak of the process {peak:.1f} GiB"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="*", type=int, default=[5000, 20000], metavar="N")
    parser.add_argument(
        "--repeats", type=int, default=5, help="runs of each; the median is printed"
    )
    parser.add_argument("--once", nargs=2, metavar=("NAME", "FILE"))
    parser.add_argument("--warm", action="store_true", help="the second call of the process")
    parser.add_argument("--alone", nargs="+", metavar=("N", "DEVICE"))
    args = parser.parse_args()
    if args.alone:
        return alone(int(float(args.alone[0])), *args.alone[1:])
    if args.once:
        return once(*args.once, args.warm)
    from threadpoolctl import threadpool_limits

    from idm_nb.datasets import Torus

    with threadpool_limits(1):
        peers = available(Torus().sample(500, random_state=0).points)
        for size in args.sizes:
            points = Torus().sample(size, random_state=0).points
            found = compare(points, args.repeats, peers)
            base = found["idm_nb DiffusionMap"]["seconds"]
            print(f"\n{size} points\n{'':32}{'seconds':>8}{'ratio':>8}{'error':>8}{'scaled':>8}")
            for name, row in found.items():
                errors = (
                    f"{row[key]:.1%}" if key in row else "" for key in ("error", "scaled error")
                )
                line = "".join(f"{error:>8}" for error in errors)
                print(
                    f"{name:32}{row['seconds']:8.2f}{row['seconds'] / base:8.2f}{line}", flush=True
                )
            parts, eigsh, difference = stages(points)
            print("ours: " + ", ".join(f"{name} {spent:.2f}" for name, spent in parts.items()))
            print(f"eigsh takes {eigsh:.2f}; its eigenvalues differ by {difference:.0e}")


if __name__ == "__main__":
    main()
