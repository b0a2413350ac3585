"""Iterated diffusion maps: find the geometry in which distance means difference in the feature.

The modules are written in the notebooks of `nbs/`; this file only names what they offer. A name is imported when it is
first used, so that `import idm_nb` is fast.
"""

from importlib import import_module

__version__ = "0.1.0"

_PLACES = {
    "manifolds": "angle_feature feature_example",
    "diffusion_map": "DiffusionMap KernelSum",
    "local_kernel": "local_generator tangent_moments",
    "derivative": "estimate_derivative",
    "scaling_law": "dimension_curves singular_value_scaling tangent_spaces tune_local_bandwidth",
    "regression": "KernelRegression",
    "idm": "IteratedDiffusionMap neighbor_recall plot_diagnostics",
    "reeb": "ReebGraph reeb_graph",
    "images": "learned_basis rotated_digits wave_images",
    "relevance": "Relevance feature_relevance relevance_baseline",
    "nonlinear_ica": "NonlinearICA covariances_from_balls covariances_from_bursts drift_from_bursts",
    "conformal_map": "ConformalMap linear_residual",
    "diffeomorphism": "DiffeomorphismMap",
    "explorer": "explore save_explorer",
}
_HOME = {name: module for module, names in _PLACES.items() for name in names.split()}
__all__ = [*_HOME, "load"]


def load(path):
    """Read a model that `model.save(path)` or `idm-nb fit` wrote; no code of the file is run."""
    return import_module("idm_nb.core").load_model(path)


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"idm_nb.{_HOME[name]}"), name)
    raise AttributeError(f"module 'idm_nb' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
