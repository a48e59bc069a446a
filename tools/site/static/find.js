// The search: sections that have all words of a query, the best first; where none has, words near
// to them. What it searches is in search.js.
"use strict";

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

// --- Where nothing is found: the nearest words ---------------------------------------------------

// Every word of the site, with the number of times that it stands there.
let counts;
function countWords() {
  counts = new Map();
  for (const { heading, text } of window.SECTIONS) {
    for (const [word] of `${heading} ${text}`.toLowerCase().matchAll(/\p{L}[\p{L}\d_-]*/gu)) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
}

// How many letters have to be put in, left out, replaced or swapped with their neighbour.
function distance(a, b) {
  let older, old, row = [...Array(b.length + 1).keys()];
  for (let i = 1; i <= a.length; i++) {
    [older, old, row] = [old, row, [i]];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(old[j] + 1, row[j - 1] + 1, old[j - 1] + (a[i - 1] !== b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j], older[j - 2] + 1);
      }
    }
  }
  return row[b.length];
}

// The nearest word, of several the commonest: one letter off, or two in a long word. A part of a
// word that stands somewhere stays.
function near(part) {
  if (!counts) countWords();
  let best = part, least = part.length < 4 ? 0 : part.length < 8 ? 1 : 2, most = 0;
  for (const [word, times] of counts) {
    if (word.includes(part)) return part;
    if (Math.abs(word.length - part.length) > least) continue;
    const off = distance(part, word);
    if (off < least || (off === least && times > most)) [best, least, most] = [word, off, times];
  }
  return best;
}

function showFound(query) {
  let found = search(query), meant = "";
  if (!found.length && query.trim()) {
    meant = query.toLowerCase().split(/\s+/).filter(Boolean).map(near).join(" ");
    found = search(meant);
  }
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
  if (!query.trim()) said.textContent = "Type what you look for.";
  else if (!found.length) said.textContent = `No section has “${query}”. Try fewer or shorter words.`;
  else said.textContent = (meant ? `Nothing for “${query}”; showing “${meant}”. ` : "")
    + `${found.length} ${found.length === 1 ? "section has" : "sections have"} “${meant || query}”.`
    + (found.length > 40 ? " The first 40:" : "");
}

{
  const field = document.querySelector("[type=search]");
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", () => showFound(field.value));
  field.form.addEventListener("submit", event => { event.preventDefault(); showFound(field.value); });
  showFound(field.value);
}
