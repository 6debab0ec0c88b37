// The search of a site: pages by their names, and deviating cases by words of their ids. The pages need none of it.
"use strict";

const SHOWN = 100;
const root = document.body.dataset.root;
const form = document.getElementById("search");
const said = form.querySelector("[role=status]");
const list = document.getElementById("found");
let entries = null;

// `search.js` calls this: it is read when somebody searches, by a script element, because pages from disk cannot fetch.
window.harnessSearch = (data) => {
  entries = [];
  for (const [name, path] of data.targets) entries.push({ text: name.toLowerCase(), shown: name, path, kind: "target" });
  for (const [name, path] of data.operators) entries.push({ text: name.toLowerCase(), shown: name, path, kind: "operator" });
  for (const [, path, cases] of data.operators) {
    for (const [anchor, ...parts] of cases) {
      const id = parts.map((part) => data.parts[part]).join(";");
      entries.push({ text: id.toLowerCase(), shown: id, path: `${path}#${anchor}`, kind: "" });
    }
  }
  show();
};

function load() {
  if (document.querySelector("script[data-search]")) return;
  const script = document.createElement("script");
  script.dataset.search = "";
  script.src = `${root}search.js`;
  script.onerror = () => { said.textContent = "search.js, which the search needs, is not beside the pages"; };
  document.head.append(script);
}

function show() {
  const words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.replaceChildren();
  said.textContent = "";
  if (!words.length) return;
  if (!entries) return load();
  const found = entries.filter((entry) => words.every((word) => entry.text.includes(word)));
  for (const entry of found.slice(0, SHOWN)) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = root + entry.path;
    link.textContent = entry.shown;
    item.append(entry.kind ? `${entry.kind} ` : "", link);
    list.append(item);
  }
  const more = found.length > SHOWN ? `, the first ${SHOWN} of them below` : "";
  said.textContent = `${found.length.toLocaleString("en")} found${more}`;
}

// A fold opens for the case that the address names; browsers that do so themselves have done it by now.
function open() {
  const named = document.getElementById(location.hash.slice(1));
  const fold = named?.closest("details");
  if (fold && !fold.open) {
    fold.open = true;
    named.scrollIntoView();
  }
}

form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", show);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  form.elements.q.focus();
});
window.addEventListener("hashchange", open);
open();
