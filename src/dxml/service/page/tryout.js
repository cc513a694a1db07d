// "Try it": the request of a route as one may change it, the same as a curl command, and its answer.

import { make, say } from "./dom.js";
import { examples, resolve } from "./openapi.js";

const MOST = 20_000;  // characters of an answer that are shown
const WIDTH = 56;  // characters of a line of JSON
let token = "";  // good for every route until the page is closed

/** A form that sends a request; `takes` is what the model takes: "text" or "features". */
export function tryout(api, route, takes) {
  const { id } = route;
  const media = route.requestBody?.content["application/json"];
  const known = examples(api, media);
  const first = known.find(({ value }) => takes in value) ?? known[0];
  const body = media && make("textarea", { id: `${id}-body`, spellcheck: false, rows: 4, value: pretty(first?.value ?? {}) });
  const inputs = route.parameters.map((parameter) => [parameter, input(api, `${id}-${parameter.name}`, parameter)]);
  const command = make("pre", { id: `${id}-curl`, className: "code", tabIndex: 0, "aria-label": "The same with curl" });
  const copy = make("button", { type: "button", className: "copy" }, "Copy");
  const key = make("input", { id: `${id}-token`, type: "password", autocomplete: "off" });
  const wanted = make("div", { className: "field", hidden: true }, make("label", { htmlFor: key.id }, "This service wants a token"), key);
  const problem = make("p", { className: "problem", role: "alert", hidden: true });
  const state = make("p", { className: "answered", role: "status" });
  const answer = make("pre", { className: "code answer", tabIndex: 0, hidden: true, "aria-label": "The answer" });
  const form = make("form", { className: "try", "aria-label": `Try ${route.method} ${route.path}`, noValidate: true },
    make("h3", {}, "Try it"),
    ...(route.security ? [make("p", { className: "quiet" }, "This changes the model that is served.")] : []),
    ...inputs.map(([parameter, field]) => make("div", { className: "field" }, make("label", { htmlFor: field.id }, parameter.name), field)),
    ...(known.length > 1 ? [chips(known, (value) => { body.value = pretty(value); change(); })] : []),
    ...(body ? [make("label", { className: "unseen", htmlFor: body.id }, "Body, in JSON"), body] : []),
    wanted,
    make("div", { className: "command" }, command, copy),
    make("div", { className: "controls" }, make("button", { className: "main", title: "Ctrl + Enter" }, "Send"), state),
    problem, answer);

  /** The address, with the parameters in their places. */
  function address() {
    const asked = new URLSearchParams();
    let path = route.path.slice(1);
    for (const [{ name, in: place, schema }, { value }] of inputs) {
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
      else if (value !== String(schema.default ?? "")) asked.set(name, value);
    }
    return new URL(path + (asked.size ? `?${asked}` : ""), document.baseURI).href;
  }

  function change() {
    command.textContent = curl(route, address(), body?.value);
    say(problem, "");
  }

  async function send() {
    if (body && parsed(body.value) === undefined) return say(problem, "The body is not JSON: names and texts stand in double quotes, and there is no comma after the last.");
    if (inputs.some(([{ required }, { value }]) => required && !value)) return say(problem, "Fill in what the address needs.");
    token = wanted.hidden ? token : key.value.trim();
    form.setAttribute("aria-busy", "true");
    say(problem, "");
    try {
      show(await ask(route, address(), body?.value));
    } catch {
      [state.textContent, answer.hidden] = ["", true];
      say(problem, "The service does not answer.");
    } finally {
      form.removeAttribute("aria-busy");
    }
  }

  function show({ status, phrase, ok, text, seconds }) {
    state.textContent = `${status} ${phrase} · ${Math.max(1, Math.round(1000 * seconds))} ms`;
    state.classList.toggle("bad", !ok);
    const value = parsed(text);
    const whole = value === undefined ? text : pretty(value);
    answer.textContent = whole.length > MOST ? `${whole.slice(0, MOST)}\n… and ${(whole.length - MOST).toLocaleString("en")} characters more` : whole;
    answer.hidden = !text;
    wanted.hidden = status !== 401;
    if (status === 401) key.focus();
  }

  form.addEventListener("input", change);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  body?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
  });
  copy.addEventListener("click", async () => {
    copy.textContent = (await copied(command)) ? "Copied" : "Marked";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  change();
  return form;
}

function input(api, id, { schema, example }) {
  const known = resolve(api, schema);
  const value = String(example ?? known.examples?.[0] ?? known.default ?? "");
  return make("input", { id, value, type: known.type === "integer" ? "number" : "text", autocomplete: "off" });
}

function chips(known, choose) {
  const buttons = known.map(({ name, value }) => {
    const button = make("button", { type: "button", className: "chip" }, name);
    button.addEventListener("click", () => choose(value));
    return make("li", {}, button);
  });
  return make("ul", { className: "chips", "aria-label": "Examples" }, ...buttons);
}

async function ask({ method, security }, url, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  if (security && token) headers.Authorization = `Bearer ${token}`;
  const start = performance.now();
  const answer = await fetch(url, { method, headers, body });
  const text = await answer.text();
  return { status: answer.status, phrase: answer.statusText, ok: answer.ok, text, seconds: (performance.now() - start) / 1000 };
}

/** A command for a shell; the token is in the environment, where the service looks for it too. */
function curl({ method, security }, url, body) {
  const usual = body === undefined ? "GET" : "POST";
  const parts = [method === usual ? quoted(url) : `-X ${method} ${quoted(url)}`];
  if (security) parts.push('-H "Authorization: Bearer $DXML_TOKEN"');
  if (body !== undefined) parts.push(`--json ${quoted(JSON.stringify(parsed(body)) ?? body)}`);
  return `curl ${parts.join(" \\\n  ")}`;
}

const quoted = (text) => (/^[\w:/.%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The value that a text in JSON stands for; undefined where it is none. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON on several lines; what is short stays on one. */
export function pretty(value, indent = "") {
  const short = line(value);
  if (Object(value) !== value || short.length + indent.length <= WIDTH) return short;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const rows = Object.entries(value).map(([name, each]) => `${inner}${open === "{" ? `${JSON.stringify(name)}: ` : ""}${pretty(each, inner)}`);
  return `${open}\n${rows.join(",\n")}\n${indent}${close}`;
}

function line(value) {
  if (Array.isArray(value)) return `[${value.map(line).join(", ")}]`;
  if (Object(value) !== value) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${line(each)}`).join(", ")}}`;
}

/** Put an element's text where it can be pasted from; without that right, mark it. */
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}
