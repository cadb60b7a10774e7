// An editor for queries: a text area, with the coloured text below it, and diagnostics as one types.

import { h, replace, text } from "./dom.js";
import { ask } from "./store.js";
import { highlighted, offsets } from "./highlight.js";

const PATIENCE = 250;
const MOST_TEXT = 20000;

export class Editor {
  // `source` gives the name of the events that the query is for; `checked` is told what was found.
  constructor(value, source, checked = () => {}) {
    this.source = source;
    this.checked = checked;
    this.marks = [];
    this.asked = 0;
    this.area = h("textarea", {
      id: "query-text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "soft",
      "aria-describedby": "diagnostics", maxlength: MOST_TEXT, rows: 12,
      oninput: () => this.changed(), onscroll: () => this.follow(),
    });
    this.layer = h("pre", { class: "layer", "aria-hidden": "true" });
    this.list = h("ul", { id: "diagnostics", class: "diagnostics", "aria-live": "polite" });
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.element = h("div", { class: "editor" },
      h("label", { for: "query-text" }, "Query"),
      h("div", { class: "sheet" }, this.layer, this.area), this.verdict, this.list);
    this.value = value;
  }

  get value() { return this.area.value; }

  set value(written) {
    this.area.value = written;
    this.changed(0);
  }

  changed(patience = PATIENCE) {
    this.marks = [];
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
    this.marks = said.map((one) => [one.start, one.end, `said-${one.severity}`]);
    this.draw();
    this.verdict.dataset.state = answer.ok ? "fine" : "wrong";
    text(this.verdict, answer.ok ? `accepted as ${answer.dialect.toUpperCase()}` : said.length ? `rejected: ${said.length} ${said.length === 1 ? "problem" : "problems"}` : answer.error);
    replace(this.list, said.map((one) => this.said(one)));
    this.area.setAttribute("aria-invalid", String(!answer.ok));
    this.checked(answer);
  }

  said(one) {
    return h("li", { class: one.severity },
      h("button", { type: "button", class: "link", onclick: () => this.reveal(one.start, one.end) }, `line ${one.line}, column ${one.column}`),
      ` ${one.severity}: ${one.message}`,
      one.detail ? h("span", { class: "detail" }, one.detail) : null,
      one.hint ? h("span", { class: "detail" }, `hint: ${one.hint}`) : null,
      one.suggestion ? h("span", { class: "detail" }, "write: ", h("code", {}, one.suggestion)) : null);
  }

  reveal(start, end) {
    const place = offsets(this.area.value);
    this.area.focus();
    this.area.setSelectionRange(place(start), place(end));
  }

  close() { clearTimeout(this.timer); }
}
