// ---------------------------------------------------------------------------------------------------------- one case

const dialog = document.getElementById("case");

let opened = -1;

function showCase(id, target) {
  const numbers = caseNumbers(id), number = numbers[0] ?? -1;
  opened = -1;
  if (number < 0) return dialog.replaceChildren(head(id), element("p", { class: "empty" }, "This run has no such case."));
  const results = [];
  for (let n = 0; n < run.case.length; n++) if (numbers.includes(run.case[n])) results.push(n);
  const shown = opened = results.find((result) => ofResult(result, "target") === target) ?? results.reduce((a, b) => (run.ranks[run.state[b]] < run.ranks[run.state[a]] ? b : a));
  dialog.replaceChildren(head(id, turns(shown)), element("div", { class: "body" }, onTargets(results, shown, id), whyKnown(shown), whatIsTested(number), graph(number), found(shown), repeat(id, shown)));
}

// The steps to the neighbours of a result in the table of cases, as it is filtered and sorted.
function turns(result) {
  const place = browser.found.indexOf(result);
  if (place < 0 || browser.found.length < 2) return [];
  const step = (by, label, key) => element("button", { type: "button", disabled: place + by < 0 || place + by >= browser.found.length, "aria-keyshortcuts": key, onclick: () => neighbour(by, label) }, label);
  return [element("span", { class: "muted" }, `${grouped(place + 1)} of ${grouped(browser.found.length)}`), step(-1, "Previous", "p"), step(1, "Next", "n")];
}

function neighbour(by, label = "") {
  const result = browser.found[browser.found.indexOf(opened) + by];
  if (opened < 0 || result === undefined) return;
  history.replaceState(null, "", writeFragment({ ...browser.filter, case: idOf(run.case[result]), on: ofResult(result, "target") }));
  follow();
  const buttons = [...dialog.querySelectorAll("header button")];
  (buttons.find((button) => button.textContent === label && !button.disabled) ?? buttons.at(-1)).focus();
}

// The numbers of a case: several where targets have it at different levels.
function caseNumbers(id) {
  return allIds().flatMap((other, number) => (other === id ? [number] : []));
}

const head = (id, more = []) => element("header", {}, element("h2", { id: "case-title", class: "mono" }, breakable(id)), element("div", { class: "buttons" }, more, element("button", { type: "button", onclick: () => dialog.close() }, "Close")));

function onTargets(results, shown, id) {
  const rows = results.map((result) => {
    const target = ofResult(result, "target"), current = result === shown;
    return element("tr", { "aria-current": current ? "true" : false }, element("th", { scope: "row" }, current ? target : element("a", { href: writeFragment({ ...browser.filter, case: id, on: target }) }, target)),
      judged(result).map((cell) => element("td", {}, cell)), element("td", {}, run.places[run.place[result]][0] || "–"),
      element("td", {}, run.places[run.place[result]][1] || "–"), element("td", { class: "num" }, run.time[result] ? `${run.durations[run.time[result]]} ms` : "–"));
  });
  return element("section", {}, element("h3", {}, "Results"), table(["Target", ...(comparing() ? ["BASE", "HEAD", "Change"] : ["Outcome", "Reading"]), "Stage reached", "Placed on", "Time"], rows, { label: "Results by target" }));
}

// Why the result is known, or which entry it contradicts.
function whyKnown(result) {
  const entry = entryOf(result);
  if (!entry) return null;
  const title = ofResult(result, "verdict") === "expected" ? "Why it is known" : `Not what is expected: ${entry.expect}`;
  return element("section", {}, element("h3", {}, title), element("p", {}, element("strong", {}, entry.name), entry.pending ? [" ", element("span", { class: "warn" }, "not reviewed yet")] : null),
    element("p", {}, entry.reason, entry.documents ? element("span", { class: "muted" }, ` Microsoft’s documents: ${entry.documents}`) : null, " ", entry.host ? element("a", { href: entry.link, rel: "noopener noreferrer" }, entry.host) : entry.link),
    element("p", {}, element("a", { href: writeFragment({ expectation: String(entry.number), verdict: "expected" }) }, "All results that this explains")));
}

