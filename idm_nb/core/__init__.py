"""What every part stands on: checks of the input, work in parts, files, rows, pictures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
