// -------------------------------------------------------------------------------------------------------- table of cases

// The values of a filter that occur, in reading order.
function occurring(name) {
  if (name === "target") return run.targets;
  if (name === "operator" && home.slices) return Object.keys(home.slices);
  if (name === "error") return [...new Set(run.details.map(errorClass))].sort();
  if (name === "expectation") return run.expectation ? run.expectations.map(([number]) => number) : [];
  if (name === "flaky") return [...new Set(run.details.map(isFlaky))].sort();
  const place = KIND.indexOf(name);
  const values = new Set(place >= 0 ? run.kinds.map((kind) => kind[place]) : run.states.map((state) => state[STATE.indexOf(name)]));
  if (name === judging()) return run.judgements.filter((_, number) => values.has(number));
  if (name === "level") return run.levels.filter((level) => values.has(level));
  return [...values].filter((value) => value !== "" && value !== -1).sort((a, b) => (typeof a === "number" ? a - b : a < b ? -1 : 1));
}

const ORDERS = [["", "unexpected first"], ["case", "case id"], ["-time", "longest first"], ["message", "message"], ["level", "level"], ["target", "target"], ["validity", "validity"], ["outcome", "outcome"]];
const GROUPS = [["", "no group"], ["message", "message"], ["operator", "operator"], ["dtype", "element type"], ["target", "target"]];
const COLUMNS = () => [["case", "Case"], ["target", "Target"], ["validity", "Validity"], ["level", "Level"],
  ...(comparing() ? [["before", "BASE"], ["outcome", "HEAD"], ["change", "Change"]] : [["outcome", "Outcome"], ["reading", "Reading"]]), ["message", "What happened"]];

const MOST_LINKS = 40;

class Browser {
  constructor(place) {
    this.first = 0;
    this.found = new Uint32Array();
    this.groups = null;
    this.inputs = {};
    const chosen = (name, label, options) => {
      this.inputs[name] = element("select", { name }, options.map(([value, text]) => element("option", { value }, text)));
      return element("label", {}, element("span", {}, label), this.inputs[name]);
    };
    const fields = FILTERS.map(([name, label]) => {
      const values = occurring(name);
      if (values.length < (name === "expectation" ? 1 : 2) && name !== judging()) return null;
      return chosen(name, run.labels?.[name] ?? label, [["", "any"], ...values.map((value) => [value, name === "expectation" ? entryName(String(value)) : String(value)])]);
    });
    const typed = (name, label, placeholder) => {
      this.inputs[name] = element("input", { name, type: "search", placeholder, autocomplete: "off", spellcheck: "false", "aria-describedby": "filter-problem" });
      return element("label", { class: "wide" }, element("span", {}, label), this.inputs[name]);
    };
    const query = typed("query", "Query, as -k takes it", "Round@22:X=float16   axis>=1   data=*[*,*]"), text = typed("q", "Words in the id or the message", "axis=-1 kernel");
    const view = [chosen("sort", "Order", ORDERS), chosen("group", "Group by", GROUPS)];
    this.problem = element("p", { id: "filter-problem", class: "bad", role: "alert", hidden: true });
    this.status = element("p", { role: "status", class: "count" });
    this.head = element("tr");
    this.body = element("tbody");
    this.back = element("button", { type: "button", onclick: () => this.turn(-PAGE) }, "← Previous");
    this.on = element("button", { type: "button", onclick: () => this.turn(PAGE) }, "Next →");
    this.empty = element("p", { class: "empty", hidden: true }, "No result matches this filter.");
    this.others = element("p", { class: "others note", hidden: true });
    this.trouble = element("p", { class: "bad", role: "alert", hidden: true });
    this.table = element("div", { class: "scroll high", role: "group", tabindex: "0", "aria-labelledby": "cases-title" }, element("table", { class: "cases" }, element("thead", {}, this.head), this.body));
    this.more = element("details", { class: "more" }, element("summary", {}, "More filters"), element("div", { class: "fields" }, fields.slice(7)));
    place.append(
      element("form", { role: "search", "aria-label": "Filter the cases", oninput: () => this.changed(), onsubmit: (event) => event.preventDefault() },
        query, text, fields.slice(0, 7), view, this.more,
        element("div", { class: "buttons" }, element("button", { type: "reset", onclick: () => setTimeout(() => this.changed()) }, "Clear"), copyButton("Copy link", () => location.href), copyButton("Copy command", () => this.command()))),
      this.problem, this.trouble, this.status, this.others, this.table, this.empty, element("div", { class: "pager" }, this.back, this.on));
    place.hidden = false;
  }

