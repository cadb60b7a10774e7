// Exports matches: all of the job as the server writes them, or those that a filter leaves, as CSV or Parquet.

import { h, number, text } from "./dom.js";
import { announce } from "./store.js";

// `chosen` gives the matches to be exported, null for all.
export function exportButtons(chosen) {
  const told = h("span", { class: "hint" });

  async function save(format) {
    const some = chosen();
    if (some === null) { // the browser writes it to a file as it comes, however large
      h("a", { href: `/api/export?format=${format}`, download: "" }).click();
      text(told, "");
      return;
    }
    text(told, "exporting");
    try {
      const answer = await fetch("/api/export", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ format, ids: some.map((match) => match.id) }) });
      if (!answer.ok) throw new Error((await answer.json()).error);
      const address = URL.createObjectURL(await answer.blob());
      h("a", { href: address, download: `matches.${format}` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
      text(told, `${number(some.length)} matches exported`);
      announce(told.textContent);
    } catch (problem) {
      text(told, problem.message);
      announce(problem.message);
    }
  }

  return h("span", { class: "exports" }, "Export ", h("button", { type: "button", "aria-label": "Export as CSV", onclick: () => save("csv") }, "CSV"), " ",
    h("button", { type: "button", "aria-label": "Export as Parquet", onclick: () => save("parquet") }, "Parquet"), " ", told);
}
