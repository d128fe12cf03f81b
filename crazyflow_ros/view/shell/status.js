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
    const { name, others, state, factor, drones, drone, records } = status;
    isPaused = state === "paused";
    box.dataset.state = state;
    write(parts.name, name);
    parts.name.title = `This page shows ${name}`;
    write(parts.others, others.length ? `also running: ${others.join(", ")}` : "");
    parts.others.title = "To see another one: python -m crazyflow_ros view --node NAME";
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

  const alarmOf = ({ id, time: when, text }) => {
    const button = make("button", "dismiss", "×");
    button.title = "Dismiss, in this tab";
    button.ariaLabel = "Dismiss";
    const words = make("span", "words", text);
    words.title = text;
    const at = make("time", "", when === null ? "" : `${when.toFixed(1)} s`);
    const alarm = make("div", "alarm", at, words, button);
    button.onclick = () => { dismissed.add(id); alarm.remove(); };
    return alarm;
  };
  const showAlarms = (list) => {
    const shown = list.filter(({ id }) => !dismissed.has(id));
    alarms.replaceChildren(...shown.map(alarmOf));
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
    document.body.append(box);
    // viser's notes and ours lie below the line, however high it is.
    new ResizeObserver(() => {
      document.documentElement.style.setProperty("--status", `${box.offsetHeight}px`);
    }).observe(box);
  });
})();
