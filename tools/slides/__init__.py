"""A notebook as slides in JupyterLab: `live` opens it; `settings` are JupyterLab's for a projector.

The slides follow the slide type in each cell's metadata.
"""
