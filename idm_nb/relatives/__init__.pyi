from .hidden_lengths import CovarianceMetric as CovarianceMetric
from .hidden_lengths import covariances_from_balls as covariances_from_balls
from .hidden_lengths import covariances_from_bursts as covariances_from_bursts
from .hidden_lengths import drift_from_bursts as drift_from_bursts
from .nonlinear_ica import NonlinearICA as NonlinearICA
from .other_geometries import ConformalMap as ConformalMap
from .other_geometries import DiffeomorphismMap as DiffeomorphismMap
