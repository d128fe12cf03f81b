// A flight in a file has no server: `shell.on` and `shell.send` as in channel.js, with answers from
// the page itself, `shell.answer(kind, act)`, and what it shows, `shell.tell(kind, content)`.
const shell = (() => {
  const listeners = new Map();
  const latest = new Map();
  const answers = new Map();

  const tell = (kind, content) => {
    latest.set(kind, content);
    listeners.get(kind)?.forEach((show) => show(content));
  };
  const on = (kind, show) => {
    listeners.set(kind, [...(listeners.get(kind) ?? []), show]);
    if (latest.has(kind)) show(latest.get(kind));
  };
  const answer = (kind, act) => answers.set(kind, act);
  const send = (kind, content) => answers.get(kind)?.(content);

  const bytes_of = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  // What was recorded, from the file itself.
  const content = () => {
    const packed = new Blob([bytes_of(document.getElementById("flight").textContent)]);
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };

  return { on, tell, answer, send, content, bytes_of };
})();
