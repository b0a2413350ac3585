from .explorer import explore as explore
from .explorer import save_explorer as save_explorer
from .images import rotated_digits as rotated_digits
from .images import turned_objects as turned_objects
from .images import wave_images as wave_images
from .relevance import Relevance as Relevance
from .relevance import feature_relevance as feature_relevance

