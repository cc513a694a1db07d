// Why a text got a label: shares, words or features, neighbours.

import { make, percent } from "./dom.js";

const UNSPACED = "[\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Thai}\\p{sc=Laoo}\\p{sc=Mymr}\\p{sc=Khmr}]";
const WORD = new RegExp(`(${UNSPACED}+)|(?:(?!${UNSPACED})[\\p{L}\\p{N}_]){2,}`, "gu");  // as the service finds words
const LONGEST_GRAM = 4;  // of characters, in scripts that put no spaces between words

/** The panel for one explanation; `tagged(name)` makes a chip for a label. */
export function evidence(why, tagged) {
  const parts = [shares(why)];
  const words = why.words || why.features || [];
  parts.push(section(why.words ? "Words that mattered" : "Features that mattered",
    words.length ? wordList(words) : make("p", { className: "quiet" }, "None by itself.")));
  parts.push(section("Similar texts that voted for it", why.neighbours.length
    ? make("ul", { className: "near" }, ...why.neighbours.map((near) => neighbour(near, why.name, tagged)))
    : make("p", { className: "quiet" }, "None.")));
  return parts;
}

function section(title, content) {
  return make("div", {}, make("h3", {}, title), content);
}

function shares(why) {
  if (!why.from_head && !why.from_neighbours) {
    return make("p", { className: "quiet" }, "Nothing in the text speaks for this label.");
  }
  const head = `head ${percent(why.from_head)}`;
  const near = `neighbours ${percent(why.from_neighbours)}`;
  const bar = make("div", { className: "stack", role: "img", "aria-label": `Evidence: ${head}, ${near}` },
    make("i"), make("i"));
  bar.children[0].style.width = `${100 * why.from_head}%`;
  bar.children[1].style.width = `${100 * why.from_neighbours}%`;
  return section("Where the evidence comes from", make("div", {}, bar,
    make("p", { className: "legend" },
      make("span", { title: "What the trained weights make of the words." }, head),
      make("span", { title: "What the most similar known texts carry." }, near))));
}

function wordList(words) {
  return make("ul", { className: "words" }, ...words.map(([word, weight]) =>
    make("li", { className: weight < 0 ? "against" : "" }, make("span", { dir: "auto" }, String(word)), " ",
      make("b", {}, `${weight < 0 ? "−" : "+"}${Math.abs(weight).toFixed(2)}`))));
}

function neighbour(near, name, tagged) {
  const title = near.title || near.id;
  const item = make("li", {}, make("div", { className: "head" },
    make("b", { title: "similarity" }, near.similarity.toFixed(2)),
    make("span", { dir: "auto" }, title, near.title ? make("small", {}, `  ${near.id}`) : "")));
  if (near.labels?.length) {
    item.append(make("div", { className: "chips" }, ...near.labels.map((label) => tagged(label, label === name))));
  }
  return item;
}

/** The text once more, with the words that mattered marked; it lies behind the field. */
export function marked(text, words) {
  const weights = new Map((words || []).map(([word, weight]) => [String(word), weight]));
  const most = Math.max(...[...weights.values()].map(Math.abs), 1e-9);
  const parts = [];
  let end = 0;
  for (const [start, word] of weights.size ? wordsOf(text, weights) : []) {
    const weight = weights.get(word) ?? weights.get(word.toLowerCase());
    if (weight === undefined) continue;
    parts.push(text.slice(end, start), make("mark", { className: tone(weight / most) }, word));
    end = start + word.length;
  }
  parts.push(`${text.slice(end)}\n`);  // a last empty line has its height too
  return parts;
}

/** The words of a text with their places; of a stretch without spaces the longest n-grams that mattered. */
function* wordsOf(text, weights) {
  for (const { 0: word, 1: stretch, index } of text.matchAll(WORD)) {
    if (!stretch || weights.has(stretch)) {
      yield [index, word];
      continue;
    }
    for (let start = 0; start < stretch.length;) {
      let size = LONGEST_GRAM;
      while (size && !weights.has(stretch.slice(start, start + size))) size -= 1;
      if (size) yield [index + start, stretch.slice(start, start + size)];
      start += size || 1;
    }
  }
}

function tone(share) {
  if (share < 0) return "against";
  return share > 0.66 ? "strong" : share > 0.33 ? "middle" : "weak";
}
