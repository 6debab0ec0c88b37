// --------------------------------------------------------------------------------------------------------------- queries

// The queries of the command line (harness/model/query.py): `operator[@opset][:term;term…]`, or terms alone. White space stands
// between alternatives, where the command line repeats -k.
const QUERY_EXAMPLE = "GatherElements@13:data=float16;axis=-1";
const QUERY_HEAD = /^([A-Za-z_*?][A-Za-z0-9_.*?]*)(?:@([0-9*?]+))?$/;
const QUERY_TERM = /^(\*(?==)|[A-Za-z_][A-Za-z0-9_.]*)([<>]?=)([^;:=<>\s]+)$/;
const literal = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

// `*` and `?`, which between brackets stand for digits; `[...]` is any shape, `,...]` any further dimensions.
function globbed(glob, anyCharacter) {
  let inShape = false;
  const marked = glob.replaceAll("[...]", "\u0001").replace(/(?<=[[,])\*(?=[,\]])/g, "\u0000");
  return marked.split(/([*?[\]\u0000\u0001]|,\.\.\.(?=\]))/).map((part) => {
    inShape = (inShape || part === "[") && part !== "]";
    const one = inShape ? "\\d" : anyCharacter;
    return { "*": `${one}*`, "?": one, "\u0000": "\\d+", "\u0001": "\\[[\\d,]*\\]", ",...": "(?:,\\d+)*" }[part] ?? literal(part);
  }).join("");
}

function termTest(key, relation, value) {
  if (relation !== "=") {
    const pattern = new RegExp(`[:;]${literal(key)}=(-?\\d+)(?=;|$)`), bound = BigInt(value);
    return (id) => { const found = pattern.exec(id); return found !== null && (relation === ">=" ? BigInt(found[1]) >= bound : BigInt(found[1]) <= bound); };
  }
  const pattern = new RegExp(`[:;]${key === "*" ? "[^:;=]+" : literal(key)}=${globbed(value.startsWith("*[") ? `?${value}` : value, "[^;]")}(?=[;[]|$)`);
  return (id) => pattern.test(id);
}

// Returns whether an id is selected; throws what is wrong with the text.
function parseQuery(text) {
  const wrong = (what) => new Error(`bad query '${text}': ${what}; write for example '${QUERY_EXAMPLE}'`);
  let [head, ...rest] = text.replace(/\*{2,}/g, "*").split(":"), tail = rest.join(":");
  if (!rest.length && head.includes("=")) [head, tail] = ["", head];
  const tests = [], given = new Set();
  if (head || rest.length) {
    const found = QUERY_HEAD.exec(head);
    if (!found) throw wrong(`'${head}' is not an operator with an optional @opset`);
    const pattern = new RegExp(`^${globbed(`${found[1]}@${found[2] ?? "*"}:`, "[^;]")}`);
    tests.push((id) => pattern.test(id));
  }
  for (const part of tail ? tail.replace(/;$/, "").split(";") : []) {
    const found = QUERY_TERM.exec(part);
    if (!found) throw wrong(`'${part}' is not a key=value`);
    const [, key, relation, value] = found;
    if (given.has(key + relation)) throw wrong(`'${key}' is given twice; alternatives are separate queries`);
    given.add(key + relation);
    if (relation !== "=" && !/^-?\d{1,19}$/.test(value)) throw wrong(`'${part}' compares with '${value}', which is no integer of at most 19 digits`);
    tests.push(termTest(key, relation, value));
  }
  return (id) => tests.every((test) => test(id));
}

// Whether an id is selected by any of the queries in a text; everything is by none.
function queryTest(text) {
  const queries = text.split(/\s+/).filter(Boolean).map(parseQuery);
  return queries.length ? (id) => queries.some((query) => query(id)) : () => true;
}
