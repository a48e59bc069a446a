"""What axe-core finds on a page: faults for those who use a screen reader or a keyboard."""

from tools import npm

# Without its own requests for style sheets, which a page from files refuses.
RUN = """where => axe.run(where ? {include: where} : document,
                          {preload: false, resultTypes: ['violations']})"""


# JupyterLab and slides scroll inside of what axe takes for all that can be seen: it would not
# judge the contrast of anything beyond.
SHOW_ALL = "html, body, .jp-LabShell, .reveal-viewport {overflow: visible !important}"


def violations(page, where=None):
    """The serious and critical ones, on the whole page or in what a CSS selector matches."""
    page.add_style_tag(content=SHOW_ALL)
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=npm.PACKAGES / "axe-core/axe.min.js")
    return [
        f"{found['id']}: {node['html'][:150]} {node['failureSummary'][:300]}"
        for found in page.evaluate(RUN, where)["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"][:3]
    ]
