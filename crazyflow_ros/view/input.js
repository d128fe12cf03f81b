// Sends held keys and the sticks of a gamepad, which viser does not, while there are any.
(() => {
  const KEYS = new Set(["KeyW", "KeyA", "KeyS", "KeyD", "KeyQ", "KeyE", "KeyR", "KeyF", "Space"]);
  const held = new Set();
  let socket = null;
  let wasActive = false;

  const isTyping = (event) =>
    event.target instanceof HTMLElement &&
    (event.target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName));

  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/sticks`);
    socket.onclose = () => setTimeout(connect, 1000);
  };

  const axes = () => {
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (pad?.connected) return Array.from(pad.axes.slice(0, 4), (axis) => (Math.abs(axis) < 0.08 ? 0 : axis));
    }
    return [];
  };

  const send = () => {
    const sticks = axes();
    const isActive = held.size > 0 || sticks.some((axis) => axis !== 0);
    if ((isActive || wasActive) && socket?.readyState === WebSocket.OPEN) {
      socket.send(JSON.stringify({ keys: [...held], axes: sticks }));
    }
    wasActive = isActive;
  };

  // Before viser, which would move its camera by the same keys.
  const take = (event, change) => {
    if (!KEYS.has(event.code) || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    change(event.code);
    if (!event.repeat) send();
  };
  window.addEventListener("keydown", (event) => take(event, (code) => held.add(code)), true);
  window.addEventListener("keyup", (event) => take(event, (code) => held.delete(code)), true);
  window.addEventListener("blur", () => { held.clear(); send(); });
  setInterval(send, 50);
  connect();
})();
