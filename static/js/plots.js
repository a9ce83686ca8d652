// Draws the charts of a page one by one, each as wide as its container. Without it, tables and downloads remain.

const narrow = matchMedia("(max-width: 40rem)");
const views = new WeakMap(); // container → Vega view; null while it is drawn
const OPTIONS = { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: { disableDefaultStyle: true } };

let queue = Promise.resolve();

const specification = (container) => {
  const spec = JSON.parse(container.closest("figure").querySelector("script[type='application/json']").textContent);
  spec.params.find((param) => param.name === "narrow").value = narrow.matches;
  return { ...spec, width: container.clientWidth };
};

const draw = async (container) => {
  const { vegaEmbed } = await import("../made/vega.js");
  views.get(container)?.finalize();
  views.set(container, await vegaEmbed(container.querySelector(".plot-canvas"), specification(container), OPTIONS));
};

const showTable = (container) => {
  container.hidden = true;
  container.closest("figure").querySelector("details").open = true;
};

const scheduleDraw = (container) => {
  views.set(container, views.get(container) ?? null);
  queue = queue.then(() => draw(container)).catch((error) => {
    showTable(container);
    console.error(error);
  });
};

// A container in a collapsed part of the page has no width, and is drawn when the part opens.
const sizes = new ResizeObserver((entries) => {
  for (const { target: container } of entries) {
    if (container.clientWidth === 0) continue;
    if (views.get(container) === undefined) scheduleDraw(container);
    else views.get(container)?.view.width(container.clientWidth).runAsync();
  }
});

const prepare = (root) => {
  for (const container of root.querySelectorAll(".plot-drawing")) sizes.observe(container);
};

narrow.addEventListener("change", () => {
  for (const container of document.querySelectorAll(".plot-drawing")) if (views.get(container)) scheduleDraw(container);
});
document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
