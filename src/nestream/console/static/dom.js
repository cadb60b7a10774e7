// Makes elements. Texts become text nodes and attributes go through setAttribute: nothing here parses HTML, so
// whatever an event's attribute holds stays text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// Sets a text only where it is another one, so that screen readers and layout are left alone.
export function text(element, value) {
  const wanted = String(value);
  if (element.textContent !== wanted) element.textContent = wanted;
}

// How many are shown of how many, in the words of the command line and of notebooks.
export const showing = (shown, total, noun, more = false) => `showing ${number(shown)} of ${more ? "more than " : ""}${number(total)} ${noun}`;

export const number = (value, digits = 0) =>
  value === null || value === undefined || Number.isNaN(Number(value))
    ? "–"
    : Number(value).toLocaleString("en", { maximumFractionDigits: digits });

// Event times are shown as they are in the data, which is UTC; plain numbers stay numbers.
export function when(value, seconds = true) {
  if (value === null || value === undefined) return "–";
  const moment = typeof value === "number" ? (value > 1e11 ? new Date(value) : null) : new Date(zoned(value));
  if (moment === null || Number.isNaN(moment.getTime())) return String(value);
  return moment.toISOString().slice(11, seconds ? 19 : 16);
}

function zoned(value) {
  return typeof value === "string" && !/(?:Z|[+-]\d\d:?\d\d)$/.test(value) ? value + "Z" : value;
}

export function millis(value) {
  if (typeof value === "number") return value;
  const parsed = Date.parse(zoned(value));
  return Number.isNaN(parsed) ? null : parsed;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, name] of [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]])
    if (value >= size) return `${number(value / size, 1)} ${name}`;
  return `${number(value)} B`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "min"]])
    if (Math.abs(seconds) >= 2 * size) return `${number(seconds / size, 1)} ${name}`;
  return `${number(seconds, 1)} s`;
}

export function select(label, options, value, change, attributes = {}) {
  const list = h("select", { ...attributes, onchange: (event) => change(event.target.value) });
  fillSelect(list, options, value);
  return h("label", { class: "field" }, h("span", {}, label), list);
}

export function fillSelect(list, options, value) {
  const known = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  if (JSON.stringify(known) === list.dataset.options && list.value === value) return;
  list.dataset.options = JSON.stringify(known);
  replace(list, known.map(([key, name]) => h("option", { value: key }, name)));
  list.value = value;
}

// Answers may come in another order than they were asked for: each call begins a turn, and gives a function that tells
// whether it is still the last one.
export function turns() {
  let last = 0;
  return () => {
    const own = (last += 1);
    return () => own === last;
  };
}

const MOST_CHARACTERS = 60;

// A value of the data, kept to itself: a right-to-left override in it turns nothing around it, and a long one is cut, with a
// button that shows the rest.
export function value(given, most = MOST_CHARACTERS) {
  const whole = String(given ?? "–");
  const characters = [...whole];
  if (characters.length <= most) return h("bdi", {}, whole);
  const shown = h("bdi", {}, `${characters.slice(0, most).join("")}…`);
  const more = h("button", {
    type: "button", class: "link more", "aria-expanded": "false", "aria-label": "Show the whole value",
    onclick: (event) => {
      event.stopPropagation();
      const open = more.getAttribute("aria-expanded") === "true";
      more.setAttribute("aria-expanded", String(!open));
      more.setAttribute("aria-label", open ? "Show the whole value" : "Show less");
      text(more, open ? "all" : "less");
      text(shown, open ? `${characters.slice(0, most).join("")}…` : whole);
    },
  }, "all");
  return [shown, " ", more];
}

// What an event holds beside its time and type, in one line.
export function attributesOf(event, ...without) {
  return Object.entries(event)
    .filter(([name, held]) => held !== null && !without.includes(name))
    .map(([name, held], at) => [at ? ", " : "", h("bdi", { class: "attribute" }, name), " ", value(held)]);
}

// The same as text, for what has to be one: the label of a button, a title.
export function attributesText(event, ...without) {
  return Object.entries(event)
    .filter(([name, held]) => held !== null && !without.includes(name))
    .map(([name, held]) => `${name} ${isolated(held)}`)
    .join(", ");
}

// A value inside of a text: cut, and between marks that keep the direction of its letters to itself.
export function isolated(given, most = MOST_CHARACTERS) {
  const characters = [...String(given)];
  const shown = characters.length > most ? `${characters.slice(0, most).join("")}…` : characters.join("");
  return /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(shown) ? `\u2068${shown}\u2069` : shown;
}

// A table that a narrow screen shows as cards: each cell has the name of its column. The roles stay those of a table.
export function table(caption, heads, rows, { tall = true } = {}) {
  return h("div", { class: tall ? "scroll tall" : "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", { role: "table" }, h("caption", { class: "visually-hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads.map((name) => h("th", { scope: "col", role: "columnheader" }, name)))),
      h("tbody", { role: "rowgroup" }, rows.map((cells) => h("tr", { role: "row" }, cells.map((cell, at) =>
        labelled(h("td", { role: "cell", "data-label": typeof heads[at] === "string" ? heads[at] : heads[at]?.textContent ?? "" }, h("div", {}, cell)))))))));
}

// A short cell is not broken over lines.
function labelled(cell) {
  if (cell.textContent.length <= 20) cell.classList.add("short");
  return cell;
}

// Puts something in an element if what it is made of has changed.
export function keyed(element, key, make) {
  const words = JSON.stringify(key);
  if (element.dataset.shown === words) return;
  element.dataset.shown = words;
  replace(element, make());
}

export const ago = (milliseconds, now = Date.now()) => (milliseconds ? `${span(Math.max(0, (now - milliseconds) / 1000))} ago` : "–");
