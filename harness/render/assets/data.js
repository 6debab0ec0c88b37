// The matrices, the table of single cases and the view of one case. Everything shown is set as text; nothing is parsed as markup.

const PAGE = 50;
const FILTERS = [
  ["operator", "Operator"], ["target", "Target"], ["reading", "Reading"], ["unexpected", "Unexpected"], ["change", "Change"], ["before", "BASE"], ["outcome", "Outcome"], ["verdict", "Verdict"], ["validity", "Validity"],
  ["level", "Level"], ["dtype", "Element type"], ["types", "Other types"], ["rank", "Rank"], ["opset", "Opset"], ["variant", "Variant"], ["error", "Error"], ["flaky", "Flaky"], ["expectation", "Entry"],
];
// What a kind of case says; all but the numbers among it stand in a dictionary.
const KIND = ["operator", "opset", "dtype", "rank", "types", "variant", "level", "validity"];
const NUMBERS = ["opset", "rank"];
// What says how results are shown; all else in a fragment filters.
const VIEW = ["sort", "group"];
let STATE = ["target", "outcome", "verdict", "reading", "unexpected"];
// A page that compares two runs names its own fields: `outcome` is HEAD's, `before` BASE's, and `change` stands for the reading.
const comparing = () => STATE.includes("before");
const judging = () => (comparing() ? "change" : "reading");
// ---------------------------------------------------------------------------------------------------------------- data

async function decode(text) {
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
  run.ranks = run.states.map((state) => state[STATE.indexOf(judging())] + (state[STATE.indexOf("unexpected")] === "yes" ? 0 : run.judgements.length));
  run.order = byRank(run.state, run.ranks, 2 * run.judgements.length);
  return run;
}

// `home` is what the page itself holds, `run` what it shows: that, or the slice of an operator (harness/render/page_cases.py).
let run, home;
const loaded = new Map();

// The operator whose slice a filter or a case is of, null where it is of several or none.
function sliceOf(filter, id) {
  const names = Object.keys(home.slices ?? {});
  const wanted = id ? id.split("@")[0] : filter.operator || QUERY_HEAD.exec((filter.query ?? "").trim().split(/[:\s]/)[0])?.[1];
  return names.length === 1 ? names[0] : names.includes(wanted) && !/\s/.test((filter.query ?? "").trim()) ? wanted : null;
}

// Loads a slice, which is a script: a page that is opened from disk reads nothing else.
function slice(operator) {
  if (!loaded.has(operator)) loaded.set(operator, new Promise((done, fail) => {
    const file = home.slices[operator], script = element("script", { src: file.split("/").map(encodeURIComponent).join("/") });
    script.addEventListener("load", () => done(globalThis.slices?.[operator]));
    script.addEventListener("error", () => fail(new Error(`${file} is not beside this page: keep the folder together`)));
    document.head.append(script);
  }).then(decode).then((found) => {
    if (found.run !== home.run) throw new Error(`${home.slices[operator]} is of another run than this page`);
    return found;
  }));
  return loaded.get(operator);
}

// How many results of each operator the whole run has that a filter wants, as far as counts say; null where the page holds all.
const COUNTED_FIELDS = [...KIND, ...STATE, "expectation", ...VIEW];
function counted(filter) {
  if (!home.cell_number) return null;
  const { kinds, states, entries } = tests(home, filter), found = new Map();
  home.cell_number.forEach((number, n) => {
    const kind = home.cell_kind[n], operator = home.kinds[kind][0];
    if (kinds[kind] && states[home.cell_state[n]] && entries[home.cell_entry[n]]) found.set(operator, (found.get(operator) ?? 0) + number);
  });
  return found;
}

// Unexpected results first, correct ones last; within that as they ran.
function byRank(column, judged, ranks) {
  const counts = new Uint32Array(ranks + 1);
  for (const state of column) counts[judged[state] + 1]++;
  for (let n = 0; n < ranks; n++) counts[n + 1] += counts[n];
  const order = new Uint32Array(column.length);
  for (let n = 0; n < column.length; n++) order[counts[judged[column[n]]]++] = n;
  return order;
}

const termsOf = (number) => Array.from(run.part.subarray(run.starts[number], run.starts[number + 1]), (part) => run.parts[part]);
const idOf = (number) => termsOf(number).join(";");
const allIds = () => (run.ids ??= Array.from(run.starts.subarray(0, -1), (_, number) => idOf(number)));
const searchTexts = () => (run.lowered ??= allIds().map((id) => id.toLowerCase()));

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

// What stands before every message of ONNX Runtime; the error class says the same.
const PREAMBLE = /^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : (Non-zero status code returned while running \S+ node\. Name:'[^']*' Status Message: )?/;

// A message without what differs from case to case: numbers, lists of them, names in quotes, places in files.
const kindOfMessage = (text) => text.replace(PREAMBLE, "").split("\n")[0].replace(/\S*[\\/](?=[^\\/\s]+)/g, "").replace(/'[^']*'|"[^"]*"/g, "…").replace(/\b[A-Z]\w+(?=\(\d+\))/g, "…")
  .replace(/0x[0-9a-fA-F]+|-?\d+(\.\d+)?/g, "N").replace(/N([,\s]+N)+/g, "N…").slice(0, 160);
