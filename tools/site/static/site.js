// What the pages do beyond HTML: the switch between light and dark, contents that stand open where
// there is room, the search. (Live pictures: live.js.) Everything comes from files beside this one.
"use strict";

// --- Light and dark -------------------------------------------------------------------------

const root = document.documentElement;
const theme = document.querySelector(".theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const nameTheme = () => { theme.textContent = isDark() ? "Light page" : "Dark page"; };

theme.hidden = false;
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it lasts for this page */ }
  nameTheme();
});
dark.addEventListener("change", nameTheme);
nameTheme();

// --- Contents, and boxes that scroll ----------------------------------------------------------

const contents = document.querySelector(".contents details");
const wide = matchMedia("(min-width: 1100px)");
const openContents = () => { if (contents) contents.open = wide.matches; };
openContents();
wide.addEventListener("change", openContents);

// Only a box that has something to scroll is a stop for the keyboard.
const watch = new ResizeObserver(entries => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth + 1) {
      target.tabIndex = 0;
      target.setAttribute("role", "group");
      target.setAttribute("aria-label", "scrolls sideways");
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
    }
  }
});
for (const box of document.querySelectorAll(".scroll, .text pre, .katex-display")) watch.observe(box);

// A printed page shows what is folded away.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("main details:not([open]):not(figure details)")];
  for (const details of closed) { details.removeAttribute("name"); details.open = true; }
});
addEventListener("afterprint", () => { for (const details of closed) details.open = false; });

// --- Search -------------------------------------------------------------------------------------

// A section is found where it has every word that was typed; in its heading or together they count
// more.
function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const section of words.length ? window.SECTIONS : []) {
    const heading = section.heading.toLowerCase(), text = section.text.toLowerCase();
    let score = 0;
    for (const word of words) {
      const times = text.split(word).length - 1;
      const whole = ` ${heading} `.includes(` ${word} `);
      const here = (heading.includes(word) ? 10 : 0) + (whole ? 10 : 0) + Math.min(times, 9);
      if (!here) { score = 0; break; }
      score += here;
    }
    const together = words.join(" ");
    if (score) score += (heading.includes(together) ? 30 : 0) + (text.includes(together) ? 10 : 0);
    if (score) found.push({ section, score, words });
  }
  return found.sort((a, b) => b.score - a.score);
}

function excerpt(text, words) {
  const small = text.toLowerCase(), together = small.indexOf(words.join(" "));
  const middle = Math.max(0, together < 0 ? small.indexOf(words[0]) : together);
  // From the start of a word to the end of one.
  const start = middle < 80 ? 0 : text.lastIndexOf(" ", middle - 70) + 1;
  const end = text.length < start + 220 ? text.length : text.lastIndexOf(" ", start + 220);
  const paragraph = document.createElement("p");
  let rest = (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
  while (rest) {
    const places = words.map(word => [rest.toLowerCase().indexOf(word), word.length]);
    const first = places.filter(([i]) => i >= 0).sort((a, b) => a[0] - b[0])[0];
    const [i, length] = first ?? [rest.length, 0];
    paragraph.append(rest.slice(0, i));
    if (length) {
      const mark = document.createElement("mark");
      mark.textContent = rest.slice(i, i + length);
      paragraph.append(mark);
    }
    rest = rest.slice(i + length);
  }
  return paragraph;
}

function showFound(query) {
  const found = search(query);
  const results = document.querySelector("#results");
  const said = document.querySelector("#found");
  results.replaceChildren(...found.slice(0, 40).map(({ section, words }) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `${section.file}#${encodeURIComponent(section.anchor)}`;
    link.textContent = section.heading;
    const where = document.createElement("span");
    where.className = "note";
    where.textContent = section.page;
    item.append(link, " ", where, excerpt(section.text, words));
    return item;
  }));
  if (!query.trim()) said.textContent = "Type what you look for into the search field at the top of the page.";
  else if (!found.length) said.textContent = `No section has “${query}”. Try fewer or shorter words.`;
  else said.textContent = `${found.length} ${found.length === 1 ? "section has" : "sections have"} “${query}”.`
    + (found.length > 40 ? " The first 40:" : "");
}

if (window.SECTIONS) {
  const field = document.querySelector("[type=search]");
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", () => showFound(field.value));
  field.form.addEventListener("submit", event => { event.preventDefault(); showFound(field.value); });
  showFound(field.value);
}
