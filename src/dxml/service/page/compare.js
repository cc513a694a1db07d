// Two texts side by side: labels of both, labels of one, and the words they come from.

import * as api from "./api.js";
import { at, calm, make, percent, say } from "./dom.js";

const WORDS = 6;  // shown of a label and a text
const LEAST = 0.1;  // of the weight of its strongest word
const PAUSE = 400;  // milliseconds without a key until the texts are looked at

/**
 * @param told.text gives the first text
 * @param told.settings gives { top, threshold }
 */
export class Compare {
  constructor(told) {
    this.told = told;
    this.look = calm(PAUSE, () => this.ask());
    at("compare").addEventListener("toggle", () => this.look.now());
    at("other").addEventListener("input", () => this.look());
  }

  /** The first text, or what is asked for, has changed. */
  changed() {
    if (at("compare").open) this.look();
  }

  async ask() {
    this.asking?.abort();
    const [first, second] = [this.told.text(), at("other").value];
    if (!at("compare").open || !first.trim() || !second.trim()) return this.show([]);
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const asked = { text: [first, second], ...this.told.settings(), explain: true };
      const { results } = await api.predict(asked, signal);
      if (signal.aborted) return;
      say(at("compare-problem"), "");
      this.show(paired(results[0], results[1]));
    } catch (problem) {
      if (problem.name !== "AbortError") say(at("compare-problem"), problem.message);
    }
  }

  show(pairs) {
    const groups = [
      ["In both", pairs.filter((pair) => pair.first && pair.second)],
      ["Only in the first", pairs.filter((pair) => !pair.second)],
      ["Only in the second", pairs.filter((pair) => !pair.first)],
    ];
    at("pairs").hidden = !pairs.length;
    at("pairs-rows").replaceChildren(...groups.filter(([, rows]) => rows.length).flatMap(([title, rows]) => [
      make("tr", { className: "group" }, make("th", { colSpan: 3, scope: "rowgroup" }, `${title} (${rows.length})`)),
      ...rows.map(row),
    ]));
    at("compare-state").textContent = pairs.length ? groups.map(([title, rows]) => `${title.toLowerCase()}: ${rows.length}`).join(", ") : "";
  }
}

/** [{ name, first, second }]: what each text says of a label, or nothing. */
function paired(one, two) {
  const [first, second] = [one, two].map(({ explanations }) => new Map(explanations.map((why) => [why.name, why])));
  const names = [...new Set([...first.keys(), ...second.keys()])];
  return names.map((name) => ({ name, first: first.get(name), second: second.get(name) }));
}

function row({ name, first, second }) {
  const words = [first, second].map(strongest);
  const chips = [...new Set(words.flat())].map((word) => {
    const of = words.map((list) => list.includes(word));
    const where = of[0] && of[1] ? "both" : of[0] ? "first" : "second";
    return make("li", { className: where, title: where === "both" ? "speaks for it in both texts" : `speaks for it in the ${where} text` },
      make("span", { dir: "auto" }, word), make("span", { className: "unseen" }, where === "both" ? " in both" : ` in the ${where}`));
  });
  return make("tr", {},
    make("td", {}, make("span", { dir: "auto" }, name), make("ul", { className: "words" }, ...chips)),
    make("td", { className: "share" }, first ? percent(first.probability) : "–"),
    make("td", { className: "share" }, second ? percent(second.probability) : "–"));
}

/** The words that speak most for a label. */
function strongest(why) {
  const found = [...(why?.words ?? [])].sort((a, b) => b[1] - a[1]).slice(0, WORDS);
  return found.filter(([, weight]) => weight > 0 && weight >= LEAST * found[0][1]).map(([word]) => String(word));
}
