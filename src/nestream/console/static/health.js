// The health page: how fast events and matches come, how far behind the stream is, what it holds, what is slow.

import { attributesOf, bytes, h, number, replace, s, span, text, when } from "./dom.js";
import { ask, listen, state } from "./store.js";

export function health(page) {
  const cards = {};
  const grid = h("div", { class: "cards" });
  for (const [key, title] of [["job", "Job"], ["events", "Events a second"], ["matches", "Matches a second"], ["lag", "Lag"], ["watermark", "Watermark"], ["state", "State"], ["late", "Late events"], ["dead", "Dead letters"], ["batch", "Micro-batches"]]) {
    const value = h("p", { class: "value" }, "–");
    const detail = h("p", { class: "hint" });
    const chart = h("div", { class: "spark" });
    cards[key] = { value, detail, chart };
    grid.append(h("section", { class: "panel card", "aria-label": title }, h("h2", {}, title), value, chart, detail));
  }
  const leaves = h("div", {});
  const slow = h("div", {});
  const late = h("div", {});
  const measure = h("button", { type: "button", onclick: measured }, "Measure now");
  let timings = null;

  replace(page, h("h1", { class: "visually-hidden" }, "Health"), grid,
    h("div", { class: "columns" },
      h("section", { class: "panel", "aria-labelledby": "leaves-title" }, h("h2", { id: "leaves-title" }, "State by leaf"), leaves),
      h("section", { class: "panel", "aria-labelledby": "slow-title" },
        h("div", { class: "head" }, h("h2", { id: "slow-title" }, "Slow queries"), state.job ? measure : null), slow)),
    h("section", { class: "panel", "aria-labelledby": "late-title" }, h("h2", { id: "late-title" }, "Late events and dead letters"), late));

  async function measured() {
    measure.disabled = true;
    timings = await ask("measure", {});
    measure.disabled = false;
    queries();
  }

  function card(key, value, detail, values) {
    text(cards[key].value, value);
    text(cards[key].detail, detail);
    if (values) spark(cards[key].chart, values);
  }

  function refresh() {
    const progress = state.progress || {};
    const told = state.progress ? "" : "The pipeline writes no progress.";
    const events = rates("events");
    const matches = rates("matches");
    card("job", jobState(progress), told || jobDetail(progress));
    card("events", number(last(events), last(events) < 10 ? 1 : 0), `${number(state.totals.events)} seen by the console${progress.events === undefined ? "" : `, ${number(progress.events)} taken by the stream`}`, events);
    card("matches", number(last(matches), last(matches) < 10 ? 1 : 0), `${number(state.totals.matches)} committed, ${number(state.received)} received here${state.missed ? `, ${number(state.missed)} MISSED` : ""}`, matches);
    const behind = state.series.map((point) => point.behind);
    card("lag", span(behind[behind.length - 1]), told || `the watermark behind the newest event, by event time; the pipeline itself tells of ${span(progress.lag)}`, behind);
    card("watermark", progress.watermark ? when(progress.watermark) : "–", told || `on ${String(progress.watermark ?? "–").slice(0, 10)}; events may be ${state.job?.watermark ?? "–"} late`);
    card("state", bytes(progress.state_bytes), told || "held by the stream's state store", state.series.map((point) => point.state));
    card("late", number(progress.late ?? state.totals.late), "behind the watermark when they came", state.series.map((point) => point.late));
    card("dead", number(progress.malformed), told || "without time or type, or unreadable");
    card("batch", number(progress.batch), progress.rate === undefined ? told : `${number(progress.rate)} events a second in the last`);
    held(progress);
    queries();
    asides();
  }

  function held(progress) {
    const parts = [];
    for (const [name, many] of Object.entries(progress.leaves || {})) parts.push([name, many, "the stream"]);
    for (const trial of state.trials) for (const [name, many] of Object.entries(trial.held?.leaves || {})) parts.push([name, many, trial.name]);
    keyed(leaves, parts, () => parts.length
      ? table("State by leaf", ["leaf", "events held", "by"], parts.slice(0, 100).map(([name, many, by]) => [name, typeof many === "object" ? JSON.stringify(many) : number(many), by]))
      : h("p", { class: "hint" }, "Unknown: the stream does not tell what each leaf holds. A query on trial does."));
  }

  function queries() {
    const told = Object.entries(state.progress?.seconds_by_rule || {});
    if (told.length && !timings) {
      told.sort((a, b) => b[1] - a[1]);
      const rows = told.slice(0, 100).map(([name, seconds]) => [name, `${number(1000 * seconds, 1)} ms`, number(state.progress.by_rule?.[name] ?? 0)]);
      keyed(slow, rows, () => [
        table("Time by query", ["query", "time", "matches"], rows),
        h("p", { class: "hint" }, "Time that the stream has spent on each rule since it was started."),
      ]);
      return;
    }
    const rows = (timings?.rules || []).map((rule) => [rule.name, rule.error ? rule.error : `${number(1000 * rule.seconds, 1)} ms`, rule.error ? "–" : number(rule.matches), rule.seconds ?? 0]);
    rows.sort((a, b) => b[3] - a[3]);
    const tried = state.trials.map((trial) => [`${trial.name} (on trial)`, `${number(1000 * trial.busy, 1)} ms for ${number(trial.events)} events`, number(trial.matches)]);
    keyed(slow, [rows, tried, timings?.error], () => [
      timings?.error ? h("p", { class: "problem" }, timings.error) : null,
      rows.length || tried.length ? table("Time by query", ["query", "time", "matches"], [...rows.map((row) => row.slice(0, 3)), ...tried]) : null,
      h("p", { class: "hint" }, rows.length
        ? `Each rule alone over the ${number(timings.events)} events that the console holds, measured here. The stream runs them together and does not tell their times apart.`
        : "The time that each rule takes in the stream is unknown: it runs them together. Measure them here over the events that the console holds."),
    ]);
  }

  function asides() {
    const rows = state.late.slice(-30).reverse().map((event) => [event.reason ?? "–", when(event[state.job?.time]), String(event[state.job?.type] ?? "–"), attributesOf(event, "reason", state.job?.time, state.job?.type)]);
    keyed(late, rows, () => (rows.length ? table("Late events and dead letters", ["reason", "time", "type", "attributes"], rows) : h("p", { class: "hint" }, "None.")));
  }

  refresh();
  return listen(refresh);
}

