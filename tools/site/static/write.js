// The model in the page (model.js) at work: a text of one's own, the letters that may come next, and
// what each head attends to.
"use strict";

{
  const find = selector => document.querySelector(selector);
  const [prompt, unread, write, back, said] =
    ["#prompt", "#unread", "#write", "#back", "#said"].map(find);
  const [temperature, topK, chosen] = ["#temperature", "#top-k", "#letter"].map(find);
  const rows = [...document.querySelectorAll(".next button")];
  const maps = [...document.querySelectorAll(".maps button")];

  const gpt = new TinyGPT(window.MODEL);
  const { context_length, n_head } = gpt.config;
  const letters = [...window.MODEL.letters];
  const idOf = new Map(letters.map((letter, id) => [letter, id]));
  const NAMES = { " ": "space", "\n": "new line" };
  const named = letter => NAMES[letter] ?? `“${letter}”`;
  const MOST = 300; // letters that it writes at a time
  const AGAIN = 192; // letters that it reads again when its context is full

  let ids = [];             // of the letters in the text that the model knows
  let start = 0;            // the first of them that it reads
  let unknown = [];         // letters of the text that it has never seen
  let probabilities;        // (V,), of the next letter
  let ranked = [];          // the ids of all letters, the likeliest first
  let before = null;        // the text before the model wrote
  let writing = 0;          // how many letters it still writes
  let head = 0;             // the map that has been chosen

  // --- The text, and the letters that may come next ---------------------------------------------

  function readText() {
    const all = [...prompt.value];
    ids = all.filter(letter => idOf.has(letter)).map(letter => idOf.get(letter));
    unknown = [...new Set(all.filter(letter => !idOf.has(letter)))];
    start = Math.max(0, ids.length - context_length);
    showNext();
    showMaps();
  }

  function showNext() {
    find(".model").classList.toggle("nothing", !ids.length);
    write.disabled = !ids.length;
    if (!ids.length) return;
    // While it writes, reading 256 letters anew for each one would take too long.
    if (ids.length - start > context_length) start = ids.length - AGAIN;
    probabilities = nextLetterProbabilities(
      gpt.read(ids.slice(start)), temperature.value / 10, Number(topK.value));
    ranked = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]);
    rows.forEach((row, i) => {
      const [letter, bar, percent] = row.children, p = probabilities[ranked[i]];
      letter.textContent = NAMES[letters[ranked[i]]] ?? letters[ranked[i]];
      bar.style.setProperty("--share", p);
      percent.textContent = share(p);
      row.parentNode.hidden = p === 0;
    });
    const rest = ranked.slice(rows.length).filter(id => probabilities[id] > 0);
    find("#others").textContent = rest.length
      ? `${rest.length} other letters: ${share(rest.reduce((sum, id) => sum + probabilities[id], 0))}.` : "";
  }

  // What of the text the model does not read, and why.
  function sayUnread() {
    const notes = [];
    if (unknown.length) notes.push(`The model has never seen ${unknown.slice(0, 5).map(named).join(", ")}`
      + `${unknown.length > 5 ? " and others" : ""}, and reads your text without them.`);
    if (start) notes.push(`It reads the last ${ids.length - start} letters of your text.`);
    if (!ids.length) notes.push("The model needs at least one letter to go on from.");
    // A screen reader says it only when it is new.
    if (unread.textContent !== notes.join(" ")) unread.textContent = notes.join(" ");
  }

  const share = p => p < .01 ? "< 1 %" : `${Math.round(100 * p)} %`;

  function append(id) {
    ids.push(id);
    prompt.value += letters[id];
    prompt.scrollTop = prompt.scrollHeight;
    showNext();
  }

  // --- Writing: one letter for each frame of the screen ------------------------------------------

  function begin() {
    before ??= prompt.value;
    const length = prompt.value.length;
    writing = MOST;
    prompt.readOnly = true;
    write.textContent = "Stop";
    said.textContent = "";
    requestAnimationFrame(function step() {
      if (writing) {
        writing--;
        append(draw(probabilities, Math.random()));
        requestAnimationFrame(step);
      } else {
        prompt.readOnly = false;
        write.textContent = "Write on";
        back.hidden = false;
        showMaps();
        said.textContent = `The model wrote: ${prompt.value.slice(length)}`;
      }
    });
  }

  write.addEventListener("click", () => { if (prompt.readOnly) writing = 0; else begin(); });
  back.addEventListener("click", () => {
    prompt.value = before;
    edited();
    prompt.focus();
  });

  function edited() {
    before = null;
    back.hidden = true;
    write.textContent = "Write";
    readText();
  }

  prompt.addEventListener("input", edited);
  rows.forEach((row, i) => row.addEventListener("click", () => {
    if (prompt.readOnly) return;
    const id = ranked[i];
    append(id);
    edited();
    said.textContent = `${named(letters[id])} added.`;
  }));
  for (const control of [temperature, topK]) {
    control.addEventListener("input", () => { nameSliders(); showNext(); });
  }

  function nameSliders() {
    const { value, max } = topK;
    tell(temperature, (temperature.value / 10).toFixed(1));
    tell(topK, value === max ? `all ${value}` : value);
  }

  function tell(slider, text) {
    slider.setAttribute("aria-valuetext", text);
    slider.nextElementSibling.textContent = text;
  }

  // --- Maps --------------------------------------------------------------------------------------

  const strip = find(".letters");
  const weightsOf = (map, t) => gpt.cache[Math.floor(map / n_head)].weights[t][map % n_head];
  const strength = weight => Math.sqrt(weight); // of a colour: small weights are to be seen, too
  const letterAt = t => letters[gpt.ids[t]];

  // All of it anew, for another text; the last letter is chosen.
  function showMaps() {
    sayUnread();
    const T = ids.length ? gpt.ids.length : 0;
    if (!T) return;
    chosen.max = T - 1;
    chosen.value = T - 1;
    strip.replaceChildren(...gpt.ids.map((id, t) => {
      const letter = document.createElement("span");
      letter.textContent = letters[id] === "\n" ? "⏎\n" : letters[id];
      letter.dataset.t = t;
      return letter;
    }));
    const [red, green, blue] = getComputedStyle(find(".map")).color.match(/\d+/g).map(Number);
    maps.forEach((button, map) => {
      const canvas = button.querySelector("canvas");
      canvas.width = canvas.height = T;
      canvas.classList.toggle("fine", T > 100);
      const image = new ImageData(T, T);
      for (let t = 0; t < T; t++) {
        weightsOf(map, t).forEach((weight, s) => {
          image.data.set([red, green, blue, Math.round(255 * strength(weight))], 4 * (t * T + s));
        });
      }
      canvas.getContext("2d").putImageData(image, 0, 0);
    });
    showLetter();
  }

  // The weights of the chosen letter: its row in each map, the text in the colours of one head.
  function showLetter() {
    if (prompt.readOnly) return;
    const t = Number(chosen.value), T = gpt.ids.length;
    tell(chosen, `${named(letterAt(t))}, position ${t}`);
    maps.forEach((button, map) => {
      button.setAttribute("aria-pressed", map === head);
      button.querySelector(".top").textContent = largest(weightsOf(map, t), 2)
        .map(({ s, weight }) => `${named(letterAt(s))} ${weight.toFixed(2)}`).join(", ");
      button.querySelector("i").style.cssText = `top: ${100 * t / T}%; height: ${100 / T}%`;
    });
    const weights = weightsOf(head, t);
    [...strip.children].forEach((letter, s) => {
      letter.style.setProperty("--strength", strength(weights[s] ?? 0));
      letter.classList.toggle("query", s === t);
    });
    const where = s => s === t ? "itself" : `${named(letterAt(s))} (${t - s} back)`;
    find("#weights").textContent = `${maps[head].querySelector("b").textContent}: the ${named(letterAt(t))} `
      + `attends to ${largest(weights, 4).map(({ s, weight }) => `${where(s)} ${weight.toFixed(2)}`).join(", ")}.`;
  }

  // The n largest weights with their places, but for those that round to 0.00
  function largest(weights, n) {
    return [...weights].map((weight, s) => ({ s, weight })).filter(({ weight }) => weight >= .005)
      .sort((a, b) => b.weight - a.weight).slice(0, n);
  }

  function choose(t) {
    chosen.value = t;
    showLetter();
  }

  chosen.addEventListener("input", () => {
    showLetter();
    said.textContent = find("#weights").textContent;
  });
  for (const kind of ["pointermove", "click"]) {
    strip.addEventListener(kind, ({ target }) => { if (target.dataset.t) choose(Number(target.dataset.t)); });
  }
  maps.forEach((button, map) => {
    button.addEventListener("click", () => {
      head = map;
      showLetter();
      said.textContent = find("#weights").textContent;
    });
    button.querySelector("canvas").addEventListener("pointermove", ({ offsetY, target }) => {
      choose(Math.min(gpt.ids.length - 1, Math.floor(gpt.ids.length * offsetY / target.clientHeight)));
    });
  });
  // The colours of the maps are those of the page.
  new MutationObserver(showMaps).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showMaps);

  // At first in small steps, so that the page answers between them.
  const pause = () => new Promise(go => setTimeout(go));
  (async () => {
    nameSliders();
    const first = prompt.value, known = [...first].filter(letter => idOf.has(letter)).slice(0, context_length);
    for (let n = 1; n < known.length && prompt.value === first; n += 3) {
      await pause();
      gpt.read(known.slice(0, n).map(letter => idOf.get(letter)));
    }
    await pause();
    readText();
    find(".model").dataset.ready = "";
  })();
}
