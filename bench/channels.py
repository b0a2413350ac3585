"""Channels of a reaction: how often are they found, in which rows, with which share of the flux?

    python bench/channels.py [DRAWS] [--system NAME ...] [--rows 2000] [--runs 0] [--alanine FILE.npz]

A particle moves in a potential `V` at the temperature `T` from a well A to a well B. The feature is the committor `q`, exact
on a grid, or with `--runs` counted in so many trial runs from each row. **Rows** are the places at which transition paths
cross levels of the committor for the first time, with levels evenly spaced in its log odds from -4 to 4. By the strong Markov
property they lie on each level set as the reactive flux does: their density is `exp(-V/T) |grad q|^2 / (q (1 - q))`. So each
level has as many rows as any other, and the share of rows in a channel is its share of the flux. Frames of transition paths as they
come (`--ensemble paths`: density `exp(-V/T) q (1 - q)`) are mostly in intermediate wells.

**Truth** is the stream function of the reactive flux. A channel is a bundle of streamlines from A to B, and two bundles part at
the streamline of least flux between two peaks of the flux, if the lower peak is at least twice as high. Bent systems are seen through
20 sines of the two coordinates and of three irrelevant ones, with noise.

Printed for each method: draws with the right number of channels at q = 1/2; adjusted Rand index of channels for rows with q between .1
and .9; recall (of the 50 training rows that are nearest in the committor and in the same channel, the share among the 50 that the
method names for a new row); the largest error of a share of the flux. Slab methods cluster the rows in ten overlapping slabs of the
committor and link clusters with common rows. They receive the range of q
in which channels are counted, and the map's estimate of the committor where it is not known.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import linear_sum_assignment
from scipy.signal import find_peaks
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.neighbors import NearestNeighbors

from idm_nb import IteratedDiffusionMap, reeb_graph

LOG_ODDS, BETWEEN, K, SLABS = 4, (0.1, 0.9), 50, 10


# potentials, with A at (-1, 0) and B at (1, 0)


def bump(p, height, x, y, width):
    return height * np.exp(-((p[..., 0] - x) ** 2 + (p[..., 1] - y) ** 2) / width)


def triple_well(p):
    "Two deep wells, a shallow one above, and a hill between the three (Metzner et al. 2006)."
    wells = bump(p, -5, 1, 0, 1) + bump(p, -5, -1, 0, 1) + bump(p, -3, 0, 5 / 3, 1)
    return wells + bump(p, 3, 0, 1 / 3, 1) + 0.2 * p[..., 0] ** 4 + 0.2 * (p[..., 1] - 1 / 3) ** 4


def ring(p):
    "A round valley; the pass above is higher than the pass below."
    x, y = p[..., 0], p[..., 1]
    radius = np.maximum(np.hypot(x, y), 0.1)
    return 12 * (radius - 1) ** 2 + 2.5 * (y / radius) ** 2 + 0.35 * y


def three_passes(p):
    "A ridge with three passes of different height."
    x, y = p[..., 0], p[..., 1]
    ridge = 2.4 * (x**2 - 1) ** 2 + bump(p, 5, 0, 0.75, 0.12) + bump(p, 5, 0, -0.75, 0.12)
    return ridge + y**4 / 16 + 0.2 * y


def two_events(p):
    "Two switches that turn one after the other, in either order, or hardly ever together."
    a, b = p[..., 0] + p[..., 1], p[..., 0] - p[..., 1]  # each goes from -1 to 1
    return 2 * (a**2 - 1) ** 2 + 2 * (b**2 - 1) ** 2 - 0.8 * a * b + 0.15 * (a - b)


def mueller_brown(p):
    "The potential of Mueller and Brown, turned and in other units: one way only."
    start, goal = -0.558 + 1.442j, 0.623 + 0.028j
    z = (start + goal) / 2 + (p[..., 0] + 1j * p[..., 1]) * (goal - start) / 2
    x, y, total = z.real, z.imag, 0
    for row in (
        (-200, -1, 0, -10, 1, 0),
        (-100, -1, 0, -10, 0, 0.5),
        (-170, -6.5, 11, -6.5, -0.5, 1.5),
        (15, 0.7, 0.6, 0.7, -1, 1),
    ):
        height, a, b, c, x0, y0 = row
        total += height * np.exp(a * (x - x0) ** 2 + b * (x - x0) * (y - y0) + c * (y - y0) ** 2)
    return total / 20


# the exact committor, flux and channels


class Reaction:
    """A potential on a square grid, with its committor, flux and channels.

    The backward Kolmogorov equation `div(exp(-V/T) grad q) = 0` by finite volumes: the conductance between two
    neighbouring cells is `exp(-V/T)` at the mean of their energies, so that detailed balance is exact on every grid.
    """

    radius = 0.3  # of A and B

    def __init__(self, potential, temperature, half=2.4, cells=241):
        self.axis = np.linspace(-half, half, cells)
        self.grid = np.stack(np.meshgrid(self.axis, self.axis, indexing="ij"), -1)
        energy = potential(self.grid) / temperature
        energy = np.minimum(energy - energy.min(), 200)  # no path comes to places so high
        start, end = (
            np.hypot(self.grid[..., 0] - x, self.grid[..., 1]) < self.radius for x in (-1, 1)
        )
        self.energy, self.free = energy, ~(start | end)
        means = (energy[:-1] + energy[1:]) / 2, (energy[:, :-1] + energy[:, 1:]) / 2
        self.q = committor([np.exp(-e) for e in means], self.free, end)
        steps = np.diff(self.q, axis=0), np.diff(self.q, axis=1)
        flux = [np.exp(-e) * step for e, step in zip(means, steps)]
        self.dissipation = np.zeros(energy.shape)  # exp(-V/T) |grad q|^2
        for f, step, to, to_next in zip(
            flux, steps, (np.s_[1:], np.s_[:, 1:]), (np.s_[:-1], np.s_[:, :-1])
        ):
            self.dissipation[to] += f * step / 2
            self.dissipation[to_next] += f * step / 2
        self.stream = stream_function(flux[0], self.axis)
        self.dividers = valleys(flux[0][cells // 2], self.stream[cells // 2])
        self.shares = np.diff([0, *self.dividers, 1])

    def rows(self, n, rng, ensemble="crossings"):
        "Places `(n, 2)`, log odds of the committor `(n,)` and channel `(n,)`."
        q = self.q.clip(1e-12, 1 - 1e-12)
        odds = np.log(q / (1 - q))
        weight = self.dissipation / (q * (1 - q))
        if ensemble == "paths":
            weight = np.exp(-self.energy) * q * (1 - q)
        weight = np.where(self.free & (np.abs(odds) < LOG_ODDS), weight, 0).ravel()
        cell, width = (
            rng.choice(weight.size, n, p=weight / weight.sum()),
            self.axis[1] - self.axis[0],
        )
        place = self.grid.reshape(-1, 2)[cell] + width * (rng.random((n, 2)) - 0.5)
        at = RegularGridInterpolator([self.axis] * 2, odds, bounds_error=False, fill_value=None)
        middle = [self.axis[:-1] + width / 2, self.axis]
        line = RegularGridInterpolator(middle, self.stream, bounds_error=False, fill_value=None)
        return place, at(place), np.searchsorted(self.dividers, line(place))


def committor(conductance, free, end):
    "The committor `(n, n)` from the conductances between neighbouring cells along both axes."
    k = np.arange(free.size).reshape(free.shape)
    i, j = np.r_[k[:-1].ravel(), k[:, :-1].ravel()], np.r_[k[1:].ravel(), k[:, 1:].ravel()]
    flow = sp.csr_matrix(
        (np.concatenate([c.ravel() for c in conductance]), (i, j)), (k.size, k.size)
    )
    flow = flow + flow.T
    # each row is divided by its sum, because energies differ by many orders of magnitude
    step = sp.diags(1 / np.asarray(flow.sum(axis=1)).ravel()) @ flow
    free, q = free.ravel(), end.ravel().astype(float)
    left = sp.identity(int(free.sum())) - step[free][:, free]
    q[free] = spsolve(left.tocsc(), step[free] @ q)
    return q.reshape(end.shape).clip(0, 1)


def stream_function(flux, axis):
    "Share of the flux `(n - 1, n)` that passes below a place; A and B are at height zero."
    below = np.cumsum(flux, axis=1) - flux / 2
    above = np.cumsum(flux[:, ::-1], axis=1)[:, ::-1] - flux / 2
    total = flux[len(axis) // 2].sum()
    return np.where(axis > 0, total - above, below) / total


def valleys(profile, stream):
    "Values of the stream function at which channels part, from the flux through a line between A and B."
    log = np.log(np.maximum(profile / profile.max(), 1e-6))
    peaks = find_peaks(log, prominence=np.log(2))[0]
    return np.array([stream[a + profile[a:b].argmin()] for a, b in zip(peaks, peaks[1:])])


def bent(place, rng, irrelevant=0.3, noise=0.05):
    "Twenty columns that are sines of the place and of three `irrelevant` coordinates, with noise."
    slow = (place - place.mean(axis=0)) / place.std(axis=0)
    both = np.c_[slow, irrelevant * rng.normal(size=(len(place), 3))]
    waves = rng.normal(size=(5, 20)) / np.sqrt(5)
    table = np.sin(both @ waves + rng.uniform(0, 2 * np.pi, 20))
    return table + noise * rng.normal(size=table.shape)


SYSTEMS = {
    "triple well, cold": (triple_well, 0.15),
    "triple well, warm": (triple_well, 0.3),
    "ring": (ring, 0.4),
    "three passes": (three_passes, 0.4),
    "two events": (two_events, 0.4),
    "Mueller-Brown": (mueller_brown, 0.75),
}
BENT = list(SYSTEMS)[:4]


# slab methods


def by_silhouette(rows):
    "k-means, with the number of clusters by the silhouette."
    best = 0.25, np.zeros(len(rows), dtype=int)
    for k in range(2, 6):
        labels = KMeans(k, n_init=3, random_state=0).fit_predict(rows)
        best = max(best, (silhouette_score(rows, labels), labels), key=lambda found: found[0])
    return best[1]


def by_density(rows):
    reach = NearestNeighbors(n_neighbors=6).fit(rows).kneighbors()[0][:, -1]
    return DBSCAN(eps=np.quantile(reach, 0.95), min_samples=5).fit_predict(rows)


def by_hierarchy(rows):
    size = max(5, len(rows) // 20)
    return HDBSCAN(min_cluster_size=size, allow_single_cluster=True, copy=True).fit_predict(rows)


def everywhere(X, rows, labels):
    "Labels `(n,)` from 0 of all rows: those of `rows`, and elsewhere that of the nearest of these."
    near = NearestNeighbors(n_neighbors=1).fit(X[rows]).kneighbors(X)[1][:, 0]
    return np.unique(labels, return_inverse=True)[1][near]


def linked(X, q, cluster):
    "Label `(n,)` of each row: clusters of overlapping slabs, linked where they share rows."
    middle = np.flatnonzero((q > BETWEEN[0]) & (q < BETWEEN[1]))
    order, half = middle[np.argsort(q[middle])], len(middle) // (SLABS + 1)
    pairs, nodes = [], 0
    for s in range(SLABS):
        rows = order[s * half : (s + 2) * half if s < SLABS - 1 else None]
        found = cluster(X[rows])
        if (found >= 0).any():  # a row of no cluster goes with the nearest row of one
            near = (
                NearestNeighbors(n_neighbors=1)
                .fit(X[rows[found >= 0]])
                .kneighbors(X[rows])[1][:, 0]
            )
            found = found[found >= 0][near]
        else:
            found = found + 1
        pairs.append(np.c_[rows, nodes + found])
        nodes += found.max() + 1
    rows, node = np.vstack(pairs).T
    joined = sp.csr_matrix((np.ones(len(rows)), (rows, len(X) + node)), (len(X) + nodes,) * 2)
    label = connected_components(joined, directed=False)[1][: len(X)]
    return everywhere(X, middle, label[middle])


def abstraction(X, q, groups=30, near=15):
    "Partition-based graph abstraction: k-means groups, linked if they have a tenth of the edges of chance."
    group = KMeans(groups, n_init=3, random_state=0).fit_predict(X)
    edges = NearestNeighbors(n_neighbors=near).fit(X).kneighbors_graph()
    member = sp.csr_matrix((np.ones(len(X)), (np.arange(len(X)), group)))
    between, size = (member.T @ (edges + edges.T) @ member).toarray(), np.bincount(group)
    chance = np.outer(between.sum(axis=1), size) / len(X)
    mean = np.bincount(group, q) / size
    inside = (mean > BETWEEN[0]) & (mean < BETWEEN[1])
    graph = (between > 0.1 * (chance + chance.T) / 2) & np.outer(inside, inside)
    label = connected_components(sp.csr_matrix(graph), directed=False)[1][group]
    middle = np.flatnonzero((q > BETWEEN[0]) & (q < BETWEEN[1]) & inside[group])
    return everywhere(X, middle, label[middle])


RIVALS = {
    "k-means": lambda X, q: linked(X, q, by_silhouette),
    "DBSCAN": lambda X, q: linked(X, q, by_density),
    "HDBSCAN": lambda X, q: linked(X, q, by_hierarchy),
    "abstraction": abstraction,
}


def looked_up(X, q, labels, new_X, new_q):
    "The rows nearest in the feature, of the label of the nearest row of a like feature: a row of numbers each."
    found = []
    for x, value in zip(new_X, new_q):
        near = np.argsort(np.abs(q - value))[: len(q) // SLABS]
        own = labels[near[np.argmin(((X[near] - x) ** 2).sum(axis=1))]]
        rows = np.flatnonzero(labels == own)
        found.append(rows[np.argsort(np.abs(q[rows] - value))[:K]])
    return found


# measures


def errors_of_shares(labels, channel, shares):
    "Largest error of a share of the flux, with the best match of labels and channels."
    table = np.zeros((channel.max() + 1, labels.max() + 1))
    np.add.at(table, (channel, labels), 1)
    said = np.zeros(len(shares))
    rows, columns = linear_sum_assignment(-table)
    said[rows] = table.sum(axis=0)[columns] / len(labels)
    return float(np.abs(said - shares).max())


def named(found, q, channel, new_q, new_channel):
    "Recall of lists of rows: those nearest in the feature and of the same channel."
    shares = []
    for rows, value, own in zip(found, new_q, new_channel):
        same = np.flatnonzero(channel == own)
        wanted = same[np.argsort(np.abs(q[same] - value))[:K]]
        shares.append(np.isin(wanted, rows).mean())
    return float(np.mean(shares))


def measured(draw, shares, options):
    "Number of channels, Rand index, recall and error of the shares, of the map and of the slab methods."
    (X, y, q, channel), (new_X, _, new_q, new_channel) = draw
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = IteratedDiffusionMap(random_state=0, **options).fit(X, y)
        graph = reeb_graph(model)
    seconds = time.process_time() - start
    middle = (q > BETWEEN[0]) & (q < BETWEEN[1])
    asked = (new_q > BETWEEN[0]) & (new_q < BETWEEN[1])
    new_X, new_q, new_channel = new_X[asked], new_q[asked], new_channel[asked]
    predicted = model.predict(new_X)
    near = list(model.kneighbors(new_X, n_neighbors=K)[1])
    count = int(((graph.ranges[:, 0] < 0.5) & (graph.ranges[:, 1] > 0.5)).sum())
    found = {"map": (graph.membership, count, near)}
    value = y if options["placed_by"] == "known" else graph.heights
    for name, method in RIVALS.items():
        labels = method(X, value)
        found[name] = labels, int(labels.max()) + 1, looked_up(X, value, labels, new_X, predicted)
    table = {}
    for name, (labels, count, rows) in found.items():
        rand = adjusted_rand_score(channel[middle], labels[middle])
        if len(shares) == 1:
            rand = float(len(np.unique(labels[middle])) == 1)
        recall = named(rows, q, channel, new_q, new_channel)
        error = errors_of_shares(labels[middle], channel[middle], shares)
        table[name] = count, rand, recall, error
    return table, seconds


def drawn(reaction, n, seed, is_bent=False, runs=0, ensemble="crossings"):
    "Training rows and half as many new ones: columns, feature, committor, channel."
    rng = np.random.default_rng(seed)
    place, odds, channel = reaction.rows(n + n // 2, rng, ensemble)
    q = 1 / (1 + np.exp(-odds))
    X = bent(place, rng) if is_bent else place
    y = rng.binomial(runs, q) / runs if runs else q
    return tuple(tuple(a[rows] for a in (X, y, q, channel)) for rows in (slice(n), slice(n, None)))


def alanine(path, n, seed):
    "Alanine dipeptide: coordinates of its atoms; feature: progress of psi; channel: the way it turns."
    data, rng = np.load(path), np.random.default_rng(seed)
    X, q = data["X"].astype(float), (1 - data["y"]) / 2
    order = rng.permutation(len(X))
    known, new = order[:n], order[n:]
    return tuple((X[rows], q[rows], q[rows], data["labels"][rows]) for rows in (known, new))


def report(name, draws, shares, options):
    "Print a line for each method."
    tables, seconds = zip(*(measured(draw, shares, options) for draw in draws))
    says = ", ".join(f"{share:.2f}" for share in shares)
    print(
        f"{name}: {len(shares)} channels, share of the flux {says}; {np.mean(seconds):.1f} s a map"
    )
    for method in tables[0]:
        counts, *rest = zip(*(table[method] for table in tables))
        right = sum(count == len(shares) for count in counts)
        rand, recall, error = np.nanmean(rest, axis=1)
        print(
            f"  {method:12} right {right:2}/{len(draws)} {sorted(counts)}  Rand {rand:.2f}  "
            f"recall {recall:.2f}  error of a share {error:.3f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("draws", nargs="?", type=int, default=10)
    parser.add_argument("--system", nargs="*", default=[*SYSTEMS, *(f"{s}, bent" for s in BENT)])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument(
        "--runs", type=int, default=0, help="trial runs a row; 0: the exact committor"
    )
    parser.add_argument("--ensemble", choices=("crossings", "paths"), default="crossings")
    parser.add_argument("--regressor", default="kernel")
    parser.add_argument("--alanine", help="file with X, y = cos psi, and labels, the sign of psi")
    args = parser.parse_args()
    # an exact committor has no noise
    options = dict(regressor=args.regressor, placed_by="posterior" if args.runs else "known")
    for name in args.system:
        plain = name.removesuffix(", bent")
        reaction = Reaction(*SYSTEMS[plain])
        draws = [
            drawn(reaction, args.rows, seed, name != plain, args.runs, args.ensemble)
            for seed in range(args.draws)
        ]
        report(name, draws, reaction.shares, options)
    if args.alanine:
        draws = [alanine(args.alanine, args.rows, seed) for seed in range(args.draws)]
        labels = np.load(args.alanine)["labels"]
        report("alanine dipeptide", draws, np.bincount(labels) / len(labels), options)


if __name__ == "__main__":
    main()
