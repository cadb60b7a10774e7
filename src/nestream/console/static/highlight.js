// The words of a query, coloured by what they are, with the places of diagnostics underlined.

import { h } from "./dom.js";

const WORD = new RegExp([
  "(?<comment>/\\*[^]*?(?:\\*/|$)|//[^\\n]*)",
  "(?<string>'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?)",
  "(?<keyword>\\b(?:PATTERN|EVENT|WHERE|WITHIN|RETURN|LIMIT|SEQ|AND|OR|NOT|ANY|EXISTS|IN|BETWEEN|IS|NULL|TRUE|FALSE|AS|UNBOUNDED|EVENTS)\\b)",
  "(?<quoted>`(?:[^`]|``)*`?)",
  "(?<number>\\b\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?\\b)",
  "(?<negation>[!¬∧∨∃])",
  "(?<name>[\\p{L}_][\\p{L}\\p{N}_]*(?:-[\\p{L}\\p{N}_]+)*)",
].join("|"), "giu");

function words(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(WORD)) {
    if (match.index > at) found.push([null, at, match.index]);
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    found.push([kind === "name" ? null : kind, match.index, match.index + match[0].length]);
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push([null, at, text.length]);
  return found;
}

// Python counts characters, JavaScript counts UTF-16 units: they differ beyond the first plane.
export function offsets(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => Math.min(offset, text.length);
  const places = [];
  let at = 0;
  for (const character of text) {
    places.push(at);
    at += character.length;
  }
  places.push(at);
  return (offset) => places[Math.min(offset, places.length - 1)];
}

// The text as elements; `marks` are pieces [start, end, class] that are underlined, an empty one over a character.
export function highlighted(text, marks = []) {
  const place = offsets(text);
  const spans = marks.map(([start, end, name]) => {
    const from = place(start);
    return [from, Math.max(place(end), from + 1), name];
  });
  const cuts = spans.flatMap(([from, to]) => [from, to]);
  const parts = [];
  for (const [kind, start, end] of words(text)) {
    const edges = [...new Set([start, ...cuts.filter((cut) => cut > start && cut < end), end])].sort((a, b) => a - b);
    for (let at = 0; at + 1 < edges.length; at += 1) {
      const inside = spans.filter(([from, to]) => from <= edges[at] && edges[at + 1] <= to).map(([, , name]) => name);
      const names = [kind && `q-${kind}`, ...inside].filter(Boolean);
      const piece = text.slice(edges[at], edges[at + 1]);
      parts.push(names.length ? h(inside.length ? "mark" : "span", { class: names.join(" ") }, piece) : piece);
    }
  }
  if (spans.some(([from]) => from >= text.length)) parts.push(h("mark", { class: `${spans.find(([from]) => from >= text.length)[2]}` }, " "));
  return parts;
}
