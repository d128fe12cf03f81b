// The line that stays on top: time, state, drones, and in red what is wrong.
(() => {
  const { make, ready, write } = dom;
  const NAMES = [
    "name", "state", "time", "factor", "drones", "drone", "battery", "records", "others",
  ];
  const parts = Object.fromEntries(NAMES.map((name) => [name, make("span", name)]));
  const icon = make("img", "icon");
  icon.alt = "";
  const line = make("div", "line", icon, ...Object.values(parts));
  const alarms = make("div", "alarms");
  const box = make("div", "shell-status", line, alarms);
  box.hidden = true;
  line.setAttribute("role", "status");
  alarms.setAttribute("role", "alert");

  const dismissed = new Set(); // in this tab only: others may not have read it
  let isPaused = false;
  let time = null;

  const showTime = () => {
    write(parts.time, time === null ? "" : `${time.toFixed(isPaused ? 3 : 1)} s`);
  };

  const show = (status) => {
    box.hidden = status === null;
    if (status === null) return;
    const { name, others, other, state, factor, drones, drone, records } = status;
    isPaused = state === "paused";
    box.dataset.state = state;
    write(parts.name, name);
    parts.name.title = `This page shows ${name}`;
    write(parts.others, others.length ? `also running: ${others.join(", ")}` : "");
    parts.others.title = `To see another one: ${other}`;
    write(parts.state, state);
    write(parts.factor, factor === null ? "" : `${factor.toFixed(2)} ×`);
    parts.factor.title = "Real-time factor: simulated time over wall time";
    write(parts.drones, drones === null ? "" : `${drones} ${drones === 1 ? "drone" : "drones"}`);
    write(parts.drone, drone ? [drone.name, drone.state].filter(Boolean).join(" ") : "");
    write(parts.battery, drone?.battery == null ? "" : `battery ${drone.battery} %`);
    parts.battery.classList.toggle("low", drone?.battery != null && drone.battery < 20);
    write(parts.records, records ? "recording" : "");
    showTime();
  };

  // One line for each kind; it keeps the focus while its content changes.
  const lines = new Map();
  const makeAlarm = (kind) => {
    const [at, words] = [make("time"), make("span", "words")];
    const remedy = make("button", "remedy");
    const dismiss = make("button", "dismiss", "×");
    dismiss.title = "Dismiss, in this tab";
    const alarm = make("div", "alarm", at, words, remedy, dismiss);
    remedy.onclick = () => shell.send("remedy", kind);
    const fill = ({ ids, time: when, text, button }) => {
      write(at, when === null ? "" : `${when.toFixed(1)} s`);
      write(words, text);
      words.title = text;
      write(remedy, button);
      remedy.hidden = !button;
      dismiss.ariaLabel = `Dismiss: ${text}`;
      dismiss.onclick = () => { ids.forEach((id) => dismissed.add(id)); remove(kind); };
    };
    return { alarm, fill };
  };
  const remove = (kind) => {
    lines.get(kind).alarm.remove();
    lines.delete(kind);
  };
  const showAlarms = (list) => {
    const shown = list.filter(({ ids }) => !ids.every((id) => dismissed.has(id)));
    for (const kind of [...lines.keys()]) if (!shown.some((one) => one.kind === kind)) remove(kind);
    shown.forEach((content, place) => {
      const { kind } = content;
      if (!lines.has(kind)) lines.set(kind, makeAlarm(kind));
      const { alarm, fill } = lines.get(kind);
      fill(content);
      if (alarms.children[place] !== alarm) alarms.insertBefore(alarm, alarms.children[place] ?? null);
    });
  };

  shell.on("status", show);
  shell.on("connected", (is) => {
    if (is) return;
    box.dataset.state = "ended";
    write(parts.state, "not connected");
  });
  shell.on("time", (seconds) => { time = seconds; showTime(); });
  shell.on("alarms", showAlarms);
  ready(() => {
    icon.src = document.querySelector("link[rel=icon]").href;
    document.body.prepend(box); // for the Tab key: what is on top comes first
    // viser's notes and ours lie below the line, however high it is.
    new ResizeObserver(() => {
      document.documentElement.style.setProperty("--status", `${box.offsetHeight}px`);
    }).observe(box);
  });
})();
