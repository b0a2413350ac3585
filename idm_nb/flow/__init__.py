"""The flow from the geometry of the data to the geometry of the feature."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