function whatIsTested(number) {
  const [operator, ...terms] = [termsOf(number)[0].split(":")[0], ...idOf(number).slice(termsOf(number)[0].split(":")[0].length + 1).split(";")];
  const level = ofCase(number, "level");
  const [source, rule, spec, link] = run.origins?.[`${operator.split("@")[0]}:${terms[0]}`] ?? [];
  const facts = [["operator", operator], ...terms.map((term) => term.split(/=(.*)/s)), ["validity", ofCase(number, "validity")],
    ["feature level", level === "beyond" ? "beyond every published level" : `first allowed at ${level}`],
    ...(rule ? [[ofCase(number, "validity") === "unspecified" ? "left open" : "rule", rule]] : []),
    ...(source ? [["source", link ? element("a", { href: link, rel: "noopener noreferrer" }, source) : source]] : []), ...(spec ? [["spec", spec]] : [])];
  return element("section", {}, element("h3", {}, "What is tested"), element("dl", { class: "terms" }, facts.map(([name, value]) => [element("dt", {}, name), element("dd", { class: "mono" }, value ?? "")])));
}

// Draws what the case id says: inputs, the operator with its attributes (or what a variant composes), output, neighbours.
function graph(number) {
  const id = idOf(number), colon = id.indexOf(":");
  const terms = id.slice(colon + 1).split(";").map((term) => term.split(/=(.*)/s));
  const get = (name) => terms.find(([key]) => key === name)?.[1];
  const tensors = terms.filter(([, value]) => /^[a-z][a-z0-9]*(\[[\d,]*\]|\{.*\}|\(.*\))$/.test(value ?? ""));
  const described = new Set(["sweep", "case", "values", "shapes", "initializer", "in_place", "optimization", "neighbours", "variant", "outputs", "omit", "draw", "api", "operator", "dimension_count", ...tensors.map(([name]) => name)]);
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
  if (unclaimed && unclaimed === compared) return `The bound is infinite for all ${grouped(compared)} elements: nothing is claimed of them.`;
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
    return element("td", { class: wrong ? "wrong" : false }, wrong ? [element("span", { "aria-hidden": "true" }, "≠ "), element("span", { class: "hidden" }, "wrong "), cell] : cell);
  })));
  const left = tensor.size - tensor.shown;
  return element("figure", {}, element("figcaption", {}, `${tensor.name}: ${tensor.dtype}[${tensor.shape.join(", ")}]`),
    element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": `Elements of ${tensor.name}` }, element("table", { class: "tensor" }, element("tbody", {}, rows))), left ? element("p", { class: "muted" }, `${grouped(left)} more elements are not shown`) : null);
}

// What a reader does next with a result, each as a command line; run.jsonl lies beside this page.
function repeat(id, result) {
  const target = asked(ofResult(result, "target")), where = `${shell(id)} -t ${shell(target)}`;
  const commands = [["Run it again", `harness run -t ${shell(target)} -k ${shell(id)}`]];
  if (!comparing() && (ofResult(result, "unexpected") === "yes" || ["wrong", "crashed", "accepted", "not supported"].includes(run.judgements[ofResult(result, "reading")]))) {
    if (run.reproduced?.[run.targets.indexOf(ofResult(result, "target"))]) commands.push(["Write a bug report that runs without the harness", `harness repro run.jsonl ${where} -o repro`]);
    commands.push(["Shrink it to the smallest case that still fails", `harness reduce ${where}${run.seed ? ` --seed ${run.seed}` : ""} -o small.yaml`]);
  }
  return element("section", {}, element("h3", {}, "Repeat it"), commands.map(([what, command]) => [element("p", { class: "what" }, what), element("div", { class: "command" }, element("pre", { tabindex: "0" }, command), copyButton("Copy", () => command))]));
}
