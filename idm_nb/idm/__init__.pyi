from .estimator import FittedMap as FittedMap
from .estimator import IteratedDiffusionMap as IteratedDiffusionMap
from .estimator import Placed as Placed
from .reeb import ReebGraph as ReebGraph
from .reeb import reeb_graph as reeb_graph
