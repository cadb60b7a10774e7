// A row of tabs with a panel each; arrow keys move between them, as the ARIA pattern has it.

import { h } from "./dom.js";

let made = 0;

export function tabs(names) {
  const own = `tabs-${(made += 1)}`;
  const panels = {};
  const buttons = {};
  const keys = Object.keys(names);
  for (const [key, name] of Object.entries(names)) {
    buttons[key] = h("button", { type: "button", role: "tab", id: `${own}-${key}`, "aria-controls": `${own}-${key}-panel`, onclick: () => show(key) }, name);
    panels[key] = h("div", { role: "tabpanel", id: `${own}-${key}-panel`, "aria-labelledby": `${own}-${key}` });
  }
  function show(key, focus = false) {
    for (const name of keys) {
      buttons[name].setAttribute("aria-selected", String(name === key));
      buttons[name].tabIndex = name === key ? 0 : -1;
      panels[name].hidden = name !== key;
    }
    if (focus) buttons[key].focus();
  }
  function turn(event) {
    const at = keys.findIndex((key) => buttons[key] === event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    show(keys[(to + keys.length) % keys.length], true);
  }
  const element = h("div", {}, h("div", { role: "tablist", class: "tabs", "aria-label": "Results", onkeydown: turn }, Object.values(buttons)), Object.values(panels));
  show(keys[0]);
  return { element, panels, show };
}
