// A row of tabs with a panel each; arrow keys move between them, as the ARIA pattern has it.

import { h } from "./dom.js";

let made = 0;

// `changed` is called with the name of the panel that is shown.
export function tabs(names, changed = () => {}) {
  const own = `tabs-${(made += 1)}`;
  let element = null;
  const panels = {};
  const buttons = {};
  const keys = Object.keys(names);
  for (const [key, name] of Object.entries(names)) {
    buttons[key] = h("button", { type: "button", role: "tab", id: `${own}-${key}`, "aria-controls": `${own}-${key}-panel`, onclick: () => show(key) }, name);
    panels[key] = h("div", { role: "tabpanel", id: `${own}-${key}-panel`, "aria-labelledby": `${own}-${key}` });
  }
  let current = keys[0];
  function show(key, focus = false) {
    current = key;
    for (const name of keys) {
      buttons[name].setAttribute("aria-selected", String(name === key));
      buttons[name].tabIndex = name === key ? 0 : -1;
      panels[name].hidden = name !== key;
    }
    if (focus) buttons[key].focus();
    if (element) changed(key);
  }
  function turn(event) {
    const at = keys.findIndex((key) => buttons[key] === event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    show(keys[(to + keys.length) % keys.length], true);
  }
  show(keys[0]);
  element = h("div", {}, h("div", { role: "tablist", class: "tabs", "aria-label": "Results", onkeydown: turn }, Object.values(buttons)), Object.values(panels));
  return { element, panels, show, shown: () => current };
}
