// Reads /openapi.json: what routes there are, and what their schemas mean in words.

const METHODS = ["get", "post", "put", "patch", "delete"];

/** The routes in groups: [{ name, description, routes: [{ method, path, … }] }], in the order of the tags. */
export function groups(api) {
  const found = new Map((api.tags ?? []).map(({ name, description }) => [name, { name, description, routes: [] }]));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((each) => each in item)) {
      const name = item[method].tags?.[0] ?? "Routes";
      if (!found.has(name)) found.set(name, { name, description: "", routes: [] });
      found.get(name).routes.push({ parameters: [], ...item[method], id: `api-${item[method].operationId}`, method: method.toUpperCase(), path });
    }
  }
  return [...found.values()].filter(({ routes }) => routes.length);
}

/** The schema that a reference stands for. */
export function resolve(api, schema) {
  if (!schema?.$ref) return schema ?? {};
  const named = schema.$ref.replace("#/", "").split("/").reduce((at, key) => at[key], api);
  return { ...resolve(api, named), ...Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "$ref")) };
}

/** The schemas that a value may be of, without null. */
function choices(api, given) {
  const schema = resolve(api, given);
  const many = schema.anyOf ?? schema.oneOf;
  return many ? many.flatMap((each) => choices(api, each)).filter(({ type }) => type !== "null") : [schema];
}

/** A type in words: "string or list of strings". */
export function typeOf(api, schema) {
  return [...new Set(choices(api, schema).map((each) => one(api, each)))].join(" or ");
}

function one(api, schema) {
  if (schema.const !== undefined || schema.enum) return [schema.const ?? schema.enum].flat().map((each) => JSON.stringify(each)).join(" or ");
  if (schema.type === "array") {
    if (schema.prefixItems) return `[${schema.prefixItems.map((each) => typeOf(api, each)).join(", ")}]`;
    const inside = typeOf(api, schema.items);
    return `list of ${inside.includes(" or ") ? `(${inside})` : plural(inside)}`;
  }
  const values = schema.additionalProperties;
  if (schema.type === "object" && values?.type) return `{…: ${typeOf(api, values)}}`;
  return schema.type ?? "anything";
}

const plural = (type) => (/^\w+$/.test(type) ? `${type}s` : type.replace(/^list of/, "lists of"));

/** What else holds of a value: "1 or more, 5 by default". */
export function bounds(api, schema) {
  const said = [];
  const [first = {}] = choices(api, schema);
  if (first.minimum !== undefined && first.maximum !== undefined) said.push(`${first.minimum} to ${first.maximum}`);
  else if (first.minimum !== undefined) said.push(`${first.minimum} or more`);
  else if (first.maximum !== undefined) said.push(`${first.maximum} at most`);
  if (first.minItems !== undefined && !first.prefixItems) said.push(`${first.minItems} or more`);
  if (schema.default !== undefined && schema.default !== null && schema.default !== "") said.push(`${JSON.stringify(schema.default)} by default`);
  return said.join(", ");
}

/** The fields of an object, and of the objects in it: [{ within, name, type, bounds, required, description }]. */
export function fields(api, given, within = "") {
  const schema = resolve(api, given);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = {
      within, name, type: typeOf(api, property), bounds: bounds(api, property),
      required: schema.required?.includes(name) ?? false, description: resolve(api, property).description ?? "",
    };
    const [kind, path] = innermost(api, property, `${within}${name}`);
    return [field, ...fields(api, kind, `${path}.`)];
  });
}

/** What lists hold in the end, and how it is reached. */
function innermost(api, given, path) {
  const [schema = {}] = choices(api, given);
  return schema.type === "array" && schema.items ? innermost(api, schema.items, `${path}[]`) : [schema, path];
}

/** Examples of a body or an answer, named where they have names: [{ name, value }]. */
export function examples(api, media) {
  if (media?.examples) return Object.values(media.examples).map(({ summary, value }) => ({ name: summary, value }));
  const values = resolve(api, media?.schema).examples ?? [];
  return values.map((value, i) => ({ name: `Example ${i + 1}`, value: inOrder(api, media.schema, value) }));
}

/** A value with its fields in the order of the schema: openapi.json has those of examples by the alphabet. */
function inOrder(api, given, value) {
  const [schema = {}] = choices(api, given);
  if (Array.isArray(value)) return value.map((each) => inOrder(api, schema.items, each));
  if (!schema.properties || Object(value) !== value) return value;
  const known = Object.entries(schema.properties).filter(([name]) => name in value);
  return Object.fromEntries(known.map(([name, property]) => [name, inOrder(api, property, value[name])]));
}
