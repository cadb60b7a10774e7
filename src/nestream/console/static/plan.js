// A plan of the place as SVG: rooms, and in them the entities of the job, each with a shape, a colour and its name; and how often
// rules were kept. How many are drawn is bounded by what the rooms have space for; the rest of a room is told as a number.

import { h, keyed, number, s, text, when } from "./dom.js";
import { state } from "./store.js";
import { accepts } from "./filter.js";

const CELL = 2.3;
const FRESH = 20000;
const STATES = ["violation", "due", "clean", "unknown"];
const byNumber = new Intl.Collator("en", { numeric: true });

// The section of the plan, and the bars of compliance; `toggle` adds a value of an attribute to the filter.
export function plan(job, toggle) {
  const clock = h("p", { class: "clock" });
  const people = h("p", { class: "hint", id: "people" });
  const compliance = h("div", { class: "statistics", id: "compliance" });
  const named = (name) => job.plan.states[name] ?? (name === "unknown" ? "not seen yet" : name);
  const floor = new Floor(job.plan, (room) => toggle(job.place, room), named);
  const element = h("section", { class: "panel", "aria-labelledby": "floor-title" },
    h("div", { class: "head" }, h("h2", { id: "floor-title" }, job.plan.title || "Plan"), clock),
    h("div", { class: "map" }, floor.element), legend(Object.keys(job.plan.states), named), people);

  function show({ found, terms, counts }) {
    const own = terms.filter((term) => [job.entity, job.place].includes(term.name));
    const rows = [...state.workers.values()].filter(([name, room]) => accepts(own, { values: { [job.entity]: name, [job.place]: room }, events: [] }));
    const chosen = own.find((term) => term.name === job.place)?.wanted;
    const { totals } = floor.show(rows, counts, chosen, recent(found));
    text(people, Object.entries(totals).filter(([, many]) => many).map(([key, many]) => `${many} ${named(key)}`).join(" · ")
      + (state.totals.left_out ? " · there are more, who are left out" : ""));
    text(clock, state.totals.latest ? `event time ${when(state.totals.latest)}` : "no events yet");
    complied(compliance, state.statistics.compliance, job);
  }

  return { element, compliance, show };
}

// The rooms of matches that were seen in the last seconds.
function recent(matches) {
  const since = Date.now() - FRESH;
  return new Set(matches.slice(-200).filter((match) => match.seen > since).map((match) => match.places[match.places.length - 1]));
}

// How often rules were kept, of all the times that they applied: the lowest first.
function complied(element, counts, job) {
  const kinds = [["rule", "rule"], [job.place, job.place], [job.entity, job.entity]];
  keyed(element, counts, () => kinds.filter(([kind]) => Object.keys(counts?.[kind] || {}).length).map(([kind, name]) => {
    const rows = Object.entries(counts[kind]).map(([value, [held, broken]]) => [value, held, 1 - broken / held]);
    rows.sort(([a, , x], [b, , y]) => x - y || byNumber.compare(a, b));
    return h("div", {}, h("h3", {}, `compliance by ${name}`), h("div", { class: "bars" }, rows.slice(0, 8).map(([value, held, share]) => {
      const bar = h("span", { class: "bar" });
      bar.style.width = `${100 * share}%`;
      const label = kind === "rule" ? state.rules.get(value)?.title ?? value : value;
      return h("div", { class: "barrow", title: `${label}: ${number(held)} opportunities` }, h("bdi", { class: "name" }, label),
        h("span", { class: "track" }, bar), h("span", { class: "value" }, `${number(100 * share, 1)}%`));
    })));
  }));
}

function shape(name) {
  if (name === "clean") return s("circle", { r: 0.95, class: "mark" });
  if (name === "due") return s("path", { d: "M0 -1.25 L1.25 0 L0 1.25 L-1.25 0 Z", class: "mark" });
  if (name === "violation") return s("path", { d: "M-0.95 -0.95 H0.95 V0.95 H-0.95 Z", class: "mark" });
  return s("circle", { r: 0.8, class: "mark" });
}

function legend(names, named) {
  return h("ul", { class: "legend", "aria-label": "Legend" }, names.map((name) =>
    h("li", {}, s("svg", { viewBox: "-1.5 -1.5 3 3", width: 18, height: 18, "aria-hidden": "true" },
      s("g", { class: `worker ${name}` }, shape(name))), named(name))));
}

class Floor {
  constructor(plan, chosen, named) {
    this.named = named;
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
      "aria-label": `Plan: ${plan.title}`,
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
    text(this.summary, Object.entries(totals).map(([key, many]) => `${many} ${this.named(key)}`).join(", "));
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
      text(mark.element.querySelector("title"), `${name}: ${this.named(state)}`);
      mark.state = state;
    }
    const at = `translate(${x.toFixed(2)}px, ${y.toFixed(2)}px)`;
    if (mark.at !== at) {
      mark.element.style.transform = at;
      mark.at = at;
    }
  }
}
