// The versions of the rules, the newest first, and the way back to an earlier one.

import { h, keyed, number, table, value } from "./dom.js";
import { ask, state } from "./store.js";
import { confirmed, sideBySide } from "./dialogs.js";

export function versionsPanel(panel, done) {
  async function back(version, newest) {
    const found = await ask("version", { version });
    const changes = Object.entries(found.changes ?? {});
    const content = found.ok
      ? [h("p", {}, changes.length ? `The rules of version ${number(version)} come back as version ${number(newest + 1)}. The job goes on with them.` : "The job already has the rules of this version."),
        changes.map(([name, { now, then }]) => [h("h3", {}, h("bdi", {}, name)), sideBySide(now, then, ["Now", then === null ? "Removed" : `Version ${version}`])])]
      : h("p", { class: "problem" }, found.error);
    if (await confirmed(`Roll back to version ${number(version)}?`, content, "Roll back", async () => {
      const answer = await ask("rollback", { version, newest });
      if (answer.ok) done(answer.version, `Version ${number(answer.version)} is deployed: the rules of version ${number(version)}.`);
      return answer.ok ? null : answer.error;
    })) panel.querySelector("[tabindex]")?.focus();
  }

  return function refresh() {
    const { job, progress } = state;
    const versions = job?.versions ?? [];
    const runs = progress?.version ?? null;
    keyed(panel, [versions, runs, job?.refusal], () => {
      if (!versions.length) return h("p", { class: "hint" }, job?.refusal ?? "There are no changes yet. The first change that you deploy starts the history.");
      const newest = versions[0].version;
      return [
        h("p", { class: "hint" }, runs === null ? "" : `The job runs version ${number(runs)}.`),
        table("Versions of the rules", ["version", "time", "what", "rules", "back"], versions.map((one) => [
          number(one.version), String(one.time).replace("T", " ").replace("+00:00", ""), value(one.what, 120), value(one.rules.join(", "), 120),
          one.version === newest || job.refusal ? "–" : h("button", { type: "button", "aria-label": `Roll back to version ${one.version}`, onclick: () => back(one.version, newest) }, "Roll back")]))];
    });
  };
}
