from . import app as app
from . import branches as branches
from . import core as core
from . import datasets as datasets
from . import derivatives as derivatives
from . import diffusion as diffusion
from . import flow as flow
from . import idm as idm
from . import kernels as kernels
from . import regression as regression
from . import relatives as relatives
from . import study as study
from .app.many_rows import in_parts as in_parts
from .core.files import load as load
from .diffusion.diffusion_map import DiffusionMap as DiffusionMap
from .flow.diffusion import DiffusionFlow as DiffusionFlow
from .flow.paper import PaperIteratedDiffusionMap as PaperIteratedDiffusionMap
from .idm.estimator import IteratedDiffusionMap as IteratedDiffusionMap
from .idm.reeb import reeb_graph as reeb_graph
from .regression.stacked import FeatureRegressor as FeatureRegressor
from .relatives.conformal_map import ConformalMap as ConformalMap
from .relatives.diffeomorphism import DiffeomorphismMap as DiffeomorphismMap
from .relatives.nonlinear_ica import NonlinearICA as NonlinearICA
from .study.explorer import explore as explore
from .study.explorer import save_explorer as save_explorer
from .study.relevance import feature_relevance as feature_relevance

__version__: str
