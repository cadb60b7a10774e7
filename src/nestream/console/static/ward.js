// The ward: the floor plan with its workers, the violations as they come, statistics, and the view controls.

import { attributesOf, fillSelect, h, number, replace, select, text, when } from "./dom.js";
import { announce, listen, state } from "./store.js";
import { Floor, STATE_NAMES, legend, noFloor } from "./floor.js";
import { openMatch } from "./detail.js";

const MOST_SHOWN = 60;
const FRESH = 20000;
const TIMES = [["", "all"], ["60", "last minute"], ["300", "last 5 minutes"], ["900", "last 15 minutes"], ["3600", "last hour"]];
const SEVERITIES = [["", "all"], ["high", "high"], ["medium", "medium and high"], ["low", "low alone"], ["trial", "trial rules"]];
const byNumber = new Intl.Collator("en", { numeric: true });

export function ward(page, address, go) {
  const view = {};
  for (const name of ["area", "worker", "severity", "time", "rule"]) view[name] = address.get(name) || "";
  let held = null;
  let told = state.received;
  let toldAt = 0;

  function change(name, value) {
    view[name] = value;
    const parameters = new URLSearchParams(Object.entries(view).filter(([, chosen]) => chosen));
    history.replaceState(null, "", parameters.size ? `/ward?${parameters}` : "/ward");
    refresh();
  }

  const area = select("Area", [], "", (value) => change("area", value));
  const worker = select("Worker", [], "", (value) => change("worker", value));
  const severity = select("Severity", SEVERITIES, view.severity, (value) => change("severity", value));
  const rule = select("Rule", [], "", (value) => change("rule", value));
  const time = select("Time", TIMES, view.time, (value) => change("time", value));
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: hold }, "Pause list");
  const clear = h("button", { type: "button", onclick: () => go("/ward") }, "Clear");
  const map = h("div", { class: "map" });
  const clock = h("p", { class: "clock" });
  const list = h("ol", { class: "violations", "aria-label": "Violations, the newest first" });
  const count = h("p", { class: "hint" });
  const charts = Object.fromEntries(["room", "worker", "hour"].map((name) => [name, h("div", { class: "bars" })]));
  const compliance = h("div", { class: "statistics", id: "compliance" });
  const basis = h("p", { class: "hint" });
  const people = h("p", { class: "hint", id: "people" });

  replace(page,
    h("h1", { class: "visually-hidden" }, "Ward"),
    h("form", { class: "controls", "aria-label": "View control", onsubmit: (event) => event.preventDefault() },
      area, worker, severity, rule, time, clear),
    h("div", { class: "ward" },
      h("section", { class: "panel", "aria-labelledby": "floor-title" },
        h("div", { class: "head" }, h("h2", { id: "floor-title" }, state.job?.floor?.title || "Floor"), clock),
        map, legend(), people),
      h("section", { class: "panel", "aria-labelledby": "violations-title" },
        h("div", { class: "head" }, h("h2", { id: "violations-title" }, "Violations"), pause),
        count, list)),
    h("section", { class: "panel", "aria-labelledby": "statistics-title" },
      h("div", { class: "head" }, h("h2", { id: "statistics-title" }, "Statistics"), basis),
      h("div", { class: "statistics" },
        h("div", {}, h("h3", {}, "by room"), charts.room),
        h("div", {}, h("h3", {}, "by worker"), charts.worker),
        h("div", {}, h("h3", {}, "by hour"), charts.hour)),
      compliance));

  let floor = null;
  if (state.job?.floor) {
    floor = new Floor(state.job.floor, (name) => change("area", view.area === name ? "" : name));
    replace(map, floor.element);
  } else noFloor(map);

  function hold() {
    held = held ? null : matching();
    pause.setAttribute("aria-pressed", String(Boolean(held)));
    text(pause, held ? "Go on" : "Pause list");
    refresh();
  }

  function wanted(match) {
    if (view.area && !match.rooms.includes(view.area)) return false;
    if (view.worker && !match.workers.includes(view.worker)) return false;
    if (view.rule && match.query !== view.rule) return false;
    if (view.severity === "medium" ? !["medium", "high"].includes(match.severity) : view.severity && match.severity !== view.severity) return false;
    return !(view.time && state.totals.latest && match.end < state.totals.latest - 1000 * Number(view.time));
  }

  const matching = () => state.matches.filter(wanted);

  function refresh() {
    controls();
    const found = matching();
    const filtered = ["area", "worker", "severity", "rule", "time"].some((name) => view[name]);
    const counts = filtered ? counted(found) : state.statistics;
    if (floor) {
      const rows = [...state.workers.values()].filter((row) => (!view.worker || row[0] === view.worker) && (!view.area || row[1] === view.area));
      const { totals } = floor.show(rows, counts.room, view.area, recent(found));
      text(people, Object.entries(totals).filter(([, many]) => many).map(([key, many]) => `${many} ${STATE_NAMES[key] || key}`).join(" · ")
        + (state.totals.left_out ? " · there are more workers, who are left out" : ""));
    }
    text(clock, state.totals.latest ? `event time ${when(state.totals.latest)}` : "no events yet");
    listed((held || found).slice(-MOST_SHOWN).reverse());
    const all = filtered ? found.length : state.totals.matches || 0;
    text(count, `${number(all)} ${filtered ? "of those held match the view" : "since the start"}` + (all > MOST_SHOWN ? `, the last ${MOST_SHOWN} shown` : ""));
    text(basis, filtered ? `of the last ${number(state.matches.length)} violations, as filtered` : "of all violations");
    for (const name of ["room", "worker", "hour"]) bars(charts[name], counts[name], name, change);
    complied(compliance, state.statistics.compliance);
    news();
  }

  function controls() {
    const rooms = state.job?.floor ? state.job.floor.rooms.map((room) => room.name) : Object.keys(state.statistics.room);
    fillSelect(area.lastChild, [["", "all"], ...rooms.sort(byNumber.compare)], view.area);
    const names = [...new Set([...state.workers.keys(), ...(view.worker ? [view.worker] : [])])].sort(byNumber.compare).slice(0, 500);
    fillSelect(worker.lastChild, [["", "all"], ...names], view.worker);
    fillSelect(rule.lastChild, [["", "all"], ...[...state.rules.values()].filter((one) => !one.into).map((one) => [one.name, one.title])], view.rule);
  }

  function listed(found) {
    const before = new Map([...list.children].map((item) => [item.dataset.key, item]));
    const items = found.map((match) => {
      const key = String(match.number);
      return before.get(key) || item(match, key);
    });
    items.forEach((element, at) => {
      if (list.children[at] !== element) list.insertBefore(element, list.children[at] || null);
    });
    while (list.children.length > items.length) list.lastChild.remove();
    if (!items.length) replace(list, h("li", { class: "hint", "data-key": "none" }, "None yet."));
  }

  function item(match, key) {
    const where = [lastRoom(match), match.workers.length ? `worker ${match.workers.join(", ")}` : null].filter(Boolean).join(" · ");
    const last = match.events.length ? match.events[match.events.length - 1].event : {};
    return h("li", { "data-key": key, class: "new" },
      h("button", { type: "button", class: `violation ${match.severity}`, onclick: () => openMatch(match, go) },
        h("span", { class: "severity" }, match.severity),
        h("span", { class: "title" }, match.title),
        h("span", { class: "where" }, `${when(match.end)} · ${where || attributesOf(last, state.job?.time, state.job?.type)}`)));
  }

  function news() {
    const now = performance.now();
    if (state.received > told && now - toldAt > 5000) {
      const many = state.received - told;
      announce(`${many} new ${many === 1 ? "violation" : "violations"}: ${state.matches.slice(-1)[0]?.title ?? ""}`);
      told = state.received;
      toldAt = now;
    }
  }

  refresh();
  return listen(refresh);
}

