// One violation, opened: the events that make it, its timeline, its rule, and where to go on from there.

import { attributesOf, h, replace, when } from "./dom.js";
import { ask, state } from "./store.js";
import { highlighted } from "./highlight.js";
import { timeline } from "./timeline.js";

function eventTable(parts, caption) {
  const { time, type } = state.job || { time: "ts", type: "type" };
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", {}, h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, ["variable", "time", "type", "attributes"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, parts.map(({ variable, event }) => h("tr", {},
        h("th", { scope: "row" }, h("code", {}, variable)), h("td", { class: "moment" }, when(event[time])),
        h("td", {}, String(event[type] ?? "")), h("td", {}, attributesOf(event, time, type)))))));
}

export function row(match) {
  return { query: match.query, match_start: stamp(match.start), match_end: stamp(match.end), events: match.events, values: match.values };
}

const stamp = (value) => (typeof value === "number" && value > 1e11 ? new Date(value).toISOString() : value);

export async function openMatch(match, go) {
  const trial = state.trials.find((one) => one.number === match.trial);
  const rule = match.trial && trial ? { ...trial, title: match.title } : state.rules.get(match.query);
  const drawn = h("div", { class: "drawn" }, h("p", { class: "hint" }, "Drawing the timeline."));
  const dialog = h("dialog", { class: "detail", "aria-labelledby": "detail-title", onclose: () => dialog.remove() },
    h("div", { class: "head" },
      h("h2", { id: "detail-title" }, match.title),
      h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    h("p", {}, h("span", { class: `severity ${match.severity}` }, match.severity),
      ` from ${when(match.start)} to ${when(match.end)}`,
      match.workers.length ? `, worker ${match.workers.join(", ")}` : "", match.rooms.length ? `, in ${match.rooms.join(", ")}` : ""),
    h("h3", {}, "The events that make it"), eventTable(match.events, "Events of the match"),
    Object.keys(match.values).length ? h("p", {}, attributesOf(match.values)) : null,
    h("h3", {}, "On a timeline"), drawn,
    rule ? [h("h3", {}, "The rule"), h("pre", { class: "query", tabindex: "0", role: "group", "aria-label": "The rule" }, highlighted(rule.text))] : null,
    h("p", { class: "actions" },
      rule ? h("button", { type: "button", class: "primary", onclick: () => leave(`/queries?rule=${encodeURIComponent(match.query)}`) }, "Edit this rule") : null,
      rule ? h("button", { type: "button", onclick: () => leave(`/matches?rule=${encodeURIComponent(match.query)}`) }, "Ask about other events") : null));

  function leave(address) {
    dialog.close();
    go(address);
  }

  document.body.append(dialog);
  dialog.showModal();
  if (!rule) {
    replace(drawn, h("p", { class: "hint" }, "Its rule is not among those of the job."));
    return;
  }
  const answer = await ask("timeline", { text: rule.text, rows: [row(match)], data: "live" });
  replace(drawn, answer.ok ? timeline(answer.timeline, "Timeline of the match") : h("p", { class: "problem" }, answer.error));
}
