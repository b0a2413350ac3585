from .graph import Branches as Branches
