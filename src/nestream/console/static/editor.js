// An editor for queries: a text area, with the coloured text below it, diagnostics as one types, and completion.

import { h, replace, text } from "./dom.js";
import { ask } from "./store.js";
import { Completion } from "./completion.js";
import { highlighted, offsets } from "./highlight.js";

const PATIENCE = 250;
const MOST_TEXT = 20000;

export class Editor {
  // `source` gives the name of the events that the query is for; `checked` is told what was found, `run` that it is to be run.
  constructor(value, source, { checked = () => {}, run = () => {} } = {}) {
    this.source = source;
    this.checked = checked;
    this.marks = [];
    this.asked = 0;
    this.formatted = null;
    this.area = h("textarea", {
      id: "query-text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "soft",
      "aria-describedby": "diagnostics editor-keys", maxlength: MOST_TEXT, rows: 12,
      oninput: () => this.changed(), onscroll: () => this.follow(),
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.completion.close(); run(); }
      },
    });
    this.layer = h("pre", { class: "layer", "aria-hidden": "true" });
    this.list = h("ul", { id: "diagnostics", class: "diagnostics", "aria-live": "polite" });
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.completion = new Completion(this);
    this.element = h("div", { class: "editor" },
      h("label", { for: "query-text" }, "Query"),
      h("div", { class: "sheet" }, this.layer, this.area, this.completion.element),
      h("p", { class: "hint", id: "editor-keys" }, "Ctrl+Space completes, Tab takes what is proposed, Ctrl+Enter runs."), this.verdict, this.list);
    this.value = value;
  }

  get value() { return this.area.value; }

  set value(written) {
    this.area.value = written;
    this.changed(0);
  }

  // Puts a text in place of a piece, as if it had been typed: it can be undone.
  put(start, end, written, cursor = written.length) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
    if (!document.execCommand("insertText", false, written)) {
      this.area.setRangeText(written, start, end, "end");
      this.area.dispatchEvent(new Event("input", { bubbles: true }));
    }
    this.area.setSelectionRange(start + cursor, start + cursor);
  }

  format() {
    if (this.formatted) this.put(0, this.value.length, this.formatted);
  }

  changed(patience = PATIENCE) {
    this.marks = [];
    this.formatted = null;
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), patience);
  }

  draw() {
    replace(this.layer, highlighted(this.area.value, this.marks), "\n");
    this.follow();
  }

  follow() {
    this.layer.scrollTop = this.area.scrollTop;
    this.layer.scrollLeft = this.area.scrollLeft;
  }

  async check() {
    const number = (this.asked += 1);
    const written = this.area.value;
    if (!written.trim()) {
      text(this.verdict, "Write a query, or load a rule.");
      delete this.verdict.dataset.state;
      replace(this.list);
      this.area.removeAttribute("aria-invalid");
      this.checked({ ok: false });
      return;
    }
    const answer = await ask("check", { text: written, data: this.source() });
    if (number !== this.asked || written !== this.area.value) return; // written on since
    const said = answer.diagnostics || [];
    this.formatted = answer.formatted ?? null;
    this.marks = said.map((one) => [one.start, one.end, `said-${one.severity}`]);
    this.draw();
    this.verdict.dataset.state = answer.ok ? "fine" : "wrong";
    text(this.verdict, answer.ok ? `accepted as ${answer.dialect.toUpperCase()}` : said.length ? `rejected: ${said.length} ${said.length === 1 ? "problem" : "problems"}` : answer.error);
    replace(this.list, said.map((one) => this.said(one)));
    this.area.setAttribute("aria-invalid", String(!answer.ok));
    this.checked(answer);
  }

  said(one) {
    const place = offsets(this.area.value);
    const fixes = one.fixes ?? [];
    return h("li", { class: one.severity },
      h("button", { type: "button", class: "link", onclick: () => this.reveal(one.start, one.end) }, `line ${one.line}, column ${one.column}`),
      ` ${one.severity}: ${one.message}`,
      one.detail ? h("span", { class: "detail" }, one.detail) : null,
      one.hint ? h("span", { class: "detail" }, `hint: ${one.hint}`) : null,
      one.suggestion && !fixes.length ? h("span", { class: "detail" }, "write: ", h("code", {}, one.suggestion)) : null,
      fixes.map((fix) => h("button", { type: "button", class: "fix", onclick: () => this.put(place(fix.start), place(fix.end), fix.insert) }, fix.title)));
  }

  reveal(start, end) {
    const place = offsets(this.area.value);
    this.area.focus();
    this.area.setSelectionRange(place(start), place(end));
  }

  close() {
    clearTimeout(this.timer);
    this.completion.close();
  }
}
