// What the browser holds of the job: the server's line of messages put into bounded lists, and told to the pages.

import { text } from "./dom.js";

const MOST_MATCHES = 1000;
const MOST_LATE = 100;
const MOST_POINTS = 300;

export const state = {
  job: null, data: [], rules: new Map(), workers: new Map(), matches: [], late: [], series: [], trials: [],
  statistics: { rule: {}, room: {}, worker: {}, hour: {}, compliance: {} }, totals: {}, progress: null, problem: null,
  received: 0, missed: 0, expected: null,
};

const listeners = new Set();
let asked = false;

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    for (const listener of [...listeners]) listener(state);
  });
}

export async function begin() {
  const answer = await fetch("/api/begin");
  const found = await answer.json();
  state.data = found.data;
  takeJob(found.job);
  connect();
}

function takeJob(job) {
  state.job = job;
  state.rules = new Map((job ? job.rules : []).map((rule) => [rule.name, rule]));
}

function connect() {
  const shown = document.getElementById("connection");
  const line = new EventSource("/api/stream");
  line.addEventListener("open", () => { text(shown, state.job ? "live" : "no job"); shown.dataset.state = "live"; });
  line.addEventListener("error", () => {
    text(shown, "reconnecting");
    shown.dataset.state = "lost";
    if (line.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
  line.addEventListener("snapshot", (event) => snapshot(JSON.parse(event.data)));
  line.addEventListener("update", (event) => update(JSON.parse(event.data)));
}

function snapshot(found) {
  takeJob(found.job);
  state.workers = new Map(found.workers.map((row) => [row[0], row]));
  state.matches = [...found.matches, ...state.matches.filter((match) => match.trial)];
  state.received = found.totals.matches;
  state.expected = found.totals.matches;
  for (const name of ["late", "statistics", "progress", "series", "trials", "totals"]) state[name] = found[name];
  bound();
  tell();
}

// Keeps of the matches so many, and of those of trials only what the trials of now have found.
function bound() {
  const numbers = new Set(state.trials.map((trial) => trial.number));
  state.matches = state.matches.filter((match) => !match.trial || numbers.has(match.trial)).slice(-MOST_MATCHES);
}

function update(found) {
  for (const row of found.moves || []) state.workers.set(row[0], row);
  for (const match of found.matches || []) {
    if (!match.trial && state.expected !== null && match.number <= state.expected) continue; // the snapshot had it
    state.matches.push(match);
    if (match.trial) continue;
    // The numbers of matches have no gaps, so one that is lost on the way is noticed.
    if (state.expected !== null && match.number !== state.expected + 1) state.missed += 1;
    state.expected = match.number;
    state.received += 1;
  }
  if (state.matches.length > MOST_MATCHES) state.matches.splice(0, state.matches.length - MOST_MATCHES);
  if (found.late) state.late = [...state.late, ...found.late].slice(-MOST_LATE);
  if (found.point) state.series = [...state.series, found.point].slice(-MOST_POINTS);
  for (const name of ["statistics", "progress", "totals"]) if (found[name]) state[name] = found[name];
  // A message with only matches, as those of a trial come, tells nothing of the trials that there are.
  if (found.totals || found.problem) {
    state.trials = found.trials || [];
    state.problem = found.problem || null;
    bound();
  }
  tell();
}

export async function ask(name, body) {
  try {
    const answer = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.headers.get("content-type") === "application/json") return await answer.json();
    return { ok: false, error: (await answer.text()).slice(0, 500) };
  } catch (problem) {
    return { ok: false, error: `The console did not answer (${problem.message}).` };
  }
}

export function announce(words) {
  text(document.getElementById("announcer"), words);
}
