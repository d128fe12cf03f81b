// Elements of our own beside viser's.
const dom = (() => {
  // Text goes in as text, whatever it contains.
  const make = (kind, name, ...content) => {
    const element = document.createElement(kind);
    if (name) element.className = name;
    element.append(...content);
    return element;
  };
  const ready = (work) => {
    if (document.body) work();
    else document.addEventListener("DOMContentLoaded", work, { once: true });
  };
  // Changes only what differs, so that nothing flickers, and no selection is lost.
  const write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  // What a canvas writes with: the page's font.
  const font = (canvas, size, weight = 400) => `${weight} ${size}px ${getComputedStyle(canvas).fontFamily}`;
  return { make, ready, write, font };
})();
