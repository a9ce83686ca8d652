// Shows a sentence when a request of htmx fails. What was entered stays: htmx swaps no error into the page.

const UNAVAILABLE = "The site is not responding right now.";
const RETRIABLE_CAUSES = {
  0: "The server could not be reached.",
  429: "The server received too many requests.",
  502: UNAVAILABLE,
  503: UNAVAILABLE,
  504: UNAVAILABLE,
};
const DISK_FULL = 507;

const failures = new Map(); // request → its sentence, until the same request succeeds

const words = document.createElement("span");
const dismiss = Object.assign(document.createElement("button"), { type: "button", className: "button quiet", textContent: "Dismiss" });
const notice = Object.assign(document.createElement("div"), { id: "request-error", className: "notice error", role: "alert", hidden: true });
notice.append(words, dismiss);
document.body.append(notice);
dismiss.addEventListener("click", () => { notice.hidden = true; });

const causeOf = (status) => {
  if (status === DISK_FULL) return "The server’s disk is almost full.";
  return RETRIABLE_CAUSES[status] ?? `The server could not handle this request (error ${status}).`;
};

const show = (request, sentence, isPoll = false) => {
  const isRepeated = isPoll && failures.get(request) === sentence;
  failures.set(request, sentence);
  if (isRepeated) return; // it may be dismissed
  words.textContent = sentence;
  notice.hidden = false;
};

const clear = (request) => {
  if (!failures.delete(request)) return;
  const latest = [...failures.values()].at(-1);
  if (latest) words.textContent = latest;
  else notice.hidden = true;
};

const nameRequest = ({ verb, path }) => `${verb} ${path}`;

const handleFailure = ({ detail: { xhr, requestConfig } }) => {
  const isPoll = !requestConfig.triggeringEvent;
  const retry = xhr.status in RETRIABLE_CAUSES ? " Try again in a moment." : "";
  const advice = isPoll ? "This page updates as soon as it can." : `What you entered is still here.${retry}`;
  show(nameRequest(requestConfig), `${causeOf(xhr.status)} ${advice}`, isPoll);
};

for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(failure, handleFailure);

document.addEventListener("htmx:afterRequest", ({ detail }) => { if (detail.successful) clear(nameRequest(detail.requestConfig)); });

// Back and forward: htmx has no event for a history request without a connection.
document.addEventListener("htmx:historyCacheMiss", ({ detail: { xhr } }) => {
  xhr.addEventListener("loadend", () => {
    if (xhr.status >= 200 && xhr.status < 400) clear("history");
    else show("history", `${causeOf(xhr.status)} Reload the page in a moment.`);
  });
});
