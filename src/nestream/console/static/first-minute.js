// What a person should know at once: what cannot be read, how the job is doing if not well, and, while there are no matches yet,
// what the job watches and three things to try.

import { h, isolated, keyed, number } from "./dom.js";
import { state } from "./store.js";

const PARTS = { events: "The events", matches: "The matches", late: "The late events", progress: "The progress", console: "A look at the job", rules: "The rules", drafts: "The drafts", annotations: "What people said of matches" };

export function problems(element) {
  const { health, job } = state;
  const wrong = Object.entries(state.problems);
  const bad = job && ["stalled", "failed"].includes(health?.state) ? health : null;
  const waits = Boolean(job && health?.held_back);
  keyed(element, [wrong, bad, waits, job?.notes], () => [
    bad ? h("p", { class: "problem", role: "alert" }, `The job has ${bad.state}. ${bad.why}`) : null,
    wrong.map(([part, said]) => h("p", { class: "problem" }, `${PARTS[part] ?? part} cannot be read${part === "annotations" ? " completely" : ""}: ${said}`)),
    waits ? h("p", { class: "notice" }, "Matches are held back until the console has read the rules, which say what is a match. None is lost.") : null,
    (job?.notes ?? []).map((said) => h("p", { class: "hint" }, said)),
  ]);
}

export function firstMinute(element) {
  const { job, health, totals } = state;
  const begun = !job || !state.ready || (totals.matches && health?.state !== "starting");
  const where = job?.where ?? {};
  const held = totals.events ?? 0;
  keyed(element, begun || [health?.state, health?.why, health?.missing, health?.held_back, held > 0, job.rules.length], () => {
    if (begun) return null;
    const rules = job.rules.filter((rule) => !rule.into);
    return h("section", { class: "panel hello", "aria-labelledby": "hello-title" },
      h("h2", { id: "hello-title" }, health?.state === "starting" ? "The job is starting" : "No matches yet"),
      h("p", {}, health?.why || (health?.held_back ? "The console has not read the rules yet." : held ? "Events come in, and none of the rules has matched yet." : "No events have come yet.")),
      h("p", {}, "It watches ", events(where, health), rules.length ? ` with ${rules.length === 1 ? "one rule" : `${number(rules.length)} rules`}: ` : ".",
        rules.slice(0, 8).map((rule, at) => [at ? ", " : "", h("a", { href: `/queries?rule=${encodeURIComponent(rule.name)}` }, h("bdi", {}, rule.title))]), rules.length > 8 ? " and others" : "",
        where.matches ? [". Matches appear here as they are written to ", h("bdi", {}, where.matches), "."] : rules.length ? "." : null),
      h("h3", {}, "Three things to try"),
      h("ol", { class: "steps" },
        h("li", {}, h("a", { href: "/queries" }, "Run a rule"), held ? " over the events held so far, and draw its plan." : " over a bundled data set, and draw its plan."),
        h("li", {}, h("a", { href: "/matches" }, "Ask why"), " events that you expected to match did not."),
        h("li", {}, h("a", { href: "/health" }, "See how the job is doing"), ": its rate, its lag, and the time that each rule takes.")));
  });
}

function events(where, health) {
  if (!where.events) return "events that the console cannot read again";
  return [isolated(where.events, 120), health?.missing?.includes("events") ? " (not there yet)" : ""];
}
