"""Looking at a fitted map: images, relevance of columns, the explorer."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
