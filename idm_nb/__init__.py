"""Iterated diffusion maps: find the geometry in which distance means difference in the feature.

The code is written in the notebooks of `nbs/`, one folder for each part. This file offers the names that most users need, listed in
`__init__.pyi`; a name is imported when it is first used. Everything else is public in its part, as `idm_nb.diffusion.KernelSum`.
"""

import warnings
from importlib import import_module
from pkgutil import iter_modules

import lazy_loader

__version__ = "0.2.0.dev0"

_lazy, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(set(_names) - {module.name for module in iter_modules(__path__)})

_MOVED = {  # names of version 0.1, and the part where each is now
    "angle_feature": "datasets",
    "feature_example": "datasets",
    "rotated_digits": "datasets",
    "turned_objects": "datasets",
    "wave_images": "datasets",
    "KernelSum": "diffusion",
    "linear_residual": "diffusion",
    "neighbor_recall": "diffusion",
    "recall_by_component": "diffusion",
    "local_generator": "kernels",
    "tangent_moments": "kernels",
    "LocalRegression": "derivatives",
    "dimension_curves": "derivatives",
    "estimate_derivative": "derivatives",
    "singular_value_scaling": "derivatives",
    "tangent_spaces": "derivatives",
    "tune_local_bandwidth": "derivatives",
    "ReebGraph": "idm",
    "Relevance": "study",
    "relevance_baseline": "study",
    "covariances_from_balls": "relatives",
    "covariances_from_bursts": "relatives",
    "drift_from_bursts": "relatives",
}


def __getattr__(name):
    if name not in _MOVED:
        return _lazy(name)
    place = f"idm_nb.{_MOVED[name]}"
    text = f"idm_nb.{name} is now {place}.{name}; the short name will be removed in version 0.4"
    warnings.warn(text, FutureWarning, stacklevel=2)
    return getattr(import_module(place), name)
