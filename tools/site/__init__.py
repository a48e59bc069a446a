"""The series as static pages: ``python -m tools.site`` writes site/, which needs no network.

`__main__` builds everything into a temporary folder and moves it into its place. `pages` makes
pages out of notebooks, `live` computes what the explorers show in every setting, `formulas`
renders TeX with KaTeX. `model` prepares the model that writes on the start page. `templates` and
`static` hold the HTML, the style sheet and the scripts.
"""