const messageKinds = () => (run.kindsOfMessages ??= run.details.map((detail) => {
  if (!Array.isArray(detail)) return detail ?? "no message";
  const [error, diff, note] = detail;
  return error.length ? `${error[0]}: ${kindOfMessage(error[1] ?? "(left out)")}` : diff.length ? "elements differ" : kindOfMessage(note ?? "");
}));

// Sets a bit for each word that a text holds; the text of a detail is its error and what was repeated.
const MOST_WORDS = 30;
function wordsIn(texts, words, wanted) {
  const held = new Uint32Array(texts.length);
  for (let n = 0; n < texts.length; n++) {
    if (wanted && !wanted[n]) continue;
    for (let w = 0; w < words.length; w++) if (texts[n].includes(words[w])) held[n] |= 1 << w;
  }
  return held;
}
const textsOfDetails = () => (run.detailTexts ??= run.details.map((detail) => (Array.isArray(detail) ? [...detail[0], detail[2] ?? ""].join(" ").toLowerCase() : "")));

// Which kinds, states and entries of a run a filter wants.
const tests = (run, filter) => ({
  kinds: wanted(run.kinds, KIND, filter, (value, field) => (field === "variant" && value === "" ? "none" : value)),
  states: wanted(run.states, STATE, filter, (value, field) => (field === judging() ? run.judgements[value] : value)),
  entries: wanted([["none"], ...(run.expectations ?? [])], ["expectation"], filter),
});

// Returns the results that a filter wants, failing ones first; throws what is wrong with its query.
function select(filter) {
  const { kinds, states, entries } = tests(run, filter);
  const details = wanted(run.details.map((detail, n) => [errorClass(detail), isFlaky(detail), filter.message ? messageKinds()[n] : ""]), ["error", "flaky", "message"], filter);
  const count = run.kind.length;
  const cases = new Uint8Array(count);
  for (let n = 0; n < count; n++) cases[n] = kinds[run.kind[n]];
  if (filter.query?.trim()) {
    const test = queryTest(filter.query), texts = allIds();
    for (let n = 0; n < count; n++) if (cases[n] && !test(texts[n])) cases[n] = 0;
  }
  const words = (filter.q ?? "").toLowerCase().split(/\s+/).filter(Boolean).slice(0, MOST_WORDS), all = 2 ** words.length - 1;
  const inIds = words.length && wordsIn(searchTexts(), words, cases), inDetails = words.length && wordsIn(textsOfDetails(), words);
  const found = new Uint32Array(run.order.length);
  let size = 0;
  for (const result of run.order) {
    const number = run.case[result], detail = run.detail[result];
    if (cases[number] && states[run.state[result]] && details[detail] && entries[run.expectation?.[result] ?? 0]
      && (!all || (inIds[number] | inDetails[detail]) === all)) found[size++] = result;
  }
  return found.subarray(0, size);
}

// Sorts results by a column, in place of what fails first; equal ones stay as they were. `-` before the name: the largest first.
function sorted(found, by) {
  const down = by.startsWith("-"), name = down ? by.slice(1) : by, rank = ranker(name);
  if (!rank || !found.length) return found;
  const keys = new Float64Array(found.length);
  for (let n = 0; n < found.length; n++) keys[n] = (down ? -rank(found[n]) : rank(found[n])) * found.length + n;
  keys.sort();
  return Uint32Array.from(keys, (key) => found[((key % found.length) + found.length) % found.length]);
}
const places = (values, compare) => {
  const order = Array.from(values.keys()).sort((a, b) => compare(values[a], values[b]) || a - b), ranks = new Uint32Array(values.length);
  order.forEach((value, place) => { ranks[value] = place && compare(values[order[place - 1]], values[value]) === 0 ? ranks[order[place - 1]] : place; });
  return ranks;
};
const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0), byNumber = (a, b) => a - b;
function ranker(name) {
  if (name === "case") { run.rankOfIds ??= places(allIds(), byText); return (result) => run.rankOfIds[run.case[result]]; }
  if (name === "message") { const ranks = places(messageKinds(), byText); return (result) => ranks[run.detail[result]]; }
  if (name === "time") { const ranks = places(run.durations, byNumber); return (result) => ranks[run.time[result]]; }
  const ofKind = KIND.indexOf(name), ofState = STATE.indexOf(name);
  if (ofKind >= 0) {
    const ranks = places(run.kinds.map((kind) => (name === "level" ? run.levels.indexOf(kind[ofKind]) : kind[ofKind])), name === "level" || NUMBERS.includes(name) ? byNumber : byText);
    return (result) => ranks[run.kind[run.case[result]]];
  }
  if (ofState >= 0) { const ranks = places(run.states.map((state) => state[ofState]), name === judging() ? byNumber : byText); return (result) => ranks[run.state[result]]; }
  return null;
}

const readFragment = () => {
  const text = location.hash.slice(1);
  return text.includes("=") ? Object.fromEntries(new URLSearchParams(text.replaceAll("+", "%2B"))) : {};
};
const writeFragment = (terms) => {
  const text = Object.entries(terms).filter(([, value]) => value).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return `#${text || "cases"}`;
};

