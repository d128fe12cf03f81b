// The WebSocket of the shell: `shell.on(kind, show)`, `shell.send(kind, content)`, and
// `shell.want(kind, isWanted)` for what is sent only to those who look at it.
const shell = (() => {
  const listeners = new Map();
  const latest = new Map();
  const wanted = new Set();
  let socket = null;

  const tell = (kind, content) => {
    latest.set(kind, content);
    listeners.get(kind)?.forEach((show) => show(content));
  };

  // Bytes follow their kind and a zero.
  const unpack = (data) => {
    if (typeof data === "string") return JSON.parse(data);
    const bytes = new Uint8Array(data);
    const end = bytes.indexOf(0);
    return { kind: new TextDecoder().decode(bytes.subarray(0, end)), content: bytes.subarray(end + 1) };
  };

  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/shell`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      const { kind, content } = unpack(data);
      tell(kind, content);
    };
    socket.onopen = () => {
      for (const kind of wanted) send("want", [kind, true]);
      tell("connected", true);
    };
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

  const want = (kind, isWanted) => {
    if (wanted.has(kind) === isWanted) return;
    if (isWanted) wanted.add(kind);
    else wanted.delete(kind);
    send("want", [kind, isWanted]);
  };

  connect();
  return { on, send, want };
})();
