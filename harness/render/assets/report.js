// The table of single cases and the view of one case. Everything shown is set as text; nothing is parsed as markup.

const PAGE = 50;
const FILTERS = [
  ["operator", "Operator"], ["target", "Target"], ["judged", "Judged"], ["before", "BASE"], ["outcome", "Outcome"], ["verdict", "Verdict"], ["validity", "Validity"],
  ["level", "Level"], ["dtype", "Element type"], ["types", "Other types"], ["rank", "Rank"], ["opset", "Opset"], ["variant", "Variant"], ["error", "Error"], ["flaky", "Flaky"], ["expectation", "Known deviation"],
];
// What a kind of case says; all but the numbers among it stand in a dictionary.
const KIND = ["operator", "opset", "dtype", "rank", "types", "variant", "level", "validity"];
const NUMBERS = ["opset", "rank"];
let STATE = ["target", "outcome", "verdict", "judged"];
// A page that compares two runs names its own fields: `outcome` is HEAD's, `before` BASE's, and `judged` the change.
const comparing = () => STATE.includes("before");

// ---------------------------------------------------------------------------------------------------------------- data

async function decode() {
  const text = document.getElementById("data").textContent.trim();
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const run = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let offset = 4 + length;
  for (const [name, width, count] of run.columns) {
    const values = width === 1 ? bytes.subarray(offset, offset + count) : new Uint32Array(count);
    for (let place = 0; width > 1 && place < width; place++) {
      const factor = 2 ** (8 * place), from = offset + place * count;
      for (let n = 0; n < count; n++) values[n] += bytes[from + n] * factor;
    }
    offset += width * count;
    run[name] = values;
  }
  let number = -1;
  const cases = new Uint32Array(run.case.length);
  for (let n = 0; n < cases.length; n++) cases[n] = number = (number + run.case[n]) >>> 0;
  run.case = cases;
  const starts = new Uint32Array(run.length.length + 1);
  for (let n = 0; n < run.length.length; n++) starts[n + 1] = starts[n] + run.length[n];
  run.starts = starts;
  if (run.fields) STATE = run.fields;
  run.kinds = run.kinds.map((kind) => kind.map((value, place) => (NUMBERS.includes(KIND[place]) ? value : run.words[value])));
  run.order = byJudgement(run.state, run.states.map((state) => state[STATE.indexOf("judged")]), run.judgements.length);
  return run;
}

// Failing results first, conforming ones last; within that as they ran.
function byJudgement(column, judged, states) {
  const counts = new Uint32Array(states + 1);
  for (const state of column) counts[judged[state] + 1]++;
  for (let n = 0; n < states; n++) counts[n + 1] += counts[n];
  const order = new Uint32Array(column.length);
  for (let n = 0; n < column.length; n++) order[counts[judged[column[n]]]++] = n;
  return order;
}

const termsOf = (number) => Array.from(run.part.subarray(run.starts[number], run.starts[number + 1]), (part) => run.parts[part]);
const idOf = (number) => termsOf(number).join(";");
let searchable = null;
const searchTexts = () => (searchable ??= Array.from(run.starts.subarray(0, -1), (_, number) => idOf(number).toLowerCase()));

const ofCase = (number, name) => run.kinds[run.kind[number]][KIND.indexOf(name)];
const ofResult = (result, name) => run.states[run.state[result]][STATE.indexOf(name)];

// ------------------------------------------------------------------------------------------------------------- filter

// Whether a filter's text wants a value: names joined by commas, or all but these after an exclamation mark. A target's own name may
// hold a comma, so the text is one name where there is such a value.
function wants(text, values) {
  const negated = text.startsWith("!");
  const names = negated ? text.slice(1) : text;
  const named = new Set(values.has(names) ? [names] : names.split(","));
  return (value) => named.has(String(value)) !== negated;
}

// The entries of the expectations that results name, by number; of a result the one that it names.
const ENTRY = ["number", "name", "expect", "reason", "documents", "link", "host", "pending"];
const entryOf = (result) => {
  const place = run.expectation?.[result];
  return place ? Object.fromEntries(run.expectations[place - 1].map((value, n) => [ENTRY[n], value])) : null;
};
const entryName = (number) => run.expectations.find(([each]) => String(each) === number)?.[1] ?? number;

// Which entries of a dictionary all filters on its fields want, as a lookup by number.
function wanted(entries, fields, filter, shown = (value) => value) {
  const values = (place) => new Set(entries.map((entry) => String(shown(entry[place], fields[place]))));
  const tests = fields.map((name, place) => [place, filter[name]]).filter(([, text]) => text).map(([place, text]) => [place, wants(text, values(place))]);
  return Uint8Array.from(entries, (entry) => (tests.every(([place, test]) => test(shown(entry[place], fields[place]))) ? 1 : 0));
}

