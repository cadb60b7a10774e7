// The matches page: a query's matches as a table and a timeline, and why picked events did not match.

import { attributesOf, h, number, replace, select, showing, text, turns, when } from "./dom.js";
import { ask, state } from "./store.js";
import { editorText } from "./queries.js";
import { highlighted } from "./highlight.js";
import { leftOut, matchTable, notes } from "./results.js";
import { timeline } from "./timeline.js";
import { answered } from "./why.js";

const EDITOR = "";
const MOST_PICKED = 50;

export function matches(page, address) {
  const picked = new Map();
  const view = { rule: address.get("rule") || ([...state.rules.keys()][0] ?? EDITOR), data: address.get("data") || (state.job ? "live" : "hospital"), kind: "", text: "" };
  if (!state.rules.has(view.rule)) view.rule = EDITOR;
  let columns = { time: "ts", type: "type" };

  const query = () => (view.rule ? state.rules.get(view.rule).text : editorText() || "");
  const named = [...[...state.rules.values()].map((rule) => [rule.name, rule.title]), [EDITOR, "the query of the editor"]];
  const rule = select("Query", named, view.rule, (name) => { view.rule = name; remember(); find(); });
  const data = select("Events", state.data.map((source) => [source.name, source.title]), view.data, (name) => {
    view.data = name;
    view.kind = "";
    forget();
    remember();
    find();
    list();
  });
  const shown = h("pre", { class: "query", tabindex: "0", role: "group", "aria-label": "The query" });
  const status = h("p", { class: "hint", role: "status" });
  const drawn = h("div", {});
  const table = h("div", {});
  const kind = select("Type", [["", "all"]], "", (value) => { view.kind = value; list(); });
  const search = h("input", { type: "search", maxlength: 100, oninput: () => { view.text = search.value; clearTimeout(timer); timer = setTimeout(list, 250); } });
  let timer = 0;
  const choices = h("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Events to pick from" });
  const basket = h("ul", { class: "picked", "aria-label": "Picked events" });
  const why = h("button", { type: "button", class: "primary", disabled: true, onclick: question }, "Why did these not match?");
  const limit = h("p", { class: "hint", role: "status" });
  const [finding, drawing, listing, asking] = [turns(), turns(), turns(), turns()];
  const answer = h("div", { class: "answer", role: "region", "aria-label": "Answer", "aria-live": "polite" });

  replace(page,
    h("h1", { class: "visually-hidden" }, "Matches"),
    h("div", { class: "controls" }, rule, data, h("button", { type: "button", onclick: () => { find(); list(); } }, "Refresh")),
    h("section", { class: "panel", "aria-labelledby": "found-title" },
      h("div", { class: "head" }, h("h2", { id: "found-title" }, "Matches"), status), shown, drawn, table),
    h("section", { class: "panel", "aria-labelledby": "why-title" },
      h("h2", { id: "why-title" }, "Why did this not match?"),
      h("p", { class: "hint" }, "Pick the events that you expected to be a match, then ask."),
      h("div", { class: "controls" }, kind, h("label", { class: "field" }, h("span", {}, "Search"), search)),
      choices, limit, basket, h("p", { class: "actions" }, why, h("button", { type: "button", onclick: () => { forget(); list(); } }, "Clear")), answer));

  function remember() {
    const parameters = new URLSearchParams({ ...(view.rule ? { rule: view.rule } : {}), data: view.data });
    history.replaceState(null, "", `/matches?${parameters}`);
  }

  async function find() {
    const current = finding();
    const written = query();
    drawing(); // what is being drawn is of the matches before
    replace(shown, highlighted(written));
    if (!written) {
      text(status, "There is no query in the editor yet.");
      replace(drawn);
      replace(table);
      return;
    }
    text(status, "running");
    const found = await ask("run", { text: written, data: view.data, name: view.rule || "query" });
    if (!current()) return;
    drawing();
    text(status, found.ok ? `${found.told} in ${number(found.events)} events${leftOut(found)}` : "");
    replace(drawn, found.ok && found.rows.length ? timeline(found.timeline, "Timeline of the matches") : null);
    replace(table, found.ok ? [notes(found), matchTable(found.rows, found, "Matches", (row) => one(row, written), found)] : h("p", { class: "problem" }, found.error));
  }

  async function one(row, written) {
    const current = drawing();
    const found = await ask("timeline", { text: written, rows: [row], data: view.data });
    if (!current()) return;
    replace(drawn, found.ok ? timeline(found.timeline, "Timeline of one match") : h("p", { class: "problem" }, found.error));
    drawn.scrollIntoView({ block: "nearest" });
  }

  async function list() {
    const current = listing();
    const found = await ask("events", { data: view.data, kind: view.kind, text: view.text });
    if (!current()) return;
    if (!found.ok) {
      replace(choices, h("p", { class: "problem" }, found.error));
      return;
    }
    columns = { time: found.time, type: found.type };
    const options = [["", "all"], ...found.types];
    if (view.kind && !found.types.includes(view.kind)) options.push(view.kind);
    replace(kind.lastChild, options.map((option) => { const [value, name] = Array.isArray(option) ? option : [option, option]; return h("option", { value }, name); }));
    kind.lastChild.value = view.kind;
    replace(choices, h("table", {}, h("caption", { class: "visually-hidden" }, "Events"),
      h("thead", {}, h("tr", {}, ["pick", "row", "time", "type", "attributes"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, found.rows.map(({ place, event }) => h("tr", {},
        h("td", {}, h("input", { type: "checkbox", checked: picked.has(place), "aria-label": `Pick ${event[columns.type]} at ${when(event[columns.time])}, row ${place}`, onchange: (change) => choose(place, event, change.target) })),
        h("td", {}, number(place)), h("td", { class: "moment" }, when(event[columns.time])), h("td", {}, String(event[columns.type] ?? "–")), h("td", {}, attributesOf(event, columns.time, columns.type)))))),
      h("p", { class: "hint" }, `${showing(found.rows.length, found.total, "events")}; search for others`));
  }

  function choose(place, event, box) {
    const full = box.checked && picked.size >= MOST_PICKED;
    if (full) box.checked = false;
    else if (box.checked) picked.set(place, event);
    else picked.delete(place);
    pickedNow();
    if (full) text(limit, `At most ${MOST_PICKED} events can be picked; put one back first.`);
  }

  // What was picked, and what was answered about it.
  function forget() {
    asking();
    picked.clear();
    pickedNow();
    replace(answer);
  }

  function pickedNow() {
    text(limit, "");
    why.disabled = !picked.size;
    replace(basket, [...picked].sort(([a], [b]) => a - b).map(([place, event]) => h("li", {},
      h("strong", {}, String(event[columns.type] ?? "–")), ` ${when(event[columns.time])} `, attributesOf(event, columns.time, columns.type), " ",
      h("button", { type: "button", class: "link", "aria-label": `Put back row ${place}`, onclick: () => { picked.delete(place); pickedNow(); list(); } }, "put back"))));
  }

  async function question() {
    const current = asking();
    const written = query();
    const names = columns;
    replace(answer, h("p", { class: "hint" }, "Looking."));
    const places = [...picked.keys()].sort((a, b) => a - b);
    const found = await ask("why", { text: written, data: view.data, picked: places });
    if (!current()) return;
    replace(answer, found.ok ? answered(found, written, names) : h("p", { class: "problem" }, found.error));
  }

  list().then(find);
}
