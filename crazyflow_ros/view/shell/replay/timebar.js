// The time bar: where the recording is, what happened when, and the buttons that play it.
(() => {
  const { known, make, button, icon, ask, seconds } = replay;
  const PLAY = "M8 5v14l11-7z";
  const PAUSE = "M6 5h4v14H6zM14 5h4v14h-4z";
  const BACK = "M6 5h2v14H6zM20 5v14l-11-7z";
  const ON = "M16 5h2v14h-2zM4 5v14l11-7z";
  const LOOP = "M7 7h10v3l4-4-4-4v3H5v6h2zM17 17H7v-3l-4 4 4 4v-3h12v-6h-2z";
  const PERIOD = 50; // ms between two messages of a drag
  const CLOSE = 7; // pixels, between the pointer and the marks that it explains
  const MOST = 6; // events in a hint

  const play = button("play", "Play", icon(PLAY));
  const flown = make("div", "flown");
  const marks = make("div", "marks");
  const slider = make("div", "slider"); // for keys: no control is in another one
  const track = make("div", "track", flown, slider, marks);
  const ticks = make("div", "ticks");
  const needle = make("div", "needle");
  const bar = make("div", "bar", play, track, ticks, needle);
  const before = button("plain", "Previous event (P)", icon(BACK));
  const after = button("plain", "Next event (N)", icon(ON));
  const time = make("span", "");
  const length = make("span", "faint");
  const now = make("span", "now", time, length);
  const speed = make("select", "");
  const loop = button("loop", "Begin again at the end", icon(LOOP));
  const kinds = make("div", "kinds");
  const buttons = make("div", "buttons", before, after, now, speed, loop, make("span", "gap"), kinds);
  const notes = make("div", "notes");
  const dock = make("section", "replay dock", notes, bar, buttons);
  const hint = make("div", "replay hint");
  dock.ariaLabel = "Time of the recording";
  dock.hidden = hint.hidden = true;
  slider.tabIndex = 0;
  slider.role = "slider";
  slider.ariaLabel = "Time";
  speed.title = speed.ariaLabel = "Speed";
  replay.dock = { element: dock, bar, buttons, notes };

  // Where it is.

  const show_time = () => {
    const { recording, player } = known;
    if (!recording || !player) return;
    const at = replay.share(player.t);
    dock.style.setProperty("--at", Math.min(Math.max(at, 0), 1));
    needle.hidden = at < -1e-6 || at > 1 + 1e-6;
    time.textContent = seconds(player.t, player.plays ? 2 : 3);
    length.textContent = ` / ${seconds(recording.end, 1)}`;
    slider.ariaValueNow = player.t.toFixed(3);
    slider.ariaValueText = `${seconds(player.t)} of ${seconds(recording.end)}`;
    if (play.dataset.plays !== String(player.plays)) {
      play.dataset.plays = player.plays;
      play.replaceChildren(icon(player.plays ? PAUSE : PLAY));
      play.ariaLabel = play.title = player.plays ? "Pause" : "Play";
    }
    loop.ariaPressed = player.loops;
    if (document.activeElement !== speed) speed.value = player.speed;
    write_hash(player);
  };

  // The moment stays in the address, so that it can be sent to somebody who has the same file.
  // viser takes what is before a "?" as the address of its WebSocket, which may have no hash.
  const put_hash = (hash) => history.replaceState(history.state, "", `${location.search || "?"}${hash}`);
  if (location.hash) put_hash(location.hash);
  let hashTimer = 0;
  const write_hash = ({ plays, t }) => {
    clearTimeout(hashTimer);
    if (plays) return;
    hashTimer = setTimeout(() => {
      const hash = `#t=${Number(t.toFixed(3))}`;
      if (location.hash !== hash) put_hash(hash);
    }, 200);
  };
  const read_hash = () => {
    const t = Number(/^#t=(-?[\d.]+)$/.exec(location.hash)?.[1] ?? NaN);
    if (Number.isFinite(t)) ask("seek", { t });
  };
  window.addEventListener("hashchange", read_hash);

  const show_ticks = () => {
    const { begin, end } = replay.span();
    const room = Math.max(track.clientWidth / 70, 1);
    const rough = (end - begin) / room;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let t = Math.ceil(begin / step - 1e-9) * step; t <= end + 1e-9; t += step) {
      const tick = make("span", "", t.toFixed(digits));
      tick.style.left = `${100 * replay.share(t)}%`;
      found.push(tick);
    }
    ticks.replaceChildren(...found);
  };

  // What happened.

  let chosen = null; // the event of the card
  const show_marks = () => {
    const found = [];
    for (const event of replay.shown()) {
      const at = replay.share(event.t);
      if (at < 0 || at > 1) continue;
      const mark = make("button", event.run ? "mark other" : "mark");
      mark.type = "button";
      mark.tabIndex = -1; // there may be hundreds; keys go from one to the next
      mark.dataset.group = event.group;
      mark.dataset.severity = event.severity;
      mark.dataset.time = event.t;
      mark.ariaLabel = `${seconds(event.t)} ${replay.name_of(event)} ${event.text}`;
      mark.style.left = `${100 * at}%`;
      if (chosen && chosen.run === event.run && chosen.number === event.number) mark.classList.add("chosen");
      mark.event = event;
      found.push(mark);
    }
    marks.replaceChildren(...found);
  };
  const show_kinds = () => {
    const counts = {};
    for (const { group } of known.events) counts[group] = (counts[group] ?? 0) + 1;
    kinds.replaceChildren(...Object.entries(replay.GROUPS).filter(([group]) => counts[group]).map(([group, label]) => {
      const choice = button("", `Show or hide: ${label.toLowerCase()}`, make("span", "dot"), `${label} ${counts[group]}`);
      choice.dataset.group = group;
      choice.ariaPressed = !known.hidden.has(group);
      choice.onclick = () => replay.toggle(group);
      return choice;
    }));
  };

  const show_notes = () => {
    const { recording, read = 0, leftOut = 0 } = known;
    const lines = recording.notes.map((text) => make("div", "warns", text));
    if (read < 1) lines.push(make("div", "faint", `Reading the file for events: ${Math.round(100 * read)} %`));
    if (leftOut) lines.push(make("div", "faint", `${leftOut} more events are not shown: there are too many.`));
    notes.replaceChildren(...lines, ...(replay.dock.comparison ? [replay.dock.comparison] : []));
  };

  const show_hint = ({ clientX, clientY, pointerType }) => {
    const box = track.getBoundingClientRect();
    const near = [...marks.children]
      .map((mark) => [Math.abs(box.left + (parseFloat(mark.style.left) / 100) * box.width - clientX), mark.event])
      .filter(([distance]) => distance <= CLOSE)
      .sort(([one], [other]) => one - other);
    const t = replay.time_at((clientX - box.left) / box.width);
    const lines = near.slice(0, MOST).map(([, event]) => {
      const line = make("div", "", make("span", "dot"), make("b", "", seconds(event.t)),
        [replay.name_of(event), event.text].filter(Boolean).join(": "));
      line.dataset.group = event.group;
      return line;
    });
    if (near.length > MOST) lines.push(make("div", "faint", `and ${near.length - MOST} more`));
    hint.replaceChildren(...(lines.length ? lines : [make("div", "", seconds(t))]));
    hint.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = hint;
    hint.style.left = `${Math.min(Math.max(clientX - width / 2, 12), innerWidth - width - 12)}px`;
    hint.style.top = `${box.top - height - (pointerType === "touch" ? 40 : 10)}px`;
  };

  // The pointer.

  let drags = false;
  let sent = 0;
  const seek_to = ({ clientX }, isLast) => {
    const box = track.getBoundingClientRect();
    if (!isLast && performance.now() - sent < PERIOD) return;
    sent = performance.now();
    ask("seek", { t: replay.time_at((clientX - box.left) / box.width) });
  };
  track.addEventListener("pointerdown", (event) => {
    if (event.button || event.target.event) return;
    drags = true;
    track.setPointerCapture(event.pointerId);
    seek_to(event, true);
  });
  track.addEventListener("pointermove", (event) => {
    show_hint(event);
    if (drags) seek_to(event, false);
  });
  track.addEventListener("pointerup", (event) => {
    if (drags) seek_to(event, true);
    drags = false;
  });
  track.addEventListener("pointercancel", () => { drags = false; });
  track.addEventListener("pointerleave", () => { hint.hidden = true; });
  marks.addEventListener("click", ({ target }) => target.event && replay.go_to(target.event));
  track.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = track.getBoundingClientRect();
    replay.zoom(replay.time_at((event.clientX - box.left) / box.width), event.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
  replay.zoom = (t, factor) => {
    const { begin, end } = replay.span();
    replay.look_at(t - (t - begin) * factor, t + (end - t) * factor);
  };

  // The buttons and keys.

  const go_on = (direction) => {
    const t = chosen?.t ?? known.player.t;
    const at = Math.abs(t - known.player.t) < 3 ? t : known.player.t;
    const list = replay.shown().filter((event) => event.group !== "log");
    const isPast = (event) => (event.t - at) * direction > 1e-6;
    const found = direction > 0 ? list.find(isPast) : list.findLast(isPast);
    if (found) replay.go_to(found);
  };
  replay.go_on = go_on;
  const step = (count) => ask("step", { n: count });
  const jump = (by) => ask("seek", { t: replay.clamp(known.player.t + by) });
  const ofSlider = {
    ArrowLeft: ({ shiftKey }) => (shiftKey ? jump(-1) : step(-1)),
    ArrowRight: ({ shiftKey }) => (shiftKey ? jump(1) : step(1)),
    Home: () => ask("seek", { t: known.recording.begin }),
    End: () => ask("seek", { t: known.recording.end }),
  };
  const keys = { ...ofSlider, Space: () => ask("toggle"), KeyN: () => go_on(1), KeyP: () => go_on(-1) };
  const press = (event, acts) => {
    const act = known.player && acts[event.code];
    act?.(event);
    return Boolean(act);
  };
  shortcuts.on((event) => press(event, keys));
  slider.addEventListener("keydown", (event) => { if (press(event, ofSlider)) event.preventDefault(); });
  play.onclick = () => ask("toggle");
  before.onclick = () => go_on(-1);
  after.onclick = () => go_on(1);
  loop.onclick = () => ask("loop", { value: !known.player.loops });
  speed.onchange = () => ask("speed", { value: Number(speed.value) });

  replay.on("begin", () => {
    speed.replaceChildren(...known.recording.speeds.map((value) => {
      const option = make("option", "", `${value} ×`);
      option.value = value;
      return option;
    }));
    read_hash();
    dock.hidden = false;
  });
  const show_all = () => {
    if (!known.recording) return;
    slider.ariaValueMin = known.recording.begin;
    slider.ariaValueMax = known.recording.end;
    show_ticks();
    show_marks();
    show_time();
  };
  replay.on("recording", () => { show_notes(); show_all(); });
  replay.on("window", show_all);
  replay.on("events", () => { if (known.recording) { show_notes(); show_kinds(); show_marks(); } });
  replay.on("player", show_time);
  shell.on("card", (card) => { chosen = card; show_marks(); });
  replay.show_notes = show_notes;

  replay.observer = new ResizeObserver(() => arrange());
  replay.observer.observe(dock);

  // What is high or wide takes room from the picture; the bar alone lies over it.
  const arrange = () => {
    const root = document.documentElement.style;
    root.setProperty("--bar", `${bar.offsetHeight + buttons.offsetHeight + notes.offsetHeight + 18}px`);
    const sheets = [...document.querySelectorAll(".events:not([hidden])")];
    const isPhone = matchMedia("(max-width: 640px)").matches;
    const high = [...(isPhone ? sheets : []), ...document.querySelectorAll(".plot-pane:not([hidden])")];
    const below = high.map((element) => innerHeight - element.getBoundingClientRect().top + 10);
    root.setProperty("--below", `${Math.max(0, ...below)}px`);
    root.setProperty("--beside", !isPhone && sheets.length ? "374px" : "0px");
    show_all();
  };
  replay.ready(() => {
    document.body.append(dock, hint);
    window.addEventListener("resize", arrange);
  });
})();
