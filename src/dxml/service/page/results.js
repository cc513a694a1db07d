// The list of a text's labels: a bar for each, its evidence when opened, accepted or rejected.

import { at, make, percent } from "./dom.js";
import { evidence } from "./evidence.js";

/**
 * @param told.explain asked for the explanations of the text, a promise of { name: explanation }
 * @param told.opened called with an explanation, or null, when the evidence on show changes
 * @param told.judged called with (name, "accepted" | "rejected" | undefined)
 * @param told.picked called with a name when a chip is clicked
 */
export class Results {
  constructor(told) {
    this.told = told;
    this.list = at("labels");
    this.verdicts = new Map();
    this.open = null;  // name of the label whose evidence is on show
    this.teachable = true;
  }

  /** Show labels; focus and the open evidence stay where they are, if the label is still there. */
  show(labels) {
    const focused = document.activeElement?.closest?.("#labels [data-part]");
    const kept = focused && [focused.closest("li[data-name]").dataset.name, focused.dataset.part];
    const names = new Set(labels.map((label) => label.name));
    if (this.open !== null && !names.has(this.open)) this.shut();
    this.list.replaceChildren(...labels.map((label, i) => this.row(label, i)));
    if (kept) this.part(...kept)?.focus();
    if (this.open !== null) this.fill(this.open);
  }

  clear() {
    this.shut();
    this.list.replaceChildren();
  }

  judge(name, verdict) {
    if (verdict) this.verdicts.set(name, verdict);
    else this.verdicts.delete(name);
    this.paint(name);
  }

  forgetVerdicts() {
    const names = [...this.verdicts.keys()];
    this.verdicts.clear();
    names.forEach((name) => this.paint(name));
  }

  item(name) {
    return [...this.list.children].find((item) => item.dataset.name === name);
  }

  part(name, part) {
    return this.item(name)?.querySelector(`[data-part="${part}"]`);
  }

  row({ name, probability }, i) {
    const bar = make("i");
    bar.style.width = `${100 * probability}%`;
    const opener = make("button", {
      className: "open", "data-part": "open", "aria-expanded": "false", "aria-controls": `why-${i}`,
      title: "Why this label?",
    }, make("span", { dir: "auto" }, name), make("span", { className: "share" }, percent(probability)),
    make("span", { className: "bar", "aria-hidden": "true" }, bar));
    opener.addEventListener("click", () => this.toggle(name));
    const row = make("div", { className: "row" }, opener);
    if (this.teachable) row.append(this.judgeButton(name, "accepted", "✓", "Accept"), this.judgeButton(name, "rejected", "✗", "Reject"));
    const item = make("li", { "data-name": name }, row, make("div", { id: `why-${i}`, className: "why", hidden: true }));
    this.paintItem(item, name);
    return item;
  }

  judgeButton(name, verdict, sign, word) {
    const button = make("button", {
      className: verdict === "rejected" ? "judge no" : "judge", "data-part": verdict,
      "aria-label": `${word} ${name}`, title: word,
    }, sign);
    button.addEventListener("click", () => {
      const next = this.verdicts.get(name) === verdict ? undefined : verdict;
      this.judge(name, next);
      this.told.judged(name, next);
    });
    return button;
  }

  paint(name) {
    const item = this.item(name);
    if (item) this.paintItem(item, name);
  }

  paintItem(item, name) {
    const verdict = this.verdicts.get(name);
    item.classList.toggle("rejected", verdict === "rejected");
    for (const button of item.querySelectorAll(".judge")) {
      button.setAttribute("aria-pressed", String(button.dataset.part === verdict));
    }
  }

  toggle(name) {
    const again = this.open === name;
    this.shut();
    if (again) return;
    this.open = name;
    this.fill(name);
  }

  shut() {
    const item = this.open !== null && this.item(this.open);
    if (item) {
      item.querySelector(".open").setAttribute("aria-expanded", "false");
      item.querySelector(".why").hidden = true;
    }
    this.open = null;
    this.told.opened(null);
  }

  async fill(name) {
    const item = this.item(name);
    const panel = item.querySelector(".why");
    item.querySelector(".open").setAttribute("aria-expanded", "true");
    panel.hidden = false;
    if (!panel.childNodes.length) panel.append(make("p", { className: "quiet" }, "Asking why …"));
    let content;
    let why = null;
    try {
      why = (await this.told.explain())?.get(name) ?? null;
      if (this.open !== name || this.item(name) !== item) return;  // another label, or another text
      content = why ? evidence(why, (label, same) => this.chip(label, same)) : [make("p", { className: "quiet" }, "There is no evidence for this label any more.")];
    } catch (problem) {
      if (problem.name === "AbortError") return;
      content = [make("p", { className: "problem" }, problem.message)];
    }
    panel.replaceChildren(...content);
    this.told.opened(why);
  }

  chip(label, same) {
    const button = make("button", { className: same ? "chip same" : "chip", dir: "auto", title: "Show on the map" }, label);
    button.addEventListener("click", () => this.told.picked(label));
    return button;
  }
}
