// A field that offers labels while one types: the combobox with a listbox of the ARIA practices.

import * as api from "./api.js";
import { calm, count, make } from "./dom.js";

const OFFERED = 8;

/**
 * Fill `place` with a field.
 *
 * @param settings.label what the field is for
 * @param settings.choose called with { name, points }; points is 0 for a name that is new
 * @param settings.mayBeNew whether a name that no label has may be chosen
 */
export function combobox(place, { id, label, choose, mayBeNew = false }) {
  const list = make("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
  const field = make("input", {
    id, type: "text", autocomplete: "off", spellcheck: false, placeholder: label,
    role: "combobox", "aria-label": label, "aria-autocomplete": "list",
    "aria-expanded": "false", "aria-controls": list.id,
  });
  const said = make("span", { className: "unseen", role: "status" });
  place.append(field, list, said);
  let offered = [];
  let active = -1;
  let asking = null;

  function close() {
    look.stop();
    asking?.abort();
    list.hidden = true;
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function show(found, query) {
    const exact = found.some((each) => each.name === query);
    offered = mayBeNew && query && !exact ? [...found, { name: query, points: 0 }] : found;
    list.replaceChildren(...offered.map((each, i) => option(each, i)));
    if (!offered.length) list.append(make("li", { role: "option", "aria-disabled": "true" }, "No label has this in its name."));
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    said.textContent = count(offered.length, "label");
    light(mayBeNew && query && !exact && !found.length ? 0 : -1);
  }

  function option(each, i) {
    const aside = each.points ? count(each.points, "text") : "new label";
    const item = make("li", { id: `${id}-${i}`, role: "option", "aria-selected": "false" },
      make("span", { dir: "auto" }, each.name), make("small", {}, aside));
    item.addEventListener("pointerdown", (event) => event.preventDefault());  // the field keeps focus
    item.addEventListener("click", () => take(each));
    return item;
  }

  function light(i) {
    active = i;
    [...list.children].forEach((item, j) => item.setAttribute("aria-selected", String(i === j)));
    if (i < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", `${id}-${i}`);
    list.children[i].scrollIntoView({ block: "nearest" });
  }

  function take(each) {
    field.value = "";
    close();
    choose(each);
  }

  async function find() {
    const query = field.value.trim();
    asking?.abort();
    if (!query) return close();
    asking = new AbortController();
    const { signal } = asking;
    try {
      const found = await api.labels(query, OFFERED, signal);
      if (!signal.aborted) show(found.labels, query);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      show([], query);
      if (!mayBeNew) list.firstChild.textContent = problem.message;
    }
  }

  /** Enter without an option: the label that is called so, the only one offered, or a new name. */
  async function takeTyped() {
    const query = field.value.trim();
    if (!query) return;
    await look.now();
    if (list.hidden || field.value.trim() !== query) return;
    const same = offered.find((each) => each.name === query)
      || offered.find((each) => each.name.toLowerCase() === query.toLowerCase() && each.points)
      || (offered.length === 1 ? offered[0] : null);
    if (same) take(same);
    else light(0);
  }

  const look = calm(150, find);
  field.addEventListener("input", () => look());
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      if (list.hidden) return void look.now();
      if (offered.length) light((active + steps[event.key] + offered.length + (active < 0 && event.key === "ArrowUp")) % offered.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (active >= 0) take(offered[active]);
      else takeTyped();
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });
  return field;
}
