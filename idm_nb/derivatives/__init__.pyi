from .derivative import LocalRegression as LocalRegression
from .derivative import estimate_derivative as estimate_derivative
from .scaling_law import dimension_curves as dimension_curves
from .scaling_law import singular_value_scaling as singular_value_scaling
from .scaling_law import tangent_spaces as tangent_spaces
from .scaling_law import tune_local_bandwidth as tune_local_bandwidth
