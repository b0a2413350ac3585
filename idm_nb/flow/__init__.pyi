from .closed import BelowTheError as BelowTheError
from .closed import ClosedFlow as ClosedFlow
from .closed import Flow as Flow
from .closed import FlowTask as FlowTask
from .closed import StoppingRule as StoppingRule
from .closed import remainder as remainder
from .diffusion import DiffusionFlow as DiffusionFlow
