// The review page by keyboard. Without this file the page works as links and forms.

const CHOICES = { a: "A", ArrowLeft: "A", t: "tie", b: "B", ArrowRight: "B", x: "both_bad" };
const IDLE_AFTER = 30_000;
const WIDE = matchMedia("(min-width: 62rem)"); // the parts of the page scroll, not the window

const one = (selector) => document.querySelector(selector);
const aspects = () => [...document.querySelectorAll("#choices .aspect")];
const say = (words) => { one("#status").textContent = words; };

// ---- which aspect the keys speak of

const current = () => one("#choices .aspect[data-current]") ?? aspects()[0];

const goTo = (aspect, focus = true) => {
  if (!aspect) return;
  for (const other of aspects()) other.toggleAttribute("data-current", other === aspect);
  if (focus) aspect.focus({ preventScroll: true });
};

const show = (part) => part.scrollIntoView({ block: "nearest" });

const step = (by) => {
  const all = aspects();
  goTo(all[Math.min(Math.max(all.indexOf(current()) + by, 0), all.length - 1)]);
  show(current());
};

const choose = (value) => {
  const radio = current()?.querySelector(`input[value="${value}"]`);
  if (!radio) return;
  radio.checked = true;
  say(`${radio.closest(".aspect").dataset.name}: ${radio.nextElementSibling.textContent}`);
  step(1);
};

// ---- steps

let busy = false;
let nextWhenDone = false; // Enter was pressed while “confirm all” was on its way

const open = (details, field) => {
  details.open = true;
  field.focus();
};

// On an aspect where the judge differs the note is about that aspect, else about the comparison.
const note = () => {
  const why = current()?.querySelector(".why input");
  if (why) why.focus();
  else if (one("#note")) open(one("#note"), one("#note-text"));
};

const primary = () => {
  const missing = aspects().find((aspect) => !aspect.querySelector("input:checked"));
  if (missing) {
    goTo(missing);
    show(missing);
    say(`Choose for ${missing.dataset.name} too.`);
  } else {
    one("[data-primary]")?.click();
  }
};

const undo = () => {
  if (one("#undo")) one("#undo").requestSubmit();
  else if (one("#panel").dataset.stage === "confirm") say("First choices stay as they are. Change the final ones here.");
};

// The keys that scroll a page scroll the texts: focus is among the choices.
const scroll = (share) => {
  const texts = one("#texts");
  const box = texts.scrollHeight > texts.clientHeight ? texts : document.scrollingElement;
  box.scrollBy({ top: share * box.clientHeight });
};

const STEPS = {
  PageDown: () => scroll(0.85),
  PageUp: () => scroll(-0.85),
  Home: () => scroll(-1e6),
  End: () => scroll(1e6),
  " ": () => scroll(0.85),
  Enter: primary,
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  c: () => one("[data-confirm]")?.click(),
  u: undo,
  s: () => one("#skip") && open(one("#skip"), one("#skip-reason")),
  n: note,
  p: () => one("#earlier")?.click(),
  "?": () => one("#keys").showModal(),
};

// ---- keys

const isField = (target) => target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");
const isControl = (target) => target.closest("button, a, summary");

const leave = (field) => {
  field.blur();
  const box = field.closest("details");
  if (box && !field.value) box.open = false;
  goTo(current());
};

const meant = (key) => {
  if (CHOICES[key]) return () => choose(CHOICES[key]);
  const aspect = /^[1-9]$/.test(key) && aspects()[key - 1];
  return aspect ? () => step(aspects().indexOf(aspect) - aspects().indexOf(current())) : STEPS[key];
};

const pressed = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || one("#keys").open) return;
  if (isField(event.target)) {
    const ends = event.key === "Escape" || (event.key === "Enter" && event.target.closest(".why"));
    if (ends) {
      event.preventDefault();
      leave(event.target);
    }
    return;
  }
  if ((event.key === "Enter" || event.key === " ") && isControl(event.target)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const act = meant(key);
  if (!act || !one("#workbench")) return;
  event.preventDefault();
  if (busy === "confirm" && key === "Enter") nextWhenDone = true;
  else if (!busy && !(event.repeat && key === "Enter")) act();
};

document.addEventListener("keydown", pressed);
document.addEventListener("focusin", (event) => goTo(event.target.closest("#choices .aspect"), false));
document.addEventListener("click", (event) => {
  if (!event.target.closest("#keys-open")) return;
  event.preventDefault();
  one("#keys").showModal();
});

// ---- time on task: a second counts while the page is seen and something was done lately

let active = 0;
let touched = performance.now();
for (const kind of ["keydown", "pointerdown", "pointermove", "scroll", "wheel", "touchstart"]) {
  document.addEventListener(kind, () => { touched = performance.now(); }, { passive: true, capture: true });
}
setInterval(() => {
  if (!document.hidden && performance.now() - touched < IDLE_AFTER) active += 1000;
}, 1000);
document.addEventListener("submit", (event) => {
  const field = event.target.querySelector("[name=active_ms]");
  if (field) field.value = active;
}, true);

// ---- what comes back from the server

document.addEventListener("htmx:beforeRequest", (event) => {
  const button = event.detail.requestConfig.triggeringEvent?.submitter;
  busy = button?.matches("[data-confirm]") ? "confirm" : true;
  nextWhenDone = false;
});
document.addEventListener("htmx:afterRequest", (event) => {
  busy = false;
  if (!event.detail.successful && event.detail.xhr.status !== 422) {
    one("#lost").hidden = false;
    show(one("#lost"));
  }
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.xhr?.status === 200) active = 0;
  begin();
});
document.addEventListener("htmx:afterSettle", () => {
  if (nextWhenDone && one("#next")) one("#next").click();
  nextWhenDone = false;
});

// The first aspect that asks for a look; the window itself stays where it is.
const begin = () => {
  const first = one("#choices .aspect.differs") ?? aspects()[0];
  if (first) goTo(first);
  else (one("#next") ?? one("#panel"))?.focus({ preventScroll: true });
  if (one("#refusal")) show(one("#refusal"));
  else if (first && WIDE.matches) show(first);
  say(one("#agreement")?.textContent.replace(/\s+/g, " ").trim() ?? one("#progress")?.textContent ?? "");
};

begin();
