// Teaching: the labels that a text is to carry, sent to the service, and taken back.

import * as api from "./api.js";
import { combobox } from "./combobox.js";
import { at, make, say } from "./dom.js";
import { Guard } from "./guard.js";

/**
 * @param told.text gives the text as it stands
 * @param told.changed called when the model has learnt or forgotten something
 * @param told.verdict called with (name, verdict) when a label enters or leaves the lesson here
 */
export class Lesson {
  constructor(told) {
    this.told = told;
    this.names = new Map();  // name → whether it is new
    this.last = null;  // { text, id } of what was taught last
    this.busy = false;
    combobox(at("add"), {
      id: "add-field", label: "Add a label, known or new", mayBeNew: true,
      choose: ({ name, points }) => this.add(name, !points),
    });
    at("teach").addEventListener("click", () => this.teach());
    at("undo").addEventListener("click", () => this.undo());
    this.guard = new Guard(at("token-form"));
    this.paint();
  }

  add(name, isNew = false) {
    this.names.set(name, isNew);
    this.told.verdict(name, "accepted");
    this.paint();
  }

  remove(name) {
    this.names.delete(name);
    this.paint();
  }

  paint() {
    at("teaching").classList.toggle("ready", this.names.size > 0);  // in sight while there is something in it
    at("lesson-empty").hidden = this.names.size > 0;
    at("lesson").replaceChildren(...[...this.names].map(([name, isNew]) => this.chip(name, isNew)));
    at("teach").setAttribute("aria-disabled", String(this.busy || !this.names.size));
  }

  chip(name, isNew) {
    const button = make("button", { className: "chip same", "aria-label": `Take ${name} out of the lesson` },
      make("span", { dir: "auto" }, name), isNew ? make("span", { className: "new" }, " new") : "", " ",
      make("span", { className: "off", "aria-hidden": "true" }, "×"));
    button.addEventListener("click", () => {
      this.remove(name);
      this.told.verdict(name, undefined);
      at("add-field").focus();
    });
    return make("li", {}, button);
  }

  async teach() {
    const text = this.told.text();
    if (this.busy) return;
    if (!text.trim()) return say(at("taught-problem"), "There is no text to teach yet.");
    if (!this.names.size) return say(at("taught-problem"), "Accept a label above or add one first.");
    const names = [...this.names.keys()];
    const lesson = { texts: [text], labels: [names] };
    if (this.last?.text === text) lesson.ids = [this.last.id];  // corrected rather than taught twice
    await this.attempt(() => this.teach(), async () => {
      const done = await api.learn(lesson);
      this.last = { text, id: done.ids[0] };
      this.names.clear();
      const more = news(done.new_labels) + strange(done.outside_vocabulary) + mute(done.without_known_words);
      this.tell(`Learnt: this text is ${list(names)}.${more}`, true);
    });
  }

  async undo() {
    if (!this.last || this.busy) return;
    const { id } = this.last;
    await this.attempt(() => this.undo(), async () => {
      await api.forget(id);
      this.last = null;
      this.tell("Forgotten again.", false);
      at("teach").focus();
    });
  }

  tell(sentence, canUndo) {
    at("taught").hidden = false;
    at("undo").hidden = !canUndo;
    at("taught-said").textContent = sentence;
  }

  /** Do something that changes the model; ask for a token where one is needed, then do it again. */
  async attempt(again, work) {
    this.busy = true;
    say(at("taught-problem"), "");
    this.paint();
    const { problem, asked } = await this.guard.attempt(work, again);
    this.busy = false;
    this.paint();
    if (!problem && !asked) return this.told.changed();
    say(at("taught-problem"), asked ? problem : `${problem} Nothing was changed; the lesson is still here.`);
  }
}

/** “a”, “b” and “c”. */
function list(names) {
  const quoted = names.map((name) => `“${name}”`);
  const last = quoted.pop();
  return quoted.length ? `${quoted.join(", ")} and ${last}` : last;
}

function mute(ids) {
  return ids.length ? " It has no word, so nothing changes." : "";
}

function strange(names) {
  return names.length ? ` ${list(names)} ${names.length === 1 ? "is" : "are"} not in the vocabulary.` : "";
}

function news(names) {
  if (!names.length) return "";
  return ` ${list(names)} ${names.length === 1 ? "is a new label" : "are new labels"}.`;
}
