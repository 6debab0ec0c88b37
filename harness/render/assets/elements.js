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

// Colour says what a result means; an outcome is text.
const SHADES = { wrong: "known", crashed: "known", accepted: "known", "not supported": "partial", "not judged": "unjudged", correct: "pass" };

// What a result was and what it means, as the cells of a row.
function judged(result) {
  const of = (name) => ofResult(result, name);
  if (comparing()) return [of("before"), of("outcome"), tag(run.judgements[of("change")])];
  const means = run.judgements[of("reading")], red = of("unexpected") === "yes";
  return [of("outcome"), tag(red ? `${means}: ${of("verdict")}` : means, red ? "failing" : SHADES[means])];
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