  changed() {
    const filter = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.value]).filter(([, value]) => value));
    if (this.filter?.message) filter.message = this.filter.message;
    if (!filter.q && !filter.query && Object.keys(filter).length === 1) delete filter.message;
    history.replaceState(null, "", writeFragment(filter));
    if (need(sliceOf(filter), follow)) return;
    this.show(filter);
    said();
  }

  // Says why a slice is not shown.
  lacks(problem) {
    this.trouble.textContent = problem;
    this.trouble.hidden = !problem;
  }

  // Says what of the whole run this page, or the slice that it shows, does not hold.
  elsewhere() {
    const wanted = counted(this.filter), number = [...(wanted?.values() ?? [])].reduce((a, b) => a + b, 0);
    this.others.hidden = number <= this.found.length;
    if (this.others.hidden) return;
    const told = Object.keys(this.filter).every((name) => COUNTED_FIELDS.includes(name));
    const links = Object.keys(home.slices).length && !run.operator ? [...wanted].sort((a, b) => b[1] - a[1]).flatMap(([operator, each]) => [element("span", { class: "nowrap" }, element("a", { href: writeFragment({ ...this.filter, operator }) }, operator), ` ${grouped(each)}`), " "]) : [];
    this.others.replaceChildren(told ? `Of the ${grouped(number)} such results of the run, ${grouped(number - this.found.length)} are not here. ` : `Looked for in the ${grouped(run.order.length)} results that are here, not in all ${grouped(number)}. `,
      links.length ? "Those of an operator: " : "", ...links.slice(0, 2 * MOST_LINKS), links.length > 2 * MOST_LINKS ? `and of ${grouped(links.length / 2 - MOST_LINKS)} more` : "");
  }

  // Takes a filter from the fragment; a value that the form does not offer becomes an option, so that any link can be shown.
  take(filter) {
    for (const [name, input] of Object.entries(this.inputs)) {
      const value = filter[name] ?? "";
      if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) {
        input.append(element("option", { value }, value.startsWith("!") ? `any but ${value.slice(1)}` : value));
      }
      input.value = value;
      if (value && this.more.contains(input)) this.more.open = true;
    }
    this.show(filter);
  }

  show(filter) {
    this.filter = filter;
    let problem = "";
    try {
      this.found = select(filter);
    } catch (error) {
      problem = error.message;
    }
    this.inputs.query.setAttribute("aria-invalid", String(Boolean(problem)));
    this.problem.hidden = !problem;
    this.problem.textContent = problem;
    if (problem) return;
    this.first = 0;
    if (filter.sort) this.found = sorted(this.found, filter.sort);
    this.groups = GROUPS.some(([name]) => name && name === filter.group) ? groupsOf(this.found, filter.group) : null;
    this.draw();
  }

  turn(by) {
    this.first = Math.max(0, Math.min(this.first + by, Math.floor((this.size - 1) / PAGE) * PAGE));
    this.draw();
    document.getElementById("cases-title").scrollIntoView();
  }

  get size() { return (this.groups ?? this.found).length; }

  draw() {
    const last = Math.min(this.first + PAGE, this.size), all = run.order.length, rows = this.groups ?? this.found;
    const part = `${grouped(this.first + 1)}–${grouped(last)} of `, filtered = this.found.length < all ? `, filtered from ${grouped(all)}` : "";
    const results = `${grouped(this.found.length)} results`;
    this.status.textContent = !this.found.length ? `0 of ${grouped(all)} results` : this.groups ? `${results} in ${grouped(this.size)} groups${filtered}` : `${part}${results}${filtered}`;
    if (this.filter.message) this.status.append(` · message: ${this.filter.message} `, element("a", { href: writeFragment({ ...this.filter, message: "" }) }, "any message"));
    this.head.replaceChildren(...(this.groups ? groupHeads(this.filter.group) : this.heads()));
    this.body.replaceChildren(...Array.from(rows.slice(this.first, last), (row) => (this.groups ? groupRow(row, this.filter) : this.row(row))));
    this.elsewhere();
    this.table.hidden = !this.found.length;
    this.empty.hidden = Boolean(this.found.length);
    this.back.disabled = this.first === 0;
    this.on.disabled = last === this.size;
    this.back.parentElement.hidden = this.size <= PAGE;
  }

  // The heads of columns sort by them: up, down, and unexpected first again.
  heads() {
    const now = this.filter.sort ?? "";
    return COLUMNS().map(([name, label]) => {
      const way = now === name ? "ascending" : now === `-${name}` ? "descending" : "none";
      const next = { none: name, ascending: `-${name}`, descending: "" }[way];
      return element("th", { scope: "col", "aria-sort": way === "none" ? false : way }, element("button", { type: "button", class: "sort", onclick: () => this.order(next, name) }, label, element("span", { "aria-hidden": "true" }, { none: " ↕", ascending: " ↑", descending: " ↓" }[way])));
    });
  }

  order(by, column) {
    const filter = { ...this.filter, sort: by };
    history.replaceState(null, "", writeFragment(filter));
    this.take(filter);
    this.head.children[COLUMNS().findIndex(([name]) => name === column)].querySelector("button").focus();
    said();
  }

  row(result) {
    const number = run.case[result], id = idOf(number), target = ofResult(result, "target");
    const said = happened(result);
    const href = writeFragment({ ...this.filter, case: id, on: target });
    return element("tr", { "data-result": result }, element("th", { scope: "row" }, element("a", { href, class: "mono" }, breakable(id))), element("td", {}, target),
      element("td", {}, ofCase(number, "validity")), element("td", {}, ofCase(number, "level")),
      judged(result).map((cell) => element("td", {}, cell)),
      element("td", { class: "said" }, said.length > 240 ? `${said.slice(0, 240)}…` : said));
  }

  // Puts the focus on the row of a result, on whichever page of the table it is; says whether there is one.
  focus(result) {
    const place = this.groups ? -1 : this.found.indexOf(result);
    if (place < 0) return false;
    if (place < this.first || place >= this.first + PAGE) {
      this.first = Math.floor(place / PAGE) * PAGE;
      this.draw();
    }
    this.body.querySelector(`[data-result="${result}"] a`).focus();
    return true;
  }

  // The command that runs the cases shown: each of them where they are few, else the narrowest query that holds them all.
  command() {
    const cases = [...new Map(Array.from(this.found.subarray(0, 2000), (result) => [idOf(run.case[result]), run.case[result]])).values()];
    const targets = run.targets.includes(this.filter.target) ? ` -t ${shell(asked(this.filter.target))}` : "";
    if (cases.length && cases.length <= 20 && this.found.length <= 2000) return `harness run${targets}${cases.map((number) => ` -k ${shell(idOf(number))}`).join("")}`;
    if (this.filter.query?.trim()) return `harness run${targets}${this.filter.query.trim().split(/\s+/).map((query) => ` -k ${shell(query)}`).join("")}`;
    const one = (name) => (this.filter[name] && !/[!,]/.test(this.filter[name]) ? this.filter[name] : "");
    const terms = [];
    const first = cases.length && termsOf(cases[0]).map((term) => /([\w.]+)=[a-z][a-z0-9]*[[{(]/.exec(term)?.[1]).find(Boolean);
    if (one("dtype") && first) terms.push(`${first}=${one("dtype")}`);
    terms.push(...one("types").split(" ").filter(Boolean));
    const head = one("operator") || one("opset") ? `${one("operator") || "*"}${one("opset") ? `@${one("opset")}` : ""}` : "";
    const query = [head, terms.join(";")].filter(Boolean).join(":");
    return `harness run${targets}${query ? ` -k ${shell(query)}` : ""}`;
  }
}

// ------------------------------------------------------------------------------------------------------ groups of results

// Results by what they have in one field, the largest group first.
function groupsOf(found, field) {
  const kinds = field === "message" ? messageKinds() : null, groups = new Map();
  for (const result of found) {
    const name = kinds ? kinds[run.detail[result]] : String(field === "target" ? ofResult(result, field) : ofCase(run.case[result], field));
    const outcome = ofResult(result, "outcome"), key = kinds ? `${outcome}\n${name}` : name;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { name, number: 0, example: result, outcomes: new Map(), operators: new Set() }));
    group.number++;
    group.outcomes.set(outcome, (group.outcomes.get(outcome) ?? 0) + 1);
    group.operators.add(ofCase(run.case[result], "operator"));
  }
  return [...groups.values()].sort((a, b) => b.number - a.number);
}

