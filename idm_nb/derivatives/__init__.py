"""The derivative of a feature, and what scaling laws say of tangent spaces, dimension and bandwidth."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
