"""Tables: reading, columns, gaps, the map of a table, its report, and single cells."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
