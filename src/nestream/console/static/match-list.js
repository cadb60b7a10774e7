// The newest matches as a list, which can be held still to read it.

import { attributesText, h, isolated, number, replace, text, when } from "./dom.js";
import { state } from "./store.js";
import { openMatch } from "./detail.js";
import { statusOf } from "./filter.js";

const MOST_SHOWN = 60;

export function matchList(go) {
  let held = null;
  let shown = [[], false];
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: hold }, "Pause list");
  const count = h("p", { class: "hint" });
  const list = h("ol", { class: "violations", "aria-label": "Matches, the newest first" });
  const element = h("section", { class: "panel", "aria-labelledby": "newest-title" },
    h("div", { class: "head" }, h("h2", { id: "newest-title" }, "Newest matches"), pause), count, list);

  function hold() {
    held = held ? null : shown[0];
    pause.setAttribute("aria-pressed", String(Boolean(held)));
    text(pause, held ? "Go on" : "Pause list");
    show(...shown);
  }

  function show(found, filtered) {
    shown = [found, filtered];
    const some = (held || found).slice(-MOST_SHOWN).reverse();
    const all = filtered ? found.length : state.totals.matches || 0;
    text(count, `${number(all)} ${filtered ? "of those held match the filter" : "since the start"}` + (all > MOST_SHOWN ? `, the last ${MOST_SHOWN} shown` : ""));
    const before = new Map([...list.children].map((item) => [item.dataset.key, item]));
    const items = some.map((match) => before.get(keyOf(match)) || item(match));
    items.forEach((child, at) => {
      if (list.children[at] !== child) list.insertBefore(child, list.children[at] || null);
    });
    while (list.children.length > items.length) list.lastChild.remove();
    if (!items.length) replace(list, h("li", { class: "hint", "data-key": "none" }, filtered ? "None yet. Clear the filter to see all." : "None yet."));
  }

  function item(match) {
    return h("li", { "data-key": keyOf(match), class: "new" },
      h("button", { type: "button", class: `violation ${match.severity}`, onclick: () => openMatch(match, go) },
        h("span", { class: "severity" }, match.severity), h("bdi", { class: "title" }, match.title),
        statusOf(match) === "open" ? null : h("span", { class: "said" }, state.annotations[match.id].status),
        h("span", { class: "where" }, `${when(match.end)} · ${about(match)}`)));
  }

  return { element, show };
}

const keyOf = (match) => `${match.number} ${statusOf(match)}`;

// Whom a match is about, and where it came to its end; without such attributes, what its last event holds.
export function about(match) {
  const { entity, place, time, type } = state.job ?? {};
  const last = match.events.length ? match.events[match.events.length - 1].event : match.values;
  const where = place ? match.places[match.places.length - 1] : null;
  const whom = match.entities.length ? `${entity} ${match.entities.map((name) => isolated(name)).join(", ")}` : null;
  const rest = place ? where && isolated(where) : isolated(attributesText(last, time, type, entity), 90);
  return [whom, rest].filter(Boolean).join(" · ");
}
