"""The table of inputs against every estimator: what works, works exactly; what cannot work is refused in one clear sentence."""

import copy
import re
import warnings

import attacks
import numpy as np
import pytest
import scipy.sparse as sp
from attacks import ESTIMATORS, GROUPED, SUPERVISED, X, Y
from sklearn.utils import get_tags

import idm_nb
from idm_nb import DiffusionMap, IteratedDiffusionMap, feature_relevance, reeb_graph

# the verdict and the pieces are other tests
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def told(model, rows):
    "What a fitted model says of rows."
    return model.transform(rows) if hasattr(model, "transform") else model.predict(rows)


def embedding(model):
    "Coordinates of the training rows as the model keeps them."
    if hasattr(model, "embedding_"):
        return model.embedding_
    if hasattr(model, "linear_map_"):
        return (model.eigenfunctions_ @ model.linear_map_)[:, 1:]
    return model.eigenfunctions_[:, 1:]


def spoil(data):
    "Overwrite an array or a frame of the caller, if that is possible."
    if isinstance(data, np.ndarray) and data.flags.writeable:
        data[...] = data.flat[0]
    elif hasattr(data, "iloc"):
        data.iloc[:] = data.iloc[0]
    elif isinstance(data, list):
        data[:] = data[:1]


def message(call):
    "The error of a call, which has to be a plain `ValueError` or `TypeError`."
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert type(caught.value) in (ValueError, TypeError), caught.value
    return str(caught.value)


WORKING = [
    (name, kind)
    for name in attacks.GOOD
    for kind in (GROUPED if name in attacks.GROUPS else ESTIMATORS)
    if (name, kind) != ("many columns", "NonlinearICA")
    and not (name in attacks.FORMS and "," in kind)
]


