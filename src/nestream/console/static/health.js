// The health page: the state of the job and since when, how fast events and matches come, how long batches take, how far behind the
// stream is, what it holds, and which rules take the time.

import { ago, attributesOf, bytes, h, keyed, number, replace, select, span, table, text, value, when } from "./dom.js";
import { ask, listen, state } from "./store.js";
import { Chart } from "./chart.js";
import { problems } from "./first-minute.js";

const RANGES = [["0", "last 5 minutes", 300], ["1", "last hour", 3600], ["2", "last day", 86400]];
const DAY = 86400;

export function health(page, address) {
  let range = Number(address.get("range") ?? 0) in RANGES ? Number(address.get("range") ?? 0) : 0;
  const cards = {};
  const grid = h("div", { class: "cards" });
  const charts = {
    events: ["Events a second", {}], matches: ["Matches a second", {}], batch: ["Batch time", { show: span }],
    lag: ["Lag", { show: span }], state: ["State", { show: bytes }],
  };
  for (const [name, title] of [["job", "Job"], ["age", "Last batch"], ["events", "Events a second"], ["matches", "Matches a second"], ["batch", "Batch time"], ["lag", "Lag"], ["state", "State"], ["late", "Late and dead"]]) {
    const card = { value: h("p", { class: "value" }, "–"), detail: h("p", { class: "hint" }) };
    card.chart = charts[name] ? new Chart(charts[name][0], { height: 130, ...charts[name][1] }) : null;
    cards[name] = card;
    grid.append(h("section", { class: "panel card", "aria-label": title }, h("h2", {}, title), card.value, card.chart?.element ?? null, card.detail));
  }
  const wrong = h("div", {});
  const rules = h("div", {});
  const leaves = h("div", {});
  const late = h("div", {});
  const hooks = h("div", {});
  const links = h("p", { class: "links" });
  const measure = h("button", { type: "button", onclick: measured }, "Measure now");
  let timings = null;

  replace(page, h("h1", { class: "visually-hidden" }, "Health"), wrong,
    h("div", { class: "controls" }, select("Time", RANGES.map(([name, title]) => [name, title]), String(range), (chosen) => {
      range = Number(chosen);
      history.replaceState(null, "", range ? `/health?range=${range}` : "/health");
      refresh();
    }), links), grid,
    h("div", { class: "columns" },
      h("section", { class: "panel", "aria-labelledby": "slow-title" },
        h("div", { class: "head" }, h("h2", { id: "slow-title" }, "Time by rule"), state.job ? measure : null), rules),
      h("section", { class: "panel", "aria-labelledby": "leaves-title" }, h("h2", { id: "leaves-title" }, "State by leaf"), leaves)),
    hooks,
    h("section", { class: "panel", "aria-labelledby": "late-title" }, h("h2", { id: "late-title" }, "Late events and dead letters"), late));

  async function measured() {
    measure.disabled = true;
    timings = await ask("measure", {});
    measure.disabled = false;
    byRule();
  }

  function card(name, shown, detail, points = null, threshold = null) {
    text(cards[name].value, shown);
    text(cards[name].detail, detail);
    if (!points) return;
    const to = Date.now();
    const from = to - 1000 * RANGES[range][2];
    cards[name].chart.draw({ points: points.filter((point) => point.at >= from), names: [""], from, to, threshold, time: clock });
  }

  function refresh() {
    const { progress: given, health: now, job, totals } = state;
    const progress = given || {};
    const silent = given ? "" : "The job does not say.";
    const series = state.series[range] ?? [];
    const trigger = job?.trigger ?? null;
    const rates = Object.fromEntries(["events", "matches"].map((name) => [name, ratesOf(series, name)]));
    problems(wrong);
    card("job", now?.state ?? "–", [now?.why, ...described(progress)].filter(Boolean).join(" "));
    const last = progress.at ? Date.parse(progress.at) : null;
    card("age", ago(last), now?.written ? `the job last spoke ${ago(now.written)}` : silent);
    cards.job.value.dataset.state = now?.state ?? "unknown";
    card("events", rate(rates.events), `${number(progress.events ?? totals.events)} taken by the job, ${number(totals.events)} seen by the console`, rates.events);
    card("matches", rate(rates.matches), `${number(totals.matches)} committed, ${number(state.received)} received here${state.missed ? `, ${number(state.missed)} MISSED` : ""}`, rates.matches);
    const busy = progress.busy === undefined ? "" : ` Busy ${number(100 * progress.busy)}% of the time.`;
    card("batch", span(given ? progress.batch_seconds : null), (trigger ? `The trigger is every ${span(trigger)} (dashed): a longer batch falls behind.` : "A batch begins when the one before has ended.") + busy, pointsOf(series, "batch"), trigger);
    const near = typeof progress.lag === "number" && Math.abs(progress.lag) < DAY;
    card("lag", near ? span(progress.lag) : "–", lagDetail(progress, near, job), near ? pointsOf(series, "lag") : []);
    card("state", bytes(given ? progress.state_bytes : null), progress.state_rows === undefined ? silent : `${number(progress.state_rows)} events held`, pointsOf(series, "state"));
    card("late", number((progress.late ?? totals.late ?? 0) + (progress.malformed ?? 0)), `${number(progress.late ?? totals.late)} behind the watermark, ${number(progress.malformed ?? 0)} that cannot be used${unread(now)}`);
    keyed(links, [job?.spark, job?.metrics], () => [
      job?.spark ? h("a", { href: job.spark, target: "_blank", rel: "noreferrer" }, "Spark's own page") : null, " ",
      job?.metrics ? h("a", { href: job.metrics, target: "_blank", rel: "noreferrer" }, "/metrics") : null]);
    held();
    byRule();
    asides();
    webhooks(now?.webhooks ?? []);
  }

  function webhooks(given) {
    keyed(hooks, given, () => (given.length ? h("section", { class: "panel", "aria-labelledby": "hooks-title" }, h("h2", { id: "hooks-title" }, "Webhooks"),
      table("Webhooks", ["address", "severities", "sent", "waiting", "state"], given.map((one) => [value(one.where), one.severities.join(", "), number(one.sent), number(one.waiting),
        one.error ? h("span", { class: "failing" }, `failing since ${clock(one.since, true)}, ${number(one.failures)} times: ${one.error}. Matches wait and are sent again.`) : "delivers"]))) : null));
  }

  function held() {
    const parts = state.trials.flatMap((trial) => Object.entries(trial.held?.leaves || {}).map(([name, many]) => [name, many, `${trial.title} (on trial)`]));
    const own = Object.entries(state.progress?.leaves || {}).map(([name, many]) => [name, many, "the job"]);
    keyed(leaves, [own, parts], () => (own.length || parts.length
      ? table("State by leaf", ["leaf", "events held", "by"], [...own, ...parts].slice(0, 100).map(([name, many, by]) => [value(name), number(many), value(by)]))
      : h("p", { class: "hint" }, "The job does not say what each part of its queries holds. A query on trial does.")));
  }

  function byRule() {
    const told = state.progress?.seconds_by_rule || {};
    const matches = state.progress?.by_rule || state.statistics.rule;
    const versions = state.progress?.rules || {};
    const refused = state.progress?.refused || {};
    const names = [...new Set([...state.rules.keys(), ...Object.keys(told), ...Object.keys(refused)])].slice(0, 200);
    const times = new Map((timings?.rules || []).map((rule) => [rule.name, rule]));
    const took = (name) => told[name] ?? times.get(name)?.seconds ?? -1;
    names.sort((a, b) => took(b) - took(a) || a.localeCompare(b));
    const tried = state.trials.map((trial) => [`${trial.title} (on trial)`, `${number(1000 * trial.busy, 1)} ms`, number(trial.matches), "–"]);
    const rows = names.map((name) => [name, name in told ? `${number(1000 * told[name], 1)} ms` : times.get(name)?.error ?? (times.has(name) ? `${number(1000 * times.get(name).seconds, 1)} ms` : "–"),
      number(matches[name] ?? 0), refused[name] ? `REFUSED: ${refused[name]}` : state.rules.get(name)?.problem ?? (versions[name] ? `version ${versions[name]}` : "–")]);
    keyed(rules, [rows, tried, timings?.error], () => [
      timings?.error ? h("p", { class: "problem" }, timings.error) : null,
      rows.length || tried.length ? table("Time by rule", ["rule", "time", "matches", "state"], [...rows, ...tried].map((row) => row.map((cell) => value(cell, 120)))) : null,
      h("p", { class: "hint" }, Object.keys(told).length ? "The time that the job has spent on each rule since it was started."
        : times.size ? `Each rule alone over the ${number(timings.events)} events that the console holds, measured here: the job runs them together.`
          : "The job runs its rules together and does not say what each one takes. Measure them here, over the events that the console holds."),
    ]);
  }

  function asides() {
    const { time, type } = state.job ?? {};
    const rows = state.late.slice(-30).reverse().map((event) => [event.reason ?? "–", when(event[time]), String(event[type] ?? "–"), event]);
    keyed(late, rows, () => (rows.length ? table("Late events and dead letters", ["reason", "time", "type", "attributes"],
      rows.map(([reason, moment, kind, event]) => [value(reason, 160), moment, value(kind), attributesOf(event, "reason", time, type)])) : h("p", { class: "hint" }, "None.")));
  }

  refresh();
  const timer = setInterval(refresh, 1000); // ages grow though nothing comes
  const silence = listen(refresh);
  return () => { clearInterval(timer); silence(); };
}

