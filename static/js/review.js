// The review page with a browser's help. Without this file it works as links and forms.

import * as ahead from "./review/ahead.js";
import * as choosing from "./review/choosing.js";
import * as drafts from "./review/drafts.js";
import * as keys from "./review/keys.js";
import * as notice from "./review/notice.js";
import * as outbox from "./review/outbox.js";
import { one, show } from "./review/page.js";
import * as reveal from "./review/reveal.js";
import * as steps from "./review/steps.js";
import * as time from "./review/time.js";

// A comparison was put before the person, or its panel changed.
const begin = () => {
  drafts.begin();
  time.begin();
  reveal.begin();
  choosing.begin();
  ahead.prepare();
};

document.addEventListener("htmx:afterSwap", (event) => {
  if (["workbench", "panel"].includes(event.target.id)) begin();
});
document.addEventListener("htmx:historyRestore", () => {
  ahead.forget();
  notice.draw();
  begin();
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful || event.detail.xhr.status === 422 || !one("#lost")) return;
  one("#lost").hidden = false;
  show(one("#lost"));
});

time.start();
drafts.start();
reveal.start();
steps.start();
keys.start();
notice.start();
outbox.start();
begin();
