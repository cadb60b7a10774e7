// The floor plan as SVG: rooms, and in them the workers, each with a shape, a colour and its number.
// How many are drawn is bounded by what the rooms have space for; the rest of a room is told as a number.

import { h, replace, s, text } from "./dom.js";

const CELL = 2.3;
const STATES = ["violation", "due", "clean", "unknown"];
export const STATE_NAMES = {
  clean: "clean hands", due: "hygiene due", violation: "in violation", unknown: "not seen yet",
};

function shape(name) {
  if (name === "clean") return s("circle", { r: 0.95, class: "mark" });
  if (name === "due") return s("path", { d: "M0 -1.25 L1.25 0 L0 1.25 L-1.25 0 Z", class: "mark" });
  if (name === "violation") return s("path", { d: "M-0.95 -0.95 H0.95 V0.95 H-0.95 Z", class: "mark" });
  return s("circle", { r: 0.8, class: "mark" });
}

export function legend() {
  return h("ul", { class: "legend", "aria-label": "Legend" }, ["clean", "due", "violation"].map((name) =>
    h("li", {}, s("svg", { viewBox: "-1.5 -1.5 3 3", width: 18, height: 18, "aria-hidden": "true" },
      s("g", { class: `worker ${name}` }, shape(name))), STATE_NAMES[name])));
}

export class Floor {
  constructor(plan, chosen) {
    this.drawn = new Map();
    this.rooms = new Map();
    const rooms = s("g", {});
    this.people = s("g", { class: "people" });
    for (const room of plan.rooms) {
      const narrow = room.w < 4 + 0.65 * room.name.length;
      const badge = s("text", { x: room.x + room.w - 0.5, y: room.y + (narrow ? 2.9 : 1.5), class: "badge" });
      const more = s("text", { x: room.x + room.w - 0.5, y: room.y + room.h - 0.5, class: "more" });
      const box = s("rect", { x: room.x + 0.15, y: room.y + 0.15, width: room.w - 0.3, height: room.h - 0.3, rx: 0.4 });
      const group = s("g", { class: `room ${room.kind}`, onclick: () => chosen(room.name) },
        s("title", {}, room.name), box,
        s("text", { x: room.x + 0.6, y: room.y + 1.5, class: "name" }, room.name), badge, more);
      // In a low room the workers stand beside its name, in others below it.
      const low = room.h < 2 + CELL;
      const step = low ? 1.95 : CELL;
      const left = low ? room.x + 0.9 + 0.6 * room.name.length : room.x + 0.4;
      const top = low ? room.y + (room.h - CELL) / 2 : room.y + (narrow ? 3.2 : 2);
      const across = Math.max(1, Math.floor((room.x + room.w - 0.3 - left) / step));
      const down = Math.max(1, Math.floor((room.y + room.h - top) / CELL));
      this.rooms.set(room.name, { group, badge, more, left, top, step, across, space: across * down, shown: [] });
      rooms.append(group);
    }
    this.summary = s("desc", {}, "");
    this.element = s("svg", {
      class: "floor", viewBox: `-0.5 -0.5 ${plan.width + 1} ${plan.height + 1}`, role: "img",
      "aria-label": `Floor plan: ${plan.title}`,
    }, this.summary, rooms, this.people);
  }

  // `workers` are rows of name, room, state, time; `counts` the violations of each room, `recent` rooms with new ones.
  show(workers, counts, area, recent) {
    for (const place of this.rooms.values()) place.shown = [];
    let hidden = 0;
    const totals = { clean: 0, due: 0, violation: 0, unknown: 0 };
    for (const row of workers) {
      totals[row[2]] = (totals[row[2]] || 0) + 1;
      const place = this.rooms.get(row[1]);
      if (place) place.shown.push(row);
      else hidden += 1;
    }
    const kept = new Set();
    for (const [name, place] of this.rooms) this.room(name, place, counts[name] || 0, area === name, recent.has(name), kept);
    for (const [name, mark] of this.drawn) {
      if (!kept.has(name)) {
        mark.element.remove();
        this.drawn.delete(name);
      }
    }
    text(this.summary, Object.entries(STATE_NAMES).map(([key, name]) => `${totals[key]} ${name}`).join(", "));
    return { totals, hidden };
  }

  room(name, place, count, chosen, recent, kept) {
    const { left, top, step, across, space } = place;
    const crowded = place.shown.length > space;
    if (crowded) place.shown.sort((a, b) => STATES.indexOf(a[2]) - STATES.indexOf(b[2]) || a[0].localeCompare(b[0]));
    else place.shown.sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
    const some = crowded ? place.shown.slice(0, Math.max(space - 1, 1)) : place.shown;
    some.forEach((row, at) => {
      this.mark(row, left + step / 2 + (at % across) * step, top + CELL / 2 + Math.floor(at / across) * CELL);
      kept.add(row[0]);
    });
    text(place.more, crowded ? `+${place.shown.length - some.length}` : "");
    text(place.badge, count ? String(count) : "");
    place.group.classList.toggle("violated", recent);
    place.group.classList.toggle("chosen", chosen);
  }

  mark([name, , state], x, y) {
    let mark = this.drawn.get(name);
    if (!mark) {
      const element = s("g", {}, s("title", {}, ""), s("text", { class: "number" }, name.slice(0, 4)));
      mark = { element, state: null, at: "" };
      this.drawn.set(name, mark);
      this.people.append(element);
    }
    if (mark.state !== state) {
      mark.element.querySelector(".mark")?.remove();
      mark.element.querySelector("title").after(shape(state));
      mark.element.setAttribute("class", `worker ${state}`);
      text(mark.element.querySelector("title"), `worker ${name}: ${STATE_NAMES[state] || state}`);
      mark.state = state;
    }
    const at = `translate(${x.toFixed(2)}px, ${y.toFixed(2)}px)`;
    if (mark.at !== at) {
      mark.element.style.transform = at;
      mark.at = at;
    }
  }
}

export function noFloor(element) {
  replace(element, h("p", { class: "hint" }, "This job has no floor plan; violations and statistics are shown without one."));
}
