// A timeline as SVG: one lane an event type, the events of a match joined, the intervals of its negations shaded.

import { h, millis, s, showing, when } from "./dom.js";

const LEFT = 150;
const RIGHT = 24;
const LANE = 38;
const TOP = 34;
const WIDTH = 900;
const MOST_MATCHES = 12;

export function timeline(found, caption = "Timeline") {
  const matches = found.matches.slice(0, MOST_MATCHES);
  const used = new Set(matches.flatMap((match) => match.events));
  const events = found.events.filter((event) => used.has(event.id) || found.events.length <= 200).slice(0, 400);
  const lanes = found.lanes.filter((lane) => events.some((event) => event.lane === lane) || found.lanes.length <= 12);
  const edges = matches.flatMap((match) => [match.start, match.end, ...match.intervals.flatMap((part) => [part.from, part.to])]);
  const times = [...events.map((event) => event.ts), ...edges].map(millis).filter((value) => value !== null);
  if (!times.length || !lanes.length) return h("p", { class: "hint" }, "There is nothing to draw.");
  const first = Math.min(...times);
  const length = Math.max(...times) - first || 1;
  const x = (value) => LEFT + 8 + ((millis(value) - first) / length) * (WIDTH - LEFT - RIGHT - 16);
  const y = (lane) => TOP + lanes.indexOf(lane) * LANE + LANE / 2;
  const height = TOP + lanes.length * LANE + 26;
  const at = new Map(events.map((event) => [event.id, event]));
  const drawing = s("svg", { class: "timeline", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": described(matches, at) });
  for (const match of matches) for (const part of match.intervals) shade(drawing, part, x, first, length, height, matches.length);
  for (const lane of lanes) {
    drawing.append(s("line", { class: "lane", x1: LEFT, x2: WIDTH - RIGHT, y1: y(lane), y2: y(lane) }),
      s("text", { class: "lane-name", x: LEFT - 10, y: y(lane) + 4 }, shortened(lane, 20), s("title", {}, lane)));
  }
  ticks(drawing, first, length, height);
  matches.forEach((match, number) => {
    const places = match.events.map((id) => at.get(id)).filter(Boolean).sort((a, b) => millis(a.ts) - millis(b.ts));
    const points = places.map((event) => `${x(event.ts).toFixed(1)},${y(event.lane).toFixed(1)}`).join(" ");
    drawing.append(s("polyline", { class: `joined match-${number % 6}`, points }));
  });
  for (const event of events) {
    const names = matches.flatMap((match) => Object.entries(match.variables).filter(([, id]) => id === event.id).map(([name]) => name));
    drawing.append(s("g", { class: used.has(event.id) ? "event used" : "event" },
      s("circle", { cx: x(event.ts).toFixed(1), cy: y(event.lane), r: used.has(event.id) ? 6 : 4 }),
      names.length && matches.length <= 4 ? s("text", { x: x(event.ts).toFixed(1), y: y(event.lane) - 10 }, [...new Set(names)].join(", ")) : null,
      s("title", {}, `${event.lane} at ${when(event.ts)}: ${event.label ?? ""}`)));
  }
  const total = found.matches.length + (found.left_out?.matches ?? 0);
  return h("figure", { class: "timeline-figure" },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, drawing),
    h("figcaption", {}, notes(matches), total > matches.length || found.more ? h("p", { class: "hint" }, showing(matches.length, total, "matches", found.more)) : null));
}

function shade(drawing, part, x, first, length, height, many) {
  const from = part.from === null ? first : part.from;
  const to = part.to === null ? first + length : part.to;
  drawing.append(s("rect", {
    class: many > 3 ? "absent faint" : "absent", x: x(from).toFixed(1), y: TOP - 6, height: height - TOP - 14,
    width: Math.max(3, x(to) - x(from)).toFixed(1), rx: 3,
  }, s("title", {}, `no ${bare(part.negation)}`)));
  if (many > 3) return;
  const late = x(from) > WIDTH / 2;
  drawing.append(s("text", { class: "absent-name", "text-anchor": late ? "end" : "start", x: (late ? x(to) : x(from)).toFixed(1), y: TOP - 12 },
    shortened(`no ${bare(part.negation)}`, 100)));
}

function ticks(drawing, first, length, height) {
  for (let step = 0; step <= 4; step += 1) {
    const place = LEFT + 8 + (step / 4) * (WIDTH - LEFT - RIGHT - 16);
    drawing.append(s("line", { class: "tick", x1: place, x2: place, y1: TOP - 6, y2: height - 20 }),
      s("text", { class: "time", x: place, y: height - 6, "text-anchor": step === 4 ? "end" : step ? "middle" : "start" }, when(first + (length * step) / 4)));
  }
}

function notes(matches) {
  const absent = [...new Set(matches.flatMap((match) => match.intervals.map((part) => bare(part.negation))))];
  return absent.length ? h("p", {}, "Shaded: where there was no ", absent.slice(0, 4).map((words, at) => [at ? ", " : "", h("code", {}, words)])) : null;
}

function described(matches, at) {
  return "Timeline. " + matches.slice(0, 3).map((match) => match.events.map((id) => at.get(id)).filter(Boolean)
    .map((event) => `${event.lane} at ${when(event.ts)}`).join(", then ")).join("; ");
}

const bare = (negation) => negation.replace(/^(?:!|NOT)\s*/i, "");
const shortened = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);
