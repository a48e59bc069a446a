"""The site in Chromium, from files: until a page is live, and from a slider's step to the picture.

Wanted: live after at most 2 s, a step's p95 at most 20 ms, at most 15 MB. A page is live when its
controls answer. A step's time is the script's work, the new layout, and the wait for a frame. Run
it on a quiet machine: the load says how quiet it was.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import browser, notebooks
from tools.site import __main__ as site

STEPS = 60
WANTED_LIVE, WANTED_STEP, WANTED_SIZE = 2000, 20, 15  # ms, ms, MB
WHEN_LIVE = """new MutationObserver((_, watch) => {
  const boxes = [...document.querySelectorAll('[data-live]')];
  if (!boxes.length || boxes.some(box => !('ready' in box.dataset))) return;
  watch.disconnect();
  window.liveAt = performance.now();
}).observe(document, {subtree: true, childList: true, attributes: true})"""
MOVE = """async ([number, steps]) => {
  const slider = document.querySelectorAll('[data-live] [type=range]')[number];
  const view = slider.closest('[data-live]').querySelector('.view');
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const work = [], shown = [];
  let step = 1, dead = 0;
  for (let i = 0; i < steps; i++) {
    if (slider.value === slider.max) step = -1;
    if (slider.value === slider.min) step = 1;
    const before = view.innerHTML;
    await frame();
    await new Promise(done => setTimeout(done, 7 * (i % 5)));
    const start = performance.now();
    slider.value = Number(slider.value) + step;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    view.getBoundingClientRect();  // the layout is part of it
    work.push(performance.now() - start);
    await frame();
    shown.push(performance.now() - start);
    dead += view.innerHTML === before;
  }
  return {work, shown, dead};
}"""


def p95(times):
    return statistics.quantiles(times, n=20)[-1]


def main():
    slowest, everything = 0, []
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chromium:
        made = Path(folder)
        site.build(notebooks.names(), made)
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file()) / 1e6
        for path in notebooks.names():
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(WHEN_LIVE)
            times = []
            for _ in range(5):
                page.goto((made / f"{path.stem}.html").as_uri())
                # The page loads what is live when it comes near: at once, as by a link to it.
                page.evaluate("document.querySelector('[data-live]').scrollIntoView()")
                page.wait_for_function("window.liveAt")
                times.append(page.evaluate("window.liveAt"))
            slowest = max(slowest, *times)
            print(f"{path.stem}: live after {statistics.median(times):.0f} ms", end="")
            for number in range(page.locator("[data-live] [type=range]").count()):
                found = page.evaluate(MOVE, [number, STEPS])
                if found["dead"] > STEPS / 2:
                    raise SystemExit(f"{path.stem}: slider {number} changes nothing.")
                everything += found["shown"]
                print(f"; slider {number}: work p95 {p95(found['work']):.1f} ms, ", end="")
                print(f"shown p95 {p95(found['shown']):.1f} ms", end="")
            print()
            page.close()
    print(f"machine: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"size {size:.1f} MB, wanted at most {WANTED_SIZE}")
    print(f"slowest page live after {slowest:.0f} ms, wanted at most {WANTED_LIVE}")
    print(f"all steps: p95 {p95(everything):.1f} ms, wanted at most {WANTED_STEP}")
    raise SystemExit(slowest > WANTED_LIVE or p95(everything) > WANTED_STEP or size > WANTED_SIZE)


if __name__ == "__main__":
    main()
