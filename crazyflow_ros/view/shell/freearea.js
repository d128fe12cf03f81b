// Tells the server how large the picture is, what of it nothing covers, and when a user turns it.
(() => {
  const COLUMNS = 26, ROWS = 26;
  const hasOwnCamera = new URLSearchParams(location.search).has("initialCameraPosition");
  let sent = "";
  let moved = 0;

  const isCanvas = (element) => element.tagName === "CANVAS" && element.dataset.engine !== undefined;
  const isFree = (x, y) => {
    const seen = document.elementFromPoint(x, y);
    // Notes go away by themselves, and the picture would jump.
    return seen !== null && (isCanvas(seen) || seen.closest(".shell-notes") !== null);
  };

  // The largest rectangle of points that are free: heights of free columns, row by row.
  const freeArea = ({ left: x, top: y, width, height }) => {
    const heights = new Array(COLUMNS).fill(0);
    let best = { area: 0, sides: [0, 0, width, height] };
    for (let row = 0; row < ROWS; row++) {
      for (let column = 0; column < COLUMNS; column++) {
        const free = isFree(x + ((column + 0.5) * width) / COLUMNS, y + ((row + 0.5) * height) / ROWS);
        heights[column] = free ? heights[column] + 1 : 0;
      }
      for (let first = 0; first < COLUMNS; first++) {
        let lowest = Infinity;
        for (let last = first; last < COLUMNS && heights[last] > 0; last++) {
          lowest = Math.min(lowest, heights[last]);
          const area = lowest * (last - first + 1);
          if (area <= best.area) continue;
          const left = first / COLUMNS, right = (last + 1) / COLUMNS;
          const top = (row + 1 - lowest) / ROWS, bottom = (row + 1) / ROWS;
          best = { area, sides: [left * width, top * height, right * width, bottom * height] };
        }
      }
    }
    return best.sides.map(Math.round);
  };

  const tell = () => {
    const canvas = document.querySelector("canvas[data-engine]");
    if (canvas === null || document.hidden) return;
    const box = canvas.getBoundingClientRect();
    const { width, height } = box;
    if (width < 1 || height < 1) return;
    const content = { width, height, free: freeArea(box), hasOwnCamera };
    const text = JSON.stringify(content);
    if (text === sent) return;
    sent = text;
    shell.send("picture", content);
  };
  setInterval(tell, 500);
  window.addEventListener("resize", tell);
  shell.on("connected", () => { sent = ""; tell(); });

  const isPicture = ({ target }) => target instanceof HTMLElement && isCanvas(target);
  const note = () => {
    const now = performance.now();
    if (now - moved < 100) return;
    moved = now;
    shell.send("camera", "moved");
  };
  // Before viser's own listeners, which capture the pointer.
  let start = null;
  window.addEventListener("pointerdown", (event) => { start = isPicture(event) ? event : null; }, true);
  window.addEventListener("pointermove", (event) => {
    if (start === null || event.buttons === 0) return;
    if (Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > 4) note();
  }, true);
  window.addEventListener("pointerup", () => { start = null; }, true);
  window.addEventListener("wheel", (event) => { if (isPicture(event)) note(); }, { capture: true, passive: true });
  window.addEventListener("keydown", (event) => {
    if (!event.code.startsWith("Arrow") || !shortcuts.isFree(event)) return;
    setTimeout(() => { if (!event.defaultPrevented) note(); }); // a page may use the arrows itself
  }, true);
})();
