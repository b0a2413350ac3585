"""Iterated diffusion maps: find the geometry in which distance means difference in the feature.

The code is written in the notebooks of `nbs/`, one folder for each part. This file offers the names that most users need, listed in
`__init__.pyi`; a name is imported when it is first used. Everything else is public in its part, as `idm_nb.diffusion.KernelSum`.
"""

from pkgutil import iter_modules

import lazy_loader

__version__ = "0.2.0.dev0"

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(set(_names) - {module.name for module in iter_modules(__path__)})
