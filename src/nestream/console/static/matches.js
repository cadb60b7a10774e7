// The matches page: the matches of the job under the filter, or those of a query over other events, as a table and a timeline; and
// why events that one picks did not match.

import { attributesOf, fillSelect, h, keyed, number, replace, select, showing, table as tableOf, text, turns, value, when } from "./dom.js";
import { ask, listen, state, takeAnnotations } from "./store.js";
import { addressOf, openMatch } from "./detail.js";
import { status as statusShown } from "./annotations.js";
import { exportButtons } from "./export.js";
import { accepts, example, parsed, remarks, statusOf } from "./filter.js";
import { editorText } from "./queries.js";
import { highlighted } from "./highlight.js";
import { leftOut, matchTable, notes } from "./results.js";
import { about } from "./match-list.js";
import { problems } from "./first-minute.js";
import { timeline } from "./timeline.js";
import { answered } from "./why.js";

const EDITOR = "";
const JOB = "job";
const MOST_PICKED = 50;
const MOST_SHOWN = 100;

export function matches(page, address, go) {
  const picked = new Map();
  const view = { rule: address.get("rule") ?? "", data: address.get("data") || (state.job ? JOB : state.data[0].name), filter: address.get("filter") || "", kind: "", text: "" };
  if (!state.job && view.data === JOB) view.data = state.data[0].name;
  if (!state.rules.has(view.rule)) view.rule = EDITOR;
  if (view.data !== JOB && !address.has("rule")) view.rule = [...state.rules.keys()][0] ?? EDITOR;
  let columns = { time: "ts", type: "type" };

  const isJob = () => view.data === JOB;
  const events = () => (isJob() ? "live" : view.data);
  const textOf = (name) => (name ? state.rules.get(name).text : editorText() || "");
  const named = [...state.rules.values()].map((rule) => [rule.name, rule.title]);
  const sources = [...(state.job ? [[JOB, "the job's own matches"]] : []), ...state.data.map((source) => [source.name, source.title])];
  const rule = select("Query", [], "", (name) => { view.rule = name; if (name) asked.lastChild.value = name; remember(); find(); });
  const data = select("Events", sources, view.data, (name) => {
    const before = events();
    view.data = name;
    view.kind = "";
    remember();
    if (events() !== before) forget();
    find();
    if (events() !== before) list();
  });
  const filter = h("input", { type: "search", value: view.filter, maxlength: 300, spellcheck: "false", autocomplete: "off", "aria-describedby": "filter-remarks", placeholder: example(),
    oninput: () => { view.filter = filter.value; remember(); find(); } });
  const filterField = h("label", { class: "field wide" }, h("span", {}, "Filter"), filter);
  const remarked = h("p", { class: "hint", id: "filter-remarks", role: "status" });
  const shown = h("pre", { class: "query", tabindex: "0", role: "group", "aria-label": "The query" });
  const status = h("p", { class: "hint", role: "status" });
  const cancel = h("button", { type: "button", onclick: () => ask("run/stop", { run: running }), hidden: true }, "Cancel");
  let running = "";
  const wrong = h("div", {});
  const drawn = h("div", {});
  const table = h("div", {});
  const exports = exportButtons(() => found_);
  let found_ = null; // the matches that the filter leaves, null for all
  const asked = select("Query to ask", [...named, [EDITOR, "the query of the editor"]], view.rule || named[0]?.[0] || EDITOR, () => { asking(); replace(answer); });
  const kind = select("Type", [["", "all"]], "", (chosen) => { view.kind = chosen; list(); });
  const search = h("input", { type: "search", maxlength: 100, oninput: () => { view.text = search.value; clearTimeout(timer); timer = setTimeout(list, 250); } });
  let timer = 0;
  const choices = h("div", {});
  const basket = h("ul", { class: "picked", "aria-label": "Picked events" });
  const why = h("button", { type: "button", class: "primary", disabled: true, onclick: question }, "Why did these not match?");
  const limit = h("p", { class: "hint", role: "status" });
  const [finding, drawing, listing, asking] = [turns(), turns(), turns(), turns()];
  const answer = h("div", { class: "answer", role: "region", "aria-label": "Answer", "aria-live": "polite" });

  replace(page,
    h("h1", { class: "visually-hidden" }, "Matches"), wrong,
    h("form", { class: "controls", "aria-label": "View control", onsubmit: (event) => event.preventDefault() }, filterField, rule, data, h("button", { type: "button", onclick: () => { find(); list(); } }, "Refresh")),
    remarked,
    h("section", { class: "panel", "aria-labelledby": "found-title" },
      h("div", { class: "head" }, h("h2", { id: "found-title" }, "Matches"), status, cancel, exports), shown, drawn, table),
    h("section", { class: "panel", "aria-labelledby": "why-title" },
      h("h2", { id: "why-title" }, "Why did this not match?"),
      h("p", { class: "hint" }, "Pick the events that you expected to be a match, then ask."),
      h("div", { class: "controls" }, asked, kind, h("label", { class: "field" }, h("span", {}, "Search"), search)),
      choices, limit, basket, h("p", { class: "actions" }, why, h("button", { type: "button", onclick: () => { forget(); list(); } }, "Clear")), answer));

  function remember() {
    const parameters = new URLSearchParams(Object.entries({ rule: view.rule, filter: isJob() ? view.filter : "", data: isJob() ? "" : view.data }).filter(([, chosen]) => chosen));
    history.replaceState(null, "", parameters.size ? `/matches?${parameters}` : "/matches");
  }

  function find() {
    fillSelect(rule.lastChild, isJob() ? [["", "all rules"], ...named] : [...named, [EDITOR, "the query of the editor"]], view.rule);
    filterField.hidden = remarked.hidden = !isJob();
    shown.hidden = drawn.hidden = isJob();
    exports.hidden = !isJob();
    if (isJob()) {
      finding();
      cancel.hidden = true;
      delete table.dataset.shown;
      committed();
    } else run();
  }

  // The matches that the job has written, those that the page holds.
  function committed() {
    problems(wrong);
    if (!isJob()) return;
    const terms = parsed(view.filter);
    const found = state.matches.filter((match) => (!view.rule || match.query === view.rule) && accepts(terms, match));
    const filtered = Boolean(terms.length || view.rule);
    found_ = filtered ? found : null;
    text(remarked, remarks(terms, state.matches).join("; "));
    text(status, filtered ? `${number(found.length)} of the last ${number(state.matches.length)} matches` : `${number(state.totals.matches ?? 0)} matches, the newest first`);
    const some = found.slice(-MOST_SHOWN).reverse();
    keyed(table, [view.filter, view.rule, some.map((match) => [match.number, statusOf(match), state.annotations[match.id]?.comments.length]), state.ready], () => (some.length
      ? [tableOf("Matches", ["time", "rule", "severity", "about", "values", "status"], some.map((match) => [
        h("a", { href: addressOf(match), "aria-label": `Open the match of ${when(match.end)}` }, when(match.end)), h("bdi", {}, match.title),
        h("span", { class: `severity ${match.severity}` }, match.severity), about(match), Object.keys(match.values).length ? attributesOf(match.values) : "–", statusShown(match)])),
      found.length > some.length ? h("p", { class: "hint" }, showing(some.length, found.length, "matches")) : null]
      : h("p", { class: "hint" }, state.job.where.matches ? "None yet." : "job.json does not say where the matches are.")));
  }

  async function run() {
    const current = finding();
    const written = textOf(view.rule);
    drawing(); // what is being drawn is of the matches before
    replace(shown, highlighted(written));
    delete table.dataset.shown;
    if (!written) {
      text(status, "There is no query in the editor yet.");
      replace(drawn);
      replace(table);
      return;
    }
    text(status, "running");
    running = crypto.randomUUID();
    cancel.hidden = false;
    const found = await ask("run", { text: written, data: view.data, name: view.rule || "query", run: running });
    if (!current()) return;
    cancel.hidden = true;
    drawing();
    text(status, found.ok ? `${found.stopped ? `${found.stopped} So far: ` : ""}${found.told} in ${number(found.events)} events${leftOut(found)}` : "");
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
    const found = await ask("events", { data: events(), kind: view.kind, text: view.text });
    if (!current()) return;
    if (!found.ok) {
      replace(choices, h("p", { class: "problem" }, found.error));
      return;
    }
    columns = { time: found.time, type: found.type };
    const options = [["", "all"], ...found.types.map((name) => [name, name])];
    if (view.kind && !found.types.includes(view.kind)) options.push([view.kind, view.kind]);
    fillSelect(kind.lastChild, options, view.kind);
    replace(choices, tableOf("Events to pick from", ["pick", "event", "time", "type", "attributes"], found.rows.map(({ place, event }) => [
      h("input", { type: "checkbox", checked: picked.has(place), "aria-label": `Pick ${event[columns.type]} at ${when(event[columns.time])}, event #${place}`, onchange: (change) => choose(place, event, change.target) }),
      `#${place}`, when(event[columns.time]), value(event[columns.type]), attributesOf(event, columns.time, columns.type)])),
    h("p", { class: "hint" }, found.total || events() !== "live" ? `${showing(found.rows.length, found.total, "events")}; search for others` : "The console holds no events of the job."));
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
      `#${place} `, h("strong", {}, value(event[columns.type])), ` ${when(event[columns.time])} `, attributesOf(event, columns.time, columns.type), " ",
      h("button", { type: "button", class: "link", "aria-label": `Put back event #${place}`, onclick: () => { picked.delete(place); pickedNow(); list(); } }, "put back"))));
  }

  async function question() {
    const current = asking();
    const written = textOf(asked.lastChild.value);
    const names = columns;
    replace(answer, h("p", { class: "hint" }, "Looking."));
    const places = [...picked.keys()].sort((a, b) => a - b);
    const found = await ask("why", { text: written, data: events(), picked: places });
    if (!current()) return;
    replace(answer, found.ok ? answered(found, written, names) : h("p", { class: "problem" }, found.error));
  }

  // A match by its address: one that the page holds, or one that the console finds in the sink.
  async function open(id) {
    let found = state.matches.find((match) => match.id === id);
    if (!found) {
      const answer = await ask("match", { id });
      found = answer.match;
      takeAnnotations(answer.annotations);
    }
    if (found) openMatch(found, go, () => { if (location.search.includes(id)) remember(); });
    else replace(wrong, h("p", { class: "problem" }, "There is no match with this address in the sink of the job."));
  }

  const wanted = address.get("match");
  let opened = !wanted;
  function refresh() {
    committed();
    if (opened || !state.ready) return;
    opened = true;
    open(wanted);
  }

  list().then(() => { if (!isJob()) find(); });
  if (isJob()) find();
  refresh();
  return listen(refresh);
}
