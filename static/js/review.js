// Enhances the review page, which works as links and forms without this file.

import * as prefetch from "./review/prefetch.js";
import * as choices from "./review/choices.js";
import * as drafts from "./review/drafts.js";
import * as keys from "./review/keys.js";
import * as notice from "./review/notice.js";
import * as outbox from "./review/outbox.js";
import * as reveal from "./review/reveal.js";
import * as steps from "./review/steps.js";
import * as timer from "./review/time_on_task.js";

// Runs when a comparison is shown or its panel changes.
const prepare = () => {
  drafts.restoreUnsent();
  timer.restore();
  reveal.update();
  choices.focusFirst();
  prefetch.schedule();
};

document.addEventListener("htmx:afterSwap", (event) => {
  if (["comparison", "panel"].includes(event.target.id)) prepare();
});
document.addEventListener("htmx:historyRestore", () => {
  prefetch.discard();
  notice.draw();
  prepare();
});

timer.start();
drafts.start();
reveal.start();
steps.start();
keys.start();
notice.start();
outbox.start();
prepare();