@pytest.mark.parametrize("name, kind", WORKING)
def test_what_works(name, kind):
    given = copy.deepcopy(attacks.GOOD[name]())
    rows = copy.deepcopy(given[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        model = ESTIMATORS[kind]().fit(*given[:2], **attacks.named(given))
        found = told(model, rows)
    assert np.isfinite(found).all() and len(found) == len(rows)
    if hasattr(model, "transform"):
        places = embedding(model)
        assert np.abs(found - places).max() <= 1e-8 * np.abs(places).max()
    for part in given:
        spoil(part)
    assert np.array_equal(told(model, rows), found)
    if hasattr(model, "diagnostics_"):
        columns = model.diagnostics_.values()
        assert all(np.isfinite(np.asarray(column, dtype=float)).all() for column in columns)


def test_a_density_in_too_many_dimensions_is_refused():
    found = message(lambda: ESTIMATORS["NonlinearICA"]().fit(attacks.GOOD["many columns"]()[0]))
    assert re.search("dimension=300 is too many for a density.*pass the number of", found)


SPARSE = [kind for kind in ESTIMATORS if get_tags(ESTIMATORS[kind]()).input_tags.sparse]


def refused(table, kinds):
    pairs = [(name, kind) for name in table for kind in kinds]
    pairs = [(name, kind) for name, kind in pairs if name != "sparse" or kind not in SPARSE]
    return pytest.mark.parametrize("name, kind", pairs)


def check_message(call, words):
    found = message(call)
    assert all(re.search(word, found, re.DOTALL) for word in words), found


@refused(attacks.BAD_ROWS, ESTIMATORS)
def test_rows_that_are_refused(name, kind):
    make, *words = attacks.BAD_ROWS[name]
    rows = make()
    check_message(lambda: ESTIMATORS[kind]().fit(rows, Y), words)


@refused(attacks.BAD_FEATURES, SUPERVISED)
def test_features_that_are_refused(name, kind):
    make, *words = attacks.BAD_FEATURES[name]
    if kind.startswith("IteratedDiffusionMap") and name in ("NaN", "masked", "None among numbers"):
        pytest.skip("rows without a feature are placed as new rows")
    feature = make()
    check_message(lambda: ESTIMATORS[kind]().fit(X, feature), words)


@refused(attacks.BAD_GROUPS, GROUPED)
def test_groups_that_are_refused(name, kind):
    make, *words = attacks.BAD_GROUPS[name]
    check_message(lambda: ESTIMATORS[kind]().fit(X, Y, groups=make()), words)


@pytest.fixture(scope="module")
def fitted():
    return {kind: make().fit(X, Y) for kind, make in ESTIMATORS.items()}


@refused(attacks.BAD_NEW, ESTIMATORS)
def test_new_rows_that_are_refused(name, kind, fitted):
    make, *words = attacks.BAD_NEW[name]
    rows = make()
    check_message(lambda: told(fitted[kind], rows), words)


@pytest.mark.parametrize(
    "kind, parameter, value",
    [
        (kind, parameter, value)
        for kind in ESTIMATORS
        if "," not in kind
        for parameter in ESTIMATORS[kind]().get_params(deep=False)
        if parameter not in ("verbose", "n_iterations")
        for value in attacks.NO_VALUES
        if (parameter, value) not in attacks.ALLOWED
    ],
)
def test_parameters_that_are_refused(kind, parameter, value):
    model = ESTIMATORS[kind]().set_params(**{parameter: attacks.NO_VALUES[value]})
    found = message(lambda: model.fit(X, Y))
    assert parameter in found and ("got " in found or "is not known" in found), found


FAR = np.linalg.norm(X[:, None] - X, axis=2)
NEAR = np.exp(-(FAR**2) / 2)
COPIES = np.linalg.norm(X[attacks.COPIES][:, None] - X[attacks.COPIES], axis=2)


def sparse_distances(distances, radius=2.0):
    "Near pairs, those at distance zero among them."
    place = np.nonzero(distances < radius)
    return sp.csr_matrix((distances[place], place), distances.shape)


def stored_zeros(kernel):
    found = sp.csr_matrix(kernel)
    found.data[found.data < 0.1] = 0
    return found


def hole(matrix, value=0.0):
    "The matrix with one row and column of one value."
    matrix = matrix.copy()
    matrix[5] = matrix[:, 5] = value
    return matrix


GIVEN = {
    "distances": ("precomputed", FAR),
    "distances with copies": ("precomputed", COPIES),
    "distances of six places": (
        "precomputed",
        np.linalg.norm(X[attacks.FEW][:, None] - X[attacks.FEW], axis=2),
    ),
    "distances in a frame": ("precomputed", lambda: attacks.frame(FAR, names=range(len(FAR)))),
    "sparse distances": ("precomputed", sparse_distances(FAR)),
    "sparse distances with copies": ("precomputed", sparse_distances(COPIES)),
    "kernel": ("kernel", NEAR),
    "sparse kernel with stored zeros": ("kernel", stored_zeros(NEAR)),
    "kernel that joins nothing": ("kernel", np.eye(20)),
}


@pytest.mark.parametrize("name", GIVEN)
def test_distances_and_kernels(name):
    metric, matrix = GIVEN[name]
    matrix = copy.deepcopy(matrix() if callable(matrix) else matrix)
    model = DiffusionMap(4, metric=metric, epsilon=0.5, random_state=0).fit(matrix)
    found = model.transform(copy.deepcopy(matrix))
    assert np.isfinite(found).all()
    assert np.abs(found - embedding(model)).max() < 1e-8 * np.abs(found).max()
    again = copy.deepcopy(matrix)
    spoil(matrix.data if sp.issparse(matrix) else matrix)
    assert np.array_equal(model.transform(again), found)


def test_sparse_distances_are_the_dense_ones_cut_off():
    options = dict(metric="precomputed", epsilon=0.1, keep_self=False, random_state=0)
    models = [DiffusionMap(4, **options).fit(m) for m in (COPIES, sparse_distances(COPIES))]
    assert np.allclose(*(model.laplacian_eigenvalues_ for model in models), rtol=1e-3)


@pytest.mark.parametrize(
    "metric, matrix, words",
    [
        ("precomputed", hole(FAR, np.nan), "X contains NaN at row 0, column 5"),
        ("precomputed", hole(FAR, np.inf), "X contains inf at row 0, column 5"),
        ("precomputed", -FAR, "a precomputed distance must not be negative, got -"),
        (
            "precomputed",
            FAR + np.arange(len(FAR)),
            "a precomputed distance must be symmetric; entries differ by up to",
        ),
        (
            "precomputed",
            FAR[:50],
            r"a precomputed distance must be a square matrix, got shape \(50, 60\)",
        ),
        ("precomputed", 0 * FAR, "all points coincide"),
        ("precomputed", FAR + 0j, "Complex data not supported: X"),
        ("kernel", hole(NEAR), "row 5 of the kernel X is zero"),
        ("kernel", sp.csr_matrix(hole(NEAR)), "row 5 of the kernel X is zero"),
        ("kernel", -NEAR, "a kernel must not be negative"),
        ("kernel", hole(NEAR, np.nan), "X contains NaN at row 0, column 5"),
    ],
)
def test_distances_and_kernels_that_are_refused(metric, matrix, words):
    model = DiffusionMap(4, metric=metric, epsilon=0.5)
    assert re.search(words, message(lambda: model.fit(matrix)))


class Odd:
    "A regressor that predicts what it is told to."

    def __init__(self, values=None):
        self.values = values

    def get_params(self, deep=True):
        return {"values": self.values}

    def set_params(self, **parameters):
        self.__dict__.update(parameters)
        return self

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.values(X)


@pytest.mark.parametrize(
    "values",
    [
        lambda X: np.full(len(X), np.nan),
        lambda X: np.full(len(X), np.inf),
        lambda X: 3.0,
        lambda X: None,
        lambda X: X[:-1, 0],
        lambda X: X[:, :2],
        lambda X: ["a"] * len(X),
        lambda X: X[:, 0] + 1j,
        lambda X: X[:, :1].T,
    ],
    ids=["NaN", "inf", "a number", "None", "too short", "two columns", "words", "complex", "a row"],
)
def test_regressors_that_predict_nonsense(values):
    found = message(lambda: IteratedDiffusionMap(regressor=Odd(values)).fit(X, Y))
    assert re.search(
        r"regressor Odd predicts an array of shape .*expected \(\d+, 1\) finite numbers", found
    )


def test_regressors_may_return_lists():
    lists = Odd(lambda X: X[:, 0].tolist())
    model = IteratedDiffusionMap(regressor=lists, random_state=0).fit(X, Y)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("log_odds", [0, 3, 20, np.inf])
def test_graphs_at_all_thresholds(log_odds, fitted):
    graph = reeb_graph(fitted["IteratedDiffusionMap"], log_odds=log_odds)
    assert graph.n_pieces >= 1 and len(graph.membership) == len(X)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda m: feature_relevance(m, X, Y, random_state="x"), "random_state must be None, an"),
        (lambda m: m.kneighbors(X, 0), "n_neighbors must be an integer, 1 or more and at most 60"),
    ],
)
def test_functions_that_refuse(call, words, fitted):
    assert re.search(words, message(lambda: call(fitted["IteratedDiffusionMap"])))


def test_a_map_that_ends_at_chance_says_so():
    noise = np.random.default_rng(0).normal(size=len(X))
    with pytest.warns(UserWarning, match="30 rows are too few to say"):
        ESTIMATORS["IteratedDiffusionMap, paper"]().fit(X[:30], noise[:30])


def test_names_cannot_end_the_page_of_the_explorer(tmp_path, fitted):
    frame = attacks.frame(X, names=["<!--<script>", "</script>", "a&b"])
    model = IteratedDiffusionMap(2, regressor="ridge", random_state=0).fit(frame, Y)
    idm_nb.save_explorer(model, tmp_path / "page.html", title="<b>")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<!--<script>" not in page and "<b>" not in page
    assert page.count("</script>") == page.count("<script")
