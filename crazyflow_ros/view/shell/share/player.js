// Plays the flight of the file: what the server of a recording's page does, see replay/player.py.
(() => {
  const { make } = dom;
  const SLOW = 0.25;
  const LEAD = 2, TAIL = 0.5; // s, played before and after an event
  const CAMERAS = { all: "all drones", one: "selected drone", "": "free" };

  const start = (content) => {
    const { recording, drones, events, cards } = content;
    const { begin, end } = recording;
    const names = drones.map(({ name }) => name);
    const steps = drones[0].t.slice(1).map((t, i) => t - drones[0].t[i]).filter((step) => step > 0);
    const step = steps.sort((a, b) => a - b)[steps.length >> 1] ?? 0.04; // s between two states
    const player = { t: begin, plays: false, speed: 1, loops: false, mode: "stop", drone: names[0] };
    let stopAt = null;
    let plotted = "";

    const picture = scene.start(content, (name) => ask({ do: "select", drone: name }));
    window.flight = { content, player, picture };
    const view = make("select", "");
    view.title = view.ariaLabel = "Camera";
    for (const [value, text] of Object.entries(CAMERAS)) view.append(Object.assign(make("option", "", text), { value }));
    view.onchange = () => picture.follow(view.value);
    replay.dock.buttons.append(view);

    const show = () => {
      if (document.activeElement !== view && picture.state) view.value = picture.state.follows;
      picture.show({ ...player });
      if (plotted !== player.drone) {
        plotted = player.drone;
        shell.tell("curves", { drone: plotted, runs: [drones[names.indexOf(plotted)]] });
      }
      shell.tell("player", { ...player });
    };
    const seek = (t) => { player.t = Math.min(Math.max(t, begin), end); stopAt = null; };
    const stop = (t) => { seek(t); player.plays = false; };
    const select = (name) => { if (names.includes(name)) player.drone = name; };
    const go_to = (number) => {
      const [t, drone, kind, group, , text] = events[number];
      stop(t);
      if (player.mode === "slowly") {
        seek(t - LEAD);
        Object.assign(player, { plays: true, speed: SLOW });
        stopAt = Math.min(t + TAIL, end);
      }
      if (drone) {
        select(drone);
        picture.follow("one");
      }
      const bare = { t, drone, kind, text, cause: "", facts: [], before: [] };
      shell.tell("card", { ...(cards[number] ?? bare), run: 0, number, group });
    };
    const acts = {
      toggle: () => {
        if (!player.plays && player.t >= end) player.t = begin;
        player.plays = !player.plays;
        stopAt = null;
      },
      seek: ({ t }) => stop(t),
      step: ({ n }) => stop(player.t + n * step),
      speed: ({ value }) => { player.speed = value; },
      loop: ({ value }) => { player.loops = value; },
      mode: ({ value }) => { player.mode = value; },
      select: ({ drone }) => select(drone),
      event: ({ number }) => go_to(number),
      close: () => shell.tell("card", null),
    };
    const ask = (asked) => {
      acts[asked.do]?.(asked);
      show();
    };
    shell.answer("replay", ask);

    let before = 0;
    const advance = (now) => {
      const seconds = (now - before) / 1000;
      before = now;
      if (player.plays) {
        const t = player.t + seconds * player.speed;
        if (stopAt !== null && t >= stopAt) stop(stopAt);
        else if (t < end) player.t = t;
        else if (player.loops && player.t >= end) player.t = begin;
        else Object.assign(player, { t: end, plays: player.loops });
        show();
      }
      requestAnimationFrame(advance);
    };
    requestAnimationFrame(advance);

    shell.tell("status", { word: "flight", name: recording.names[0] });
    shell.tell("recording", recording);
    shell.tell("events", { share: 1, runs: [events], leftOut: 0 });
    shell.tell("drones", names);
    show();
  };
  document.addEventListener("DOMContentLoaded", async () => start(await shell.content()));
})();