// What a detail says: the class of the error, and whether the repeats differed.
const errorClass = (detail) => (Array.isArray(detail) && detail[0].length ? detail[0][0] : "none");
const isFlaky = (detail) => (Array.isArray(detail) && detail[2]?.startsWith("flaky") ? "yes" : "no");

function select(filter) {
  const kinds = wanted(run.kinds, KIND, filter, (value, field) => (field === "variant" && value === "" ? "none" : value));
  const states = wanted(run.states, STATE, filter, (value, field) => (field === "judged" ? run.judgements[value] : value));
  const details = wanted(run.details.map((detail) => [errorClass(detail), isFlaky(detail)]), ["error", "flaky"], filter);
  const entries = wanted([["none"], ...(run.expectations ?? [])], ["expectation"], filter);
  const count = run.kind.length;
  const cases = new Uint8Array(count);
  for (let n = 0; n < count; n++) cases[n] = kinds[run.kind[n]];
  const words = (filter.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) {
    const texts = searchTexts();
    for (let n = 0; n < count; n++) if (cases[n] && !words.every((word) => texts[n].includes(word))) cases[n] = 0;
  }
  const found = new Uint32Array(run.order.length);
  let size = 0;
  for (const result of run.order) if (cases[run.case[result]] && states[run.state[result]] && details[run.detail[result]] && entries[run.expectation?.[result] ?? 0]) found[size++] = result;
  return found.subarray(0, size);
}

const readFragment = () => {
  const text = location.hash.slice(1);
  return text.includes("=") ? Object.fromEntries(new URLSearchParams(text.replaceAll("+", "%2B"))) : {};
};
const writeFragment = (terms) => {
  const text = Object.entries(terms).filter(([, value]) => value).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return `#${text || "cases"}`;
};

// ------------------------------------------------------------------------------------------------------------ elements

function element(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return made;
}
const breakable = (id) => id.split(/(?<=[;:])/).flatMap((part) => [part, element("wbr")]);
const tag = (word, kind = word) => element("span", { class: `tag ${kind}` }, word);
const grouped = (number) => number.toLocaleString("en-US");

function table(heads, rows, attributes = {}) {
  return element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": attributes.label }, element("table", { class: attributes.class },
    element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, rows)));
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { class: "hidden" });
    area.value = text;
    (button.closest("dialog") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
}
const copyButton = (label, text) => element("button", { type: "button", onclick: (event) => copy(text(), event.currentTarget) }, label);

// What stands before every message of ONNX Runtime; the error class says the same.
const PREAMBLE = /^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : (Non-zero status code returned while running \S+ node\. Name:'[^']*' Status Message: )?/;

// What a result was and how it was judged, as the cells of a row.
function judged(result) {
  const of = (name) => ofResult(result, name);
  if (comparing()) return [tag(of("before")), tag(of("outcome")), tag(run.judgements[of("judged")])];
  return [tag(of("outcome")), of("verdict") === "expected" ? "expected" : tag(of("verdict"))];
}

// What a result was, in a few words.
function happened(result) {
  const detail = run.details[run.detail[result]];
  if (!detail) return ofResult(result, "outcome") === "accepted_invalid" ? "it ran without an error" : "";
  if (detail === "left out") return "(left out of this page: see the run file)";
  const [error, diff, note] = detail;
  const words = note ? [note] : [];
  if (diff.length) {
    const [ulp, differing, total, at] = diff;
    words.push(`${grouped(differing)} of ${grouped(total)} differ${at ? `, first at [${at.join(", ")}]` : ""}${ulp == null ? "" : `, max ${grouped(ulp)} ULP`}`);
  }
  if (error.length) words.push(error.length > 1 ? `${error[0]}: ${error[1].replace(PREAMBLE, "")}` : `${error[0]} (the rest is left out of this page: see the run file)`);
  return words.join(" · ");
}

// -------------------------------------------------------------------------------------------------------- table of cases

// The values of a filter that occur, in reading order.
function occurring(name) {
  if (name === "target") return run.targets;
  if (name === "error") return [...new Set(run.details.map(errorClass))].sort();
  if (name === "expectation") return run.expectation ? run.expectations.map(([number]) => number) : [];
  if (name === "flaky") return [...new Set(run.details.map(isFlaky))].sort();
  const place = KIND.indexOf(name);
  const values = new Set(place >= 0 ? run.kinds.map((kind) => kind[place]) : run.states.map((state) => state[STATE.indexOf(name)]));
  if (name === "judged") return run.judgements.filter((_, number) => values.has(number));
  if (name === "level") return run.levels.filter((level) => values.has(level));
  return [...values].filter((value) => value !== "" && value !== -1).sort((a, b) => (typeof a === "number" ? a - b : a < b ? -1 : 1));
}

