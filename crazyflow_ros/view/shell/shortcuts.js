// Keys that act on the page: only while no control has the focus, and while the user wants them.
const shortcuts = (() => {
  const NAME = "keyboard shortcuts"; // what the browser remembers
  const OWN = "input:not([type=checkbox], [type=range]), textarea, [contenteditable]"; // takes text
  const listeners = [];
  const switches = [];
  let isPointed = true; // whether a key was not used last
  let isOn = true;
  try { isOn = localStorage.getItem(NAME) !== "off"; } catch { /* as it is */ }

  const isPicture = (element) => element.matches?.("canvas[data-engine]") ?? false;
  const asks = () => document.querySelector("dialog[open]") !== null;
  const isOfScene = ({ target }) =>
    (target === document.body || target === document.documentElement || isPicture(target)) && !asks();
  const isFree = (event) => isOn && isOfScene(event) && !event.ctrlKey && !event.metaKey && !event.altKey;

  // Before viser, which would move its camera by the same keys.
  window.addEventListener("keydown", (event) => {
    isPointed = false;
    if (!isFree(event) || !listeners.some((act) => act(event))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  // viser listens to the document: its camera keeps still for keys of a control.
  document.documentElement.addEventListener("keydown", (event) => {
    if (!isOn || !isOfScene(event)) event.stopPropagation();
    if (event.key === "Escape" && !event.defaultPrevented && !asks()) event.target.blur?.();
  });

  // A control that was clicked leaves the keys to the page, unless it is typed into.
  const leave = ({ type }) => {
    const focus = document.activeElement;
    const isUsed = focus.matches(OWN) || (type === "click" && focus.matches("select")); // that opens
    if (isPointed && !isUsed && !focus.closest("dialog")) focus.blur();
  };
  window.addEventListener("pointerdown", ({ target }) => {
    isPointed = true;
    if (isPicture(target)) document.activeElement.blur();
  }, true);
  window.addEventListener("click", leave);
  window.addEventListener("change", leave);

  // The switch, for the places where the page has it.
  const set = (isNowOn) => {
    isOn = isNowOn;
    try { localStorage.setItem(NAME, isOn ? "on" : "off"); } catch { /* for this tab */ }
    for (const box of switches) box.checked = isOn;
  };
  const makeSwitch = () => {
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: isOn });
    box.onchange = () => set(box.checked);
    switches.push(box);
    box.role = "switch";
    return dom.make("label", "row shell-switch", "Keyboard shortcuts", box);
  };

  return {
    isFree,
    makeSwitch,
    // Calls a function with each key that is free; it returns whether it has used the key.
    on: (act) => listeners.push(act),
  };
})();
