"""
---
title: "# Map, branches, estimates and flow {.unnumbered}"
aliases: [/14_reference/map_and_estimates.html]
---
"""

from tools.site import reference_page

print(
    reference_page(
        "map_and_estimates",
        "`idm_nb.idm`, `idm_nb.branches`, `idm_nb.regression` and `idm_nb.flow`: the Reeb graph, what a fitted map consists of, level sets, estimates of the feature and the verdict, and the iteration.",
    )
)
