// What the service was taught: listed, shown in full, taken back.

import * as api from "./api.js";
import { at, count, make, say } from "./dom.js";
import { Guard } from "./guard.js";

const PAGE = 20;  // lessons fetched at a time

/** @param told.changed called when a lesson was taken back */
export class Review {
  constructor(told) {
    this.told = told;
    this.guard = new Guard(at("review-token-form"));
    at("review").addEventListener("toggle", () => this.refresh());
    at("review-older").addEventListener("click", () => this.fetch(this.oldest));
  }

  refresh() {
    if (at("review").open) return this.fetch();
  }

  async fetch(before = null) {
    const { problem } = await this.guard.attempt(async () => {
      const { total, lessons } = await api.lessons(before, PAGE);
      const items = lessons.map((each) => this.item(each));
      if (before) at("review-list").append(...items);
      else at("review-list").replaceChildren(...items);
      this.oldest = lessons.at(-1)?.number;
      at("review-older").hidden = at("review-list").children.length >= total || !lessons.length;
      at("review-state").textContent = total ? count(total, "lesson") : "Nothing was taught yet.";
    }, () => this.fetch(before));
    say(at("review-problem"), problem);
  }

  item({ number, time, pending, summary }) {
    const whole = make("div", { className: "why", hidden: true });
    const show = make("button", { "aria-expanded": "false", "aria-label": `Show lesson ${number}` }, "Show");
    const undo = make("button", { "aria-label": `Undo lesson ${number}` }, "Undo");
    show.addEventListener("click", () => this.toggle(number, show, whole));
    undo.addEventListener("click", () => this.undo(number, undo));
    const when = `${number} · ${time} UTC${pending ? "" : " · part of the saved model"}`;
    return make("li", { "data-number": number }, make("div", { className: "line" },
      make("div", {}, make("p", { dir: "auto" }, summary), make("small", {}, when)), show, undo), whole);
  }

  async toggle(number, button, whole) {
    whole.hidden = !whole.hidden;
    button.setAttribute("aria-expanded", String(!whole.hidden));
    if (whole.hidden || whole.childNodes.length) return;
    const again = () => { whole.hidden = true; return this.toggle(number, button, whole); };
    const { problem } = await this.guard.attempt(async () => {
      whole.replaceChildren(...told(await api.lesson(number)));
    }, again);
    say(at("review-problem"), problem);
  }

  async undo(number, button) {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    const { problem } = await this.guard.attempt(async () => {
      const { done } = await api.undo(number);
      await this.fetch();
      at("review-state").textContent = `${done[0].toUpperCase()}${done.slice(1)}.`;
      at("review").querySelector("summary").focus();
      this.told.changed();
    }, () => this.undo(number, button));
    button.removeAttribute("aria-disabled");
    say(at("review-problem"), problem);
  }
}

/** The texts of a lesson with their labels, or what else was done. */
function told(lesson) {
  if (!lesson.texts) return [make("p", { className: "quiet" }, "There is no more to it.")];
  return lesson.texts.map((text, i) => make("div", {},
    make("h3", {}, lesson.ids[i]), make("p", { className: "taught-text", dir: "auto" }, text),
    make("div", { className: "chips" }, ...lesson.labels[i].map((name) => make("span", { className: "chip", dir: "auto" }, name)))));
}
