"""From a slider's step to the changed picture, in real JupyterLab; wanted: 95 of 100 within 50 ms.

Every slider of every notebook is moved by arrow keys, right and left again. A step's time ends with
the first frame in which anything shown by its cell has changed. At the end of
the range it turns round; a slider that never changes anything fails.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import browser, notebooks

STEPS = 40
WANTED = 50  # ms
MOVE = """async ([number, steps]) => {
  const handle = document.querySelectorAll('.jp-Notebook .noUi-handle')[number];
  const cell = handle.closest('.jp-Cell');
  const drawn = '.widget-html-content, svg, img';
  const shown = () => [...cell.querySelectorAll(drawn)].map(e => e.src || e.innerHTML).join();
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const times = [];
  let key = 'ArrowRight';
  for (let step = 0; step < steps; step++) {
    const before = shown(), at = handle.getAttribute('aria-valuenow'), start = performance.now();
    handle.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    if (handle.getAttribute('aria-valuenow') === at) {
      key = key === 'ArrowRight' ? 'ArrowLeft' : 'ArrowRight';
      continue;
    }
    while (shown() === before && performance.now() - start < 1000) await frame();
    if (shown() !== before) times.push(performance.now() - start);
    await new Promise(done => setTimeout(done, 60));
  }
  return times;
}"""


def main():
    everything, dead = [], []
    with browser.lab() as lab, browser.chromium() as chromium:
        for path in notebooks.names():
            page = chromium.new_page(viewport={"width": 1300, "height": 1000})
            browser.open_notebook(
                page, f"{lab.url}/lab/tree/{path.name}?token={browser.TOKEN}&reset"
            )
            browser.run_all(page)
            for number in range(page.locator(".jp-Notebook .noUi-handle").count()):
                page.locator(".jp-Notebook .noUi-handle").nth(number).scroll_into_view_if_needed()
                times = page.evaluate(MOVE, [number, STEPS])
                everything += times
                if not times:
                    dead.append(f"{path.name} slider {number}")
                    continue
                middle, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
                found = f"{len(times)} steps, median {middle:.0f} ms, p95 {p95:.0f} ms"
                print(f"{path.name} slider {number}: {found}")
            page.close()
    if not everything or dead:
        raise SystemExit(f"Nothing moved: {', '.join(dead) or 'there is no slider'}.")
    p95 = statistics.quantiles(everything, n=20)[-1]
    print(f"all: median {statistics.median(everything):.0f} ms, p95 {p95:.0f} ms (wanted {WANTED})")
    raise SystemExit(p95 > WANTED)


if __name__ == "__main__":
    main()
