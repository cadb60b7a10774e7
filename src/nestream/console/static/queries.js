// The queries page: write a query, see what is wrong with it, its plan, its matches, and try it on the live stream.

import { h, number, replace, select, text, turns } from "./dom.js";
import { ask, listen, state } from "./store.js";
import { Editor } from "./editor.js";
import { graph } from "./graph.js";
import { leftOut, matchTable, notes } from "./results.js";
import { timeline } from "./timeline.js";
import { row } from "./detail.js";
import { tabs } from "./tabs.js";

const START = `PATTERN SEQ(
  Recycle r,
  ! SEQ(Disinfection d, Checking c, d.id = c.id = r.id),
  Operating o,
  r.id = o.id
)
WITHIN 1 hour`;
const kept = { text: null, rule: "", data: null };

export const editorText = () => kept.text;

export function queries(page, address) {
  const asked = address.get("rule");
  if (asked && state.rules.has(asked)) {
    kept.rule = asked;
    kept.text = state.rules.get(asked).text;
  }
  if (kept.text === null) kept.text = state.rules.size ? [...state.rules.values()][0].text : START;
  kept.data ??= state.job ? "live" : "hospital";

  const editor = new Editor(kept.text, () => kept.data, (answer) => {
    kept.text = editor.value;
    for (const button of [run, plan, tryIt]) button.disabled = !answer.ok;
  });
  editor.area.addEventListener("input", () => { kept.text = editor.value; });
  const rules = select("Load", [["", "a rule of the job"], ...[...state.rules.values()].map((rule) => [rule.name, rule.title])], kept.rule, (name) => {
    kept.rule = name;
    if (name) editor.value = kept.text = state.rules.get(name).text;
  });
  const data = select("Events", state.data.map((source) => [source.name, source.title]), kept.data, (name) => {
    kept.data = name;
    editor.check();
  });
  const run = h("button", { type: "button", class: "primary", onclick: runIt }, "Run");
  const cancel = h("button", { type: "button", onclick: () => ask("run/stop", { run: running }), hidden: true }, "Cancel");
  let running = "";
  const plan = h("button", { type: "button", onclick: planIt }, "Plan");
  const tryIt = h("button", { type: "button", onclick: start }, "Try on the live stream");
  const stop = h("button", { type: "button", onclick: () => ask("trial/stop", { name: "trial" }), hidden: true }, "Stop the trial");
  const trial = h("p", { class: "hint", role: "status" });
  const status = h("p", { class: "hint", role: "status" });
  const results = tabs({ matches: "Matches", nested: "Plan", rewritten: "Rewritten plan", explain: "Explanation", trial: "Live trial" });
  replace(results.panels.matches, h("p", { class: "hint" }, "Run the query to see its matches."));
  for (const name of ["nested", "rewritten", "explain"]) replace(results.panels[name], h("p", { class: "hint" }, "Ask for the plan to see it."));
  const untried = () => h("p", { class: "hint" }, "Try the query on the live stream to see its matches here and on the overview as they come.");
  replace(results.panels.trial, untried());

  replace(page,
    h("h1", { class: "visually-hidden" }, "Queries"),
    h("div", { class: "workbench" },
      h("section", { class: "panel", "aria-label": "Editor" },
        h("div", { class: "controls" }, state.rules.size ? rules : null, data),
        editor.element,
        h("p", { class: "actions" }, run, cancel, plan, state.job ? [tryIt, stop] : null),
        trial),
      h("section", { class: "panel", "aria-label": "Results" }, status, results.element)));

  // Running and planning share the line of status, so the later one has it.
  const asking = turns();

  async function runIt() {
    const current = asking();
    text(status, "running");
    results.show("matches");
    running = crypto.randomUUID();
    cancel.hidden = false;
    const answer = await ask("run", { text: editor.value, data: kept.data, name: kept.rule || "query", run: running });
    if (!current()) return;
    cancel.hidden = true;
    text(status, answer.ok ? `${answer.stopped ? `${answer.stopped} So far: ` : ""}${answer.told} in ${number(answer.events)} events${leftOut(answer)}, ${number(1000 * answer.seconds)} ms` : "");
    replace(results.panels.matches, answer.ok
      ? [notes(answer), answer.rows.length ? timeline(answer.timeline, "Timeline of the matches") : null, matchTable(answer.rows, answer, "Matches", null, answer)]
      : h("p", { class: "problem" }, answer.error));
  }

  async function planIt() {
    const current = asking();
    cancel.hidden = true;
    text(status, "planning");
    results.show("nested");
    const answer = await ask("plan", { text: editor.value, data: kept.data });
    if (!current()) return;
    text(status, answer.ok ? "Estimated rows, and rows found over the chosen events." : "");
    const problem = answer.ok ? null : h("p", { class: "problem" }, answer.error);
    replace(results.panels.nested, problem || graph(answer.nested, "The plan as it is written"));
    replace(results.panels.rewritten, problem?.cloneNode(true) || graph(answer.rewritten, "The plan rewritten"));
    replace(results.panels.explain, h("pre", { class: "explain", tabindex: "0", role: "group", "aria-label": "Explanation" }, answer.ok ? answer.explain : answer.error));
  }

  async function start() {
    const answer = await ask("trial", { text: editor.value, name: "trial", before: true });
    text(trial, answer.ok ? "The trial has begun." : answer.error);
    if (answer.ok) results.show("trial");
  }

  let shown = "";
  function refresh() {
    const mine = state.trials.find((one) => one.name === "trial");
    stop.hidden = !mine;
    if (!mine) {
      if (shown) {
        text(trial, "The trial has ended.");
        replace(results.panels.trial, untried());
      }
      shown = "";
      return;
    }
    text(trial, `${mine.stopped ? `The trial was stopped: ${mine.stopped}. ` : "On trial: "}${number(mine.matches)} matches in ${number(mine.events)} events, ${number(1000 * mine.busy)} ms of work.`);
    const found = state.matches.filter((match) => match.trial === mine.number);
    const key = `${mine.number}-${found.length}-${found.length ? found[found.length - 1].number : 0}`;
    if (key !== shown) {
      shown = key;
      replace(results.panels.trial, matchTable(found.slice(-50).reverse().map(row), { time: state.job.time, type: state.job.type }, "Matches of the trial"));
    }
  }

  refresh();
  const silence = listen(refresh);
  return () => { silence(); editor.close(); };
}
