"""
---
title: "# Data, diffusion, derivatives, study and relatives {.unnumbered}"
aliases: [/14_reference/diffusion_and_relatives.html]
---
"""

from tools.site import reference_page

print(
    reference_page(
        "diffusion_and_relatives",
        "`idm_nb.datasets`, `idm_nb.diffusion`, `idm_nb.kernels`, `idm_nb.derivatives`, `idm_nb.study` and `idm_nb.relatives`: manifolds and pictures, diffusion maps, local kernels, derivatives of a feature, dimension, relevance of columns, the explorer, and maps for other questions.",
    )
)
