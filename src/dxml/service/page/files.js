// Many texts at once: files are chosen or dropped, their labels shown and downloaded.

import * as api from "./api.js";
import { at, count, make, percent, say } from "./dom.js";
import { asCsv, likelyColumns, namingColumn, readFile } from "./tables.js";

const BATCH = 50;  // texts of a request
const CHARACTERS = 500000;  // of a request
const SHOWN = 50;  // rows on the page; the download has all

/** @param told.settings gives { top, threshold } */
export class Files {
  constructor(told) {
    this.told = told;
    this.tables = [];
    this.rows = [];
    this.running = null;
    const card = at("files");
    at("files-choose").addEventListener("click", (event) => { event.target.value = ""; });  // the same file may have changed
    at("files-choose").addEventListener("change", (event) => this.take(event.target.files));
    for (const kind of ["dragover", "dragleave", "drop"]) {
      card.addEventListener(kind, (event) => {
        event.preventDefault();
        card.classList.toggle("over", kind === "dragover");
        if (kind === "drop") this.take(event.dataTransfer.files);
      });
    }
    at("files-naming").addEventListener("input", () => this.rename());
    at("files-start").addEventListener("click", () => (this.running ? this.running.abort() : this.start()));
    at("files-save").addEventListener("click", () => this.save());
  }

  async take(files) {
    this.running?.abort();
    const problems = [];
    this.tables = [];
    this.rows = [];
    for (const file of files) {
      await readFile(file).then((table) => this.tables.push(table), (problem) => problems.push(problem.message));
    }
    say(at("files-problem"), problems.join(" "));
    this.columns();
    this.paint();
  }

  /** Which columns of tables hold the text: boxes to tick; and which one names the rows. */
  columns() {
    const withColumns = this.tables.filter((table) => table.columns);
    const names = [...new Set(withColumns.flatMap((table) => table.columns))];
    const likely = new Set(withColumns.flatMap(likelyColumns));
    const naming = withColumns.map(namingColumn).find(Boolean) ?? "";
    at("files-columns").hidden = names.length < 2;
    at("files-naming").replaceChildren(
      ...[["", "file and row"], ...names.map((name) => [name, name])].map(([value, said]) =>
        make("option", { value, selected: value === naming }, said)));
    at("files-names").replaceChildren(...names.map((name) => {
      const box = make("input", { type: "checkbox", checked: likely.has(name), value: name });
      return make("label", {}, box, make("span", { dir: "auto" }, name));
    }));
  }

  texts() {
    const chosen = [...at("files-names").querySelectorAll("input:checked")].map((box) => box.value);
    return this.tables.flatMap(({ rows }) => rows.map((row) => ({
      row,
      id: nameOf(row),
      text: row.cells ? chosen.map((name) => worded(row.cells[name])).filter(Boolean).join("\n") : row.text,
    })));
  }

  /** Another column names the rows: those that are labelled too. */
  rename() {
    for (const each of this.rows) each.id = nameOf(each.row);
    this.paint();
  }

  async start() {
    this.rows = this.texts();
    this.running = new AbortController();
    say(at("files-problem"), "");
    this.paint();
    try {
      for (const batch of batches(this.rows)) {
        await this.label(batch, this.told.settings());
        this.paint();
      }
    } catch (problem) {
      if (problem.name !== "AbortError") say(at("files-problem"), `${problem.message} What was done is below.`);
    } finally {
      this.running = null;
      this.paint();
    }
  }

  /** Ask for the labels of some texts; where the service refuses them, one by one, so that one fails alone. */
  async label(rows, settings) {
    try {
      const { results } = await api.predict({ text: rows.map((row) => row.text), ...settings }, this.running.signal);
      rows.forEach((row, i) => { Object.assign(row, { labels: results[i].labels, unknown: results[i].nothing_known }); });
    } catch (problem) {
      if (problem.name === "AbortError" || problem instanceof api.Unreachable) throw problem;
      if (rows.length === 1) rows[0].problem = problem.message;
      else for (const row of rows) await this.label([row], settings);
    }
  }

  paint() {
    const done = this.rows.filter((row) => row.labels || row.problem).length;
    const all = this.rows.length || this.texts().length;
    at("files-start").hidden = !all;
    at("files-start").textContent = this.running ? "Stop" : `Label ${count(all, "text")}`;
    at("files-save").hidden = !done || Boolean(this.running);
    at("files-state").textContent = this.rows.length ? `${done.toLocaleString("en")} of ${count(all, "text")} labelled` : "";
    const shown = this.rows.filter((row) => row.labels || row.problem).slice(0, SHOWN);
    at("files-rows").replaceChildren(...shown.map(line));
    say(at("files-more"), done > SHOWN ? `The first ${SHOWN} are shown; the download has all.` : "");
  }

  save() {
    const url = URL.createObjectURL(new Blob(["\ufeff", asCsv(this.rows)], { type: "text/csv;charset=utf-8" }));
    const link = make("a", { href: url, download: "labels.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}

/** By the chosen column, or else by file and row. */
function nameOf({ place, cells }) {
  const chosen = at("files-naming").value;
  return (cells && Object.hasOwn(cells, chosen) && worded(cells[chosen]).trim()) || place;
}

function worded(value) {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(worded).join("\n") : String(value);
}

function* batches(rows) {
  let batch = [];
  let size = 0;
  for (const row of rows) {
    if (!row.text.trim()) {
      row.problem = "There is no text.";
      continue;
    }
    if (batch.length === BATCH || (batch.length && size + row.text.length > CHARACTERS)) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(row);
    size += row.text.length;
  }
  if (batch.length) yield batch;
}

function line({ id, text, labels, unknown, problem }) {
  const first = text.trim().split("\n", 1)[0].slice(0, 80);
  const head = make("div", { className: "head" }, make("b", { dir: "auto" }, id), make("small", { dir: "auto" }, first));
  if (problem) return make("li", {}, head, make("p", { className: "problem" }, problem));
  const said = labels.length ? "" : "No label is that likely.";
  return make("li", {}, head,
    unknown || said ? make("p", { className: "quiet" }, unknown ? "No word is known: these are frequent labels." : said) : "",
    make("div", { className: "chips" }, ...labels.map(({ name, probability }) =>
      make("span", { className: "chip" }, make("span", { dir: "auto" }, name), ` ${percent(probability)}`))));
}
