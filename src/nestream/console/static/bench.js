// What the editor works on: a rule of the job, its draft, or a new query. Text that is not saved outlives a reload of its tab, and
// nothing is replaced by what somebody else has saved or deployed unless the person says so.

import { ask, state } from "./store.js";

const KEPT = "nestream bench";
const START = `PATTERN SEQ(
  A a,
  B b
)
WITHIN 1 hour
`; // until it is known which types the events have

// `opened` is the text as it was read, of the draft with that `revision`, or of the rule; `base` is the deployed text that it began from.
export const bench = { name: "", text: null, opened: "", revision: 0, base: null, data: null };

export const isUnsaved = () => bench.text !== bench.opened;
export const draftOf = (name) => state.drafts.get(name) ?? null;
export const ruleOf = (name) => state.rules.get(name) ?? null;
export const titleOf = (name) => draftOf(name)?.title ?? ruleOf(name)?.title ?? name;

// Texts of other rules that are not saved, by the name of the rule.
let aside = {};

// Begins with what this tab left unsaved of a name, else with its draft, else with its rule; without a name, with a new query.
export function open(name) {
  if (bench.text !== null && isUnsaved()) aside = { ...aside, [bench.name]: { ...bench } };
  if (aside[name]) {
    Object.assign(bench, aside[name], { data: bench.data });
    delete aside[name];
    keep();
  } else read(name);
}

// The draft of a name if there is one, else its rule, whatever the tab has.
export function read(name) {
  const [draft, rule] = [draftOf(name), ruleOf(name)];
  const text = draft?.text ?? rule?.text ?? START;
  Object.assign(bench, { name, text, opened: text, revision: draft?.revision ?? 0, base: draft ? draft.base : rule?.text ?? null });
  keep();
}

// Lets a new query begin with types that the chosen events have, unless the person has written something meanwhile.
export async function beginNew() {
  const isNew = () => !bench.name && !isUnsaved();
  if (!isNew()) return false;
  const answer = await ask("first-query", { data: bench.data });
  if (!answer.ok || !isNew() || answer.text === bench.text) return false;
  Object.assign(bench, { text: answer.text, opened: answer.text });
  keep();
  return true;
}

// The text of the deployed rule in place of the draft, which stays until it is saved over or discarded.
export function openDeployed() {
  bench.text = ruleOf(bench.name)?.text ?? bench.text;
  bench.base = ruleOf(bench.name)?.text ?? null;
  keep();
}

export function write(text) {
  bench.text = text;
  keep();
}

export function keep() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ bench, aside, job: state.job?.title ?? null }));
  } catch { /* a browser may have no room, or none for this page */ }
}

// Takes up what this tab had before it was loaded anew, if it was of this job.
export function takeUp() {
  if (bench.text !== null) return;
  let found = null;
  try {
    found = JSON.parse(sessionStorage.getItem(KEPT));
  } catch { /* somebody else's */ }
  if (found?.bench && found.job === (state.job?.title ?? null) && typeof found.bench.text === "string") {
    Object.assign(bench, found.bench);
    aside = found.aside ?? {};
    if (!isUnsaved()) read(draftOf(bench.name) || ruleOf(bench.name) ? bench.name : "");
  } else open(state.rules.size ? [...state.rules.keys()][0] : "");
}

// What has changed elsewhere since the text was read: the draft, by another tab, or the deployed rule.
export function changedElsewhere() {
  const draft = draftOf(bench.name);
  const rule = ruleOf(bench.name);
  return {
    draft: (draft?.revision ?? 0) !== bench.revision && (draft || bench.revision) ? draft ?? "gone" : null,
    rule: bench.name && (rule?.text ?? null) !== bench.base ? rule ?? "gone" : null,
  };
}

export async function save(over = null) {
  const text = bench.text;
  const revision = over ? over.revision : bench.revision;
  const answer = await ask("draft/save", { name: bench.name, text, title: titleOf(bench.name), revision, base: bench.base });
  if (answer.ok) {
    Object.assign(bench, { opened: text, revision: answer.draft.revision });
    state.drafts.set(answer.draft.name, answer.draft);
    keep();
  }
  return answer;
}

export async function discard(revision) {
  const answer = await ask("draft/discard", { name: bench.name, revision });
  if (answer.ok) {
    state.drafts.delete(bench.name);
    read(ruleOf(bench.name) ? bench.name : "");
  }
  return answer;
}

export async function deploy(text, before, revision) {
  const answer = await ask("deploy", { name: bench.name, text, before, revision });
  if (answer.ok) {
    const deployed = text.endsWith("\n") ? text : `${text}\n`;
    state.drafts.delete(bench.name);
    state.rules.set(bench.name, { severity: "medium", title: titleOf(bench.name), problem: null, note: null, ...ruleOf(bench.name), name: bench.name, text: deployed, version: answer.version });
    Object.assign(bench, { text: deployed, opened: deployed, base: deployed, revision: 0 });
    keep();
  }
  return answer;
}