// The rooms of violations that were seen in the last seconds.
function recent(matches) {
  const since = Date.now() - FRESH;
  return new Set(matches.slice(-200).filter((match) => match.seen > since).map(lastRoom));
}

// Where a violation came to its end.
function lastRoom(match) {
  const rooms = match.events.map((part) => part.event.room).filter((room) => typeof room === "string");
  return rooms.length ? rooms[rooms.length - 1] : null;
}

function counted(matches) {
  const counts = { room: {}, worker: {}, hour: {} };
  const add = (kind, key) => { counts[kind][key] = (counts[kind][key] || 0) + 1; };
  for (const match of matches) {
    match.rooms.forEach((name) => add("room", name));
    match.workers.forEach((name) => add("worker", name));
    if (match.end !== null) add("hour", `${new Date(match.end).toISOString().slice(0, 13).replace("T", " ")}h`);
  }
  return counts;
}

// How often rules were kept, of all the times that they applied: the lowest first.
function complied(element, counts) {
  const kinds = [["rule", "compliance by rule"], ["room", "compliance by room"], ["wID", "compliance by worker"]];
  const key = JSON.stringify(counts);
  if (element.dataset.shown === key) return;
  element.dataset.shown = key;
  replace(element, ...kinds.filter(([kind]) => Object.keys(counts[kind] || {}).length).map(([kind, title]) => {
    const rows = Object.entries(counts[kind]).map(([name, [held, broken]]) => [name, held, 1 - broken / held]);
    rows.sort(([a, , x], [b, , y]) => x - y || byNumber.compare(a, b));
    return h("div", {}, h("h3", {}, title), h("div", { class: "bars" }, rows.slice(0, 8).map(([name, held, share]) => {
      const bar = h("span", { class: "bar" });
      bar.style.width = `${100 * share}%`;
      const label = kind === "rule" ? state.rules.get(name)?.title ?? name : kind === "wID" ? `worker ${name}` : name;
      return h("div", { class: "barrow", title: `${label}: ${number(held)} opportunities` }, h("span", { class: "name" }, label),
        h("span", { class: "track" }, bar), h("span", { class: "value" }, `${number(100 * share, 1)}%`));
    })));
  }));
}

function bars(element, counts, kind, change) {
  const entries = Object.entries(counts);
  const many = entries.length;
  if (kind === "hour") entries.sort(([a], [b]) => (a < b ? 1 : -1));
  else entries.sort(([a, x], [b, y]) => y - x || byNumber.compare(a, b));
  const shown = entries.slice(0, 8);
  const most = Math.max(1, ...shown.map(([, value]) => value));
  const key = JSON.stringify(shown);
  if (element.dataset.shown === key) return;
  element.dataset.shown = key;
  const rows = shown.map(([name, value]) => {
    const bar = h("span", { class: "bar" });
    bar.style.width = `${Math.max(2, (100 * value) / most)}%`;
    const label = kind === "hour" ? h("span", { class: "name" }, name.slice(5))
      : h("button", { type: "button", class: "name link", onclick: () => change(kind === "room" ? "area" : "worker", name) }, kind === "worker" ? `worker ${name}` : name);
    return h("div", { class: "barrow" }, label, h("span", { class: "track" }, bar), h("span", { class: "value" }, number(value)));
  });
  const focused = element.contains(document.activeElement) ? document.activeElement.textContent : null;
  replace(element, rows.length ? rows : h("p", { class: "hint" }, "Nothing to count."), many > 8 ? h("p", { class: "hint" }, `${many - 8} more`) : null);
  if (focused) [...element.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
}