const STALLED = 30_000;

// A job that says it runs, and has said nothing for half a minute, has stalled.
function jobState(progress) {
  const silent = progress.written && Date.now() - Date.parse(progress.written) > STALLED;
  return silent && ["starting", "running"].includes(progress.state) ? "stalled" : progress.state ?? "–";
}

function jobDetail(progress) {
  const parts = [];
  if (progress.busy !== undefined) parts.push(`busy ${number(100 * progress.busy)}% of the time`);
  if (progress.version) parts.push(`rules version ${number(progress.version)}`);
  const refused = Object.keys(progress.refused || {});
  if (refused.length) parts.push(`REFUSED: ${refused.join(", ")}`);
  return parts.join("; ");
}

function keyed(element, key, make) {
  const words = JSON.stringify(key);
  if (element.dataset.shown === words) return;
  element.dataset.shown = words;
  replace(element, make());
}

function table(caption, heads, rows) {
  return h("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": caption }, h("table", {},
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}

function rates(name) {
  const found = [];
  const points = state.series;
  for (let at = 1; at < points.length; at += 1) {
    const seconds = (points[at].at - points[at - 1].at) / 1000;
    if (seconds > 0) found.push(Math.max(0, (points[at][name] - points[at - 1][name]) / seconds));
  }
  return found;
}

// Files of events come a few times a second, so a rate is told as that of the last five.
function last(values) {
  const some = values.slice(-5);
  return some.length ? some.reduce((sum, value) => sum + value, 0) / some.length : 0;
}

function spark(element, values) {
  const known = values.map((value) => (value === null || value === undefined ? null : Number(value)));
  const top = Math.max(...known.filter((value) => value !== null), 1e-9);
  if (known.filter((value) => value !== null).length < 2) return;
  const step = 200 / Math.max(1, known.length - 1);
  const points = known.map((value, at) => (value === null ? null : `${(at * step).toFixed(1)},${(38 - (34 * value) / top).toFixed(1)}`)).filter(Boolean);
  let line = element.querySelector("polyline");
  if (!line) {
    line = s("polyline", { class: "line" });
    replace(element, s("svg", { viewBox: "0 0 200 40", preserveAspectRatio: "none", "aria-hidden": "true" }, line));
  }
  line.setAttribute("points", points.join(" "));
}
