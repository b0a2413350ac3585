"""The data of the book: manifolds with known answers, features on them, and pictures.

A front without code of its own: the functions are written where the book needs them first.
"""

from ..diffusion.examples import Annulus, SwissRoll, angle_feature, feature_example
from ..diffusion.manifolds import Circle, Ellipse, FlatTorus, Sphere, Torus
from ..study.images import rotated_digits, turned_objects, wave_images

__all__ = [
    "Annulus",
    "Circle",
    "Ellipse",
    "FlatTorus",
    "Sphere",
    "SwissRoll",
    "Torus",
    "angle_feature",
    "feature_example",
    "rotated_digits",
    "turned_objects",
    "wave_images",
]
