// Completion in the editor: what could be written at the cursor, in a list below it. It opens while a word is typed and on
// Ctrl+Space. Arrow keys choose, Tab takes, Escape closes; Enter takes what was chosen, and is a new line otherwise.

import { h, replace, turns } from "./dom.js";
import { ask } from "./store.js";
import { offsets } from "./highlight.js";

const PATIENCE = 120;
const MOST_SHOWN = 12;

export class Completion {
  constructor(editor) {
    this.editor = editor;
    this.found = [];
    this.at = 0;
    this.isChosen = false;
    this.asking = turns();
    this.list = h("ul", { class: "completions", id: "completions", role: "listbox", "aria-label": "Completions" });
    this.element = this.list;
    this.list.hidden = true;
    const { area } = editor;
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", "completions");
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("input", (event) => this.typed(event));
    area.addEventListener("blur", () => this.close());
    area.addEventListener("click", () => this.close());
  }

  typed(event) {
    clearTimeout(this.timer);
    const { area } = this.editor;
    const before = area.value.slice(0, area.selectionStart);
    const is_word = /^insertText|^deleteContentBackward/.test(event.inputType ?? "") && /[\p{L}_.`$][\p{L}\p{N}_-]*$/u.test(before);
    if (is_word) this.timer = setTimeout(() => this.open(), PATIENCE);
    else this.close();
  }

  async open(isChosen = false) {
    const { area } = this.editor;
    const written = area.value;
    const cursor = area.selectionStart;
    const current = this.asking();
    const answer = await ask("complete", { text: written, offset: [...written.slice(0, cursor)].length, data: this.editor.source() });
    if (!current() || area.value !== written || area.selectionStart !== cursor || document.activeElement !== area) return;
    const place = offsets(written);
    this.found = (answer.completions ?? []).map((one) => ({ ...one, start: place(one.start), end: place(one.end) }))
      .filter((one) => written.slice(one.start, one.end) !== one.insert).slice(0, 100);
    this.at = 0;
    this.isChosen = isChosen;
    this.draw();
  }

  draw() {
    const { area } = this.editor;
    this.list.hidden = !this.found.length;
    if (!this.found.length) {
      area.removeAttribute("aria-activedescendant");
      return;
    }
    const first = Math.max(0, Math.min(this.at - MOST_SHOWN + 1, this.found.length - MOST_SHOWN));
    replace(this.list, this.found.slice(first, first + MOST_SHOWN).map((one, place) => h("li", {
      role: "option", id: `completion-${first + place}`, "aria-selected": String(first + place === this.at), class: `of-${one.kind}`,
      title: one.text || null, onmousedown: (event) => { event.preventDefault(); this.take(first + place); },
    }, h("code", {}, one.label), h("span", { class: "detail" }, `${one.kind}${one.detail && one.detail !== one.kind ? `, ${one.detail}` : ""}`))));
    area.setAttribute("aria-activedescendant", `completion-${this.at}`);
    this.place(this.found[this.at].start);
  }

  // The list stands below the word, where the coloured text has it.
  place(offset) {
    const { layer } = this.editor;
    const walker = document.createTreeWalker(layer, NodeFilter.SHOW_TEXT);
    let left = offset;
    let node = walker.nextNode();
    while (node && left > node.length) {
      left -= node.length;
      node = walker.nextNode();
    }
    const range = document.createRange();
    if (node) range.setStart(node, left);
    else range.setStart(layer, 0);
    const spot = range.getClientRects()[0] ?? range.getBoundingClientRect();
    const sheet = layer.getBoundingClientRect();
    this.list.style.left = `${Math.max(0, Math.min(spot.left - sheet.left, sheet.width - this.list.offsetWidth - 8))}px`;
    this.list.style.top = `${Math.max(0, spot.bottom - sheet.top + 4)}px`;
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.open(true);
      return;
    }
    if (this.list.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      this.at = (this.at + move + this.found.length) % this.found.length;
      this.isChosen = true;
      this.draw();
    } else if (event.key === "Tab" && !event.shiftKey) this.take(this.at);
    else if (event.key === "Enter" && this.isChosen) this.take(this.at);
    else if (event.key === "Escape") this.close();
    else {
      if (event.key === "Enter") this.close();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  take(at) {
    const { start, end, insert, cursor } = this.found[at];
    this.close();
    this.editor.put(start, end, insert, offsets(insert)(cursor));
    this.close();
  }

  close() {
    clearTimeout(this.timer);
    this.asking();
    this.found = [];
    this.draw();
  }
}
