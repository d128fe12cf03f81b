// Keeps viser's own notes and command list out of sight; what they say that matters, we say.
(() => {
  const TITLES = new Set([
    "Could not detect browser version",
    "Unsupported browser",
    "WebGL unavailable",
    "Software WebGL rendering detected",
    "Connection rejected",
    "Version mismatch",
  ]);
  const PATIENCE = 2000; // ms, for the picture to begin
  const NOTE = ".mantine-Notification-root";
  const hide = () => {
    for (const note of document.querySelectorAll(NOTE)) {
      const title = note.querySelector(".mantine-Notification-title")?.textContent ?? "";
      note.classList.toggle("of-viser", TITLES.has(title));
    }
  };
  // Before the browser paints.
  new MutationObserver(hide).observe(document, { childList: true, subtree: true });

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
