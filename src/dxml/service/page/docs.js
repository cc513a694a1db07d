// The page about the routes, made from /openapi.json.

import * as api from "./api.js";
import { at, make } from "./dom.js";
import { bounds, examples, fields, groups, typeOf } from "./openapi.js";
import { pretty, tryout } from "./tryout.js";

/** Text in which `names` are set as code. */
function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));
}

/** Paragraphs, as the documentation of a function has them. */
function paragraphs(text) {
  return text.split(/\n\s*\n/).map((part) => make("p", {}, ...prose(part.replace(/\s+/g, " "))));
}

const badge = (method) => make("b", { className: `method ${method.toLowerCase()}` }, method);

/** A list of fields or parameters under a title; nothing where there are none. */
function table(title, rows) {
  if (!rows.length) return [];
  const items = rows.map(({ within = "", name, type, bounds: more, required, description }) => make("li", {},
    make("p", { className: "name" },
      make("code", {}, make("span", { className: "within" }, within), name),
      make("span", { className: "type" }, type),
      required ? make("span", { className: "must" }, "required") : "",
      more ? make("span", { className: "type" }, more) : ""),
    make("p", { className: "quiet" }, ...prose(description))));
  return [make("section", {}, make("h3", {}, title), make("ul", { className: "fields" }, ...items))];
}

const parameterRow = (spec) => ({ name, schema, required, description = "" }) => (
  { name, type: typeOf(spec, schema), bounds: bounds(spec, schema), required, description });

/** The statuses of a route, each with what it means; the errors after the rest. */
function answers(spec, route) {
  const items = Object.entries(route.responses).map(([status, { description }]) => make("li", {},
    make("b", { className: status < 400 ? "good" : "bad" }, status === "default" ? "other" : status),
    make("span", {}, ...prose(description))));
  const [first] = Object.values(route.responses);  // statuses come in order: it went well
  const media = first.content?.["application/json"];
  return [
    make("section", {}, make("h3", {}, "Answers"), make("ul", { className: "answers" }, ...items)),
    ...shape("Fields of the answer", spec, media),
  ];
}

/** The fields of an answer, then an example of it. */
function shape(title, spec, media) {
  const rows = fields(spec, media?.schema).map((field) => ({ ...field, required: false }));  // to be read, not given
  const code = examples(spec, media).map(({ value }) => make("pre", { className: "code", tabIndex: 0, "aria-label": "Example" }, pretty(value)));
  return [...table(title, rows), ...code];
}

function card(spec, route, takes) {
  const { id } = route;
  const body = route.requestBody?.content["application/json"]?.schema;
  const told = make("div", { className: "told" },
    ...paragraphs(route.description ?? ""),
    ...(route.security ? [make("p", { className: "quiet" }, "Needs the token, where the service was started with one.")] : []),
    ...table("Parameters", route.parameters.map(parameterRow(spec))),
    ...table("Body", fields(spec, body)),
    ...answers(spec, route));
  const title = make("h2", { id: `${id}-title` }, badge(route.method), make("code", {}, route.path), make("span", { className: "summary" }, route.summary));
  return make("section", { id, className: "card route", "aria-labelledby": `${id}-title` }, title, told, tryout(spec, route, takes));
}

function errors(spec) {
  const schema = { $ref: "#/components/schemas/Error" };
  return make("section", { id: "api-errors", className: "card", "aria-labelledby": "errors-title" },
    make("h2", { id: "errors-title" }, "Errors"),
    make("div", { className: "told" }, make("p", {}, "Every error has one shape, in JSON, whatever the route."), ...shape("Fields of an error", spec, { schema })));
}

function contents(found) {
  const link = (href, ...inside) => make("li", {}, make("a", { href }, ...inside));
  const lists = found.map(({ name, routes }) => make("section", {}, make("h2", {}, name),
    make("ul", {}, ...routes.map((route) => link(`#${route.id}`, badge(route.method), make("code", {}, route.path))))));
  return [...lists, make("ul", {}, link("#api-errors", "Errors"))];
}

async function start() {
  try {
    const [spec, { takes }] = await Promise.all([api.openapi(), api.health()]);
    const found = groups(spec);
    at("about").textContent = `${spec.info.description} Version ${spec.info.version}.`;
    at("contents").replaceChildren(...contents(found));
    at("routes").replaceChildren(...found.flatMap(({ name, description, routes }) => [
      make("div", { className: "group" }, make("h2", {}, name), make("p", { className: "quiet" }, description)),
      ...routes.map((route) => card(spec, route, takes)),
    ]), errors(spec));
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (problem) {
    at("loading").textContent = `${problem.message} Load this page again.`;
  }
}

start();
