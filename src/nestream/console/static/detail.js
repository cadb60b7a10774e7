// One match, opened: the events that make it, its timeline, its rule, and where to go on from there.

import { attributesOf, h, replace, table, value, when } from "./dom.js";
import { annotationsOf } from "./annotations.js";
import { ask, state } from "./store.js";
import { highlighted } from "./highlight.js";
import { timeline } from "./timeline.js";

function eventTable(parts, caption) {
  const { time, type } = state.job || { time: "ts", type: "type" };
  return table(caption, ["variable", "time", "type", "attributes"], parts.map(({ variable, event }) => [
    h("code", {}, variable), when(event[time]), value(event[type] ?? ""), attributesOf(event, time, type)]), { tall: false });
}

export function row(match) {
  return { query: match.query, match_start: stamp(match.start), match_end: stamp(match.end), events: match.events, values: match.values };
}

export const addressOf = (match) => `/matches?match=${encodeURIComponent(match.id)}`;

const stamp = (value) => (typeof value === "number" && value > 1e11 ? new Date(value).toISOString() : value);

export async function openMatch(match, go, closed = () => {}) {
  const rule = state.rules.get(match.query);
  const drawn = h("div", { class: "drawn" }, h("p", { class: "hint" }, "Drawing the timeline."));
  const said = annotationsOf(match);
  const dialog = h("dialog", { class: "detail", "aria-labelledby": "detail-title", onclose: () => { said.close(); dialog.remove(); closed(); } },
    h("div", { class: "head" },
      h("h2", { id: "detail-title" }, h("bdi", {}, match.title)),
      h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    h("p", {}, h("span", { class: `severity ${match.severity}` }, match.severity),
      ` from ${when(match.start)} to ${when(match.end)}`,
      match.entities.length ? [`, ${state.job.entity} `, value(match.entities.join(", "))] : null,
      match.places.length ? [`, ${state.job.place} `, value(match.places.join(", "))] : null,
      match.version ? `, version ${match.version} of the rule` : null),
    h("h3", {}, "The events that make it"), eventTable(match.events, "Events of the match"),
    Object.keys(match.values).length ? h("p", {}, attributesOf(match.values)) : null,
    h("h3", {}, "On a timeline"), drawn,
    h("h3", {}, "What was said of it"), said.element,
    rule ? [h("h3", {}, "The rule"), h("pre", { class: "query", tabindex: "0", role: "group", "aria-label": "The rule" }, highlighted(rule.text))] : null,
    h("p", { class: "actions" },
      h("a", { class: "button", href: addressOf(match) }, "Address of this match"),
      rule ? h("button", { type: "button", class: "primary", onclick: () => leave(`/queries?rule=${encodeURIComponent(match.query)}`) }, "Edit this rule") : null,
      rule ? h("button", { type: "button", onclick: () => leave(`/matches?rule=${encodeURIComponent(match.query)}`) }, "Ask about other events") : null));

  dialog.addEventListener("click", (event) => { if (event.target.closest("a[href]")) dialog.close(); });

  function leave(address) {
    dialog.close();
    go(address);
  }

  document.body.append(dialog);
  dialog.showModal();
  if (!rule) {
    replace(drawn, h("p", { class: "hint" }, "The job does not have its rule."));
    return;
  }
  const answer = await ask("timeline", { text: rule.text, rows: [row(match)], data: "live" });
  replace(drawn, answer.ok ? timeline(answer.timeline, "Timeline of the match") : h("p", { class: "problem" }, answer.error));
}
