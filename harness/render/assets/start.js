// -------------------------------------------------------------------------------------------------------------- start

// Says in the page which fragment it shows, for who drives it: the address changes before the tables do.
function said() {
  document.documentElement.dataset.shows = location.hash;
}

function follow() {
  const { case: id, on, ...filter } = readFragment();
  if (need(sliceOf(filter, id), follow)) return;
  const part = !location.hash.includes("=") && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part && part.matches("details")) {
    part.open = true;
    fill(part);
    part.scrollIntoView();
  }
  const filtered = Object.keys(filter).length > 0, shown = writeFragment(browser.filter ?? {});
  if (!browser.filter || ((filtered || location.hash === "#cases" || !location.hash) && writeFragment(filter) !== shown)) browser.take(filter);
  if (filtered && !id) document.getElementById("cases").scrollIntoView();
  if (id) {
    if (!dialog.open) opener = document.activeElement;
    showCase(id, on);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  } else if (dialog.open) dialog.close();
  said();
}

// What had the focus when the dialog was opened. It has it again afterwards: the row of the last case where that is in the table.
let opener = null;
dialog.addEventListener("close", () => {
  if (readFragment().case) history.replaceState(null, "", writeFragment(browser.filter));
  if (!(opened >= 0 && (!opener?.isConnected || place.contains(opener)) && browser.focus(opened)) && opener?.isConnected) opener.focus();
  said();
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "/" && !dialog.open) { event.preventDefault(); browser.inputs.q.focus(); }
  if (dialog.open && "np".includes(event.key)) neighbour(event.key === "n" ? 1 : -1, event.key === "n" ? "Next" : "Previous");
});
// A table that is wider than its place shows its rows as blocks, in which each cell says what its column is called.
function fit() {
  const tables = [...document.querySelectorAll("main table:not(.overview, .heat, .cases, .deviations, .defects), table.readings")];
  for (const table of tables) table.classList.remove("labelled");
  const wide = tables.filter((table) => table.parentElement.clientWidth && table.offsetWidth > table.parentElement.clientWidth + 1);
  for (const table of wide) {
    table.classList.add("labelled");
    if (table.dataset.heads) continue;
    table.dataset.heads = "named";
    const heads = [...table.tHead.rows].at(-1).cells, all = heads.length;
    for (const body of table.tBodies) for (const row of body.rows) for (let n = 1; n <= row.cells.length; n++) row.cells[row.cells.length - n].dataset.head = heads[all - n].textContent;
  }
}
addEventListener("resize", fit);
document.addEventListener("toggle", (event) => { if (event.target.querySelector("table")) fit(); }, true);

let closed = [];
addEventListener("beforeprint", () => { for (const each of document.querySelectorAll(".labelled")) each.classList.remove("labelled"); closed = [...document.querySelectorAll("details:not([open])")].filter((each) => !each.closest(".each")); closed.filter((each) => each.matches(".operator")).forEach(fill); for (const each of closed) each.open = true; });
addEventListener("afterprint", () => { setTimeout(fit); for (const each of closed) each.open = false; });

const place = document.getElementById("browser");
let browser;

// Takes the results of an operator's slice, or those of the page, in place of what is shown. Says whether something waits for them.
function need(operator, then) {
  if (operator === (run.operator ?? null)) return false;
  const take = (found, problem = "") => {
    const focused = document.activeElement.name;
    run = found;
    run.operator = operator;
    place.replaceChildren();
    browser = new Browser(place);
    browser.lacks(problem);
    then();
    browser.inputs[focused]?.focus();
  };
  if (!operator) take(home);
  else slice(operator).then(take, (error) => take({ ...home }, error.message));
  return true;
}

try {
  home = run = await decode(document.getElementById("data").textContent.trim());
  browser = new Browser(place);
  chooser();
  for (const part of document.querySelectorAll("details.operator")) {
    part.addEventListener("toggle", () => { if (part.open) fill(part); });
    if (part.open) fill(part);
  }
  addEventListener("hashchange", follow);
  follow();
  performance.mark("cases-ready");
  requestAnimationFrame(() => setTimeout(fit));
} catch (error) {
  place.hidden = false;
  place.append(element("p", { class: "empty" }, `The cases cannot be shown: ${error.message}. This page needs a browser of 2023 or later.`));
}
