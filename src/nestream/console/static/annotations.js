// What people say of a match: acknowledged, a false alarm, comments. All tabs see it, and the export has it.

import { h, keyed, text } from "./dom.js";
import { ask, listen, state, takeAnnotations } from "./store.js";

const STATUSES = { acknowledged: "Acknowledge", "false alarm": "False alarm" };
const LONGEST = 2000;

// The status of a match in a table, and how many comments it has.
export function status(match) {
  const said = state.annotations[match.id];
  const many = said?.comments.length ?? 0;
  return [said?.status ? h("span", { class: "said" }, said.status) : "open", many ? `, ${many} ${many === 1 ? "comment" : "comments"}` : null];
}

export function annotationsOf(match) {
  const wrong = h("p", { class: "problem", role: "alert", hidden: true });
  const listed = h("ul", { class: "comments", "aria-label": "Comments" });
  const since = h("p", { class: "hint", role: "status" });
  const buttons = Object.entries(STATUSES).map(([name, label]) => h("button", { type: "button", "aria-pressed": "false", "data-status": name, onclick: () => say({ status: now() === name ? null : name }) }, label));
  const comment = h("textarea", { rows: 2, maxlength: LONGEST, class: "comment" });
  const add = h("button", { type: "button", onclick: async () => { if (comment.value.trim() && await say({ comment: comment.value })) comment.value = ""; } }, "Add comment");
  const element = h("div", { class: "annotations" }, h("p", { class: "actions" }, buttons), since, listed,
    h("label", { class: "field" }, h("span", {}, "Comment"), comment), h("p", { class: "actions" }, add), wrong);
  const now = () => state.annotations[match.id]?.status ?? null;

  async function say(what) {
    const answer = await ask("annotate", { id: match.id, ...what });
    wrong.hidden = answer.ok;
    text(wrong, answer.ok ? "" : answer.error);
    if (answer.ok) takeAnnotations(answer.annotations);
    return answer.ok;
  }

  function refresh() {
    const said = state.annotations[match.id];
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.status === said?.status));
    text(since, said?.status ? `${said.status === "acknowledged" ? "Acknowledged" : "Marked as a false alarm"} ${moment(said.at)}.` : "Nobody has looked at it yet.");
    keyed(listed, said?.comments ?? [], () => (said?.comments ?? []).map((one) => h("li", {}, h("span", { class: "hint" }, moment(one.at)), " ", h("bdi", {}, one.text))));
  }

  refresh();
  return { element, close: listen(refresh) };
}

const moment = (at) => `${String(at).slice(0, 16).replace("T", " ")} UTC`;
