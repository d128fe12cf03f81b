// The WebSocket of the shell: `shell.on(kind, show)` and `shell.send(kind, content)`.
const shell = (() => {
  const listeners = new Map();
  const latest = new Map();
  let socket = null;

  const tell = (kind, content) => {
    latest.set(kind, content);
    listeners.get(kind)?.forEach((show) => show(content));
  };

  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/shell`);
    socket.onmessage = ({ data }) => {
      const { kind, content } = JSON.parse(data);
      tell(kind, content);
    };
    socket.onopen = () => tell("connected", true);
    socket.onclose = () => {
      tell("connected", false);
      setTimeout(connect, 1000);
    };
  };

  // The server is known by the kind "connected", whether it answers or not.
  const on = (kind, show) => {
    listeners.set(kind, [...(listeners.get(kind) ?? []), show]);
    if (latest.has(kind)) show(latest.get(kind));
  };

  const send = (kind, content) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ kind, content }));
  };

  connect();
  return { on, send };
})();
