// Keeps viser's own notes and command list out of sight; what they say that matters, we say. Gives its
// controls the names, and its headers the keys, that they lack.
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
  // Headers of sections, and of the sheet on a phone: with an arrow up they are open.
  const HEADERS = "#root .tabler-icon-chevron-down, #root .tabler-icon-chevron-up";
  const makeButton = (header, isOpen) => {
    header.classList.add("of-keys");
    header.role = "button";
    header.tabIndex = 0;
    header.ariaExpanded = String(isOpen);
  };
  // A label is tied to one input at most; a slider has two, a vector three.
  const AXES = ["x", "y", "z"];
  const nameInputs = (label) => {
    const row = label.closest("p")?.parentElement.parentElement;
    const inputs = [...(row?.querySelectorAll("input:not([type=hidden]), [role=slider]") ?? [])];
    const isVector = inputs.length > 1 && inputs.every((input) => input.role !== "slider");
    inputs.forEach((input, at) => {
      input.ariaLabel = isVector ? `${label.textContent}, ${AXES[at]}` : label.textContent;
    });
  };
  const complete = () => {
    for (const arrow of document.querySelectorAll(HEADERS)) {
      if (arrow.style.display !== "none") makeButton(arrow.parentElement, arrow.matches(".tabler-icon-chevron-up"));
    }
    const handle = document.querySelector(".viser-handle");
    if (handle) makeButton(handle, handle.nextElementSibling?.checkVisibility() ?? false);
    document.querySelectorAll("label[for]").forEach(nameInputs);
    // The closed panel: no tab without content, but a button that opens it.
    const bar = document.querySelector("#root [data-dock-bar]");
    const title = bar?.querySelector('[role="tab"]');
    if (!title) return;
    bar.role = "group";
    bar.removeAttribute("aria-orientation");
    title.role = "button";
    title.ariaLabel = "controls";
    title.removeAttribute("aria-selected");
  };
  window.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(".of-keys") || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    event.target.click();
  }, true);
  // Before the browser paints.
  new MutationObserver(() => { hide(); complete(); }).observe(document, { childList: true, subtree: true });

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
