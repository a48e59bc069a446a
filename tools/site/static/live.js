// Live pictures: what an explorer shows in each setting is looked up in a file beside this one.
// The pages of the site use it, and the decks of tools/lecture.
"use strict";

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function bringToLife(box) {
  const { tree, templates, states } = await unpack(window.LIVE[box.dataset.live]);
  const controls = [...box.querySelectorAll("fieldset input, fieldset select")];
  const view = box.querySelector(".view");
  const words = box.querySelector(".words");

  const place = control => control.type === "checkbox" ? Number(control.checked)
    : control.type === "range" ? Number(control.value) : control.selectedIndex;

  function show() {
    let branch = tree;
    for (const control of controls) {
      if (control.type === "range") {
        const text = control.dataset.texts.split("|")[control.value];
        control.setAttribute("aria-valuetext", text);
        control.nextElementSibling.textContent = text;
      }
      branch = branch[place(control)];
    }
    const [number, ...values] = states[branch];
    const template = templates[number];
    const text = template[0] + values.map((value, i) => value + template[i + 1]).join("");
    const [html, said] = text.split("\0");
    view.innerHTML = html;
    words.textContent = said;
  }

  for (const control of controls) control.addEventListener("input", show);
  box.querySelector("fieldset").disabled = false;
  box.dataset.ready = "";
}

for (const box of document.querySelectorAll("[data-live]")) bringToLife(box);
