"""What editors and type checkers see of a model; pyright finds no error here, and a test asks jedi for its methods."""

from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example

X, y, _ = feature_example("annulus radius", 300, random_state=0)
model = IteratedDiffusionMap(random_state=0)
model.fit(X, y)
model.transform(X)
model.predict(X)
model.kneighbors(X)
model.assign(X)
model.score(X, y)
IteratedDiffusionMap(random_state=0).fit(X, y).kneighbors(X)
