from .estimator import IteratedDiffusionMap as IteratedDiffusionMap
from .fitted import FittedMap as FittedMap
from .fitted import Placed as Placed
from .reeb import ReebGraph as ReebGraph
from .reeb import reeb_graph as reeb_graph
