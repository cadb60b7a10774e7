// What the browser holds of the job: the server's line of messages put into bounded lists, and told to the pages.

import { text } from "./dom.js";

const MOST_MATCHES = 1000;
const MOST_LATE = 100;
const LEVELS = [[1, 300], [15, 240], [300, 288]]; // of the series: seconds between two points, and how many are kept
const BUCKETS = 180;
const CLOCK = 1e11;

export const state = {
  job: null, data: [], rules: new Map(), drafts: new Map(), annotations: {}, workers: new Map(), matches: [], late: [], series: LEVELS.map(() => []), trials: [],
  statistics: { rule: {}, facets: {}, compliance: {} }, rates: [], totals: {}, progress: null, health: null, problems: {},
  received: 0, missed: 0, expected: null, ready: false,
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
  state.drafts = new Map((job ? job.drafts : []).map((draft) => [draft.name, draft]));
}

// All tabs share one line where the browser can share; else each has its own.
function connect() {
  if (!("SharedWorker" in window)) {
    alone();
    return;
  }
  const worker = new SharedWorker("/static/line-worker.js", { name: "nestream line" });
  worker.port.addEventListener("message", ({ data }) => heard(data));
  worker.port.start();
  window.addEventListener("pagehide", () => worker.port.postMessage("leave"));
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

function alone() {
  const line = new EventSource("/api/stream");
  line.addEventListener("open", () => heard({ kind: "open" }));
  line.addEventListener("error", () => {
    heard({ kind: "lost" });
    if (line.readyState === EventSource.CLOSED) setTimeout(alone, 2000);
  });
  for (const kind of ["snapshot", "update"]) line.addEventListener(kind, (event) => heard({ kind, data: event.data }));
}

function heard({ kind, data }) {
  const shown = document.getElementById("connection");
  if (kind === "snapshot") snapshot(JSON.parse(data));
  else if (kind === "update") update(JSON.parse(data));
  else shown.dataset.line = kind;
  tell();
}

function snapshot(found) {
  takeJob(found.job);
  state.workers = new Map(found.workers.map((row) => [row[0], row]));
  state.matches = found.matches;
  state.received = found.totals.matches;
  state.expected = found.totals.matches;
  for (const name of ["late", "statistics", "rates", "progress", "health", "series", "trials", "totals", "problems", "annotations"]) state[name] = found[name];
  state.ready = true;
}

function update(found) {
  for (const row of found.moves || []) state.workers.set(row[0], row);
  for (const match of found.matches || []) {
    if (state.expected !== null && match.number <= state.expected) continue; // the snapshot had it
    state.matches.push(match);
    // The numbers of matches have no gaps, so one that is lost on the way is noticed.
    if (state.expected !== null && match.number !== state.expected + 1) state.missed += 1;
    state.expected = match.number;
    state.received += 1;
    counted(match);
  }
  if (state.matches.length > MOST_MATCHES) state.matches.splice(0, state.matches.length - MOST_MATCHES);
  if (found.job) takeJob(found.job);
  if (found.annotations) said(found.annotations);
  if (found.late) state.late = [...state.late, ...found.late].slice(-MOST_LATE);
  if (found.point) added(found.point);
  for (const name of ["statistics", "progress", "health", "totals"]) if (found[name]) state[name] = found[name];
  // A message of one thing, as of a draft that was saved, tells nothing of the trials that there are.
  if (found.totals || found.problems) {
    state.trials = found.trials || [];
    state.problems = found.problems || {};
  }
}

// What people say of matches; of so many matches, as the page holds so many.
function said(found) {
  state.annotations = { ...state.annotations, ...found };
  const known = Object.keys(state.annotations);
  for (const match of known.slice(0, Math.max(0, known.length - 2 * MOST_MATCHES))) delete state.annotations[match];
}

export const takeAnnotations = (found) => { said(found ?? {}); tell(); };

function added(point) {
  LEVELS.forEach(([seconds, most], at) => {
    const level = state.series[at];
    if (level.length && point.at - level[level.length - 1].at < 1000 * seconds - 500) return;
    level.push(point);
    if (level.length > most) level.shift();
  });
}

// Counts a match in the rates by rule, as the server does.
function counted(match) {
  if (match.end === null) return;
  for (const level of state.rates) {
    const bucket = Math.floor(match.end / (level.width * (match.end > CLOCK ? 1000 : 1)));
    const counts = (level.buckets[bucket] ??= {});
    counts[match.query] = (counts[match.query] || 0) + 1;
    const kept = Object.keys(level.buckets);
    if (kept.length > BUCKETS) delete level.buckets[Math.min(...kept.map(Number))];
  }
}

// What a page has asked for and has no answer to yet is given up when it is left, and the server cancels it.
let asking = new AbortController();

export function giveUp() {
  asking.abort();
  asking = new AbortController();
}

export async function ask(name, body) {
  const { signal } = asking;
  try {
    const answer = await fetch(`/api/${name}`, {
      method: "POST",
      signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.headers.get("content-type") === "application/json") return await answer.json();
    return { ok: false, error: (await answer.text()).slice(0, 500) };
  } catch (problem) {
    if (signal.aborted) return new Promise(() => {}); // nobody is there to be told
    return { ok: false, error: `The console did not answer (${problem.message}).` };
  }
}

export function announce(words) {
  text(document.getElementById("announcer"), words);
}