class Browser {
  constructor(place) {
    this.first = 0;
    this.found = new Uint32Array();
    this.inputs = {};
    const fields = FILTERS.map(([name, label]) => {
      const values = occurring(name);
      if (values.length < (name === "expectation" ? 1 : 2) && name !== "judged") return null;
      const choice = element("select", { name }, element("option", { value: "" }, "any"), values.map((value) => element("option", { value }, name === "expectation" ? entryName(String(value)) : String(value))));
      this.inputs[name] = choice;
      return element("label", {}, element("span", {}, run.labels?.[name] ?? label), choice);
    });
    this.inputs.q = element("input", { name: "q", type: "search", placeholder: "part of a case id, for instance axis=-1", autocomplete: "off", spellcheck: "false" });
    this.status = element("p", { role: "status", class: "count" });
    this.body = element("tbody");
    this.back = element("button", { type: "button", onclick: () => this.turn(-PAGE) }, "← Previous");
    this.on = element("button", { type: "button", onclick: () => this.turn(PAGE) }, "Next →");
    this.empty = element("p", { class: "empty", hidden: true }, "No result matches this filter.");
    this.table = element("div", { class: "scroll", role: "group", tabindex: "0", "aria-labelledby": "cases-title" }, element("table", { class: "cases" },
      element("thead", {}, element("tr", {}, ["Case", "Target", "Validity", "Level", ...(comparing() ? ["BASE", "HEAD", "Change"] : ["Outcome", "Verdict"]), "What happened"].map((head) => element("th", { scope: "col" }, head)))), this.body));
    place.append(
      element("form", { role: "search", "aria-label": "Filter the cases", oninput: () => this.changed(), onsubmit: (event) => event.preventDefault() },
        element("label", { class: "wide" }, element("span", {}, "Text"), this.inputs.q), fields,
        element("div", { class: "buttons" }, element("button", { type: "reset", onclick: () => setTimeout(() => this.changed()) }, "Clear"), copyButton("Copy link", () => location.href), copyButton("Copy command", () => this.command()))),
      this.status, this.table, this.empty, element("div", { class: "pager" }, this.back, this.on));
    place.hidden = false;
  }

