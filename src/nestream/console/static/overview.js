// The overview of a job: how it is doing, its matches over time by rule, the values that matches have most often, and the newest
// matches, all under one filter. A job with a plan has the plan on top.

import { fillSelect, h, keyed, number, replace, select, text, when } from "./dom.js";
import { announce, listen, state } from "./store.js";
import { Chart, key } from "./chart.js";
import { accepts, example, parsed, remarks, termOf } from "./filter.js";
import { firstMinute, problems } from "./first-minute.js";
import { matchList } from "./match-list.js";
import { plan } from "./plan.js";

const SEVERITIES = [["", "all"], ["high", "high"], ["medium", "medium and high"], ["low", "low alone"]];
const MOST_FACETS = 4;
const MOST_VALUES = 8;
const byNumber = new Intl.Collator("en", { numeric: true });

export function overview(page, address, go) {
  const view = {};
  for (const name of ["filter", "severity", "rule", "range"]) view[name] = address.get(name) || "";
  let told = state.received;
  let toldAt = 0;

  function change(name, value) {
    view[name] = value;
    const parameters = new URLSearchParams(Object.entries(view).filter(([, chosen]) => chosen));
    history.replaceState(null, "", parameters.size ? `/overview?${parameters}` : "/overview");
    refresh();
  }

  // A click on a value asks for it, and a second click no longer.
  function toggle(name, value) {
    const term = termOf(name, value);
    const terms = parsed(view.filter).map((one) => (one.name ? `${one.name}${one.operator}${termOf("", one.wanted).slice(1)}` : `"${one.word}"`));
    const rest = terms.filter((one) => one !== term);
    search.value = (rest.length < terms.length ? rest : [...terms, term]).join(" ");
    change("filter", search.value);
  }

  const search = h("input", {
    type: "search", value: view.filter, maxlength: 300, spellcheck: "false", autocomplete: "off", "aria-describedby": "filter-remarks",
    placeholder: example(), oninput: () => change("filter", search.value),
  });
  const rule = select("Rule", [], "", (value) => change("rule", value));
  const severity = select("Severity", SEVERITIES, view.severity, (value) => change("severity", value));
  const clear = h("button", { type: "button", onclick: () => go("/overview") }, "Clear");
  const remarked = h("p", { class: "hint", id: "filter-remarks", role: "status" });
  const wrong = h("div", {});
  const hello = h("div", {});
  const top = h("div", { class: "top-of-page" });
  const range = select("Time", [], "", (value) => change("range", value));
  const chart = new Chart("Matches over time, by rule", { height: state.job?.plan ? 230 : 330, title: titleOf });
  const legend = h("div", {});
  const basis = h("p", { class: "hint" });
  const facets = h("div", { class: "statistics" });
  const list = matchList(go);
  const drawn = state.job?.plan ? plan(state.job, toggle) : null;

  replace(page, h("h1", { class: "visually-hidden" }, "Overview"), wrong, hello,
    h("form", { class: "controls", "aria-label": "View control", onsubmit: (event) => event.preventDefault() },
      h("label", { class: "field wide" }, h("span", {}, "Filter"), search), rule, severity, clear),
    remarked, top);
  if (drawn) replace(top, h("div", { class: "ward" }, drawn.element, list.element));
  const rates = h("section", { class: "panel", "aria-labelledby": "rate-title" },
    h("div", { class: "head" }, h("h2", { id: "rate-title" }, "Matches over time"), range), chart.element, legend);
  page.append(...(drawn ? [rates] : [h("div", { class: "ward" }, rates, list.element)]),
    h("section", { class: "panel", "aria-labelledby": "facets-title" },
      h("div", { class: "head" }, h("h2", { id: "facets-title" }, "Most frequent"), basis), facets, drawn ? drawn.compliance : null));

  function wanted(terms) {
    return (match) => accepts(terms, match) && !(view.rule && match.query !== view.rule)
      && (view.severity === "medium" ? ["medium", "high"].includes(match.severity) : !view.severity || match.severity === view.severity);
  }

  function refresh() {
    const terms = parsed(view.filter);
    const filtered = Boolean(terms.length || view.severity || view.rule);
    const own = state.matches.filter(wanted(terms));
    fillSelect(rule.lastChild, [["", "all"], ...[...state.rules.values()].filter((one) => !one.into).map((one) => [one.name, one.title])], view.rule);
    text(remarked, remarks(terms, state.matches).join("; "));
    problems(wrong);
    firstMinute(hello);
    list.show(own, filtered);
    over(own, filtered);
    const counts = filtered ? counted(own) : counts_(state.statistics.facets);
    text(basis, filtered ? `of the last ${number(state.matches.length)} matches, as filtered` : `of all ${number(state.totals.matches ?? 0)} matches`);
    bars(counts);
    drawn?.show({ found: own, terms, counts: counts[state.job?.place]?.values ?? {} });
    news();
  }

  const counts_ = (given) => Object.fromEntries(Object.entries(given).filter(([name, facet]) => state.job?.facets.length || tells(facet, state.totals.matches)).slice(0, state.job?.facets.length || MOST_FACETS));

  // The same counts as those of the server, of matches that the page holds.
  function counted(matches) {
    const counts = {};
    const names = Object.keys(counts_(state.statistics.facets));
    for (const match of matches) {
      for (const name of names) {
        const values = new Set([match.values, ...match.events.map((part) => part.event)].map((event) => event[name]).filter((value) => value !== null && value !== undefined).map(String));
        for (const value of values) ((counts[name] ??= { values: {}, distinct: 0 }).values[value] = (counts[name].values[value] || 0) + 1);
      }
    }
    for (const name of names) (counts[name] ??= { values: {} }).distinct = Object.keys(counts[name].values).length;
    return counts;
  }

  function over(matches, filtered) {
    const levels = state.rates;
    const isClock = (state.matches[state.matches.length - 1]?.end ?? 1e12) > 1e11;
    const unit = isClock ? 1000 : 1;
    const options = levels.map((level, at) => [String(at || ""), isClock ? ["last 15 minutes", "last 3 hours", "last 4 days"][at] : `last ${number(level.width * 180)}`]);
    fillSelect(range.lastChild, options, view.range);
    const level = levels[Number(view.range || 0)];
    if (!level) return;
    const width = level.width * unit;
    const buckets = filtered ? matches.reduce((all, match) => {
      if (match.end !== null) { const counts = (all[Math.floor(match.end / width)] ??= {}); counts[match.query] = (counts[match.query] || 0) + 1; }
      return all;
    }, {}) : level.buckets;
    const latest = Math.max(...Object.keys(level.buckets).map(Number), state.totals.latest ? Math.floor(state.totals.latest / width) : -Infinity);
    const last = Number.isFinite(latest) ? latest + 1 : Math.floor(Date.now() / width) + 1;
    const first = last - 180;
    const points = Object.entries(buckets).map(([at, values]) => ({ bucket: Number(at), at: Number(at) * width, values })).filter((point) => point.bucket >= first).sort((a, b) => a.at - b.at);
    const names = [...new Set(points.flatMap((point) => Object.keys(point.values)))].sort(byNumber.compare);
    chart.draw({ points, names, width, from: first * width, to: last * width, time: (at, exact) => moment(at, exact, level.width) });
    keyed(legend, names, () => (names.length > 1 ? key(names, titleOf) : null));
  }

  function bars(counts) {
    keyed(facets, [counts, view.filter], () => {
      const shown = Object.entries(counts);
      if (!shown.length) return h("p", { class: "hint" }, "Nothing to count yet.");
      return shown.map(([name, facet]) => {
        const entries = Object.entries(facet.values).sort(([a, x], [b, y]) => y - x || byNumber.compare(a, b)).slice(0, MOST_VALUES);
        const most = Math.max(1, ...entries.map(([, value]) => value));
        return h("div", {}, h("h3", {}, h("bdi", {}, name)), h("div", { class: "bars" }, entries.map(([value, many]) => {
          const bar = h("span", { class: "bar" });
          bar.style.width = `${Math.max(2, (100 * many) / most)}%`;
          const on = parsed(view.filter).some((term) => term.name === name && term.wanted === value);
          return h("div", { class: "barrow" }, h("button", { type: "button", class: "name link", "aria-pressed": String(on), onclick: () => toggle(name, value) }, h("bdi", {}, value)),
            h("span", { class: "track" }, bar), h("span", { class: "value" }, number(many)));
        })), facet.distinct > entries.length ? h("p", { class: "hint" }, `${number(facet.distinct - entries.length)} more`) : null);
      });
    });
  }

  function news() {
    const now = performance.now();
    if (state.received > told && now - toldAt > 5000) {
      const many = state.received - told;
      announce(`${many} new ${many === 1 ? "match" : "matches"}: ${state.matches.slice(-1)[0]?.title ?? ""}`);
      told = state.received;
      toldAt = now;
    }
  }

  refresh();
  return listen(refresh);
}

// Whether the counts by an attribute say something: some values come again, and there is more than one.
const tells = (facet, matches) => facet.distinct > 1 && facet.distinct <= Math.max(3, (matches ?? 0) / 2);
const titleOf = (name) => state.rules.get(name)?.title ?? name;
const moment = (at, exact, width) => (at > 1e11 && width >= 1800 ? new Date(at).toISOString().slice(exact ? 0 : 5, 16).replace("T", " ") : when(at, exact || width < 60));
