// Swagger UI over the service's own openapi.json; its script and styles come from a Python package.

const spec = await (await fetch("openapi.json")).json();
const root = new URL(".", document.baseURI).pathname.replace(/\/$/, "");  // not empty behind a proxy with a prefix

window.SwaggerUIBundle({
  spec: root ? { ...spec, servers: [{ url: root }] } : spec,
  dom_id: "#swagger-ui",
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,  // the default asks another host
});
