
// A sweep is drawn along the axis of the reader's choice.
const along = document.getElementById("along");
along.addEventListener("change", () => {
  for (const figure of given.figures) {
    const chosen = given.along[along.value].find((other) => other.id === figure.id);
    figure.data = chosen.data;
    figure.layout = chosen.layout;
    draw(figure);
  }
});
