// Charts are drawn already; here they get buttons to save them.
const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "text-anchor"];

// A copy that looks the same anywhere: styles become attributes.
function standalone(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, at) => {
    const style = getComputedStyle(from[at]);
    for (const name of COPIED) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
    delete element.dataset.tip;
  });
  const ground = getComputedStyle(document.body).backgroundColor;
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: ground }));
  return new XMLSerializer().serializeToString(copy);
}

function saveButtons(data) {
  for (const figure of document.querySelectorAll("figure[data-name]")) {
    const name = figure.dataset.name;
    const drawn = () => [...figure.querySelectorAll("svg")].find((svg) => svg.checkVisibility?.() ?? svg.clientWidth);
    const actions = {
      PNG: () => {
        const svg = drawn(), image = new Image(), box = svg.viewBox.baseVal;
        image.onload = () => {
          const canvas = make("canvas", { width: 2 * box.width, height: 2 * box.height });
          canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
          canvas.toBlob((blob) => download(`${name}.png`, blob));
        };
        image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
      },
      SVG: () => download(`${name}.svg`, standalone(drawn()), "image/svg+xml"),
      CSV: () => {
        const columns = Object.entries(data.charts[name]);
        const rows = columns[0][1].map((_, row) => columns.map(([, values]) => values[row]));
        download(`${name}.csv`, csvOf(columns.map(([key]) => key), rows), "text/csv");
      },
    };
    const save = figure.querySelector(".save");
    for (const [word, act] of Object.entries(actions)) {
      const button = make("button", { type: "button", "aria-label": `Save ${name} as ${word}` }, word);
      button.addEventListener("click", act);
      save.append(button);
    }
  }
}
