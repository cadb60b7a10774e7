// The filter of Overview and Matches: `user:u5 amount>500 severity:high "no entry"`. All terms must hold. A term with the name
// of an attribute holds if an event of the match, or a value, has it; a word alone if it is anywhere in the match.

import { state } from "./store.js";

const TERM = /(?<name>[^\s:<>=!"]+)(?<operator>>=|<=|!=|:|=|>|<)(?:"(?<quoted>[^"]*)"|(?<bare>[^\s"]*))|"(?<phrase>[^"]*)"|(?<word>\S+)/gu;
// What was said of a match: open, acknowledged, or false-alarm, which is one word so that a term can name it.
export const statusOf = (match) => (state.annotations[match.id]?.status ?? "open").replace(" ", "-");

const OWN = { rule: "query", query: "query", severity: "severity", title: "title" };
const ORDER = { ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b };

export function parsed(written) {
  return [...written.matchAll(TERM)].map(({ groups }) => (groups.name === undefined
    ? { word: (groups.phrase ?? groups.word).toLowerCase() }
    : { name: groups.name, operator: groups.operator, wanted: groups.quoted ?? groups.bare ?? "" }));
}

// What a person may want to know of a filter: terms that are not finished, and attributes that no match has.
export function remarks(terms, matches) {
  const unfinished = terms.filter((term) => term.name && !term.wanted).map((term) => `${term.name}${term.operator} needs a value`);
  if (!matches.length) return unfinished;
  const known = new Set([...Object.keys(OWN), "status", ...matches.flatMap((match) => [...Object.keys(match.values), ...match.events.flatMap((part) => Object.keys(part.event))])]);
  const unknown = terms.filter((term) => term.name && !known.has(term.name)).map((term) => `no match has an attribute ${term.name}`);
  return [...unfinished, ...unknown];
}

export function accepts(terms, match) {
  return terms.every((term) => (term.name === undefined ? mentions(match, term.word) : term.wanted === "" || holds(term, match)));
}

function holds(term, match) {
  const values = term.name === "status" ? [statusOf(match)] : term.name in OWN ? [match[OWN[term.name]]] : valuesOf(match, term.name);
  const equal = values.some((value) => same(value, term.wanted));
  if (term.operator === ":" || term.operator === "=") return equal;
  if (term.operator === "!=") return values.length > 0 && !equal;
  return values.some((value) => compared(value, term.wanted, ORDER[term.operator]));
}

const valuesOf = (match, name) => [...match.events.map((part) => part.event[name]), match.values[name]].filter((value) => value !== null && value !== undefined);
const same = (value, wanted) => String(value).toLowerCase() === wanted.toLowerCase() || (value !== "" && wanted !== "" && Number(value) === Number(wanted));

function compared(value, wanted, order) {
  const numbers = [Number(value), Number(wanted)];
  return numbers.some(Number.isNaN) ? order(String(value), wanted) : order(...numbers);
}

function mentions(match, word) {
  return [match.title, match.query, match.severity].some((own) => own.toLowerCase().includes(word))
    || [match.values, ...match.events.map((part) => part.event)].some((event) => Object.values(event).some((value) => String(value).toLowerCase().includes(word)));
}

// A term for a value, to be added to a filter.
export const termOf = (name, value) => `${name}:${/[\s"]|^$/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`;

// What one could write, as a hint in the empty field.
export function example() {
  const facets = state.job?.facets ?? [];
  return facets.length ? `such as ${facets.slice(0, 2).map((name) => `${name}:…`).join(" ")}` : "such as user:u5 amount>500";
}
