// The service, as functions. What goes wrong is an Error whose message is a sentence for a person.

export class Unreachable extends Error {}
export class NeedsToken extends Error {}

let token = "";
export const useToken = (given) => { token = given; };

async function ask(path, { method = "GET", body, signal } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Unreachable("The service does not answer.");
  }
  if (answer.status === 204) return null;
  let content = null;
  try {
    content = await answer.json();
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
  }
  if (answer.ok && content) return answer.status === 202 ? null : content;
  const said = content?.error?.message || `The service answered with status ${answer.status}.`;
  const sentence = said[0].toUpperCase() + said.slice(1);
  if (answer.status === 401) throw new NeedsToken(sentence);
  if (answer.status === 502 || answer.status === 503) throw new Unreachable(sentence);
  throw new Error(sentence);
}

export const health = () => ask("health");
export const openapi = () => ask("openapi.json");
export const predict = (body, signal) => ask("predict", { method: "POST", body, signal });
export const learn = (body) => ask("learn", { method: "POST", body });
export const forget = (id) => ask(`points/${encodeURIComponent(id)}`, { method: "DELETE" });
export const lessons = (before, limit) => ask(`lessons?limit=${limit}${before ? `&before=${before}` : ""}`);
export const lesson = (number) => ask(`lessons/${number}`);
export const undo = (number) => ask(`lessons/${number}`, { method: "DELETE" });
/** Precision and recall by threshold; an Error where the model has no curve. */
export const thresholds = () => ask("thresholds");
export const labels = (query, limit, signal) =>
  ask(`labels?limit=${limit}&query=${encodeURIComponent(query)}`, { signal });
/** The map, or null while the service is making it. */
export const labelMap = () => ask("map");