  changed() {
    const filter = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.value]));
    history.replaceState(null, "", writeFragment(filter));
    this.show(filter);
    said();
  }

  // Takes a filter from the fragment; a value that the form does not offer becomes an option, so that any link can be shown.
  take(filter) {
    for (const [name, input] of Object.entries(this.inputs)) {
      const value = filter[name] ?? "";
      if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) {
        input.append(element("option", { value }, value.startsWith("!") ? `any but ${value.slice(1)}` : value));
      }
      input.value = value;
    }
    this.show(filter);
  }

  show(filter) {
    this.filter = filter;
    this.first = 0;
    this.found = select(filter);
    this.draw();
  }

  turn(by) {
    this.first = Math.max(0, Math.min(this.first + by, Math.floor((this.found.length - 1) / PAGE) * PAGE));
    this.draw();
    document.getElementById("cases-title").scrollIntoView();
  }

  draw() {
    const last = Math.min(this.first + PAGE, this.found.length);
    const all = run.order.length;
    this.status.textContent = this.found.length ? `${grouped(this.first + 1)}–${grouped(last)} of ${grouped(this.found.length)} results${this.found.length < all ? `, filtered from ${grouped(all)}` : ""}` : `0 of ${grouped(all)} results`;
    this.body.replaceChildren(...Array.from(this.found.subarray(this.first, last), (result) => this.row(result)));
    this.table.hidden = !this.found.length;
    this.empty.hidden = Boolean(this.found.length);
    this.back.disabled = this.first === 0;
    this.on.disabled = last === this.found.length;
    this.back.parentElement.hidden = this.found.length <= PAGE;
  }

  row(result) {
    const number = run.case[result], id = idOf(number), target = ofResult(result, "target");
    const said = happened(result);
    const href = writeFragment({ ...this.filter, case: id, on: target });
    return element("tr", {}, element("th", { scope: "row" }, element("a", { href, class: "mono" }, breakable(id))), element("td", {}, target),
      element("td", {}, ofCase(number, "validity")), element("td", {}, ofCase(number, "level")),
      judged(result).map((cell) => element("td", {}, cell)),
      element("td", { class: "said" }, said.length > 240 ? `${said.slice(0, 240)}…` : said));
  }

  // The command that runs the cases shown: each of them where they are few, else the narrowest query that holds them all.
  command() {
    const cases = [...new Set(Array.from(this.found.subarray(0, 2000), (result) => run.case[result]))];
    const targets = run.targets.includes(this.filter.target) ? ` -t ${shell(asked(this.filter.target))}` : "";
    if (cases.length && cases.length <= 20 && this.found.length <= 2000) return `harness run${targets}${cases.map((number) => ` -k ${shell(idOf(number))}`).join("")}`;
    const one = (name) => (this.filter[name] && !/[!,]/.test(this.filter[name]) ? this.filter[name] : "");
    const terms = [];
    const first = cases.length && termsOf(cases[0]).map((term) => /([\w.]+)=[a-z]+\d*[[{(]/.exec(term)?.[1]).find(Boolean);
    if (one("dtype") && first) terms.push(`${first}=${one("dtype")}`);
    terms.push(...one("types").split(" ").filter(Boolean));
    const head = one("operator") || one("opset") ? `${one("operator") || "*"}${one("opset") ? `@${one("opset")}` : ""}` : "";
    const query = [head, terms.join(";")].filter(Boolean).join(":");
    return `harness run${targets}${query ? ` -k ${shell(query)}` : ""}`;
  }
}

// What a command line calls a target: the page shortens the paths in a name.
const asked = (target) => run.asked?.[run.targets.indexOf(target)] ?? target;

const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// ---------------------------------------------------------------------------------------------------------- one case

const dialog = document.getElementById("case");

function showCase(id, target) {
  const number = caseNumber(id);
  if (number < 0) return dialog.replaceChildren(head(id), element("p", { class: "empty" }, "This run has no such case."));
  const results = [];
  for (let n = 0; n < run.case.length; n++) if (run.case[n] === number) results.push(n);
  const shown = results.find((result) => ofResult(result, "target") === target) ?? results.reduce((a, b) => (ofResult(b, "judged") < ofResult(a, "judged") ? b : a));
  dialog.replaceChildren(head(id), element("div", { class: "body" }, onTargets(results, shown, id), whyKnown(shown), whatIsTested(number), graph(number), found(shown), repeat(id, shown)));
}

function caseNumber(id) {
  const texts = searchTexts(), wantedText = id.toLowerCase();
  for (let n = 0; n < texts.length; n++) if (texts[n] === wantedText && idOf(n) === id) return n;
  return -1;
}

// ------------------------------------------------------------------------------------------------- operators at a glance

// The filter for what a cell counts.
const COUNTED = "!not expressible";
const MARKS = { pass: "✓", known: "~", failing: "✗", partial: "!", unclaimed: "∞", absent: "⊘", none: "–" };
const WORDS = { pass: "all pass", known: "has known deviations", failing: "has unexpected results", partial: "not all ran", unclaimed: "some test nothing", absent: "nothing ran", none: "no case" };

// Counts results by a key of their kind and state; what the target's API cannot express counts nowhere.
function tallies(wants, keyOf) {
  const keys = new Map(), kinds = run.kinds.map((kind) => wants(kind));
  const place = STATE.indexOf("judged"), target = STATE.indexOf("target"), outcome = STATE.indexOf("outcome");
  for (let n = 0; n < run.case.length; n++) {
    const kind = run.kind[run.case[n]];
    if (!kinds[kind]) continue;
    const state = run.states[run.state[n]], judged = run.judgements[state[place]];
    if (judged === "not expressible") continue;
    const key = keyOf(run.kinds[kind], state[target]);
    let tally = keys.get(key);
    if (!tally) keys.set(key, (tally = { selected: 0, run: 0, passed: 0, conforming: 0, known: 0, failing: 0, unexpected: 0, unclaimed: 0, outcomes: new Map(), levels: new Set() }));
    tally.selected++;
    tally.levels.add(run.kinds[kind][KIND.indexOf("level")]);
    tally.outcomes.set(state[outcome], (tally.outcomes.get(state[outcome]) ?? 0) + 1);
    if (judged !== "not run") tally.run++;
    if (judged === "tests nothing") tally.unclaimed++;
    else if (state[outcome] === "pass") tally.passed++;
    if (judged === "conforms" || judged === "improvement") tally.conforming++;
    if (judged === "known deviation") tally.known++;
    if (judged === "failing") tally.failing++;
    if (run.red.includes(judged)) tally.unexpected++;
  }
  return keys;
}

function stateOf(tally) {
  if (!tally?.selected) return "none";
  if (!tally.run) return "absent";
  return tally.failing ? "failing" : tally.known ? "known" : tally.unclaimed ? "unclaimed" : tally.run === tally.selected ? "pass" : "partial";
}

function cell(tally, text, filter, small) {
  const state = stateOf(tally);
  if (state === "none") return element("td", { class: "cell none" }, element("span", { class: "hidden" }, "no case"), element("span", { "aria-hidden": "true" }, "–"));
  return element("td", { class: `cell ${state}` }, element("a", { href: writeFragment(filter) }, element("span", { class: "mark", "aria-hidden": "true" }, MARKS[state]), text, small ? element("small", {}, small) : null, element("span", { class: "hidden" }, ` ${WORDS[state]}`)));
}

// The filter over the table of operators; choosing a level counts its cells again.
function chooser() {
  const form = document.getElementById("choose");
  if (!form || !run.targets) return;
  const rows = [...document.querySelectorAll("tr[data-operator]")], whole = rows.map((row) => [...row.cells].slice(1));
  let states = rows.map((row) => [...row.cells].slice(1).map((each) => each.classList[1]));
  const { name, state, level } = form.elements;
  for (const each of Object.keys(WORDS).filter((word) => word !== "none")) state.append(element("option", { value: each }, WORDS[each]));
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
      const cells = !found ? whole[place] : run.targets.map((target) => {
        const tally = found.get(`${target}\n${operator}`);
        return cell(tally, tally && `${grouped(tally.conforming)} / ${grouped(tally.selected)}`, { operator, target, level: level.value, judged: tally?.unexpected ? run.red.join() : COUNTED }, tally?.unexpected ? ` ${grouped(tally.unexpected)} unexpected` : "");
      });
      row.replaceChildren(row.cells[0], ...cells);
    });
    states = rows.map((row) => [...row.cells].slice(1).map((each) => each.classList[1]));
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
  if (part.dataset.filled || !run?.targets) return;
  part.dataset.filled = "yes";
  const operator = part.dataset.operator, [rank, validity] = ["rank", "validity"].map((name) => KIND.indexOf(name)), figures = [];
  for (const rowsAre of ["dtype", "types"]) {
    const place = KIND.indexOf(rowsAre);
    const found = tallies((kind) => kind[0] === operator && kind[validity] === "valid" && kind[place] !== "", (kind, target) => JSON.stringify([target, kind[place], kind[rank]]));
    const cells = [...found].map(([key, tally]) => [...JSON.parse(key), tally]);
    if (rowsAre === "types" && new Set(cells.map(([, row]) => row)).size < 2) continue;
    const names = rowsAre === "types" ? [...new Set(cells.flatMap(([, row]) => row.split(" ").map((each) => each.split("=")[0])))] : [];
    for (const target of run.targets) {
      const own = cells.filter(([of]) => of === target);
      if (!own.some(([, , , tally]) => tally.run)) continue;
      const rows = [...new Set(own.map(([, row]) => row))].sort(byType), ranks = [...new Set(own.map(([, , each]) => each))].sort((a, b) => a - b);
      const title = `${target}: ${names.length ? `${names.join(", ")} ` : ""}element type × rank`;
      const at = new Map(own.map(([, row, each, tally]) => [`${row}\n${each}`, tally]));
      const body = rows.map((row) => element("tr", {}, element("th", { scope: "row" }, names.length === 1 ? row.slice(row.indexOf("=") + 1) : row), ranks.map((each) => {
        const tally = at.get(`${row}\n${each}`), allowed = tally ? run.levels.filter((level) => tally.levels.has(level)) : [];
        return cell(tally, tally && `${grouped(tally.passed)}/${grouped(tally.selected)}`, { operator, target, validity: "valid", rank: String(each), [rowsAre]: row, judged: COUNTED }, tally && [element("span", { class: "hidden" }, " level "), allowed[0], allowed.length > 1 ? `–${allowed.at(-1)}` : ""]);
      })));
      figures.push(element("figure", {}, element("figcaption", {}, title), element("div", { class: "scroll", role: "group", "aria-label": title, tabindex: "0" }, element("table", { class: "heat" },
        element("thead", {}, element("tr", {}, element("td"), ranks.map((each) => element("th", { scope: "col" }, element("span", { class: "hidden" }, "rank "), each >= 0 ? String(each) : "?")))), element("tbody", {}, body)))));
    }
  }
  part.append(figures.length ? element("div", { class: "grids" }, figures) : element("p", { class: "empty" }, "No valid case that ran names its element type."),
    element("p", {}, element("a", { href: writeFragment({ operator }) }, `All cases of ${operator}`)));
}

