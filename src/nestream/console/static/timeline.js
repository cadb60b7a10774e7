// A timeline as SVG: one lane an event type, the events of a match joined, the intervals of its negations shaded. The
// events that its negations looked at are faded, the members of a group a row of dots under a bracket, and sentences
// below say what was missing or out of order.

import { h, millis, number, s, showing, when } from "./dom.js";

const LEFT = 150;
const RIGHT = 24;
const LANE = 42;
const TOP = 34;
const WIDTH = 900;
const MOST_MATCHES = 12;
const LABELLED = 4;
const APART = 44;
const WIDEST = 3;

export function timeline(found, caption = "Timeline") {
  const matches = found.matches.slice(0, MOST_MATCHES);
  const at = new Map(found.events.map((event) => [event.id, event]));
  const owner = owners(matches);
  const events = found.events.filter((event) => owner.has(event.id) || found.events.length <= 200).slice(0, 400);
  const lanes = found.lanes.filter((lane) => events.some((event) => event.lane === lane) || found.lanes.length <= 12);
  const scale = scaled(found, matches, at, owner);
  if (!scale || !lanes.length) return h("p", { class: "hint" }, "There is nothing to draw.");
  const { x, first, length } = scale;
  const y = (lane) => TOP + lanes.indexOf(lane) * LANE + LANE / 2;
  const height = TOP + lanes.length * LANE + 26;
  const drawing = s("svg", { class: "timeline", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": described(matches, at) });
  for (const match of matches) for (const part of match.intervals) shade(drawing, part, scale, height, matches.length);
  for (const lane of lanes) {
    drawing.append(s("line", { class: "lane", x1: LEFT, x2: WIDTH - RIGHT, y1: y(lane), y2: y(lane) }),
      s("text", { class: "lane-name", x: LEFT - 10, y: y(lane) + 4 }, shortened(lane, 20), s("title", {}, lane)));
  }
  ticks(drawing, first, length, height);
  matches.forEach((match, place) => {
    const places = [...new Set([...Object.values(match.variables), ...Object.values(match.hidden ?? {})])].map((id) => at.get(id))
      .filter((event) => event && lanes.includes(event.lane)).sort((a, b) => millis(a.ts) - millis(b.ts));
    const points = places.map((event) => `${x(event.ts).toFixed(1)},${y(event.lane).toFixed(1)}`).join(" ");
    drawing.append(s("polyline", { class: `joined match-${place % 6}`, points }));
    for (const [variable, ids] of Object.entries(match.groups ?? {})) bracket(drawing, match, variable, ids.map((id) => at.get(id)), { x, y, lanes }, place, matches.length);
  });
  const last = new Map();
  for (const event of events.filter((one) => lanes.includes(one.lane)).sort((a, b) => millis(a.ts) - millis(b.ts))) {
    const place = x(event.ts);
    if (place < LEFT || place > WIDTH - RIGHT + 4) continue;
    const own = owner.get(event.id);
    const label = own?.names.length && matches.length <= LABELLED ? own.names.join(", ") : null;
    const numbered = own && event.number !== null && matches.length <= LABELLED && place - (last.get(event.lane) ?? -APART) >= APART;
    if (numbered) last.set(event.lane, place);
    drawing.append(s("g", { class: own ? `event ${own.role} match-${own.match % 6}` : "event" },
      s("circle", { cx: place.toFixed(1), cy: y(event.lane), r: { used: 6, looked: 5, member: 4 }[own?.role] ?? 3 }),
      label ? s("text", { x: place.toFixed(1), y: y(event.lane) - 10 }, label) : null,
      numbered ? s("text", { class: "number", x: place.toFixed(1), y: y(event.lane) + 16 }, event.number) : null,
      s("title", {}, titled(event))));
  }
  const total = found.matches.length + (found.left_out?.matches ?? 0);
  return h("figure", { class: "timeline-figure" },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, drawing),
    h("figcaption", {}, evidence(matches), notes(matches), (found.notes ?? []).map((note) => h("p", { class: "hint" }, note)),
      total > matches.length || found.more ? h("p", { class: "hint" }, showing(matches.length, total, "matches", found.more)) : null));
}

// What each event is: of a match, a member of a group, or one that a negation looked at; and of which match.
function owners(matches) {
  const owner = new Map();
  const add = (id, role, match, name) => {
    const known = owner.get(id);
    if (!known) owner.set(id, { role, match, names: name ? [name] : [] });
    else if (name && !known.names.includes(name)) known.names.push(name);
  };
  matches.forEach((match, place) => {
    for (const [name, id] of Object.entries(match.variables)) add(id, "used", place, name);
    for (const [name, id] of Object.entries(match.hidden ?? {})) add(id, "hidden", place, name);
  });
  matches.forEach((match, place) => Object.values(match.groups ?? {}).flat().forEach((id) => add(id, "member", place)));
  matches.forEach((match, place) => match.intervals.forEach((part) => (part.events ?? []).forEach((id) => add(id, "looked", place))));
  return owner;
}

// The times that are drawn. An interval that reaches far beyond the events is cut off, so that these keep their room.
function scaled(found, matches, at, owner) {
  const known = (values) => values.map(millis).filter((value) => value !== null);
  const times = known([...[...owner.keys()].map((id) => at.get(id)?.ts ?? null), ...matches.flatMap((match) => [match.start, match.end])]);
  if (!times.length) return null;
  let [first, final] = [Math.min(...times), Math.max(...times)];
  const width = final - first;
  const ends = known(matches.flatMap((match) => match.intervals.flatMap((part) => [part.from, part.to])).filter((end) => end !== null));
  let [low, high] = [Math.min(first, ...ends), Math.max(final, ...ends)];
  if (width && high - low > WIDEST * width) [low, high] = [Math.max(low, first - width / 2), Math.min(high, final + width / 2)];
  const length = high - low || 1;
  const x = (value) => LEFT + 8 + ((millis(value) - low) / length) * (WIDTH - LEFT - RIGHT - 16);
  const within = (value) => Math.min(Math.max(millis(value), low), high);
  return { x, first: low, length, ends: (part) => [x(part.from === null ? low : within(part.from)), x(part.to === null ? high : within(part.to))] };
}

function shade(drawing, part, scale, height, many) {
  const [from, to] = scale.ends(part);
  drawing.append(s("rect", {
    class: many > 3 ? "absent faint" : "absent", x: from.toFixed(1), y: TOP - 6, height: height - TOP - 14,
    width: Math.max(3, to - from).toFixed(1), rx: 3,
  }, s("title", {}, part.text ?? `no ${bare(part.negation)}`)));
  if (many > 3) return;
  const late = from > WIDTH / 2;
  const more = part.more ? ` (and ${number(part.more)} more)` : "";
  drawing.append(s("text", { class: "absent-name", "text-anchor": late ? "end" : "start", x: (late ? to : from).toFixed(1), y: TOP - 12 },
    shortened(`no ${bare(part.negation)}`, 90) + more));
}

// The members of a group: a bracket over their dots in each lane, with the name of the group and how many are left out.
function bracket(drawing, match, variable, members, { x, y, lanes }, place, many) {
  const counted = match.counts?.[variable.split(".")[0]];
  for (const lane of new Set(members.filter(Boolean).map((event) => event.lane))) {
    if (!lanes.includes(lane)) continue;
    const places = members.filter((event) => event?.lane === lane).map((event) => x(event.ts));
    const [from, to, top] = [Math.min(...places) - 6, Math.max(...places) + 6, y(lane) - 11];
    drawing.append(s("path", { class: `bracket match-${place % 6}`, d: `M${from.toFixed(1)} ${top + 4} V${top} H${to.toFixed(1)} V${top + 4}` },
      s("title", {}, `${variable}: ${counted?.text ?? `${members.length} events`}`)));
    if (many > LABELLED) continue;
    const rest = counted?.more ? ` and ${number(counted.more)} more` : "";
    drawing.append(s("text", { class: "group-name", x: ((from + to) / 2).toFixed(1), y: top - 3 }, `${variable}${rest}`));
  }
}

function ticks(drawing, first, length, height) {
  for (let step = 0; step <= 4; step += 1) {
    const place = LEFT + 8 + (step / 4) * (WIDTH - LEFT - RIGHT - 16);
    drawing.append(s("line", { class: "tick", x1: place, x2: place, y1: TOP - 6, y2: height - 20 }),
      s("text", { class: "time", x: place, y: height - 6, "text-anchor": step === 4 ? "end" : step ? "middle" : "start" }, when(first + (length * step) / 4)));
  }
}

// A sentence for each negation and group: what was missing or out of order.
function evidence(matches) {
  const told = matches.flatMap((match, place) => (match.told ?? []).map((sentence) => h("li", { class: `match-${place % 6}` }, sentence)));
  return told.length ? h("ul", { class: "evidence", "aria-label": "What the negations and groups looked at" }, told.slice(0, MOST_MATCHES)) : null;
}

function notes(matches) {
  const absent = [...new Set(matches.flatMap((match) => match.intervals.map((part) => bare(part.negation))))];
  return absent.length ? h("p", {}, "Shaded: where there was no ", absent.slice(0, 4).map((words, at) => [at ? ", " : "", h("code", {}, words)])) : null;
}

function described(matches, at) {
  return "Timeline. " + matches.slice(0, 3).map((match) => [match.events.map((id) => at.get(id)).filter(Boolean)
    .map((event) => `${event.lane} at ${when(event.ts)}`).join(", then "), ...(match.told ?? [])].join(". ")).join("; ");
}

function titled(event) {
  const attributes = Object.entries(event.attributes ?? {}).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value}`).join(", ");
  return `${event.number === null || event.number === undefined ? "" : `#${event.number}: `}${event.lane} at ${when(event.ts)}${attributes ? `, ${attributes}` : ""}`;
}

const bare = (negation) => negation.replace(/^(?:!|NOT)\s*/i, "");
const shortened = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);
