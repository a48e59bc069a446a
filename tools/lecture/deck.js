// Turns the pages, and makes each slide fit. Space and the arrow keys lead on, S opens the notes.
"use strict";

Reveal.initialize({
  width: 1280, height: 720, margin: 0, minScale: 0.1, center: false, hash: true, transition: "none",
  pdfSeparateFragments: false,
  controls: false, slideNumber: "c/t", plugins: [RevealNotes],
});

const ROOM = 636; // px: the height of a slide without its edges
const LEAST = 24.5; // px: letters of an explorer, where there is room for them

function fit() {
  const slide = Reveal.getCurrentSlide();
  if (slide.dataset.fits !== undefined) return;
  slide.dataset.fits = "";
  const cell = slide.querySelector(".cell");
  if (cell) { // an explorer, as large as the slide allows, with some room for states that are higher
    const title = slide.querySelector("h2"), box = cell.querySelector(".box");
    const room = title ? 660 - title.offsetHeight : 0.97 * (720 - 56);
    let best = { size: 0 };
    const arrange = (letters, beside) => {
      cell.style.setProperty("--letters", `${letters}px`);
      box?.classList.toggle("beside", beside);
      const zoom = Math.min(3, 1220 / cell.scrollWidth, room / cell.scrollHeight);
      // A drawing keeps its letters, where larger ones would overlap.
      const smallest = Math.min(letters, ...[...cell.querySelectorAll("svg")].map(
        svg => parseFloat(getComputedStyle(svg).fontSize)));
      return { letters, beside, zoom, size: smallest * zoom };
    };
    for (let letters = 12; letters <= 22 && best.size < LEAST; letters++) // as few as are needed:
      for (const beside of [false, true]) { // letters grow, and lines do not
        const found = arrange(letters, beside);
        if (found.size > best.size) best = found;
      }
    cell.style.zoom = arrange(best.letters, best.beside).zoom;
    return;
  }
  const parts = [...slide.children].filter(part => part.tagName !== "ASIDE");
  const height = () => parts.at(-1).getBoundingClientRect().bottom - parts[0].getBoundingClientRect().top;
  const most = () => ROOM * Reveal.getScale();
  const largest = parseInt(getComputedStyle(slide).getPropertyValue("--largest")) || 34; // px
  for (let size = largest; size > 23; size--) {
    slide.style.fontSize = `${size}px`;
    if (height() <= most()) break;
  }
}

Reveal.on("ready", fit);
Reveal.on("slidechanged", fit);

// After a click on a control, the keys turn pages again. Whoever moves it by the keyboard keeps it.
for (const control of document.querySelectorAll("fieldset input, fieldset select")) {
  control.addEventListener("pointerup", () => { if (control.type === "range") control.blur(); });
  control.addEventListener("change", () => { if (control.type !== "range") control.blur(); });
}
