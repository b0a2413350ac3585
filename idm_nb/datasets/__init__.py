"""The data of the book: manifolds with known answers, features on them, and pictures.

A front without code of its own: the functions are written where the book needs them first.
"""

from ..diffusion.manifolds import (
    Annulus,
    Circle,
    Ellipse,
    FlatTorus,
    Sphere,
    SwissRoll,
    Torus,
    angle_feature,
    feature_example,
)
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
