from .curve import LearningCurve as LearningCurve
from .errors import ErrorModel as ErrorModel
from .kernel import FeatureEstimate as FeatureEstimate
from .kernel import KernelRegression as KernelRegression
from .stacked import FeatureRegressor as FeatureRegressor
from .stacked import Mixture as Mixture
from .verdict import Verdict as Verdict
from .verdict import judge as judge
