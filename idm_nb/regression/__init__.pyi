from .errors import ErrorModel as ErrorModel
from .kernel import KernelRegression as KernelRegression
from .stacked import FeatureRegressor as FeatureRegressor
from .verdict import Verdict as Verdict
