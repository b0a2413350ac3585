"""Methods that use a feature, beside the iterated diffusion map: which of them keep the two sides of a torus apart?

The rows are points of a torus, seen through eight curved columns with noise of one hundredth; the feature is a horizontal coordinate.
Recall: of the fifty training rows that are nearest in the feature and on the same side of the hole, the share among the fifty nearest
rows of the method, for held-out rows between the forks. Each method has its defaults. Run by hand: `python bench/other_methods.py [seeds]`; a package that is missing
is skipped. The linear methods are written out, since each is a few lines.
"""

import sys
import time
import warnings

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.neighbors import KNeighborsRegressor, NeighborhoodComponentsAnalysis

from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example
from idm_nb.diffusion import recall_by_component
from idm_nb.diffusion.numerics import nearest

N, NEW, K = 1500, 1500, 50


def torus(seed):
    "Training rows, features and sides, and the same of held-out rows between the forks."
    X, y, _ = feature_example("torus x", N + NEW, random_state=seed)
    rng = np.random.default_rng(seed)
    table = np.cos(X @ rng.normal(size=(3, 8)) / 3 + rng.uniform(0, 2 * np.pi, 8))
    table += 0.01 * rng.normal(size=table.shape)
    table = (table - table[:N].mean(axis=0)) / table[:N].std(axis=0)
    side = np.where(abs(y[:, 0]) < 1, np.sign(X[:, 1]), 0)
    new = N + np.flatnonzero(abs(y[N:, 0]) < 0.8)
    return (table[:N], y[:N], side[:N]), (table[new], y[new], side[new])


def squared(Z):
    "Squared distances between all rows."
    return ((Z[:, None] - Z) ** 2).sum(axis=2)


def inverse_regression(X, y, new, n=2, slices=10):
    "Sliced inverse regression: directions in which the means of slices of the feature differ."
    means = np.array([X[rows].mean(axis=0) for rows in np.array_split(y[:, 0].argsort(), slices)])
    W = eigh(means.T @ means, np.cov(X.T))[1][:, -n:]
    return X @ W, new @ W


def active_subspace(X, y, new, n=3, k=30):
    "Outer products of gradients of local linear fits; active subspaces with estimated gradients."
    index = nearest(X, X, k)[0]
    steps = X[index] - X[index].mean(axis=1, keepdims=True)
    slopes = np.linalg.pinv(steps) @ (y[index] - y[index].mean(axis=1, keepdims=True))
    W = np.linalg.eigh(slopes[:, :, 0].T @ slopes[:, :, 0])[1][:, -n:]
    return X @ W, new @ W


def kernel_reduction(X, y, new, n=3):
    "Gradient-based kernel dimension reduction (Fukumizu and Leng 2014), on 500 rows."
    few = np.random.default_rng(0).permutation(len(X))[:500]
    Z, z = X[few], y[few, 0]
    squares = squared(Z)
    width = np.median(squares)
    K, L = np.exp(-squares / width), np.exp(-((z[:, None] - z) ** 2) / z.var())
    inverse = np.linalg.inv(K + 1e-3 * len(Z) * np.eye(len(Z)))
    middle = inverse @ L @ inverse
    M = np.zeros((X.shape[1],) * 2)
    for row, weight in zip(Z, K):
        slope = (Z - row) * weight[:, None]
        M += slope.T @ middle @ slope
    W = np.linalg.eigh(M)[1][:, -n:]
    return X @ W, new @ W


def components(X, y, new):
    classes = 10 * y[:, 0].argsort().argsort() // len(y)
    model = NeighborhoodComponentsAnalysis(random_state=0).fit(X, classes)
    return model.transform(X), model.transform(new)


def kernel_metric(X, y, new, n=3):
    "Metric learning for kernel regression (Weinberger and Tesauro 2007), on 500 rows."
    few = np.random.default_rng(0).permutation(len(X))[:500]
    Z, z = X[few], y[few, 0]

    def loss(flat):
        A = flat.reshape(n, -1)
        K = np.exp(-squared(Z @ A.T))
        np.fill_diagonal(K, 0)
        K /= K.sum(axis=1, keepdims=True) + 1e-300
        error = K @ z - z
        W = error[:, None] * ((K @ z)[:, None] - z) * K
        W = W + W.T
        return error @ error, (4 * A @ Z.T @ (np.diag(W.sum(axis=1)) - W) @ Z).ravel()

    start = np.eye(n, X.shape[1]) + 0.1 * np.random.default_rng(0).normal(size=(n, X.shape[1]))
    A = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B").x.reshape(n, -1)
    return X @ A.T, new @ A.T


def supervised_umap(X, y, new):
    from umap import UMAP

    model = UMAP(target_metric="l2", random_state=0, n_jobs=1).fit(X, y[:, 0])
    return model.embedding_, model.transform(new)


def pacmap(X, y, new):
    from pacmap import PaCMAP

    model = PaCMAP(n_components=2, random_state=0)
    return model.fit_transform(X), model.transform(new, basis=X)


def iterated(X, y, new):
    model = IteratedDiffusionMap(random_state=0).fit(X, y)
    return model.embedding_, model.transform(new)


METHODS = {
    "the data": lambda X, y, new: (X, new),
    "sliced inverse regression": inverse_regression,
    "active subspace": active_subspace,
    "kernel dimension reduction": kernel_reduction,
    "neighbourhood components": components,
    "metric for kernel regression": kernel_metric,
    "supervised UMAP": supervised_umap,
    "PaCMAP": pacmap,
    "iterated diffusion map": iterated,
}


def measured(method, seed):
    "Recall, R2 of ten neighbours and seconds of a method on one draw."
    (X, y, side), (new, new_y, new_side) = torus(seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        places, new_places = method(X, y, new)
    seconds = time.process_time() - start
    recall = recall_by_component(places, y, side, new_places, new_y, new_side, K)
    score = KNeighborsRegressor(10).fit(places, y[:, 0]).score(new_places, new_y[:, 0])
    return recall, score, seconds


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for name, method in METHODS.items():
        try:
            found = np.array([measured(method, seed) for seed in range(seeds)])
        except ImportError as error:
            print(f"{name:30} skipped: {error}", file=sys.stderr)
            continue
        recall, score, seconds = found.mean(axis=0)
        low, high = found[:, 0].min(), found[:, 0].max()
        print(
            f"{name:30} recall {recall:.2f} ({low:.2f} to {high:.2f}), "
            f"R2 {score:.3f}, {seconds:.1f} s",
            flush=True,
        )
