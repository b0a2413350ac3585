"""
---
title: "# Estimators, tables and pictures {.unnumbered}"
aliases: [/14_reference/estimators_and_tables.html]
---
"""

from tools.site import reference_page

print(
    reference_page(
        "estimators_and_tables",
        "`IteratedDiffusionMap` for numbers and `TableMap` for tables with words, dates and gaps; files, reports and AnnData in `idm_nb.tables`, and the pictures of `idm_nb.core`.",
    )
)
