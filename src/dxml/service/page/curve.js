// How precise and how complete labels are from each threshold on, to choose one by.

import * as api from "./api.js";
import { at, make, percent, say } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const [LEFT, TOP, WIDTH, HEIGHT] = [34, 8, 280, 130];  // of the plot in the picture
const LINES = ["precision", "recall", "f1"];

/** @param told.choose called with a threshold in per cent */
export class Curve {
  constructor(told) {
    this.told = told;
    this.data = null;
    at("curve").addEventListener("toggle", () => this.fetch());
    at("curve-best").addEventListener("click", () => told.choose(Math.round(100 * this.data.best.threshold)));
    const plot = at("plot");
    plot.addEventListener("pointerdown", (event) => {
      plot.setPointerCapture(event.pointerId);
      this.point(event);
    });
    plot.addEventListener("pointermove", (event) => { if (event.buttons) this.point(event); });
  }

  async fetch() {
    if (!at("curve").open || this.data) return;
    try {
      this.data = await api.thresholds();
    } catch (problem) {
      return say(at("curve-problem"), problem.message);
    }
    say(at("curve-problem"), "");
    at("curve-content").hidden = false;
    at("curve-best").textContent = `Best F1: from ${percent(this.data.best.threshold)}`;
    at("curve-about").textContent = `Measured on ${this.data.points.toLocaleString("en")} training texts that were held out.`;
    this.draw();
  }

  draw() {
    const rows = this.data.thresholds;
    const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      drawn("line", { class: "grid", x1: LEFT, x2: LEFT + WIDTH, y1: y(share), y2: y(share) }),
      drawn("text", { x: LEFT - 5, y: y(share) + 3.5, class: "left" }, `${100 * share}`),
      drawn("text", { x: x(share), y: TOP + HEIGHT + 14, class: "below" }, `${100 * share} %`),
    ]);
    const lines = LINES.map((what) => {
      const shown = rows.filter((row) => what === "recall" || row.labels > 0);  // of nothing, nothing is precise
      return drawn("polyline", { class: what, points: shown.map((row) => `${x(row.threshold)},${y(row[what])}`).join(" ") });
    });
    this.hair = drawn("line", { class: "hair", y1: TOP, y2: TOP + HEIGHT });
    at("plot").replaceChildren(...ticks, ...lines, this.hair);
    this.follow(at("least").valueAsNumber);
  }

  /** The threshold is another one now, in per cent. */
  follow(least) {
    if (!this.data) return;
    const row = this.data.thresholds[Math.round(least)];
    this.hair.setAttribute("x1", x(row.threshold));
    this.hair.setAttribute("x2", x(row.threshold));
    const said = [["precision", row.precision], ["recall", row.recall], ["F1", row.f1]].map(([word, share]) =>
      make("span", { className: word.toLowerCase() }, `${word} ${row.labels || word === "recall" ? percent(share) : "–"}`));
    at("curve-said").replaceChildren(`From ${least} %: `, ...said,
      make("span", { className: "plain" }, `${row.labels.toFixed(1)} labels a text`));
  }

  point(event) {
    const box = at("plot").getBoundingClientRect();
    const scale = (LEFT + WIDTH + 16) / box.width;
    const share = ((event.clientX - box.left) * scale - LEFT) / WIDTH;
    this.told.choose(Math.round(100 * Math.min(1, Math.max(0, share))));
  }
}

const x = (share) => LEFT + WIDTH * share;
const y = (share) => TOP + HEIGHT * (1 - share);

function drawn(tag, settings, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(settings)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}
