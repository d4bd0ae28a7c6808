"use strict";
const given = JSON.parse(document.getElementById("data").textContent);

// Figures name colours of the style sheet; Plotly wants them spelt out.
function coloured(value, style) {
  if (typeof value === "string") {
    return value.startsWith("var(") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
  }
  if (Array.isArray(value)) return value.map((entry) => coloured(entry, style));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, coloured(entry, style)]));
}

const stepped = given.figures.filter((figure) => figure.log).map((figure) => figure.id);
const logarithmic = new Set(given.logarithmic ? stepped : []);

function draw(figure) {
  const style = getComputedStyle(document.body);
  const narrow = window.innerWidth < 600;
  const axis = { gridcolor: "var(--rule)", linecolor: "var(--quiet)", zerolinecolor: "var(--rule)", automargin: true };
  const layout = {
    height: 380, paper_bgcolor: "var(--ground)", plot_bgcolor: "var(--ground)",
    margin: { l: narrow ? 40 : 60, r: narrow ? 20 : 40, t: 10, b: 40 },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, traceorder: "normal" },
    ...figure.layout,
    font: { color: "var(--text)", size: narrow ? 11 : 13, family: style.fontFamily },
  };
  for (const name of ["xaxis", "yaxis", "yaxis2"]) {
    if (name in figure.layout) layout[name] = { ...axis, ...figure.layout[name] };
    if (layout[name]?.title) layout[name].title = { standoff: 8, ...layout[name].title };
  }
  if (logarithmic.has(figure.id)) layout.xaxis = { ...layout.xaxis, type: "log", dtick: 1 };
  const size = { displayModeBar: false, responsive: true };
  Plotly.react(figure.id, coloured(figure.data, style), coloured(layout, style), size);
}

given.figures.forEach(draw);

for (const button of document.querySelectorAll("button.scale")) {
  button.addEventListener("click", () => {
    const name = button.dataset.figure;
    if (!logarithmic.delete(name)) logarithmic.add(name);
    button.setAttribute("aria-pressed", String(logarithmic.has(name)));
    draw(given.figures.find((figure) => figure.id === name));
  });
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => given.figures.forEach(draw));
