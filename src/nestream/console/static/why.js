// The answer to "why did this not match?": for each alternative what stops the events, where in the query it is
// written, and the very events that are to blame. Of a match: what its negations and groups looked at.

import { attributesOf, h, when } from "./dom.js";
import { highlighted } from "./highlight.js";

const KINDS = {
  type: "type", predicate: "predicate", order: "order", window: "window", negation: "negation", group: "group", missing: "missing event", keep: "keep", limit: "limit", output: "output",
};

export function answered(found, query, columns) {
  const { why, first } = found;
  const event = (place) => {
    const known = why.events?.[place] ?? {};
    return h("li", {}, h("strong", {}, String(known[columns.type] ?? "event")), ` ${when(known[columns.time])} `, attributesOf(known, columns.time, columns.type), h("span", { class: "detail" }, ` #${place + first}`));
  };
  if (why.matched) {
    const variables = why.match?.variables ?? why.match ?? {};
    return [
      h("p", { class: "verdict", "data-state": "fine" }, "They are part of a match."),
      h("ul", {}, Object.values(variables).filter((place) => typeof place === "number").map(event)),
      why.evidence?.length ? h("ol", { class: "obstacles" }, why.evidence.map((told) => reason(told, query, event))) : null,
    ];
  }
  return [
    h("p", { class: "verdict", "data-state": "wrong" }, "They are no match."),
    why.alternatives.map((alternative, at) => h("section", { class: "alternative" },
      why.alternatives.length > 1 ? h("h3", {}, `Alternative ${at + 1}`) : null,
      h("p", { class: "hint" }, assigned(alternative, why, columns)),
      h("ol", { class: "obstacles" }, alternative.obstacles.map((obstacle) => reason(obstacle, query, event))))),
    why.left_out ? h("p", { class: "hint" }, `${why.left_out} more alternatives were not looked at.`) : null,
  ];
}

// An obstacle, or what a negation or a group of a match looked at: its sentence, its place in the query, its events.
function reason(told, query, event) {
  const more = told.events.length - 20 + (told.more > 0 ? told.more : 0);
  return h("li", { class: told.kind },
    h("span", { class: "kind" }, KINDS[told.kind] ?? told.kind), " ", h("span", {}, told.text),
    told.span ? h("pre", { class: "query", tabindex: "0", role: "group", "aria-label": "Where the query says so" }, excerpt(query, told.span)) : null,
    told.events.length ? h("ul", {}, told.events.slice(0, 20).map(event), more > 0 ? h("li", {}, `and ${more} more`) : null) : null);
}

function assigned(alternative, why, columns) {
  const taken = Object.entries(alternative.assignment).map(([name, place]) => `${name} is the ${why.events?.[place]?.[columns.type] ?? "event"} at ${when(why.events?.[place]?.[columns.time])}`);
  const missing = alternative.missing.length ? `not picked: ${alternative.missing.join(", ")}` : null;
  return [...taken, missing].filter(Boolean).join("; ");
}

// The lines of the query that the span lies in, with the span marked.
function excerpt(query, given) {
  const [start, end] = Array.isArray(given) ? given : [given.start, given.end];
  const characters = [...query];
  let from = start;
  while (from > 0 && characters[from - 1] !== "\n") from -= 1;
  let to = Math.max(end, start);
  while (to < characters.length && characters[to] !== "\n") to += 1;
  return highlighted(characters.slice(from, to).join(""), [[start - from, end - from, "blamed"]]);
}
