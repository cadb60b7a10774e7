// A query on trial: how it goes, and which matches are new or gone beside the deployed rule, side by side.

import { h, keyed, number, replace, turns } from "./dom.js";
import { ask, state } from "./store.js";
import { matchTable } from "./results.js";
import { timeline } from "./timeline.js";

const AGAIN = 1000;

// The panel of the trial of a rule; `refresh` is called with the name of the rule, and with the text that the editor has.
export function trialPanel(panel) {
  const summary = h("p", { class: "difference", role: "status" });
  const stale = h("p", { class: "notice", hidden: true }, "The text in the editor has changed since. Try it again to compare it.");
  const work = h("p", { class: "hint" });
  const drawn = h("div", {});
  const lists = h("div", { class: "side" });
  const untried = h("p", { class: "hint" }, "Try the query to see its matches beside those of the deployed rule, in the events held and in those to come. The job is not touched, and no match of a trial counts as a match of the job.");
  replace(panel, untried, summary, stale, work, drawn, lists);
  const asking = turns();
  let shown = "";
  let askedAt = 0;
  let timer = 0;

  function refresh(name, text) {
    const mine = state.trials.find((one) => one.name === name) ?? null;
    untried.hidden = Boolean(mine);
    for (const part of [summary, work, lists]) part.hidden = !mine;
    stale.hidden = !mine || mine.text === text;
    if (!mine) {
      if (shown) replace(drawn);
      shown = "";
      return null;
    }
    keyed(summary, [mine.title, mine.counts, mine.compared, mine.matches], () => [h("strong", {}, differenceOf(mine)), " ", h("bdi", {}, mine.title),
      mine.compared ? `: ${number(mine.counts.both ?? 0)} in both` : ": there is no deployed rule of this name to compare with"]);
    keyed(work, [mine.stopped, mine.matches, mine.events, mine.waiting], () => `${mine.stopped ? `The trial was stopped: ${mine.stopped}. ` : ""}${number(mine.matches)} matches in ${number(mine.events)} events${mine.waiting ? `, ${number(mine.waiting)} events wait` : ""}.`);
    const key = `${mine.number} ${JSON.stringify(mine.counts)}`;
    if (key !== shown && performance.now() - askedAt > AGAIN) {
      shown = key;
      askedAt = performance.now();
      list(name, mine);
      clearTimeout(timer);
    } else if (key !== shown) {
      clearTimeout(timer);
      timer = setTimeout(() => refresh(name, text), AGAIN);
    }
    return mine;
  }

  async function list(name, mine) {
    const current = asking();
    const found = await ask("trial/matches", { name });
    if (!current() || !found.ok) return;
    const draw = async (row) => {
      const answer = await ask("timeline", { text: mine.text, rows: [row], data: "live" });
      replace(drawn, answer.ok ? timeline(answer.timeline, "Timeline of one match") : h("p", { class: "problem" }, answer.error));
      drawn.scrollIntoView({ block: "nearest" });
    };
    const column = (title, rows, total) => h("section", { "aria-label": title }, h("h3", {}, `${title}: ${number(total)}`),
      rows.length ? matchTable(rows, found, `${title} matches`, draw, { total }) : h("p", { class: "hint" }, "None."));
    lists.classList.toggle("side", Boolean(found.new.length && found.gone?.length)); // an empty one needs no column
    replace(lists, column("New", found.new, mine.counts.new ?? 0), mine.compared ? column("Gone", found.gone, mine.counts.gone ?? 0) : null);
  }

  return { refresh, close: () => clearTimeout(timer) };
}

// "+46 new, 0 gone".
export const differenceOf = (trial) => (trial.compared ? `+${number(trial.counts.new ?? 0)} new, ${number(trial.counts.gone ?? 0)} gone` : `${number(trial.matches)} new`);
