from .nonlinear_ica import CovarianceMetric as CovarianceMetric
from .nonlinear_ica import NonlinearICA as NonlinearICA
from .nonlinear_ica import covariances_from_balls as covariances_from_balls
from .nonlinear_ica import covariances_from_bursts as covariances_from_bursts
from .nonlinear_ica import drift_from_bursts as drift_from_bursts
from .other_geometries import ConformalMap as ConformalMap
from .other_geometries import DiffeomorphismMap as DiffeomorphismMap
