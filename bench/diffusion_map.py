#!/usr/bin/env python3
"""Time `DiffusionMap` beside its peers: random points of a torus, 64 neighbours, 20 eigenpairs.

Usage: python bench/diffusion_map.py [--sizes 5000 20000] [--repeats 5]

Prints medians of processor time on one thread, ratios to ours, and for the packages that return eigenvalues of the
Laplacian their largest error against the exact ones. A peer that cannot be imported is skipped with a message.
"""

import argparse
import statistics
from time import process_time

import numpy as np
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

from idm_nb import DiffusionMap
from idm_nb.datasets import Torus
from idm_nb.diffusion import EuclideanMetric, KernelSum, NeighborGraph
from idm_nb.diffusion.numerics import leading_eigenpairs
from idm_nb.diffusion.operator import DiffusionOperator, kernel_matrix

NEIGHBORS, PAIRS = 64, 20


def ours(points):
    return (
        DiffusionMap(PAIRS, n_neighbors=NEIGHBORS, random_state=0)
        .fit(points)
        .laplacian_eigenvalues_[1:]
    )


def ours_by_default(points):
    # as many neighbours as the kernel reaches, about three times as many as here
    return DiffusionMap(PAIRS, random_state=0).fit(points).laplacian_eigenvalues_[1:]


def pydiffmap(points):
    from pydiffmap.diffusion_map import DiffusionMap as Peer

    model = Peer.from_sklearn(
        alpha=1.0, k=NEIGHBORS, n_evecs=PAIRS, epsilon="bgh", neighbor_params={"n_jobs": 1}
    )
    return np.sort(np.real(model.fit(points).evals))[::-1]


def graphtools(points):
    # it stops at the diffusion operator, so the eigenpairs of its symmetric form are computed here as ours are
    import graphtools as peer

    graph = peer.Graph(
        points, knn=16, knn_max=NEIGHBORS, decay=2, anisotropy=1, n_jobs=1, random_state=0
    )
    eigsh(graph.diff_aff, PAIRS + 1, which="LA", v0=np.ones(len(points)))


def spectral_embedding(points):
    # its affinity has no bandwidth: neighbours count 1
    from sklearn.manifold import SpectralEmbedding

    options = dict(affinity="nearest_neighbors", n_neighbors=NEIGHBORS, random_state=0, n_jobs=1)
    SpectralEmbedding(PAIRS, **options).fit(points)


PEERS = {
    "idm_nb DiffusionMap": ours,
    "idm_nb, all neighbours in reach": ours_by_default,
    "pydiffmap": pydiffmap,
    "graphtools and eigsh": graphtools,
    "scikit-learn SpectralEmbedding": spectral_embedding,
}


def timed(function, *args):
    start = process_time()
    result = function(*args)
    return process_time() - start, result


def stages(points):
    "Where the time of our map goes: name -> seconds."
    out = {}
    out["bandwidth"], test = timed(KernelSum, points)
    out["neighbours"], graph = timed(NeighborGraph, points, NEIGHBORS)
    metric = EuclideanMetric(graph.points)
    out["kernel"], kernel = timed(kernel_matrix, metric, graph, test.epsilon)
    build = lambda: DiffusionOperator(kernel, test.epsilon, keep_self=test.keep_self)
    out["operator"], operator = timed(build)
    out["eigenpairs"], _ = timed(
        lambda: leading_eigenpairs(operator.symmetric, PAIRS + 1, random_state=0)
    )
    return out


def available(points):
    "The peers that run, each once as a warm-up."
    found = {}
    for name, function in PEERS.items():
        try:
            function(points)
        except ImportError as error:
            print(f"skipped {name}: {error}")
        else:
            found[name] = function
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="*", type=int, default=[5000, 20000], metavar="N")
    parser.add_argument(
        "--repeats", type=int, default=5, help="runs of each; the median is printed"
    )
    args = parser.parse_args()
    exact = Torus().laplacian_eigenvalues(PAIRS + 1)[1:]
    with threadpool_limits(1):
        peers = available(Torus().sample(500, random_state=0).points)
        for size in args.sizes:
            points = Torus().sample(size, random_state=0).points
            seconds, errors = {name: [] for name in peers}, {}
            for _ in range(args.repeats):  # in turn, so that a slow moment of the machine hits all
                for name, function in peers.items():
                    spent, values = timed(function, points)
                    seconds[name].append(spent)
                    if values is not None:
                        errors[name] = f"{np.abs(values[:PAIRS] / exact - 1).max():.1%}"
            print(f"\n{size} points\n{'':32}{'seconds':>8}{'ratio':>8}{'eigenvalue error':>18}")
            base = statistics.median(seconds["idm_nb DiffusionMap"])
            for name in peers:
                middle = statistics.median(seconds[name])
                print(
                    f"{name:32}{middle:8.2f}{middle / base:8.2f}{errors.get(name, ''):>18}",
                    flush=True,
                )
            parts = stages(points)
            print("ours: " + ", ".join(f"{name} {spent:.2f}" for name, spent in parts.items()))


if __name__ == "__main__":
    main()
