from .curve import LearningCurve as LearningCurve
from .kernel import FeatureEstimate as FeatureEstimate
from .kernel import KernelRegression as KernelRegression
from .stacked import ErrorModel as ErrorModel
from .stacked import FeatureRegressor as FeatureRegressor
from .verdict import Verdict as Verdict