const head = (id) => element("header", {}, element("h2", { id: "case-title", class: "mono" }, breakable(id)), element("button", { type: "button", onclick: () => dialog.close() }, "Close"));

function onTargets(results, shown, id) {
  const rows = results.map((result) => {
    const target = ofResult(result, "target"), current = result === shown;
    return element("tr", { "aria-current": current ? "true" : false }, element("th", { scope: "row" }, current ? target : element("a", { href: writeFragment({ ...browser.filter, case: id, on: target }) }, target)),
      judged(result).map((cell) => element("td", {}, cell)), element("td", {}, run.places[run.place[result]][0] || "–"),
      element("td", {}, run.places[run.place[result]][1] || "–"), element("td", { class: "num" }, run.time[result] ? `${run.durations[run.time[result]]} ms` : "–"));
  });
  return element("section", {}, element("h3", {}, "Results"), table(["Target", ...(comparing() ? ["BASE", "HEAD", "Change"] : ["Outcome", "Verdict"]), "Stage reached", "Placed on", "Time"], rows, { label: "Results by target" }));
}

// Why the result is a known deviation, or which entry it contradicts.
function whyKnown(result) {
  const entry = entryOf(result);
  if (!entry) return null;
  const title = ofResult(result, "verdict") === "expected" ? "Known deviation" : `Not what is expected: ${entry.expect}`;
  return element("section", {}, element("h3", {}, title), element("p", {}, element("strong", {}, entry.name), entry.pending ? [" ", element("span", { class: "warn" }, "not reviewed yet")] : null),
    element("p", {}, entry.reason, entry.documents ? element("span", { class: "muted" }, ` Microsoft’s documents: ${entry.documents}`) : null, " ", entry.host ? element("a", { href: entry.link, rel: "noopener noreferrer" }, entry.host) : entry.link),
    element("p", {}, element("a", { href: writeFragment({ expectation: String(entry.number), verdict: "expected" }) }, "All results that this explains")));
}

