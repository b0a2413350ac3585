#!/usr/bin/env python3
"""Time and peak memory of nonlinear ICA, step by step.

Usage: python bench/nonlinear_ica.py [--points N ...] [--columns M] [--rank D]

The data are random points of the unit cube of D dimensions under a smooth map to M columns, with exact covariances.
Memory is what Python and NumPy hold beyond the input (tracemalloc), and at the end the peak of the whole process.
For comparison the last line computes the kernel from an array of all differences, for few points.
"""

import argparse
import resource
import time
import tracemalloc

import numpy as np

from idm_nb import NonlinearICA
from idm_nb.diffusion.operator import kernel_matrix
from idm_nb.relatives import CovarianceMetric
from idm_nb.relatives.nonlinear_ica import HIDDEN_REACH, MetricEdges, stretch_factors


def example(n_points, n_columns, rank, seed=0):
    rng = np.random.default_rng(seed)
    x, W = rng.uniform(size=(n_points, rank)), rng.normal(size=(n_columns, rank))
    phase = rng.uniform(0, 2 * np.pi, size=n_columns)
    slope = np.cos(x @ W.T + phase)[:, :, None] * W / np.sqrt(n_columns)
    return x, np.sin(x @ W.T + phase) / np.sqrt(n_columns), slope @ np.swapaxes(slope, 1, 2)


def measured(label, function, *args, **kwargs):
    tracemalloc.start()
    start = time.perf_counter()
    result = function(*args, **kwargs)
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"  {label:34} {seconds:7.2f} s   peak {peak / 2**20:8.0f} MiB", flush=True)
    return result


def all_differences(X, covariances, rank, epsilon):
    values, vectors = np.linalg.eigh(covariances)
    values, vectors = values[:, -rank:], vectors[:, :, -rank:]
    inverse = (vectors / values[:, None]) @ np.swapaxes(vectors, 1, 2)
    gap = X[None] - X[:, None]
    one = np.einsum("ijm,ijm->ij", gap @ inverse, gap)
    return np.exp(-(one + one.T) / (4 * epsilon))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, nargs="+", default=[2000, 5000, 10000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--rank", type=int, default=3)
    args = parser.parse_args()
    for n in args.points:
        x, X, C = example(n, args.columns, args.rank)
        print(
            f"{n} points, {args.columns} columns, rank {args.rank}; an (N, N, m) array would hold "
            f"{8 * n * n * args.columns / 2**20:.0f} MiB"
        )
        # 16 effective neighbours
        epsilon = 16 ** (2 / args.rank) / (2 * np.pi * n ** (2 / args.rank))
        metric = CovarianceMetric(
            X, *measured("factors of the covariances", stretch_factors, C, args.rank)
        )
        edges = measured("near pairs", MetricEdges, metric, HIDDEN_REACH * epsilon)
        measured(f"kernel on {len(edges.indices)} pairs", kernel_matrix, metric, edges, epsilon)
        model = NonlinearICA(args.rank, rank=args.rank, random_state=0)
        measured("NonlinearICA.fit, all together", model.fit, X, covariances=C)
        measured("transform of 1000 points", model.transform, X[:1000] + 1e-6)
        found = np.abs(
            np.corrcoef(model.embedding_.T, np.cos(np.pi * x).T)[: args.rank, args.rank :]
        )
        print(f"  least correlation with a hidden cosine: {found.max(axis=1).min():.4f}")
    few = min(1000, min(args.points))
    x, X, C = example(few, args.columns, args.rank)
    print(f"{few} points, for comparison")
    measured("kernel from all differences", all_differences, X, C, args.rank, 0.01)
    print(
        f"peak of the whole process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB"
    )


if __name__ == "__main__":
    main()
