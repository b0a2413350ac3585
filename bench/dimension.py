#!/usr/bin/env python3
"""Pointwise dimension: the rules of idm_nb beside scikit-dimension's lPCA, MLE and TwoNN with default arguments.

Usage: python bench/dimension.py [--points N] [--seeds K] [--check]        (needs the extra `bench`)

Prints the mean absolute error of the dimension at each point, averaged over the samples, and the time of a sample.
With --check the exit status is 1 if on some data set the gap rule is worse than the best of the three.
"""

import argparse
import sys
import time
import warnings

import numpy as np

from idm_nb.datasets import Circle, Sphere, SwissRoll, Torus
from idm_nb.derivatives import tune_local_bandwidth


def in_thirty_dimensions(points, seed=0):
    "The points and their cubes / 30, turned into 27 more dimensions (Appendix B of the paper)."
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(27, 27)))[0][:, :3]
    return np.c_[points, (points**3 / 30) @ turn.T]


# name: points, true dimension, standard deviation of the noise in every coordinate of the noisy version
DATA = {
    "circle": (lambda n, seed: Circle().sample(n, random_state=seed).points, 1, 0.04),
    "sphere": (lambda n, seed: Sphere().sample(n, random_state=seed).points, 2, 0.04),
    "torus": (lambda n, seed: Torus().sample(n, random_state=seed).points, 2, 0.04),
    "Swiss roll": (lambda n, seed: SwissRoll().sample(n, random_state=seed).points, 2, 0.4),
    "torus in R^30": (
        lambda n, seed: in_thirty_dimensions(Torus().sample(n, random_state=seed).points),
        2,
        np.sqrt(0.02),
    ),
}


def methods():
    "Functions from points `(N, m)` to dimensions `(N,)`."
    import skdim

    found = {
        f"idm_nb {rule}": lambda X, rule=rule: tune_local_bandwidth(X, rule=rule)[1]
        for rule in ("gap", "agreement", "max-slope")
    }
    for name in ("lPCA", "MLE", "TwoNN"):
        found[name] = lambda X, name=name: getattr(skdim.id, name)().fit_transform_pw(X)
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen, worse = methods(), []
    seconds = dict.fromkeys(chosen, 0.0)
    print(f"mean absolute error, {args.points} points, {args.seeds} samples")
    print(f"{'':20}" + "".join(f"{name:>18}" for name in chosen), flush=True)
    for name, (draw, dimension, noise) in DATA.items():
        for deviation in (0.0, noise):
            errors = dict.fromkeys(chosen, 0.0)
            for seed in range(args.seeds):
                X = draw(args.points, seed)
                X = X + deviation * np.random.default_rng(seed).normal(size=X.shape)
                for method, estimate in chosen.items():
                    start = time.perf_counter()
                    errors[method] += np.abs(estimate(X) - dimension).mean() / args.seeds
                    seconds[method] += time.perf_counter() - start
            label = name + (", noisy" if deviation else "")
            print(f"{label:20}" + "".join(f"{e:18.4f}" for e in errors.values()), flush=True)
            if errors["idm_nb gap"] > min(errors[m] for m in ("lPCA", "MLE", "TwoNN")):
                worse.append(label)
    runs = 2 * len(DATA) * args.seeds
    print(f"{'seconds a sample':20}" + "".join(f"{s / runs:18.1f}" for s in seconds.values()))
    print("gap rule behind the best of the three on:", ", ".join(worse) or "none")
    sys.exit(bool(worse) and args.check)


if __name__ == "__main__":
    main()
