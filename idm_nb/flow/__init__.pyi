from .closed import ClosedFlow as ClosedFlow
from .closed import Flow as Flow
from .closed import FlowTask as FlowTask
from .closed import flow_taus as flow_taus
from .closed import remainder as remainder
from .diffusion import DiffusionFlow as DiffusionFlow
from .paper import PaperIteratedDiffusionMap as PaperIteratedDiffusionMap
