// What the pages do beyond HTML: the switch between light and dark, contents that stand open where
// there is room, buttons that copy code, the meanings of terms. (Live pictures: live.js. The search:
// find.js.) Everything comes from files beside this one.
"use strict";

// Scripts with much data are loaded after the page has been drawn, one after the other; those of
// live pictures, when one is not far away.
const { later } = document.currentScript.dataset;
function load() {
  for (const file of later.split(" ").filter(Boolean)) {
    document.head.append(Object.assign(document.createElement("script"), { src: file, async: false }));
  }
}
const pictures = [...document.querySelectorAll("[data-live]")];
const approach = new IntersectionObserver(entries => {
  if (entries.some(entry => entry.isIntersecting)) { approach.disconnect(); load(); }
}, { rootMargin: "1500px 0px" });
addEventListener("load", () => {
  if (pictures.length) for (const picture of pictures) approach.observe(picture); else load();
});

// --- Light and dark -------------------------------------------------------------------------

const root = document.documentElement;
const theme = document.querySelector(".theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const nameTheme = () => {
  theme.title = isDark() ? "Light page" : "Dark page";
  theme.setAttribute("aria-label", theme.title);
};

theme.hidden = false;
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it lasts for this page */ }
  nameTheme();
});
dark.addEventListener("change", nameTheme);
nameTheme();

// --- Pages, contents, and boxes that scroll ---------------------------------------------------

// On a phone the list of pages scrolls: the page that is open stands in the middle of it.
const here = document.querySelector("header li [aria-current]");
if (here) requestAnimationFrame(() => { // earlier, the whole page would be laid out for it
  const list = here.closest("ul");
  list.scrollLeft = here.offsetLeft - list.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
});

const contents = document.querySelector(".contents details");
const wide = matchMedia("(min-width: 1100px)");
const openContents = () => { if (contents) contents.open = wide.matches; };
openContents();
wide.addEventListener("change", openContents);

// A phone folds the code of pictures, that of exercises, which cannot be done on it, and optional
// parts, if the address does not lead into them.
const narrow = matchMedia("(max-width: 600px)");
const foldLong = () => {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (const details of document.querySelectorAll("details.long")) {
    details.open = !narrow.matches || details.contains(wanted);
  }
};
foldLong();
narrow.addEventListener("change", foldLong);

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

// --- Copy buttons -----------------------------------------------------------------------------

const said = document.createElement("p");
said.className = "hidden";
said.setAttribute("role", "status");
document.querySelector("main")?.append(said);

async function copy(pre) {
  try {
    await navigator.clipboard.writeText(pre.textContent);
    return true;
  } catch { // older browsers, and pages that are not allowed to
    getSelection().selectAllChildren(pre);
    return document.execCommand("copy");
  }
}

// Each stands before its code, in the corner, and takes no room: it can come after the rest.
function addCopyButton(pre) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy this code");
  button.addEventListener("click", async () => {
    button.textContent = said.textContent = await copy(pre) ? "Copied" : "Select it, and copy";
    setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 2000);
  });
  pre.before(button);
}
addEventListener("load", () => document.querySelectorAll("pre.code, .text pre").forEach(addCopyButton));

// --- The meanings of terms: by pointer, by keyboard, by touch -----------------------------------

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true"); // a screen reader has the meaning with the link itself
document.querySelector("main")?.append(tip);
let shown = null, leaving;

function showMeaning(term, more = "") {
  clearTimeout(leaving);
  shown = term;
  tip.textContent = document.getElementById(term.getAttribute("aria-describedby")).textContent + more;
  tip.hidden = false;
  const [line] = term.getClientRects(), { offsetWidth: width, offsetHeight: height } = tip;
  const left = Math.max(8, Math.min(line.left, root.clientWidth - width - 8));
  const below = line.bottom + 6 + height <= innerHeight;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(below ? line.bottom + 6 : line.top - 6 - height) + scrollY}px`;
}

function hideMeaning() {
  clearTimeout(leaving);
  shown = null;
  tip.hidden = true;
}

const termAt = target => target instanceof Element ? target.closest(".term") : null;
const stays = target => target instanceof Element && target.closest(".term, .tip");
let byMouse = true;
addEventListener("pointerdown", event => {
  byMouse = event.pointerType === "mouse";
  if (shown && !stays(event.target)) hideMeaning();
});
addEventListener("pointerover", event => {
  if (event.pointerType !== "mouse") return;
  const term = termAt(event.target);
  if (term) showMeaning(term);
  else if (stays(event.target)) clearTimeout(leaving);
  else if (shown) { clearTimeout(leaving); leaving = setTimeout(hideMeaning, 250); }
});
addEventListener("focusin", ({ target }) => {
  const term = termAt(target);
  if (term?.matches(":focus-visible")) showMeaning(term);
  else if (shown && !stays(target)) hideMeaning();
});
addEventListener("keydown", ({ key }) => { if (key === "Escape" && shown) hideMeaning(); });
addEventListener("click", event => {
  const term = termAt(event.target);
  if (!term || byMouse || shown === term || event.detail === 0) return; // detail 0: the Enter key
  event.preventDefault(); // the first tap shows, the second one follows the link
  showMeaning(term, " (Tap again for the glossary.)");
});
