// The frame of the console: which page an address shows, and how one goes to another without loading anew.

import { h, replace, text } from "./dom.js";
import { begin, listen, state } from "./store.js";
import { ward } from "./ward.js";
import { queries } from "./queries.js";
import { matches } from "./matches.js";
import { health } from "./health.js";

const pages = { "/ward": ["Ward", ward], "/queries": ["Queries", queries], "/matches": ["Matches", matches], "/health": ["Health", health] };
let leave = () => {};

function go(address) {
  history.pushState(null, "", address);
  show(true);
}

function show(moved) {
  const path = location.pathname in pages ? location.pathname : state.job ? "/ward" : "/queries";
  const [title, page] = pages[path];
  leave();
  document.title = `${title} – nestream console`;
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
  text(document.getElementById("job-name"), state.job ? state.job.name : "");
  listen((now) => {
    const connection = document.getElementById("connection");
    if (now.problem) text(connection, now.problem);
    else if (connection.dataset.state === "live") text(connection, now.job ? `live, ${now.totals.events?.toLocaleString("en") ?? 0} events` : "no job");
  });
  show(false);
} catch (problem) {
  replace(document.getElementById("page"), h("p", { class: "problem" }, `The console could not be reached: ${problem.message}`));
}