function lagDetail(progress, near, job) {
  if (near) return `How far the watermark was behind the clock when the last batch came. It includes the ${job?.watermark ?? "0 seconds"} that events may be late.`;
  return typeof progress.lag === "number" ? "The times of the events are far from the clock, as in replayed data, so there is no lag to show." : "How far the watermark is behind the clock; the job does not say.";
}

function described(progress) {
  const parts = [];
  if (progress.version) parts.push(`Rules version ${number(progress.version)}.`);
  if (progress.rules_problem) parts.push(progress.rules_problem);
  const refused = Object.keys(progress.refused || {});
  if (refused.length) parts.push(`REFUSED: ${refused.join(", ")}.`);
  if (progress.watermark) parts.push(`Watermark ${typeof progress.watermark === "string" ? `${progress.watermark.slice(0, 10)} ` : ""}${when(progress.watermark)}.`);
  return parts;
}

const unread = (now) => Object.entries(now?.unreadable ?? {}).map(([part, many]) => `, ${number(many)} rows of the ${part} that are no JSON`).join("");
const clock = (at, exact) => new Date(at).toLocaleTimeString("en-GB", exact ? {} : { hour: "2-digit", minute: "2-digit" });
const pointsOf = (series, name) => series.map((point) => ({ at: point.at, values: { "": point[name] } }));

function ratesOf(points, name) {
  const found = [];
  for (let at = 1; at < points.length; at += 1) {
    const seconds = (points[at].at - points[at - 1].at) / 1000;
    if (seconds > 0) found.push({ at: points[at].at, values: { "": Math.max(0, (points[at][name] - points[at - 1][name]) / seconds) } });
  }
  return found;
}

// Events come in batches, so a rate is that of the last five seconds.
function rate(points) {
  const some = points.slice(-5).map((point) => point.values[""]);
  const found = some.length ? some.reduce((sum, one) => sum + one, 0) / some.length : 0;
  return number(found, found < 10 ? 1 : 0);
}
