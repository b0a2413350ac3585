from .local_kernel import StretchedMetric as StretchedMetric
from .local_kernel import local_generator as local_generator
from .local_kernel import tangent_moments as tangent_moments
