// The map of the labels on a canvas: dots one can move over, zoom into, hover and choose.

import { useGestures } from "./gestures.js";

const UNIT = 10000;  // places come as whole numbers
const LONG = 40;  // letters of a name on the map, at most
const NAMES = 70;  // names drawn at once, at most
const FLIGHT = 450;  // milliseconds

const calmMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class LabelAtlas {
  /**
   * @param told.chosen called with a label's number when it is clicked
   * @param told.over called with (number or -1, x, y) when the pointer or the keys are on a label
   */
  constructor(canvas, told) {
    this.canvas = canvas;
    this.told = told;
    this.n = 0;
    this.chosen = -1;
    this.over = -1;
    this.lit = new Map();  // number → probability
    this.view = { x: 0, y: 0, scale: 1 };
    this.fit = 1;  // the scale that shows everything
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColours(); this.draw(); });
    new ResizeObserver(() => this.resize()).observe(canvas);
    useGestures(this);
    this.resize();
  }

  /** The map that the service sent. */
  use(data) {
    this.data = data;
    this.n = data.names.length;
    this.x = Float32Array.from(data.x, (value) => value / UNIT);
    this.y = Float32Array.from(data.y, (value) => value / UNIT);
    const most = Math.max(...data.points.slice(0, 1), 1);  // most frequent first
    this.size = Float32Array.from(data.points, (n) => 1.1 + 4.5 * (n / most) ** 0.4);
    this.number = new Map(data.names.map((name, i) => [name, i]));
    this.showAll(false);
  }

  /** Light the labels of a text: [name, probability], …; how many of them are on the map. */
  light(labels) {
    this.lit = new Map();
    for (const [name, share] of labels) {
      const i = this.number?.get(name);
      if (i !== undefined) this.lit.set(i, share);
    }
    this.draw();
    return this.lit.size;
  }

  /** Choose a label (or none, -1) and fly there. */
  choose(i, fly = true) {
    this.chosen = i;
    this.canvas.dataset.chosen = i < 0 ? "" : this.data.names[i];
    if (i >= 0 && fly) this.flyTo(this.x[i], this.y[i], this.closeUp(i));
    else this.draw();
  }

  /** The scale at which most of a label's related ones are in sight around it. */
  closeUp(i) {
    const far = this.related(i).map((other) => Math.hypot(this.x[other] - this.x[i], this.y[other] - this.y[i])).sort((a, b) => a - b);
    const most = far[Math.floor(0.7 * (far.length - 1))] || 0.2;
    return Math.min(this.fit * 8, Math.max(this.fit * 1.5, 0.8 * this.fit / most));
  }

  related(i) {
    return this.data.related[i];
  }

  showAll(fly = true) {
    this.flyTo(0, 0, this.fit, fly);
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const { view } = this;
    const scale = Math.min(Math.max(view.scale * factor, this.fit * 0.6), this.fit * 200);
    const [mx, my] = this.place(x, y);
    view.x = mx - (x - this.width / 2) / scale;
    view.y = my + (y - this.height / 2) / scale;
    view.scale = scale;
    this.draw();
  }

  /** Stop flying. */
  land() {
    cancelAnimationFrame(this.flight);
  }

  flyTo(x, y, scale, fly = true) {
    this.land();
    const from = { ...this.view };
    const start = performance.now();
    const step = (now) => {
      const t = fly && !calmMotion.matches ? Math.min(1, (now - start) / FLIGHT) : 1;
      const done = t * t * (3 - 2 * t);
      this.view.scale = from.scale * (scale / from.scale) ** done;
      this.view.x = from.x + (x - from.x) * done;
      this.view.y = from.y + (y - from.y) * done;
      this.drawNow();
      if (t < 1) this.flight = requestAnimationFrame(step);
    };
    step(start);
  }

  // --- from pixels to places and back

  place(px, py) {
    const { x, y, scale } = this.view;
    return [x + (px - this.width / 2) / scale, y - (py - this.height / 2) / scale];
  }

  pixel(i) {
    const { x, y, scale } = this.view;
    return [(this.x[i] - x) * scale + this.width / 2, (y - this.y[i]) * scale + this.height / 2];
  }

  radius(i) {
    return this.size[i] * Math.min(3, Math.max(0.8, (this.view.scale / this.fit) ** 0.4));
  }

  nearest(px, py, within) {
    let best = -1;
    let least = within;
    for (let i = 0; i < this.n; i++) {
      const [x, y] = this.pixel(i);
      const distance = Math.hypot(x - px, y - py) - this.radius(i);
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  /** Move what is shown by so many pixels. */
  pan(dx, dy) {
    const limit = (value) => Math.min(1.1, Math.max(-1.1, value));
    this.view.x = limit(this.view.x - dx / this.view.scale);
    this.view.y = limit(this.view.y + dy / this.view.scale);
    this.draw();
  }

  /** The label in the middle is the one that the keys are on. */
  pointMiddle() {
    const i = this.nearest(this.width / 2, this.height / 2, Infinity);
    this.point(i, ...(i >= 0 ? this.pixel(i) : []), true);
  }

  point(i, x, y, byKeys = false) {
    this.canvas.classList.toggle("over", i >= 0);
    if (i !== this.over || i >= 0) this.told.over(i, x, y, byKeys);
    if (i === this.over) return;
    this.over = i;
    this.draw();
  }

  // --- drawing

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colour = Object.fromEntries(["dot", "ink", "quiet", "accent", "other", "sheet"].map((name) => [name, colour(name)]));
  }

  resize() {
    const { canvas } = this;
    const sharp = window.devicePixelRatio || 1;
    const before = this.fit;
    [this.width, this.height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.round(this.width * sharp);
    canvas.height = Math.round(this.height * sharp);
    this.sharp = sharp;
    this.fit = Math.max(1, Math.min(this.width, this.height) / 2.08);
    this.view.scale *= this.fit / before;
    this.draw();
  }

  /** Draw once before the next frame, however often it is asked for. */
  draw() {
    this.waiting ??= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.waiting);
    this.waiting = undefined;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.sharp, 0, 0, this.sharp, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    if (!this.n) return;
    this.canvas.dataset.zoom = (this.view.scale / this.fit).toFixed(2);
    const near = this.chosen >= 0 ? this.related(this.chosen) : [];
    const dim = near.length || this.lit.size ? 0.45 : 0.75;
    const shown = this.drawDots(pen, dim);
    this.drawTies(pen, near);
    for (const i of near) this.dot(pen, i, this.colour.other, 1.5);
    for (const i of this.lit.keys()) this.dot(pen, i, this.colour.accent, 2);
    if (this.chosen >= 0) this.dot(pen, this.chosen, this.colour.other, 2.5);
    if (this.over >= 0) this.dot(pen, this.over, this.colour.ink, 1.5);
    this.drawNames(pen, near, shown);
  }

  drawDots(pen, dim) {
    const shown = [];
    pen.globalAlpha = dim;
    pen.fillStyle = this.colour.dot;
    pen.beginPath();
    for (let i = 0; i < this.n; i++) {
      const [x, y] = this.pixel(i);
      if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) continue;
      const r = this.radius(i);
      pen.moveTo(x + r, y);
      pen.arc(x, y, r, 0, 7);
      shown.push(i);
    }
    pen.fill();
    pen.globalAlpha = 1;
    return shown;
  }

  drawTies(pen, near) {
    pen.strokeStyle = this.colour.other;
    near.forEach((other, rank) => {
      pen.globalAlpha = 0.25 + 0.5 * this.data.strength[this.chosen][rank];
      pen.lineWidth = 1 + 2 * this.data.strength[this.chosen][rank];
      pen.beginPath();
      pen.moveTo(...this.pixel(this.chosen));
      pen.lineTo(...this.pixel(other));
      pen.stroke();
    });
    pen.globalAlpha = 1;
  }

  dot(pen, i, colour, more) {
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(...this.pixel(i), this.radius(i) + more, 0, 7);
    pen.fill();
  }

  /** Names that matter first, then those of frequent labels, none over another. */
  drawNames(pen, near, shown) {
    const { colour } = this;
    const taken = [[this.width - 55, this.height - 145, this.width, this.height]];  // buttons are there
    const drawn = new Set();
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    const put = (i, ink, weight, always = false) => {
      if (i < 0 || drawn.has(i)) return;
      const [x, y] = this.pixel(i);
      const full = this.data.names[i];
      const name = full.length > LONG ? `${full.slice(0, LONG - 1)}…` : full;
      pen.font = `${weight} 12.5px system-ui, sans-serif`;
      const width = pen.measureText(name).width;
      const beside = this.radius(i) + 5;
      const sides = [x + beside, x - beside - width];
      let left = sides.find((start) => this.isFree(taken, start, y, width));
      if (left === undefined && always) left = sides[0] + width < this.width ? sides[0] : sides[1];
      if (left === undefined) return;
      taken.push([left - 2, y - 8, left + width + 2, y + 8]);
      drawn.add(i);
      pen.strokeStyle = colour.sheet;
      pen.lineWidth = 4;
      pen.strokeText(name, left, y);
      pen.fillStyle = ink;
      pen.fillText(name, left, y);
    };
    for (const i of [this.chosen, ...this.lit.keys(), ...near]) {
      if (i < 0) continue;
      const [[x, y], r] = [this.pixel(i), this.radius(i) + 2];
      taken.push([x - r, y - r, x + r, y + r]);
    }
    put(this.chosen, colour.ink, 700, true);
    put(this.over, colour.ink, 700, true);
    for (const i of this.lit.keys()) put(i, colour.accent, 700);
    for (const i of near) put(i, colour.other, 600);
    for (const i of shown.slice(0, 600)) {  // most frequent first
      if (drawn.size >= NAMES) break;
      put(i, colour.quiet, 400);
    }
  }

  isFree(taken, left, y, width) {
    if (left < 2 || left + width > this.width - 2 || y < 8 || y > this.height - 8) return false;
    return !taken.some((box) => left < box[2] && box[0] < left + width && y - 8 < box[3] && box[1] < y + 8);
  }
}
