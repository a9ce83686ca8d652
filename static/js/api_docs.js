// Shows the OpenAPI document. Tokens entered here are not stored.
const container = document.getElementById("swagger");

window.SwaggerUIBundle({
  url: container.dataset.document,
  domNode: container,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null,
  withCredentials: false,
});
