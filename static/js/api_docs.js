// Lays out the OpenAPI document, to be read and tried. Tokens that are entered here are kept in no storage.
const place = document.getElementById("swagger");

window.SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null,
  withCredentials: false,
});
