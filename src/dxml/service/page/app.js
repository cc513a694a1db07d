// The page: a text goes in, its labels come out; the other files do the rest.

import * as api from "./api.js";
import { Atlas } from "./atlas.js";
import { Compare } from "./compare.js";
import { copy } from "./copy.js";
import { Curve } from "./curve.js";
import { at, calm, count, percent, say } from "./dom.js";
import { marked } from "./evidence.js";
import { Files } from "./files.js";
import { Lesson } from "./lesson.js";
import { Results } from "./results.js";
import { Review } from "./review.js";

const PAUSE = 300;  // milliseconds without a key until a text is looked at
const AGAIN = 2000;  // milliseconds until a service that did not answer is asked again

const text = at("text");
let takes = "text";
let asking = null;  // what the last question can be called off with
let answered = null;  // the question whose labels are on show
let why = null;  // a promise of the evidence for them
let retry;
let shown = [];  // the labels on show

const results = new Results({
  explain: () => (why ??= explain()),
  opened: (found) => mark(found?.words),
  judged: (name, verdict) => (verdict === "accepted" ? lesson.add(name) : lesson.remove(name)),
  picked: (name) => atlas.show(name),
});
const lesson = new Lesson({
  text: () => text.value,
  verdict: (name, verdict) => results.judge(name, verdict),
  changed: () => {
    results.forgetVerdicts();
    review.refresh();
    again();
  },
});
const review = new Review({ changed: again });
const compare = new Compare({ text: () => text.value, settings });
const curve = new Curve({ choose: (least) => choose(least) });
const atlas = new Atlas({ add: (name) => lesson.add(name) });
new Files({ settings });

/** The model has changed: ask it anew. */
function again() {
  summary();
  look.now();
  compare.changed();
}

/** How many labels are wanted, and how likely. */
function settings() {
  const top = Math.min(100, Math.max(1, Math.round(at("top").valueAsNumber) || 10));
  return { top, threshold: at("least").valueAsNumber / 100 };
}

/** The question as it stands, or null where there is nothing to ask. */
function question() {
  if (!text.value.trim()) return null;
  return takes === "text" ? { text: text.value, ...settings() } : { features: features(text.value), ...settings() };
}

/** 17:0.5 204:1.2 as [[17, 0.5], [204, 1.2]]. */
function features(written) {
  return written.trim().split(/[\s,]+/).map((pair) => {
    const found = /^(\d+):([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)$/i.exec(pair);
    if (!found) throw new Error(`“${pair}” is not a feature: write column:value, such as 17:0.5.`);
    return [Number(found[1]), Number(found[2])];
  });
}

async function ask() {
  clearTimeout(retry);
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  try {
    const asked = question();
    if (!asked) return nothing();
    at("results").setAttribute("aria-busy", "true");
    const [found] = (await api.predict(asked, signal)).results;
    if (signal.aborted) return;
    [answered, why] = [asked, null];
    show(found.labels, asked, found.nothing_known);
  } catch (problem) {
    if (problem.name === "AbortError" || signal.aborted) return;
    at("results").removeAttribute("aria-busy");
    const waits = problem instanceof api.Unreachable;
    say(at("problem"), waits ? `${problem.message} What you typed is still here; it is tried again every few seconds.` : problem.message);
    if (waits) retry = setTimeout(ask, AGAIN);
  }
}

function show(labels, { threshold }, nothingKnown) {
  at("results").removeAttribute("aria-busy");
  say(at("problem"), "");
  const none = labels.length ? "" : `No label is as likely as ${percent(threshold)}.`;
  say(at("empty"), nothingKnown ? "No word of this text is known: these labels are only the most frequent ones." : none);
  const [best] = labels;
  at("state").textContent = best ? `${count(labels.length, "label")}, first ${best.name} ${percent(best.probability)}` : "";
  results.show(labels);
  shown = labels;
  at("copy").hidden = !labels.length;
  atlas.light(labels);
}

function nothing() {
  [answered, why] = [null, null];
  at("results").removeAttribute("aria-busy");
  say(at("problem"), "");
  say(at("empty"), "Nothing to label yet.");
  at("state").textContent = "";
  results.clear();
  at("copy").hidden = true;
  atlas.light([]);
}

/** Evidence for the labels on show, by name; an answer that comes too late is of no use. */
async function explain() {
  try {
    const [found] = (await api.predict({ ...answered, explain: true }, asking.signal)).results;
    return new Map(found.explanations.map((each) => [each.name, each]));
  } catch (problem) {
    why = null;  // to be asked for anew
    throw problem;
  }
}

function mark(words) {
  at("marks").replaceChildren(...marked(text.value, words));
  at("marks").scrollTop = text.scrollTop;
}

async function summary() {
  try {
    const found = await api.health();
    const things = found.takes === "text" ? "text" : "point";
    at("summary").textContent = `${count(found.labels, "label")} learnt from ${count(found.points, things)}`;
    return found;
  } catch {
    return null;  // whatever is asked next says what is wrong
  }
}

/** A model of features: other words, and nothing to teach. */
function takeFeatures() {
  at("text-title").textContent = "Features";
  say(at("hint"), "This model was trained on features, not on texts: write column:value pairs. It cannot be taught here.");
  text.placeholder = "17:0.5 204:1.2";
  results.teachable = false;
  for (const id of ["chosen-add", "compare", "files", "review"]) at(id).hidden = true;
}

const look = calm(PAUSE, ask);

text.addEventListener("input", () => {
  mark(null);  // what was marked has moved
  look();
  compare.changed();
});
text.addEventListener("scroll", () => { at("marks").scrollTop = text.scrollTop; });
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) look.now();
});
at("ask").addEventListener("click", () => look.now());
at("clear").addEventListener("click", () => {
  text.value = "";
  mark(null);
  look.now();
  compare.changed();
  text.focus();
});
at("copy").addEventListener("click", async () => {
  const done = await copy(shown.map(({ name }) => name).join("\n"));
  at("state").textContent = done ? `Copied ${count(shown.length, "label")}` : "The browser does not let this page copy.";
});
at("top").addEventListener("input", () => { look(); compare.changed(); });
at("least").addEventListener("input", () => choose(at("least").valueAsNumber));

/** Show labels from this per cent on. */
function choose(least) {
  at("least").value = least;
  at("least-said").textContent = `${least} %`;
  curve.follow(least);
  look();
  compare.changed();
}

addEventListener("online", () => look.now());

const model = await summary();
takes = model?.takes ?? "text";
if (takes === "features") takeFeatures();
at("teaching").hidden = takes === "features";
if (text.value.trim()) look.now();  // a browser may have kept it
