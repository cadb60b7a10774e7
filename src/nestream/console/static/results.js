// Matches as a table, of a run or of the live stream: one row a match, the events of its variables in columns.

import { attributesOf, h, number, showing, table, value, when } from "./dom.js";

export const leftOut = (found) => (found.left_out ? ` (${number(found.left_out)} without time or type left out)` : "");

// What a person may want to know of a run: types that the query names and no event has.
export const notes = (found) => (found.notes?.length ? h("ul", { class: "hint" }, found.notes.map((told) => h("li", {}, told))) : null);

const MOST_SHOWN = 100;

export function matchTable(rows, columns, caption, pick = null, all = { total: rows.length }) {
  if (!rows.length) return h("p", { class: "hint" }, "No matches.");
  const shown = rows.slice(0, MOST_SHOWN);
  const variables = [...new Set(shown.flatMap((row) => row.events.map((part) => part.variable)))].slice(0, 12);
  const values = [...new Set(shown.flatMap((row) => Object.keys(row.values)))].slice(0, 12);
  const heads = ["#", "from", "to", ...variables.map((name) => h("code", {}, name)), ...values];
  const cells = shown.map((row, at) => [
    pick ? h("button", { type: "button", class: "link", "aria-label": `Show match ${at + 1} on the timeline`, onclick: () => pick(row) }, at + 1) : at + 1,
    when(row.match_start), when(row.match_end),
    ...variables.map((name) => {
      const parts = row.events.filter((one) => one.variable === name);
      return parts.length ? parts.slice(0, 5).map((part, place) => [place ? h("br") : null, part.number === undefined || part.number === null ? null : `#${part.number} `, h("strong", {}, value(part.event[columns.type] ?? "")), ` ${when(part.event[columns.time])} `, h("span", { class: "detail" }, attributesOf(part.event, columns.time, columns.type))]) : "–";
    }),
    ...values.map((name) => value(row.values[name]))]);
  return h("div", {}, table(caption, heads, cells),
    all.total > shown.length || all.more ? h("p", { class: "hint" }, showing(shown.length, all.total, "matches", all.more)) : null);
}
