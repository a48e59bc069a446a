"""What axe-core finds on a page: faults for those who use a screen reader or a keyboard."""

from tools import npm

# Without its own requests for style sheets, which a page from files refuses.
RUN = """([where, only]) => axe.run(where ? {include: where} : document,
  {preload: false, resultTypes: ['violations'], ...(only && {runOnly: only})})"""
# All that is different on a page that turns dark: its colours, and which of two pictures is shown.
COLOURS = ["color-contrast", "link-in-text-block", "image-alt"]

# JupyterLab and slides scroll inside of what axe takes for all that can be seen: it would not
# judge the contrast of anything beyond.
SHOW_ALL = "html, body, .jp-LabShell, .reveal-viewport {overflow: visible !important}"


def violations(page, where=None, only=None):
    """The serious and critical ones, on the whole page or in what a CSS selector matches.

    ``only`` names the rules to judge by, where not all of them are wanted.
    """
    page.add_style_tag(content=SHOW_ALL)
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=npm.PACKAGES / "axe-core/axe.min.js")
    return [
        f"{found['id']}: {node['html'][:150]} {node['failureSummary'][:300]}"
        for found in page.evaluate(RUN, [where, only])["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"][:3]
    ]
