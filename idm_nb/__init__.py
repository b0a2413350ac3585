"""Iterated diffusion maps: find the geometry in which distance means difference in the feature.

The modules are written in the notebooks of `nbs/`; this file only names what they offer. A name is imported when it is
first used, so that `import idm_nb` is fast.
"""

from importlib import import_module

__version__ = "0.1.0"

_PLACES = {
    "examples": "angle_feature feature_example",
    "measures": "linear_residual neighbor_recall recall_by_component",
    "bandwidth": "KernelSum",
    "diffusion_map": "DiffusionMap",
    "local_kernel": "local_generator tangent_moments",
    "derivative": "LocalRegression estimate_derivative",
    "scaling_law": "dimension_curves singular_value_scaling tangent_spaces tune_local_bandwidth",
    "estimate": "FeatureRegressor",
    "idm": "IteratedDiffusionMap",
    "letter": "DiffusionFlow",
    "reeb": "ReebGraph reeb_graph",
    "images": "LearnedBasis rotated_digits turned_objects wave_images",
    "relevance": "Relevance feature_relevance relevance_baseline",
    "hidden_lengths": "covariances_from_balls covariances_from_bursts drift_from_bursts",
    "nonlinear_ica": "NonlinearICA",
    "conformal_map": "ConformalMap",
    "diffeomorphism": "DiffeomorphismMap",
    "explorer": "explore",
    "explorer_page": "save_explorer",
    "many_rows": "in_parts",
}
_HOME = {name: module for module, names in _PLACES.items() for name in names.split()}
__all__ = [*_HOME, "load"]


def load(path):
    """Read a model that `model.save(path)` or `idm-nb fit` wrote; no code of the file is run."""
    return import_module("idm_nb.storage").load_model(path)


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"idm_nb.{_HOME[name]}"), name)
    raise AttributeError(f"module 'idm_nb' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
