// What surrounds the map: the search, the label that is chosen, what the map says of itself.

import * as api from "./api.js";
import { combobox } from "./combobox.js";
import { at, count, make, say } from "./dom.js";
import { LabelAtlas } from "./map.js";

const AGAIN = 1000;  // milliseconds until a map that is being made is asked for again

/** @param told.add called with a name that is to join the lesson */
export class Atlas {
  constructor(told) {
    this.told = told;
    this.labels = [];
    this.map = new LabelAtlas(at("map"), {
      chosen: (i) => (i < 0 ? this.close() : this.showNumber(i, false)),
      over: (i, x, y, byKeys) => this.tip(i, x, y, byKeys),
    });
    combobox(at("find"), { id: "find-field", label: "Find a label", choose: ({ name, points }) => this.show(name, points) });
    at("zoom-in").addEventListener("click", () => this.map.zoom(1.5));
    at("zoom-out").addEventListener("click", () => this.map.zoom(1 / 1.5));
    at("zoom-all").addEventListener("click", () => this.map.showAll());
    at("chosen-close").addEventListener("click", () => { this.close(); at("map").focus(); });
    at("chosen-add").addEventListener("click", () => told.add(at("chosen-name").textContent));
    this.fetch();
  }

  async fetch() {
    try {
      const data = await api.labelMap();
      if (data) {
        this.map.use(data);
        this.data = data;
        this.light(this.labels);
        if (this.wanted) this.show(...this.wanted);
        return;
      }
      this.state("The map is being made …");
    } catch (problem) {
      this.state(problem.message);
      if (!(problem instanceof api.Unreachable)) return;
    }
    setTimeout(() => this.fetch(), AGAIN);
  }

  state(sentence) {
    at("map-state").textContent = sentence;
  }

  /** Light the labels of the text: [{ name, probability }, …]. */
  light(labels) {
    this.labels = labels;
    if (!this.data) return;
    const lit = this.map.light(labels.map(({ name, probability }) => [name, probability]));
    const { total, names } = this.data;
    const all = names.length < total
      ? `the ${names.length.toLocaleString("en")} most frequent of ${count(total, "label")}`
      : count(total, "label");
    this.state(lit ? `${all}; ${lit} of your text lit` : all);
  }

  /** Show a label, on the map or, where it is not there, without. */
  show(name, points = null) {
    const i = this.data ? this.map.number.get(name) : undefined;
    if (i !== undefined) return this.showNumber(i);
    this.wanted = this.data ? null : [name, points];
    const where = this.data ? "Not on the map: it is too rare, or was taught since." : "The map is being made.";
    this.describe(name, points === null ? where : `${count(points, "text")}. ${where}`, []);
  }

  showNumber(i, fly = true) {
    const { names, points } = this.data;
    this.wanted = null;
    this.map.choose(i, fly);
    const related = this.map.related(i);
    const said = related.length ? `${count(points[i], "text")}. Goes with:` : `${count(points[i], "text")}; shares none with another label.`;
    this.describe(names[i], said, related);
  }

  describe(name, said, related) {
    at("chosen").hidden = false;
    at("chosen-name").textContent = name;
    at("chosen-said").textContent = said;
    at("chosen-related").replaceChildren(...related.map((i) => {
      const chip = make("button", { className: "chip", dir: "auto" }, this.data.names[i]);
      chip.addEventListener("click", () => { this.showNumber(i); at("chosen-related").querySelector("button")?.focus(); });
      return make("li", {}, chip);
    }));
    at("focused").textContent = `${name}: ${said}`;
    this.tellAbout(name);
  }

  /** What the service knows of a label beside its texts, where it was told. */
  async tellAbout(name) {
    say(at("chosen-about"), "");
    const found = await api.labels(name, 100).catch(() => null);  // the panel does without
    const label = found?.labels.find((each) => each.name === name);
    if (at("chosen-name").textContent === name) say(at("chosen-about"), label?.description);
  }

  close() {
    at("chosen").hidden = true;
    this.wanted = null;
    if (this.data) this.map.choose(-1);
  }

  tip(i, x, y, byKeys) {
    const tip = at("tip");
    tip.hidden = i < 0;
    if (i < 0) return;
    const said = `${this.data.names[i]} · ${count(this.data.points[i], "text")}`;
    tip.textContent = said;
    const { clientWidth: width, clientHeight: height } = at("map");
    tip.style.left = `${Math.max(4, Math.min(x + 12, width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 44 > height ? y - 40 : y + 14}px`;
    if (byKeys) at("focused").textContent = said;
  }
}
