// Dialogs in which a person confirms a change of the rules, with what would change side by side.

import { h } from "./dom.js";
import { highlighted } from "./highlight.js";

let made = 0;

// Asks; `act` does it and says what went wrong, if anything. The promise tells whether it was done.
export function confirmed(title, content, label, act) {
  return new Promise((done) => {
    let isDone = false;
    const id = `dialog-${(made += 1)}`;
    const wrong = h("p", { class: "problem", role: "alert", hidden: true });
    const go = h("button", { type: "button", class: "primary", onclick: async () => {
      go.disabled = true;
      const problem = await act();
      go.disabled = false;
      isDone = !problem;
      if (isDone) dialog.close();
      wrong.hidden = false;
      wrong.textContent = problem ?? "";
    } }, label);
    const dialog = h("dialog", { class: "detail", "aria-labelledby": id, onclose: () => { dialog.remove(); done(isDone); } },
      h("h2", { id }, title), content, wrong,
      h("p", { class: "actions" }, go, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Two texts of a rule beside each other, with the lines that differ marked.
export function sideBySide(before, after, names) {
  const [first, second] = [lines(before), lines(after)];
  const column = (name, own, other) => h("div", {}, h("h3", {}, name), own === null ? h("p", { class: "hint" }, "There is none.")
    : h("pre", { class: "query", tabindex: "0", role: "group", "aria-label": name }, own.map((line) => h("span", { class: other?.includes(line) ? "line" : "line differs" }, highlighted(line), "\n"))));
  return h("div", { class: "side" }, column(names[0], first, second), column(names[1], second, first));
}

const lines = (text) => (text === null || text === undefined ? null : text.replace(/\n$/, "").split("\n"));
