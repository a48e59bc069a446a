"""Notebooks as slides: `live` opens one in JupyterLab, `static` writes pages without a kernel.

Both follow the slide type in each cell's metadata. `template` makes a page of a notebook, and
`settings` holds JupyterLab's letter sizes for a projector.
"""
