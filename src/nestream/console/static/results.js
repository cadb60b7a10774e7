// Matches as a table, of a run or of the live stream: one row a match, the events of its variables in columns.

import { attributesOf, h, number, showing, when } from "./dom.js";

export const leftOut = (found) => (found.left_out ? ` (${number(found.left_out)} without time or type left out)` : "");

// What a person may want to know of a run: types that the query names and no event has.
export const notes = (found) => (found.notes?.length ? h("ul", { class: "hint" }, found.notes.map((told) => h("li", {}, told))) : null);

const MOST_SHOWN = 100;

export function matchTable(rows, columns, caption, pick = null, all = { total: rows.length }) {
  if (!rows.length) return h("p", { class: "hint" }, "No matches.");
  const shown = rows.slice(0, MOST_SHOWN);
  const variables = [...new Set(shown.flatMap((row) => row.events.map((part) => part.variable)))].slice(0, 12);
  const values = [...new Set(shown.flatMap((row) => Object.keys(row.values)))].slice(0, 12);
  return h("div", {},
    h("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": caption },
      h("table", {}, h("caption", { class: "visually-hidden" }, caption),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"), h("th", { scope: "col" }, "from"), h("th", { scope: "col" }, "to"),
          variables.map((name) => h("th", { scope: "col" }, h("code", {}, name))), values.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, shown.map((row, at) => h("tr", {},
          h("th", { scope: "row" }, pick ? h("button", { type: "button", class: "link", "aria-label": `Show match ${at + 1} on the timeline`, onclick: () => pick(row) }, at + 1) : at + 1),
          h("td", { class: "moment" }, when(row.match_start)), h("td", { class: "moment" }, when(row.match_end)),
          variables.map((name) => {
            const part = row.events.find((one) => one.variable === name);
            return h("td", {}, part ? [h("strong", {}, String(part.event[columns.type] ?? "")), ` ${when(part.event[columns.time])} `, h("span", { class: "detail" }, attributesOf(part.event, columns.time, columns.type))] : "–");
          }),
          values.map((name) => h("td", {}, String(row.values[name] ?? "–")))))))),
    all.total > shown.length || all.more ? h("p", { class: "hint" }, showing(shown.length, all.total, "matches", all.more)) : null);
}
