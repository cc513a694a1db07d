// Files as texts: plain text, CSV and TSV with a header, JSON lines, JSON arrays.

const LIKELY = /^(text|texts|title|abstract|body|content|description|summary)$/i;
const NAMING = ["id", "_id", "identifier", "uid", "uuid", "key", "number", "no", "nr", "doi", "pmid", "isbn", "uri", "url", "file", "filename"];

/** { name, columns, rows }: a row has its place in the file and its cells; a plain text is one row with a text. */
export async function readFile(file) {
  const text = decoded(await file.arrayBuffer(), file.name);
  const kind = file.name.toLowerCase().split(".").pop();
  if (kind === "csv" || kind === "tsv" || kind === "tab") return named(file.name, separated(text, kind));
  if (kind === "jsonl" || kind === "ndjson" || kind === "json") return named(file.name, objects(text, file.name));
  return { name: file.name, columns: null, rows: [{ place: file.name, text }] };
}

/** The columns that hold texts, as far as names and lengths tell. */
export function likelyColumns({ columns, rows }) {
  const byName = columns.filter((name) => LIKELY.test(name));
  if (byName.length) return byName;
  const length = (name) => rows.slice(0, 100).reduce((sum, { cells: row }) => sum + String(row[name] ?? "").length, 0);
  return [...columns].sort((a, b) => length(b) - length(a)).slice(0, 1);
}

/** The column that names the rows: called like one that does, and another cell in each row; "" where there is none. */
export function namingColumn({ columns, rows }) {
  const found = NAMING.flatMap((each) => columns.filter((name) => name.toLowerCase() === each));
  const apart = (name) => new Set(rows.map((row) => String(row.cells[name] ?? ""))).size === rows.length;
  return found.find((name) => name.toLowerCase() === "id" || apart(name)) ?? "";
}

function decoded(bytes, name) {
  const [a, b] = new Uint8Array(bytes);
  const wide = (a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff);
  try {
    return new TextDecoder(wide ? (a === 0xff ? "utf-16le" : "utf-16be") : "utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${name} is not in UTF-8. Save it as UTF-8 and choose it again.`);
  }
}

function named(name, rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (!rows.length) throw new Error(`${name} has no rows.`);
  return { name, columns, rows: rows.map((cells, i) => ({ place: `${name}:${i + 1}`, cells })) };
}

function objects(text, name) {
  const trimmed = text.trim();
  const lines = trimmed.startsWith("[") ? null : trimmed.split(/\r?\n/).filter((line) => line.trim());
  let found;
  try {
    found = lines ? lines.map((line) => JSON.parse(line)) : JSON.parse(trimmed);
  } catch {
    throw new Error(`${name} is not JSON: an object a line, or an array of objects, is expected.`);
  }
  const rows = found.map((row) => (typeof row === "string" ? { text: row } : row));
  if (!rows.every((row) => row && typeof row === "object" && !Array.isArray(row))) {
    throw new Error(`${name} has rows that are no objects.`);
  }
  return rows;
}

function separated(text, kind) {
  const mark = kind === "csv" ? likelySeparator(text) : "\t";
  const [header, ...rows] = cells(text, mark);
  return rows.map((row) => Object.fromEntries(header.map((column, i) => [column || `column ${i + 1}`, row[i] ?? ""])));
}

function likelySeparator(text) {
  const [header] = text.replace(/"(?:[^"]|"")*"/g, "").split(/\r?\n/, 1);
  const times = (mark) => header.split(mark).length;
  return [",", ";", "\t", "|"].reduce((best, mark) => (times(mark) > times(best) ? mark : best));
}

/** Rows of cells as RFC 4180 has them: a quoted cell may hold the separator, line ends and "" for a quote. */
function cells(text, mark) {
  const rows = [];
  let row = [];
  let at = 0;
  while (at < text.length) {
    let cell;
    if (text[at] === '"') {
      let end = at + 1;
      while ((end = text.indexOf('"', end)) >= 0 && text[end + 1] === '"') end += 2;
      if (end < 0) end = text.length;
      cell = text.slice(at + 1, end).replaceAll('""', '"');
      at = end + 1;
    } else {
      let end = at;
      while (end < text.length && text[end] !== mark && text[end] !== "\n") end += 1;
      cell = text.slice(at, end).replace(/\r$/, "");
      at = end;
    }
    row.push(cell);
    while (at < text.length && text[at] !== mark && text[at] !== "\n") at += 1;  // what follows a quote
    if (text[at] !== mark) {
      if (row.length > 1 || row[0].trim()) rows.push(row);
      row = [];
    } else if (at + 1 === text.length) row.push("");
    at += 1;
  }
  if (row.length) rows.push(row);
  return rows;
}

/** As `dxml predict --format csv` writes it: a row a text, labels in one cell and probabilities in the next. */
export function asCsv(rows) {
  const lines = rows.map(({ id, labels = [] }) => {
    const names = labels.map((label) => label.name);
    const mark = [";", "|", "\t"].find((each) => !names.some((name) => name.includes(each))) ?? ";";
    const likely = labels.map((label) => String(Number(label.probability.toPrecision(6))));
    return [id, names.join(mark), likely.join(mark)].map(quoted).join(",");
  });
  return `${["point,labels,probabilities", ...lines].join("\r\n")}\r\n`;
}

function quoted(cell) {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
