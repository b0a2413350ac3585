"""Maps for other questions: hidden variables, conformal coordinates, two views of one system."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