function whatIsTested(number) {
  const [operator, ...terms] = [termsOf(number)[0].split(":")[0], ...idOf(number).slice(termsOf(number)[0].split(":")[0].length + 1).split(";")];
  const level = ofCase(number, "level");
  const [source, rule] = run.origins?.[`${operator.split("@")[0]}:${terms[0]}`] ?? [];
  const facts = [["operator", operator], ...terms.map((term) => term.split(/=(.*)/s)), ["validity", ofCase(number, "validity")],
    ["feature level", level === "beyond" ? "beyond every published level" : `first allowed at ${level}`],
    ...(rule ? [[ofCase(number, "validity") === "unspecified" ? "left open" : "rule", rule]] : []), ...(source ? [["source", source]] : [])];
  return element("section", {}, element("h3", {}, "What is tested"), element("dl", { class: "terms" }, facts.map(([name, value]) => [element("dt", {}, name), element("dd", { class: "mono" }, value ?? "")])));
}

// Draws what the case id says: inputs, the operator with its attributes (or what a variant composes), output, neighbours.
function graph(number) {
  const id = idOf(number), colon = id.indexOf(":");
  const terms = id.slice(colon + 1).split(";").map((term) => term.split(/=(.*)/s));
  const get = (name) => terms.find(([key]) => key === name)?.[1];
  const tensors = terms.filter(([, value]) => /^[a-z]+\d*(\[[\d,]*\]|\{.*\}|\(.*\))$/.test(value ?? ""));
  const described = new Set(["sweep", "case", "values", "shapes", "initializer", "in_place", "optimization", "neighbours", "variant", "outputs", "draw", "api", "operator", "dimension_count", ...tensors.map(([name]) => name)]);
  const attributes = terms.filter(([name, value]) => !described.has(name) && value !== undefined && !name.endsWith("values") && !name.startsWith("layout."));
  const operator = id.slice(0, colon).split("@")[0], variant = get("variant"), sandwich = get("neighbours") === "true";
  const inputs = tensors.length ? tensors : [["inputs", ""]];
  const row = 58, height = Math.max(inputs.length * row + 12, 96), middle = height / 2;
  const boxes = [], lines = [];
  const box = (x, y, width, titleText, sub, kind) => boxes.push(element("svg:g", { class: kind }, element("svg:title", {}, `${titleText} ${sub}`),
    element("svg:rect", { x, y: y - 22, width, height: 44, rx: kind === "node" ? 6 : 22 }), element("svg:text", { x: x + width / 2, y: sub ? y - 3 : y + 5, "text-anchor": "middle" }, clipped(titleText, width)),
    sub ? element("svg:text", { x: x + width / 2, y: y + 14, "text-anchor": "middle", class: "sub" }, clipped(sub, width)) : null));
  const line = (x1, y1, x2, y2) => lines.push(element("svg:path", { d: `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2 - 7} ${y2}`, "marker-end": "url(#arrow)" }));
  const nodeX = sandwich ? 380 : 240, nodeWidth = 190;
  inputs.forEach(([name, value], place) => {
    const y = middle + (place - (inputs.length - 1) / 2) * row;
    box(4, y, 184, get("initializer") === name ? `${name}, initializer` : name, value, get("initializer") === name ? "constant" : "tensor");
    if (sandwich && place === 0) {
      box(232, y, 100, "Identity", "", "node");
      line(188, y, 232, y);
      line(332, y, nodeX, middle + (place - (inputs.length - 1) / 2) * 14);
    } else line(188, y, nodeX, middle + (place - (inputs.length - 1) / 2) * 14);
  });
  box(nodeX, middle, nodeWidth, variant ? `${operator}, composed` : operator, variant ? variant : attributes.map(([name, value]) => `${name}=${value}`).join(" "), "node");
  let x = nodeX + nodeWidth;
  if (sandwich) { box(x + 44, middle, 100, "Identity", "", "node"); line(x, middle, x + 44, middle); x += 144; }
  box(x + 44, middle, 130, Number(get("outputs")) > 1 ? `${get("outputs")} outputs` : "output", "", "tensor");
  line(x, middle, x + 44, middle);
  const width = x + 180;
  const arrow = element("svg:defs", {}, element("svg:marker", { id: "arrow", viewBox: "0 0 8 8", refX: 1, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, element("svg:path", { d: "M0 0 8 4 0 8z" })));
  const label = `${inputs.map(([name, value]) => `${name} ${value}`).join(" and ")} into ${operator}`;
  return element("section", {}, element("h3", {}, "Graph"), element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": "Drawing of the graph" },
    element("svg:svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, arrow, lines, boxes)));
}
const clipped = (text, width) => { const most = Math.floor(width / 7.6); return text.length > most ? `${text.slice(0, most - 1)}…` : text; };

const LEFT_OUT = "The error and difference of this result are left out to keep the page small; the run file has them.";

function found(result) {
  const detail = run.details[run.detail[result]], parts = [];
  if (detail === "left out") parts.push(element("p", { class: "empty" }, LEFT_OUT));
  else if (detail) {
    const [error, diff, note] = detail;
    if (note) parts.push(element("h3", {}, /^(flaky: )?failed /.test(note) ? "Repeats" : "What changed"), element("p", {}, note));
    if (error.length) parts.push(element("h3", {}, "Error"), element("p", {}, element("strong", {}, error[0])), error.length > 1 ? element("pre", { tabindex: "0" }, error[1]) : element("p", { class: "empty" }, LEFT_OUT));
    if (diff.length) {
      const [ulp, differing, total, at, expected, actual, error, bound, output] = diff;
      const terms = [[at ? `expected at [${at.join(", ")}]` : "expected", expected], ["actual", actual]];
      if (bound != null) terms.push(["error", error === null ? "not a finite number" : bound ? `${short(error)}, ${short(error / bound)} × its bound` : `${short(error)} where none is admissible`], ["bound", short(bound)]);
      parts.push(element("h3", {}, "Difference"), element("p", {}, `${output == null ? "" : `Output ${output}: `}${grouped(differing)} of ${grouped(total)} elements differ${ulp == null ? "" : `, at most ${grouped(ulp)} ULP apart`}.`),
        element("dl", { class: "terms" }, terms.map(([name, value]) => [element("dt", {}, name), element("dd", { class: "mono" }, value)])));
    }
  }
  const near = run.near && run.nearnesses[run.near[result]];
  if (near?.length) parts.push(element("h3", {}, "Error and bound"), element("p", {}, nearness(near)));
  const tensors = run.tensors[result];
  if (tensors) {
    if (tensors.ulp) parts.push(histogram(tensors.ulp));
    parts.push(element("h3", {}, "Tensors"), element("div", { class: "grids" }, tensors.grids.map(grid)));
    const columns = tensors.columns ?? ["Index", "Expected", "Actual", ...(tensors.ulp ? ["ULP"] : [])];
    if (tensors.wrong?.length) parts.push(element("h3", {}, "Wrong elements"), table(columns, tensors.wrong.map((cells) => element("tr", {}, cells.slice(0, columns.length).map((cell) => element("td", { class: "mono" }, cell)))), { label: "Wrong elements" }));
  } else if (detail && detail !== "left out" && detail[1].length) parts.push(element("p", { class: "muted" }, "This page has no tensors of this result."));
  return parts.length ? element("section", {}, parts) : null;
}

const short = (number) => String(Number(number.toPrecision(3)));
function nearness([ratio, ulp, unclaimed, compared]) {
  if (unclaimed && unclaimed === compared) return `The bound is infinite for all ${grouped(compared)} elements: nothing is claimed, and the result tests nothing.`;
  return `The largest error is ${ratio} of its bound (${ulp} ULP).${unclaimed ? ` Nothing is claimed of ${grouped(unclaimed)} of ${grouped(compared)} elements.` : ""}`;
}

function histogram(buckets) {
  const most = Math.max(...buckets.map(([, count]) => count), 1);
  return [element("h3", {}, "ULP distance of wrong elements"), element("table", { class: "histogram" }, element("thead", { class: "hidden" }, element("tr", {}, element("th", { scope: "col" }, "ULP"), element("th", { scope: "col" }, "Elements"))), element("tbody", {}, buckets.map(([label, count]) =>
    element("tr", {}, element("th", { scope: "row" }, label), element("td", {}, element("svg:svg", { class: "bar", width: 200, height: 12, "aria-hidden": "true" }, element("svg:rect", { width: count ? Math.max(2, (200 * count) / most) : 0, height: 12 })), ` ${grouped(count)}`)))))];
}

function grid(tensor) {
  const rows = tensor.rows.map((line) => element("tr", {}, element("th", { scope: "row" }, `[${line.at.join(", ")}]`), line.cells.map((cell, place) => {
    const wrong = line.wrong.includes(place);
    return element("td", { class: wrong ? "wrong" : false }, wrong ? [element("span", { "aria-hidden": "true" }, "✗ "), element("span", { class: "hidden" }, "wrong "), cell] : cell);
  })));
  const left = tensor.size - tensor.shown;
  return element("figure", {}, element("figcaption", {}, `${tensor.name}: ${tensor.dtype}[${tensor.shape.join(", ")}]`),
    element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": `Elements of ${tensor.name}` }, element("table", { class: "tensor" }, element("tbody", {}, rows))), left ? element("p", { class: "muted" }, `${grouped(left)} more elements are not shown`) : null);
}

function repeat(id, result) {
  const command = `harness run -t ${shell(asked(ofResult(result, "target")))} -k ${shell(id)}`;
  return element("section", {}, element("h3", {}, "Repeat it"), element("div", { class: "command" }, element("pre", { tabindex: "0" }, command), copyButton("Copy", () => command)));
}

// -------------------------------------------------------------------------------------------------------------- start

// Says in the page which fragment it shows, for who drives it: the address changes before the tables do.
function said() {
  document.documentElement.dataset.shows = location.hash;
}

function follow() {
  const { case: id, on, ...filter } = readFragment();
  const part = !location.hash.includes("=") && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part && part.matches("details")) {
    part.open = true;
    fill(part);
    part.scrollIntoView();
  }
  const filtered = Object.keys(filter).length > 0;
  if (filtered || location.hash === "#cases" || !location.hash || !browser.found) browser.take(filter);
  if (filtered && !id) document.getElementById("cases").scrollIntoView();
  if (id) {
    showCase(id, on);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  } else if (dialog.open) dialog.close();
  said();
}

dialog.addEventListener("close", () => {
  if (readFragment().case) history.replaceState(null, "", writeFragment(browser.filter));
  said();
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !dialog.open && !event.target.closest("input, select, textarea")) { event.preventDefault(); browser.inputs.q.focus(); }
});
let closed = [];
addEventListener("beforeprint", () => { document.querySelectorAll("details.operator").forEach(fill); closed = [...document.querySelectorAll("details:not([open])")]; for (const each of closed) each.open = true; });
addEventListener("afterprint", () => { for (const each of closed) each.open = false; });

const place = document.getElementById("browser");
let run, browser;
try {
  run = await decode();
  browser = new Browser(place);
  chooser();
  for (const part of document.querySelectorAll("details.operator")) {
    part.addEventListener("toggle", () => { if (part.open) fill(part); });
    if (part.open) fill(part);
  }
  addEventListener("hashchange", follow);
  follow();
  performance.mark("cases-ready");
} catch (error) {
  place.hidden = false;
  place.append(element("p", { class: "empty" }, `The cases cannot be shown: ${error.message}. This page needs a browser of 2023 or later.`));
}
