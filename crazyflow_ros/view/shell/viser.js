// Keeps viser's list of commands out of sight, and says it where a browser cannot draw.
(() => {
  const PATIENCE = 2000; // ms, for the picture to begin
  // Nor does it need the light that viser has until it knows of ours: the picture would wait for a
  // second while it is decoded.
  const { fetch } = window;
  window.fetch = (from, ...options) => {
    const url = String(from.url ?? from);
    return url.startsWith("data:image/jpeg") ? new Promise(() => {}) : fetch(from, ...options);
  };

  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.code === "KeyK") event.stopImmediatePropagation();
  }, true);

  // A context of our own would take longer than anything else before the picture.
  window.addEventListener("load", () => setTimeout(() => {
    if (document.querySelector("canvas[data-engine]")) return;
    if (document.createElement("canvas").getContext("webgl2")) return;
    const text = "This browser does not draw in 3-D: WebGL is missing or switched off. Switch on " +
      "hardware acceleration in its settings, or use another browser.";
    document.body.append(dom.make("div", "no-webgl", text));
  }, PATIENCE));
})();
