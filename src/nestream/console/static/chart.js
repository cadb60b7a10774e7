// Charts over time as SVG: bars by series or a line, with axes, a threshold, and the values under the pointer or the arrow keys.

import { h, number, replace, s, text } from "./dom.js";

const WIDTH = 640;
const LEFT = 58;
const RIGHT = 10;
const TOP = 12;
const BOTTOM = 22;
export const COLOURS = 8;

// `draw` is given { points: [{ at, values: { name: value } }], from, to, names, width, threshold, unit, time }: bars where there
// is a `width` (of a bar, in the unit of the times), a line where there is none.
export class Chart {
  constructor(label, { height = 150, show = (value) => number(value, value < 10 ? 2 : 0), title = (name) => name } = {}) {
    this.height = height;
    this.show = show;
    this.title = title;
    this.at = null;
    this.width = WIDTH;
    this.body = s("g", {});
    this.cursor = s("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
    this.drawing = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, height, preserveAspectRatio: "none", role: "img", tabindex: "0", "aria-label": label },
      this.body, this.cursor);
    this.told = h("p", { class: "hint reading", "aria-live": "off" }, "\u00a0");
    this.element = h("div", { class: "chart-box" }, this.drawing, this.told);
    this.label = label;
    // Drawn in pixels, so that words are as large on a narrow screen.
    new ResizeObserver(() => {
      const wide = Math.round(this.drawing.clientWidth);
      if (!wide || wide === this.width) return;
      this.width = wide;
      this.drawing.setAttribute("viewBox", `0 0 ${wide} ${height}`);
      if (this.given) this.draw(this.given);
    }).observe(this.drawing);
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => this.read(null));
    this.drawing.addEventListener("keydown", (event) => this.step(event));
    this.drawing.addEventListener("blur", () => this.read(null));
  }

  draw(given) {
    this.given = given;
    const { points, names, from, to, width, threshold } = given;
    const tops = points.map((point) => (width ? names.reduce((sum, name) => sum + (point.values[name] || 0), 0) : Math.max(0, ...names.map((name) => point.values[name] ?? 0))));
    const { most, ticks } = scale(Math.max(threshold ?? 0, ...tops));
    const bottom = this.height - BOTTOM;
    this.x = (at) => LEFT + ((at - from) / (to - from || 1)) * (this.width - LEFT - RIGHT);
    this.y = (value) => bottom - (value / most) * (bottom - TOP);
    const parts = ticks.map((tick) => [
      s("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: this.y(tick), y2: this.y(tick) }),
      s("text", { class: "axis", x: LEFT - 6, y: this.y(tick) + 4, "text-anchor": "end" }, this.show(tick))]);
    const steps = Math.max(1, Math.min(4, Math.floor((this.width - LEFT - RIGHT) / 85)));
    for (let step = 0; step <= steps; step += 1) {
      const at = from + ((to - from) * step) / steps;
      parts.push(s("text", { class: "axis", x: this.x(at), y: this.height - 6, "text-anchor": step === steps ? "end" : step ? "middle" : "start" }, given.time(at)));
    }
    parts.push(width ? this.bars(points, names, width) : names.map((name, at) => this.line(points, name, at)));
    if (threshold) parts.push(s("line", { class: "threshold", x1: LEFT, x2: this.width - RIGHT, y1: this.y(threshold), y2: this.y(threshold) }));
    if (!points.length) parts.push(s("text", { class: "axis", x: this.width / 2, y: this.height / 2, "text-anchor": "middle" }, "nothing yet"));
    replace(this.body, parts.flat(Infinity));
    const last = points[points.length - 1];
    this.drawing.setAttribute("aria-label", last ? `${this.label}. Last: ${this.said(last)}` : this.label);
    this.read(this.at === null ? null : Math.min(this.at, points.length - 1));
  }

  bars(points, names, width) {
    return points.flatMap((point) => {
      let sum = 0;
      return names.map((name, at) => {
        const value = point.values[name] || 0;
        if (!value) return null;
        sum += value;
        const left = Math.max(LEFT, this.x(point.at));
        return s("rect", { class: `series series-${at % COLOURS}`, x: left.toFixed(1), y: this.y(sum).toFixed(1), height: Math.max(0.5, this.y(sum - value) - this.y(sum)).toFixed(1),
          width: Math.max(1, this.x(point.at + width) - left - 0.6).toFixed(1) });
      }).filter(Boolean);
    });
  }

  line(points, name, at) {
    const known = points.filter((point) => point.values[name] !== null && point.values[name] !== undefined);
    return s("polyline", { class: `series series-${at % COLOURS}`, points: known.map((point) => `${this.x(point.at).toFixed(1)},${this.y(point.values[name]).toFixed(1)}`).join(" ") });
  }

  said(point) {
    const { names, time } = this.given;
    const values = names.filter((name) => point.values[name] !== null && point.values[name] !== undefined && (names.length === 1 || point.values[name]));
    return `${time(point.at, true)}: ${values.map((name) => (names.length === 1 && !name ? this.show(point.values[name]) : `${this.title(name)} ${this.show(point.values[name])}`)).join(", ") || "none"}`;
  }

  point(event) {
    if (!this.given?.points.length) return;
    const box = this.drawing.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const half = (this.given.width || 0) / 2;
    let best = 0;
    this.given.points.forEach((point, at) => {
      if (Math.abs(this.x(point.at + half) - x) < Math.abs(this.x(this.given.points[best].at + half) - x)) best = at;
    });
    this.read(best);
  }

  step(event) {
    const moved = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!moved || !this.given?.points.length) return;
    event.preventDefault();
    const last = this.given.points.length - 1;
    this.told.setAttribute("aria-live", "polite");
    this.read(Math.max(0, Math.min(last, (this.at ?? last + 1) + moved)));
  }

  read(at) {
    const point = at === null ? null : this.given?.points[at];
    this.at = point ? at : null;
    this.cursor.setAttribute("visibility", point ? "visible" : "hidden");
    if (point) {
      const x = this.x(point.at + (this.given.width || 0) / 2);
      this.cursor.setAttribute("x1", x);
      this.cursor.setAttribute("x2", x);
    }
    text(this.told, point ? this.said(point) : "\u00a0");
  }
}

// A scale from zero to a round number, with a few ticks.
function scale(most) {
  if (!(most > 0)) return { most: 1, ticks: [0] };
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let at = 0; ticks.length < 6; at += 1) {
    ticks.push(at * step);
    if (at * step >= most) break;
  }
  return { most: ticks[ticks.length - 1], ticks };
}

export function key(names, title) {
  return h("ul", { class: "legend", "aria-label": "Legend" }, names.map((name, at) => h("li", {},
    s("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, s("rect", { class: `series series-${at % COLOURS}`, width: 12, height: 12, rx: 2 })), h("bdi", {}, title(name)))));
}
