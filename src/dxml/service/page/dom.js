// Small helpers. Everything that comes from the service is put in as text, never as markup.

/** An element: make("li", { className: "x" }, "text", other). A name with a dash is an attribute. */
export function make(tag, settings = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** The element with this id. */
export const at = (id) => document.getElementById(id);

/** A probability in words; never 0 % or 100 % where it is not. */
export function percent(share) {
  if (share > 0 && share < 0.005) return "<1 %";
  if (share < 1 && share >= 0.995) return ">99 %";
  return `${Math.round(100 * share)} %`;
}

/** 1,234 texts; "text" for one of them. */
export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** Show a sentence in an element, or hide it where there is none. */
export function say(element, sentence) {
  element.textContent = sentence || "";
  element.hidden = !sentence;
}

/** Call a function when nobody asked again for a while; `now` calls it at once. */
export function calm(wait, call) {
  let timer;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
  later.now = (...given) => {
    clearTimeout(timer);
    return call(...given);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}
