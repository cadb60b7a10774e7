// A plan as a graph: a tree of boxes from the top down, each with its estimated and its measured rows. It opens fitted to its panel;
// buttons zoom. A box whose estimate is far from what was found is marked.

import { h, number, s, text } from "./dom.js";

const BOX = { w: 182, h: 64, gap: 16, rise: 40 };
const MOST_NODES = 200;
const TIMES = 10;
const ZOOM = 1.25;
const LIMITS = [0.1, 4];

export function graph(found, caption) {
  if (found.error) return h("p", { class: "hint" }, found.error);
  const nodes = found.nodes.slice(0, MOST_NODES);
  if (!nodes.length) return h("p", { class: "hint" }, "There is no plan to draw.");
  const known = new Map(nodes.map((node) => [node.id, { node, children: [], parents: 0, x: 0, depth: 0 }]));
  for (const [from, to] of found.edges) {
    if (!known.has(from) || !known.has(to)) continue;
    known.get(from).children.push(known.get(to));
    known.get(to).parents += 1;
  }
  let next = 0;
  const placed = new Set();
  function place(entry, depth) {
    if (placed.has(entry)) return;
    placed.add(entry);
    entry.depth = depth;
    const own = entry.children.filter((child) => !placed.has(child));
    own.forEach((child) => place(child, depth + 1));
    entry.x = own.length ? (own[0].x + own[own.length - 1].x) / 2 : next++;
  }
  const entries = [...known.values()];
  entries.filter((entry) => !entry.parents).forEach((entry) => place(entry, 0));
  entries.forEach((entry) => place(entry, 0));
  const left = (entry) => 8 + entry.x * (BOX.w + BOX.gap);
  const top = (entry) => 8 + entry.depth * (BOX.h + BOX.rise);
  const width = 16 + Math.max(1, next) * (BOX.w + BOX.gap) - BOX.gap;
  const height = 16 + (Math.max(...entries.map((entry) => entry.depth)) + 1) * (BOX.h + BOX.rise) - BOX.rise;
  const drawing = s("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described(nodes, caption) });
  for (const entry of entries) {
    for (const child of entry.children) {
      const [x1, y1] = [left(entry) + BOX.w / 2, top(entry) + BOX.h];
      const [x2, y2] = [left(child) + BOX.w / 2, top(child)];
      drawing.append(s("path", { class: "edge", d: `M${x1} ${y1} C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}` }));
    }
  }
  for (const entry of entries) drawing.append(box(entry.node, left(entry), top(entry)));
  const out = found.nodes.length - nodes.length;
  const off = nodes.filter((node) => timesOff(node) >= TIMES).length;
  const frame = h("div", { class: "scroll graph-frame", tabindex: "0", role: "group", "aria-label": caption }, drawing);
  return h("div", {}, zoomed(drawing, frame, width), frame,
    off ? h("p", { class: "hint off" }, `The estimate of ${off === 1 ? "one box" : `${number(off)} boxes`} is off by ${TIMES} times or more.`) : null,
    out > 0 ? h("p", { class: "hint" }, `${out} more nodes are not drawn.`) : null);
}

// The buttons that zoom. Fitted, a drawing is as wide as its frame at most, and follows it.
function zoomed(drawing, frame, width) {
  const level = h("span", { class: "hint" }, "fitted");
  let scale = null;
  function show(wanted) {
    scale = wanted === null ? null : Math.min(LIMITS[1], Math.max(LIMITS[0], wanted));
    drawing.style.width = scale === null ? `min(100%, ${width}px)` : `${Math.round(width * scale)}px`;
    text(level, scale === null ? "fitted" : `${number(100 * scale)}%`);
  }
  const now = () => scale ?? drawing.getBoundingClientRect().width / width;
  show(null);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    show(now() * (event.deltaY < 0 ? ZOOM : 1 / ZOOM));
  }, { passive: false });
  const button = (label, sign, act) => h("button", { type: "button", "aria-label": label, onclick: act }, sign);
  return h("p", { class: "actions zoom" }, button("Zoom in", "+", () => show(now() * ZOOM)), button("Zoom out", "−", () => show(now() / ZOOM)), button("Fit the plan", "Fit", () => show(null)), level);
}

// How many times an estimate is too high or too low; 1 where there is nothing to compare.
function timesOff(node) {
  const [estimated, measured] = [node.estimated_rows, node.measured_rows];
  if (typeof estimated !== "number" || typeof measured !== "number") return 1;
  return Math.max(estimated + 1, measured + 1) / Math.min(estimated + 1, measured + 1); // a row more or less is nothing
}

function box(node, x, y) {
  const estimated = node.estimated_rows ?? null;
  const measured = node.measured_rows ?? null;
  const rows = [estimated === null ? null : `about ${number(estimated)}`, measured === null ? null : `${number(measured)} found`].filter(Boolean).join(", ");
  const times = timesOff(node);
  const off = times >= TIMES ? `estimate ${number(times)} times ${estimated > measured ? "too high" : "too low"}` : null;
  return s("g", { class: `node ${String(node.kind).replace(/[^a-z-]/gi, "")}${off ? " off" : ""}` },
    s("rect", { x, y, width: BOX.w, height: BOX.h, rx: 8 }),
    s("text", { class: "label", x: x + 12, y: y + 22 }, cut(node.label, 24)),
    s("text", { class: "detail", x: x + 12, y: y + 39 }, cut(node.detail || node.kind, 30)),
    s("text", { class: "rows", x: x + 12, y: y + 55 }, off ? `⚠ ${rows}` : rows),
    s("title", {}, [node.label, node.detail, rows, off].filter(Boolean).join("\n")));
}

const cut = (words, most) => { const all = String(words ?? ""); return all.length > most ? `${all.slice(0, most - 1)}…` : all; };
const described = (nodes, caption) => `${caption}: ${nodes.slice(0, 20).map((node) => node.label).join("; ")}`;
