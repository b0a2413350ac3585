"""
---
title: "# Reference {.unnumbered}"
aliases: [/14_reference/reference.html]
---
"""

from tools.site import reference_index

print(reference_index())
