from .contrast import BranchContrast as BranchContrast
from .contrast import branch_contrast as branch_contrast
from .graph import Branches as Branches
from .support import supported as supported
