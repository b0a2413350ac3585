from .estimator import IteratedDiffusionMap as IteratedDiffusionMap
from .reeb import ReebGraph as ReebGraph
from .reeb import reeb_graph as reeb_graph
from .rows import Placed as Placed
