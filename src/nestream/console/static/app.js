// The frame of the console: which page an address shows, and how one goes to another without loading anew.

import { h, number, replace, text } from "./dom.js";
import { begin, giveUp, listen, state } from "./store.js";
import { overview } from "./overview.js";
import { queries } from "./queries.js";
import { matches } from "./matches.js";
import { health } from "./health.js";

const pages = { "/overview": ["Overview", overview], "/matches": ["Matches", matches], "/queries": ["Queries", queries], "/health": ["Health", health] };
let leave = () => {};

function go(address) {
  history.pushState(null, "", address);
  show(true);
}

function show(moved) {
  const path = location.pathname in pages ? location.pathname : state.job ? "/overview" : "/queries";
  const [title, page] = pages[path];
  leave();
  giveUp();
  document.title = `${title} – ${state.job ? state.job.title : "nestream console"}`;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const main = document.getElementById("page");
  const content = h("div", { class: `page page-${title.toLowerCase()}` });
  replace(main, content);
  leave = page(content, new URLSearchParams(location.search), go) || (() => {});
  if (moved) main.focus({ preventScroll: true });
}

// The state of the job in the header: what the job says of itself, and whether the console is there to say it.
function status(now) {
  const shown = document.getElementById("connection");
  const lost = shown.dataset.line === "lost";
  shown.dataset.state = lost ? "lost" : now.job ? now.health?.state ?? "unknown" : "none";
  if (lost) text(shown, "connection lost, trying again");
  else if (!now.job) text(shown, "no job");
  else text(shown, `${now.health?.state ?? "connecting"}, ${number(now.totals.matches ?? 0)} matches`);
  for (const link of document.querySelectorAll("header nav a")) link.classList.toggle("alert", link.pathname === "/health" && (["stalled", "failed"].includes(now.health?.state) || now.health?.webhooks?.some((one) => one.failures > 0) || Object.keys(now.problems).length > 0));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
window.addEventListener("popstate", () => show(true));

// For tests and for the curious: what the browser holds.
window.nestream = state;

try {
  await begin();
  text(document.getElementById("job-name"), state.job ? state.job.title : "");
  if (!state.job) for (const path of ["/overview", "/health"]) document.querySelector(`header nav a[href="${path}"]`).hidden = true;
  listen(status);
  show(false);
} catch (problem) {
  replace(document.getElementById("page"), h("p", { class: "problem" }, `The console could not be reached: ${problem.message}`));
}
