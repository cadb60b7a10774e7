// The queries page: write a query, see what is wrong with it, its plan and its matches; keep it as a draft, try it beside the deployed
// rule, deploy it, and go back to an earlier version.

import { fillSelect, h, keyed, number, replace, select, text, turns, when } from "./dom.js";
import { ask, listen, state } from "./store.js";
import * as bench_ from "./bench.js";
import { bench } from "./bench.js";
import { confirmed, sideBySide } from "./dialogs.js";
import { Editor } from "./editor.js";
import { graph } from "./graph.js";
import { leftOut, matchTable, notes } from "./results.js";
import { tabs } from "./tabs.js";
import { timeline } from "./timeline.js";
import { differenceOf, trialPanel } from "./trial.js";
import { versionsPanel } from "./versions.js";

export const editorText = () => bench.text;

export function queries(page, address) {
  bench_.takeUp();
  const asked = address.get("rule");
  if (asked && asked !== bench.name && (state.rules.has(asked) || state.drafts.has(asked))) bench_.open(asked);
  bench.data ??= state.data[0].name;
  const isJob = Boolean(state.job);
  const trialName = () => bench.name || "query";
  let isFine = false;

  const editor = new Editor(bench.text, () => bench.data, { checked: (answer) => { isFine = answer.ok; refresh(); }, run: () => { if (!run.disabled) runIt(); } });
  editor.area.addEventListener("input", () => { bench_.write(editor.value); refresh(); });
  const rules = select("Rule", [], bench.name, (name) => { bench_.open(name); shownText(); beginNew(); });
  const data = select("Events", state.data.map((source) => [source.name, source.title]), bench.data, (name) => {
    bench.data = name;
    bench_.keep();
    editor.check();
    refresh();
    beginNew();
  });
  const name = h("input", { type: "text", maxlength: 100, spellcheck: "false", autocomplete: "off", oninput: () => refresh() });
  const nameField = h("label", { class: "field" }, h("span", {}, "Name of the new rule"), name);
  const button = (label, onclick, more = {}) => h("button", { type: "button", onclick, ...more }, label);
  const run = button("Run", runIt, { class: "primary", title: "Ctrl+Enter" });
  const cancel = button("Cancel", () => ask("run/stop", { run: running }), { hidden: true });
  let running = "";
  const plan = button("Plan", planIt);
  const format = button("Format", () => editor.format());
  const tryIt = button("Try on the live stream", start);
  const stop = button("Stop the trial", () => ask("trial/stop", { name: trialName() }), { hidden: true });
  const save = button("Save draft", saveIt);
  const discard = button("Discard draft", discardIt);
  const deploy = button("Deploy…", deployIt, { "aria-describedby": "deployed" });
  const said = h("p", { class: "hint", role: "status", id: "said" });
  const draftState = h("p", { class: "hint", id: "draft-state" });
  const deployed = h("p", { class: "hint", id: "deployed" });
  const notices = h("div", { class: "notices", role: "status" });
  const status = h("p", { class: "hint", role: "status" });
  const stale = h("p", { class: "notice", role: "status", hidden: true }, "These results are from an earlier text or other events.");
  const results = tabs({ matches: "Matches", nested: "Plan", rewritten: "Rewritten plan", explain: "Explanation", ...(isJob ? { trial: "Trial", versions: "Versions" } : {}) }, () => refresh());
  const ran = {};
  const trial = isJob ? trialPanel(results.panels.trial) : null;
  const versions = isJob ? versionsPanel(results.panels.versions, (version, told) => { ownVersion = version; text(said, told); }) : () => {};
  let ownVersion = 0; // to which this page rolled back
  replace(results.panels.matches, h("p", { class: "hint" }, "Run the query to see its matches."));
  for (const each of ["nested", "rewritten", "explain"]) replace(results.panels[each], h("p", { class: "hint" }, "Press Plan to see it."));

  replace(page,
    h("h1", { class: "visually-hidden" }, "Queries"), notices,
    h("div", { class: "workbench" },
      h("section", { class: "panel", "aria-label": "Editor" },
        h("div", { class: "controls" }, isJob ? rules : null, data, nameField),
        editor.element,
        h("p", { class: "actions" }, run, cancel, plan, format, isJob ? [tryIt, stop] : null),
        isJob ? [h("p", { class: "actions" }, save, discard, deploy), said, draftState, deployed] : null),
      h("section", { class: "panel", "aria-label": "Results" }, status, stale, results.element)));

  // Shows the text of the bench in the editor, after another rule was chosen or somebody's text was taken.
  function shownText() {
    editor.value = bench.text;
    text(said, "");
    address_();
    refresh();
  }

  async function beginNew() {
    if (await bench_.beginNew()) shownText();
  }

  function address_() {
    history.replaceState(null, "", bench.name ? `/queries?rule=${encodeURIComponent(bench.name)}` : "/queries");
  }

  // Running and planning share the line of status, so the later one has it.
  const asking = turns();
  const key = () => JSON.stringify([editor.value, bench.data]);

  async function runIt() {
    const current = asking();
    const own = key();
    text(status, "running");
    results.show("matches");
    running = crypto.randomUUID();
    cancel.hidden = false;
    const answer = await ask("run", { text: editor.value, data: bench.data, name: bench.name || "query", run: running });
    if (!current()) return;
    cancel.hidden = true;
    text(status, answer.ok ? `${answer.stopped ? `${answer.stopped} So far: ` : ""}${answer.told} in ${number(answer.events)} events${leftOut(answer)}, ${number(1000 * answer.seconds)} ms` : "");
    ran.matches = own;
    replace(results.panels.matches, answer.ok
      ? [notes(answer), answer.rows.length ? timeline(answer.timeline, "Timeline of the matches") : null, matchTable(answer.rows, answer, "Matches", null, answer)]
      : h("p", { class: "problem" }, answer.error));
    refresh();
  }

  async function planIt() {
    const current = asking();
    const own = key();
    cancel.hidden = true;
    text(status, "planning");
    results.show("nested");
    const answer = await ask("plan", { text: editor.value, data: bench.data });
    if (!current()) return;
    text(status, answer.ok ? "Estimated rows, and rows found over the chosen events." : "");
    for (const each of ["nested", "rewritten", "explain"]) ran[each] = own;
    const problem = answer.ok ? null : h("p", { class: "problem" }, answer.error);
    replace(results.panels.nested, problem || graph(answer.nested, "The plan as it is written"));
    replace(results.panels.rewritten, problem?.cloneNode(true) || graph(answer.rewritten, "The plan rewritten"));
    replace(results.panels.explain, h("pre", { class: "explain", tabindex: "0", role: "group", "aria-label": "Explanation" }, answer.ok ? answer.explain : answer.error));
    refresh();
  }

  async function start() {
    const answer = await ask("trial", { text: editor.value, name: trialName(), title: bench_.titleOf(bench.name), before: true });
    text(said, answer.ok ? "The trial has begun." : answer.error);
    if (answer.ok) results.show("trial");
  }

  // A new query is kept under the name that the person gives it.
  function isNamed() {
    if (bench.name) return true;
    if (!name.value.trim()) {
      text(said, "Name the new rule first.");
      name.focus();
      return false;
    }
    bench.name = name.value.trim();
    return true;
  }

  async function saveIt() {
    const isNew = !bench.name;
    if (isNew && state.rules.has(name.value.trim())) {
      text(said, "There is already a rule with this name. Choose another name, or choose the rule to change it.");
      return;
    }
    if (!isNamed()) return;
    const answer = await bench_.save();
    if (!answer.ok && isNew) bench.name = "";
    text(said, answer.ok ? "The draft is saved." : answer.error);
    if (answer.ok) address_();
    refresh();
  }

  async function discardIt() {
    const { title, revision } = bench_.draftOf(bench.name);
    if (!await confirmed(`Discard the draft of ${title}?`, sideBySide(bench_.ruleOf(bench.name)?.text ?? null, bench.text, ["Deployed", "Draft"]), "Discard", async () => {
      const answer = await bench_.discard(revision);
      return answer.ok ? null : answer.error;
    })) return;
    shownText();
    text(said, "The draft is discarded.");
  }

  async function deployIt() {
    const isNew = !bench.name;
    if (!isNamed()) return;
    const rule = bench_.ruleOf(bench.name);
    const tried = state.trials.find((one) => one.name === trialName());
    const content = [
      h("p", {}, rule ? "The job goes on with the new text, from the next events on." : "The job runs the new rule from the next events on.", " ",
        tried && tried.text === bench.text ? ["On trial: ", h("strong", {}, differenceOf(tried)), ` in ${number(tried.events)} events.`] : "It was not tried in this form."),
      sideBySide(rule?.text ?? null, bench.text, ["Deployed now", "To be deployed"])];
    const shown = [bench.text, rule?.text ?? null, bench_.draftOf(bench.name)?.revision ?? 0];  // what is confirmed is deployed
    let version = 0;
    const isDone = await confirmed(`Deploy ${bench_.titleOf(bench.name)}?`, content, "Deploy", async () => {
      const answer = await bench_.deploy(...shown);
      version = answer.version;
      return answer.ok ? null : answer.error;
    });
    if (isDone) {
      shownText();
      text(said, `Version ${number(version)} is deployed.`);
    } else if (isNew) bench.name = "";
    refresh();
  }

  function refresh() {
    const mine = trial?.refresh(trialName(), editor.value) ?? null;
    const [draft, rule] = [bench_.draftOf(bench.name), bench_.ruleOf(bench.name)];
    const unsaved = bench_.isUnsaved();
    for (const each of [run, plan, tryIt]) each.disabled = !isFine;
    format.disabled = !editor.formatted || editor.formatted === editor.value;
    stop.hidden = !mine;
    nameField.hidden = Boolean(bench.name) || !isJob;
    save.disabled = !editor.value.trim() || (Boolean(draft) && !unsaved) || (!draft && Boolean(rule) && !unsaved);
    discard.hidden = !draft;
    deploy.disabled = !isFine || Boolean(state.job?.refusal) || (rule !== null && rule.text.trimEnd() === editor.value.trimEnd());
    const drafts = [...state.drafts.values()].filter((one) => !state.rules.has(one.name));
    fillSelect(rules.lastChild, [...[...state.rules.values()].map((one) => [one.name, `${one.title}${state.drafts.has(one.name) ? " (draft)" : ""}`]),
      ...drafts.map((one) => [one.name, `${one.title} (new, draft)`]), ["", "a new query"]], bench.name);
    text(draftState, [unsaved ? "Changes are not saved." : draft ? `The draft was saved ${when(draft.saved)} UTC.` : rule ? "This is the deployed text." : "",
      unsaved && draft ? `The draft was saved ${when(draft.saved)} UTC.` : ""].filter(Boolean).join(" "));
    text(deployed, deployedState(rule));
    stale.hidden = !(results.shown() in ran) || ran[results.shown()] === key();
    told(rule);
    versions();
  }

  // What somebody else has changed, with what to do about it.
  function told(rule) {
    const elsewhere = bench_.changedElsewhere();
    if (!bench_.isUnsaved() && (elsewhere.draft || (elsewhere.rule && !bench_.draftOf(bench.name)))) {
      const own = rule?.version === ownVersion && !elsewhere.draft ? said.textContent : null;
      bench_.read(elsewhere.draft === "gone" && !rule ? "" : bench.name); // there is nothing of one's own to lose
      shownText();
      text(said, own ?? "It was changed elsewhere; this is the current text.");
      return;
    }
    const hands = [...state.rules.values()].filter((one) => one.note).map((one) => one.note);
    keyed(notices, [elsewhere.draft && (elsewhere.draft.revision ?? "gone"), elsewhere.rule && (elsewhere.rule.text ?? "gone"), bench.name, hands], () => [
      elsewhere.draft ? h("p", { class: "notice" }, elsewhere.draft === "gone" ? "The draft was discarded or deployed elsewhere. Your text is still here. " : "The draft was changed elsewhere, and you have changes that are not saved. ",
        elsewhere.draft === "gone" ? button("Keep mine", () => { bench.revision = 0; bench_.keep(); refresh(); }) : [
          button("Take the other", () => { bench_.read(bench.name); shownText(); }), " ",
          button("Save mine over it", async () => { const answer = await bench_.save(elsewhere.draft); text(said, answer.ok ? "The draft is saved." : answer.error); refresh(); })]) : null,
      elsewhere.rule ? h("p", { class: "notice" }, elsewhere.rule === "gone" ? "The deployed rule was removed since you began. " : `The deployed rule has changed since you began${elsewhere.rule.version ? `: version ${number(elsewhere.rule.version)}` : ""}. `,
        elsewhere.rule === "gone" ? null : [button("Take the deployed text", () => { bench_.openDeployed(); shownText(); }), " "],
        button("Keep mine", async () => { bench.base = rule?.text ?? null; bench_.keep(); if (bench_.draftOf(bench.name)) await bench_.save(); refresh(); })) : null,
      hands.map((note) => h("p", { class: "notice" }, note))]);
  }

  refresh();
  beginNew();
  let hasEvents = state.totals.events > 0;
  const silence = listen(() => {
    refresh();
    if (hasEvents || !state.totals.events) return;
    hasEvents = true; // the first ones tell which types there are
    beginNew();
  });
  return () => { silence(); editor.close(); trial?.close(); };
}

// Which version of a rule is deployed, and what the job says of it; or why nothing can be deployed.
function deployedState(rule) {
  const { job, progress, health } = state;
  if (job?.refusal) return `You cannot deploy to this job. ${job.refusal}`;
  if (!rule) return "There is no deployed rule of this name.";
  const named = rule.version ? `Version ${number(rule.version)}` : "This rule";
  const why = progress?.refused?.[rule.name];
  const runs = progress?.rules?.[rule.name];
  if (why) return `${named} is deployed, and the job refuses it: ${why}${runs ? ` It runs on with version ${number(runs)}.` : ""}`;
  if (runs && runs === rule.version) return `${named} is deployed, and the job runs it.`;
  if (health?.state === "running" && runs) return `${named} is deployed. The job still runs version ${number(runs)}.`;
  return `${named} is deployed.`;
}
