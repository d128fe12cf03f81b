// Sends held keys and the sticks of a gamepad, which viser does not, while there are any.
(() => {
  const KEYS = new Set(["KeyW", "KeyA", "KeyS", "KeyD", "KeyQ", "KeyE", "KeyR", "KeyF", "Space"]);
  const held = new Set();
  let wasActive = false;

  // A dropdown keeps the focus after something was chosen, but is typed into only while it is open.
  const isTyping = (event) =>
    event.target instanceof HTMLElement &&
    (event.target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) &&
    event.target.type !== "checkbox" &&
    event.target.ariaExpanded !== "false";

  const axes = () => {
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (pad?.connected) return Array.from(pad.axes.slice(0, 4), (axis) => (Math.abs(axis) < 0.08 ? 0 : axis));
    }
    return [];
  };

  const send = () => {
    const sticks = axes();
    const isActive = held.size > 0 || sticks.some((axis) => axis !== 0);
    if (isActive || wasActive) shell.send("sticks", { keys: [...held], axes: sticks });
    wasActive = isActive;
  };

  // Before viser, which would move its camera by the same keys.
  const stop = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  window.addEventListener("keydown", (event) => {
    if (!KEYS.has(event.code) || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    stop(event);
    held.add(event.code);
    if (!event.repeat) send();
  }, true);
  // Wherever the focus is by now: a key that is let go unnoticed would fly the drone on.
  window.addEventListener("keyup", (event) => {
    if (!held.delete(event.code)) return;
    stop(event);
    send();
  }, true);
  window.addEventListener("blur", () => { held.clear(); send(); });
  setInterval(send, 50);
})();
