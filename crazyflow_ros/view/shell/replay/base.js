// What the parts of a recording's page share: what the server said, the span of time in sight.
const replay = (() => {
  const GROUPS = {
    crash: "Crashes",
    hit: "Hits",
    trouble: "Trouble",
    battery: "Battery",
    command: "Commands",
    change: "Changes",
    log: "Log",
  };
  const { make, ready } = dom;
  const SHORTEST = 0.02; // s, of the span in sight
  const listeners = {};
  const known = { recording: null, player: null, events: [], window: null, hidden: new Set(["log"]) };

  const on = (kind, show) => { (listeners[kind] ??= []).push(show); };
  const tell = (kind) => listeners[kind]?.forEach((show) => show());
  const ask = (what, more = {}) => shell.send("replay", { do: what, ...more });

  const button = (name, title, ...content) => {
    const element = make("button", name, ...content);
    element.type = "button";
    element.title = title;
    element.ariaLabel = title;
    return element;
  };
  const icon = (path) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
    shape.setAttribute("d", path);
    svg.append(shape);
    return svg;
  };
  const seconds = (t, digits = 2) => `${t.toFixed(digits)} s`;
  const clamp = (t) => Math.min(Math.max(t, known.recording.begin), known.recording.end);

  // The span of time in sight; null is everything.
  const look_at = (begin, end) => {
    const { begin: first, end: last } = known.recording;
    const isAll = begin === undefined || (begin <= first && end >= last);
    if (!isAll && end - begin < SHORTEST) return;
    known.window = isAll ? null : { begin: Math.max(begin, first), end: Math.min(end, last) };
    ask("window", known.window ?? {});
    tell("window");
  };
  const span = () => known.window ?? known.recording;
  const share = (t) => (t - span().begin) / Math.max(span().end - span().begin, 1e-9);
  const time_at = (part) => clamp(span().begin + part * (span().end - span().begin));

  const shown = () => known.events.filter((event) => !known.hidden.has(event.group));
  const toggle = (group) => {
    if (!known.hidden.delete(group)) known.hidden.add(group);
    tell("events");
  };
  const go_to = (event) => ask("event", { run: event.run, number: event.number });
  const name_of = (event) => event.drone && known.recording.names.length > 1 && event.run
    ? `${event.drone} ${known.recording.other}` : event.drone;

  shell.on("recording", (recording) => {
    const isFirst = known.recording === null;
    known.recording = recording;
    if (isFirst) tell("begin");
    tell("recording");
  });
  shell.on("player", (player) => {
    if (known.recording === null) return;
    known.player = player;
    const { window } = known;
    if (window && player.plays && (player.t < window.begin || player.t > window.end)) {
      const length = window.end - window.begin; // turns the page
      const begin = Math.min(player.t, known.recording.end - length);
      look_at(begin, begin + length);
    }
    tell("player");
  });
  shell.on("events", ({ share: read, runs, leftOut }) => {
    known.read = read;
    known.leftOut = leftOut;
    known.events = runs.flatMap((events, run) => events.map(
      ([t, drone, kind, group, severity, text], number) =>
        ({ run, number, t, drone, kind, group, severity, text })));
    known.events.sort((one, other) => one.t - other.t);
    tell("events");
  });

  return {
    GROUPS, known, on, ask, make, button, icon, ready, seconds, clamp,
    look_at, span, share, time_at, shown, toggle, go_to, name_of,
  };
})();
