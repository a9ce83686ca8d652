// Draws the plots of a page, one after the other, each as wide as its place. Without it their tables and files are there.

const narrow = matchMedia("(max-width: 40rem)");
const views = new WeakMap(); // of each place its drawing: undefined until asked for, null while it is drawn
const HOW = { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: { disableDefaultStyle: true } };

let turn = Promise.resolve();

const specification = (place) => {
  const spec = JSON.parse(place.closest("figure").querySelector("script[type='application/json']").textContent);
  spec.params.find((param) => param.name === "narrow").value = narrow.matches;
  return { ...spec, width: place.clientWidth };
};

const draw = async (place) => {
  const { vegaEmbed } = await import("../made/vega.js");
  views.get(place)?.finalize();
  views.set(place, await vegaEmbed(place.querySelector(".plot-canvas"), specification(place), HOW));
};

const giveUp = (place) => {
  place.hidden = true;
  place.closest("figure").querySelector("details").open = true;
};

const ask = (place) => {
  views.set(place, views.get(place) ?? null);
  turn = turn.then(() => draw(place)).catch((error) => {
    giveUp(place);
    console.error(error);
  });
};

// A place in a closed part of the page has no width, and is drawn when it is opened.
const sizes = new ResizeObserver((entries) => {
  for (const { target: place } of entries) {
    if (place.clientWidth === 0) continue;
    if (views.get(place) === undefined) ask(place);
    else views.get(place)?.view.width(place.clientWidth).runAsync();
  }
});

const prepare = (root) => {
  for (const place of root.querySelectorAll(".plot-drawing")) sizes.observe(place);
};

narrow.addEventListener("change", () => {
  for (const place of document.querySelectorAll(".plot-drawing")) if (views.get(place)) ask(place);
});
document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
