// Sends held keys, the sticks of a gamepad and those on a touch screen, while there are any.
const flight = (() => {
  const KEYS = new Set(["KeyW", "KeyA", "KeyS", "KeyD", "KeyQ", "KeyE", "KeyR", "KeyF", "Space"]);
  const DEAD = 0.08; // of an axis: sticks do not return to the middle exactly
  const PRESS = 150; // ms that a button on the screen holds its key
  const held = new Set();
  const listeners = [];
  let touched = [];
  let wasActive = false;

  const axes = () => {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((one) => one?.connected);
    const inUse = touched.length ? touched : Array.from(pad?.axes.slice(0, 4) ?? []);
    return inUse.map((axis) => (Math.abs(axis) < DEAD ? 0 : axis));
  };

  const send = () => {
    const sticks = axes();
    const isActive = held.size > 0 || sticks.some((axis) => axis !== 0);
    if (isActive || wasActive) shell.send("sticks", { keys: [...held], axes: sticks });
    wasActive = isActive;
  };

  shortcuts.on((event) => {
    if (!KEYS.has(event.code)) return false;
    held.add(event.code);
    if (event.repeat) return true;
    send();
    listeners.forEach((listener) => listener());
    return true;
  });
  // Wherever the focus is by now: a key that is let go unnoticed would fly the drone on.
  window.addEventListener("keyup", (event) => {
    if (held.delete(event.code)) send();
  }, true);
  window.addEventListener("blur", () => { held.clear(); touched = []; send(); });
  setInterval(send, 50);

  return {
    // Calls a function when a key that flies is pressed.
    onKey: (listener) => listeners.push(listener),
    // Takes the four axes of the sticks on the screen, as those of a gamepad; none: let go.
    touch: (now) => { touched = now; send(); },
    // Takes off or lands.
    switch: () => {
      held.add("Space");
      send();
      setTimeout(() => { held.delete("Space"); send(); }, PRESS);
    },
  };
})();
