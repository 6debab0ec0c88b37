// ------------------------------------------------------------------------------------------------- operators at a glance

// The filter for what a cell counts.
const COUNTED = "!does not apply";
// Counts results by a key of their kind and state; what the target's API cannot express counts nowhere.
function tallies(wants, keyOf) {
  const keys = new Map(), kinds = home.kinds.map((kind) => wants(kind)), cells = home.cell_number;
  const [place, target, unexpected] = ["reading", "target", "unexpected"].map((name) => STATE.indexOf(name));
  for (let n = 0; n < (cells ?? home.case).length; n++) {
    const kind = cells ? home.cell_kind[n] : home.kind[home.case[n]], number = cells ? cells[n] : 1;
    if (!kinds[kind]) continue;
    const state = home.states[(cells ? home.cell_state : home.state)[n]], reading = home.judgements[state[place]];
    if (reading === "does not apply") continue;
    const key = keyOf(home.kinds[kind], state[target]);
    let tally = keys.get(key);
    if (!tally) keys.set(key, (tally = { selected: 0, unexpected: 0, correct: 0, defects: 0, "not supported": 0, "not judged": 0, levels: new Set() }));
    tally.selected += number;
    tally.levels.add(home.kinds[kind][KIND.indexOf("level")]);
    tally[reading in tally ? reading : "defects"] += number;
    if (state[unexpected] === "yes") tally.unexpected += number;
  }
  return keys;
}

// The same as `status` in harness/results/level_table.py.
function stateOf(tally) {
  if (!tally?.selected) return "none";
  if (tally.unexpected) return "failing";
  if (tally.defects) return "known";
  if (tally["not supported"]) return tally.correct ? "partial" : "absent";
  return tally["not judged"] ? "unjudged" : "pass";
}

// Where the parts of a cell's bar end: the same as `bar` in harness/render/html.py.
function bar(tally) {
  const percent = (part, round) => round((100 * part) / tally.selected), correct = percent(tally.correct, Math.floor);
  const wrong = tally.defects ? Math.min(100, correct + Math.max(2, percent(tally.defects, Math.floor))) : correct;
  return `--r:${correct}%;--w:${wrong}%;--n:${Math.min(100, wrong + percent(tally["not supported"], Math.ceil))}%`;
}

function cell(tally, filter, small, over = " / ") {
  const state = stateOf(tally);
  if (state === "none") return element("td", { class: "cell none" }, element("span", { class: "hidden" }, "no case"), element("span", { "aria-hidden": "true" }, "–"));
  return element("td", { class: `cell ${state}`, style: bar(tally) }, element("a", { href: writeFragment(filter) }, element("span", { class: "mark", "aria-hidden": "true" }, run.marks[state]), `${grouped(tally.correct)}${over}${grouped(tally.selected)}`, small ? element("small", {}, small) : null, element("span", { class: "hidden" }, ` ${run.statuses[state]}`)));
}

// The filter over the table of operators; choosing a level counts its cells again.
function chooser() {
  const form = document.getElementById("choose");
  if (!form || !run.targets) return;
  const rows = [...document.querySelectorAll("tr[data-operator]")], whole = rows.map((row) => [...row.cells].slice(1));
  let states = rows.map((row) => [...row.cells].slice(1, 1 + run.targets.length).map((each) => each.classList[1]));
  const { name, state, level } = form.elements;
  for (const each of Object.keys(run.statuses).filter((word) => word !== "none")) state.append(element("option", { value: each }, run.statuses[each]));
  for (const each of occurring("level")) level.append(element("option", { value: each }, each));
  const choose = () => {
    const text = name.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !(row.dataset.operator.toLowerCase().includes(text) && (!state.value || states[place].includes(state.value)));
      shown += !row.hidden;
    });
    form.querySelector("[role=status]").textContent = `${grouped(shown)} of ${grouped(rows.length)} operators`;
  };
  level.addEventListener("change", () => {
    const found = level.value && tallies((kind) => kind[KIND.indexOf("level")] === level.value, (kind, target) => `${target}\n${kind[0]}`);
    rows.forEach((row, place) => {
      const operator = row.dataset.operator;
      const cells = !found ? whole[place].slice(0, run.targets.length) : run.targets.map((target) => {
        const tally = found.get(`${target}\n${operator}`);
        return cell(tally, { operator, target, level: level.value, ...(tally?.unexpected ? { unexpected: "yes" } : { reading: COUNTED }) }, tally?.unexpected ? ` ${grouped(tally.unexpected)} unexpected` : "");
      });
      row.replaceChildren(row.cells[0], ...cells, ...whole[place].slice(run.targets.length).map((each) => (found ? element("td") : each)));
    });
    states = rows.map((row) => [...row.cells].slice(1, 1 + run.targets.length).map((each) => each.classList[1]));
  });
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  choose();
}

const DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string"];
const byType = (a, b) => {
  const [one, other] = [a, b].map((row) => row.split(" ").map((part) => DTYPES.indexOf(part.slice(part.lastIndexOf("=") + 1))));
  for (let n = 0; n < one.length && n < other.length; n++) if (one[n] !== other[n]) return one[n] - other[n];
  return a < b ? -1 : 1;
};

// Fills the part of an operator when it is opened: element type × rank on each target, and the types of further inputs × rank.
function fill(part) {
  if (part.dataset.filled || !home?.targets) return;
  part.dataset.filled = "yes";
  const operator = part.dataset.operator, [rank, validity] = ["rank", "validity"].map((name) => KIND.indexOf(name)), figures = [];
  for (const rowsAre of ["dtype", "types"]) {
    const place = KIND.indexOf(rowsAre);
    const found = tallies((kind) => kind[0] === operator && kind[validity] === "valid" && kind[place] !== "", (kind, target) => JSON.stringify([target, kind[place], kind[rank]]));
    const cells = [...found].map(([key, tally]) => [...JSON.parse(key), tally]);
    if (rowsAre === "types" && new Set(cells.map(([, row]) => row)).size < 2) continue;
    const names = rowsAre === "types" ? [...new Set(cells.flatMap(([, row]) => row.split(" ").map((each) => each.split("=")[0])))] : [];
    for (const target of home.targets) {
      const own = cells.filter(([of]) => of === target);
      if (!own.some(([, , , tally]) => tally["not judged"] < tally.selected)) continue;
      const rows = [...new Set(own.map(([, row]) => row))].sort(byType), ranks = [...new Set(own.map(([, , each]) => each))].sort((a, b) => a - b);
      const title = `${target}: ${names.length ? `${names.join(", ")} ` : ""}element type × rank`;
      const at = new Map(own.map(([, row, each, tally]) => [`${row}\n${each}`, tally]));
      const body = rows.map((row) => element("tr", {}, element("th", { scope: "row" }, names.length === 1 ? row.slice(row.indexOf("=") + 1) : row), ranks.map((each) => {
        const tally = at.get(`${row}\n${each}`), allowed = tally ? home.levels.filter((level) => tally.levels.has(level)) : [];
        return cell(tally, { operator, target, validity: "valid", rank: String(each), [rowsAre]: row, reading: COUNTED }, tally && [element("span", { class: "hidden" }, " level "), allowed[0], allowed.length > 1 ? `–${allowed.at(-1)}` : ""], "/");
      })));
      figures.push(element("figure", {}, element("figcaption", {}, title), element("div", { class: "scroll", role: "group", "aria-label": title, tabindex: "0" }, element("table", { class: "heat" },
        element("thead", {}, element("tr", {}, element("td"), element("th", { scope: "colgroup", class: "across", colspan: ranks.length }, "rank")),
        element("tr", {}, element("td", { class: "across" }, "element type"), ranks.map((each) => element("th", { scope: "col" }, element("span", { class: "hidden" }, "rank "), each >= 0 ? String(each) : "?")))), element("tbody", {}, body)))));
    }
  }
  part.append(figures.length ? element("div", { class: "grids" }, figures) : element("p", { class: "empty" }, "No valid case that ran names its element type."),
    element("p", {}, element("a", { href: writeFragment({ operator }) }, `All cases of ${operator}`)));
}

