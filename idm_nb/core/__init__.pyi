from .files import Storage as Storage
from .files import load as load
from .pictures import bars as bars
from .pictures import plot_map as plot_map
from .pictures import scatter as scatter
from .pictures import scatter_row as scatter_row