const groupHeads = (field) => ["Results", GROUPS.find(([name]) => name === field)[1], "Outcomes", "Operators", "For instance"]
  .map((text, place) => element("th", { scope: "col", class: place ? false : "num" }, text.charAt(0).toUpperCase() + text.slice(1)));

function groupRow(group, filter) {
  const own = filter.group === "message" ? { message: group.name, outcome: [...group.outcomes.keys()][0] } : { [filter.group]: group.name };
  const operators = [...group.operators].sort(), shown = operators.slice(0, 6).join(", ") + (operators.length > 6 ? ` and ${operators.length - 6} more` : "");
  const number = run.case[group.example], id = idOf(number);
  return element("tr", {}, element("td", { class: "num" }, group.name ? element("a", { href: writeFragment({ ...filter, ...own, group: "" }) }, grouped(group.number)) : grouped(group.number)),
    element("th", { scope: "row" }, group.name || "(none named)"), element("td", { class: "wraps" }, [...group.outcomes].map(([outcome, count]) => `${outcome} ${grouped(count)}`).join(", ")),
    element("td", { class: "wraps" }, shown), element("td", { class: "wraps" }, element("a", { class: "mono", href: writeFragment({ ...filter, case: id, on: ofResult(group.example, "target") }) }, breakable(id))));
}

// What a command line calls a target: the page shortens the paths in a name.
const asked = (target) => run.asked?.[run.targets.indexOf(target)] ?? target;

const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

