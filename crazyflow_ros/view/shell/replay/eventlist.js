// What happened, one line each; a click goes there.
(() => {
  const { known, make, button, icon } = replay;
  const LIST = "M4 5h2v2H4zM8 5h12v2H8zM4 11h2v2H4zM8 11h12v2H8zM4 17h2v2H4zM8 17h12v2H8z";
  const CLOSE = "M6.4 5L5 6.4 10.6 12 5 17.6 6.4 19 12 13.4 17.6 19 19 17.6 13.4 12 19 6.4 17.6 5 12 10.6z";
  replay.CLOSE = CLOSE;

  const search = make("input", "search");
  search.type = "search";
  search.placeholder = "Find words or a drone";
  search.ariaLabel = "Find in the events";
  const lines = make("div", "lines");
  const close = button("plain", "Close", icon(CLOSE));
  const list = make("section", "replay events", make("header", "", make("b", "", "What happened"), close), search, lines);
  list.ariaLabel = "What happened";
  list.hidden = true;
  const open = button("", "List of the events and of the log (L)", icon(LIST));
  open.ariaPressed = false;

  let chosen = null;
  let shown = [];
  const mark = (line) => {
    const { run, number } = line.event ?? {};
    line.classList.toggle("chosen", chosen?.run === run && chosen?.number === number);
  };
  const line_of = (event) => {
    const words = [replay.name_of(event), event.text].filter(Boolean).join(": ");
    const line = make("button", "line", make("span", "dot"), make("span", "when", replay.seconds(event.t)), make("span", "words", words));
    line.type = "button";
    line.dataset.group = event.group;
    line.dataset.severity = event.severity;
    line.event = event;
    mark(line);
    line.onclick = () => replay.go_to(event);
    return line;
  };
  const show = () => {
    if (list.hidden || !known.recording) return;
    const wanted = search.value.trim().toLowerCase();
    shown = replay.shown().filter(({ drone, text }) => `${drone}: ${text}`.toLowerCase().includes(wanted));
    const empty = make("div", "empty", known.events.length ? "No event is like that, or its kind is hidden below." : "Nothing happened yet.");
    lines.replaceChildren(...shown.map(line_of), ...(shown.length ? [] : [empty]));
    mark_now();
  };
  // A line across the list says where the recording is.
  let atLine = -1;
  const mark_now = () => {
    if (list.hidden || !known.player) return;
    const at = shown.findLastIndex((event) => event.t <= known.player.t + 1e-6);
    lines.children[atLine]?.style.removeProperty("box-shadow");
    if (shown.length && at >= 0) {
      lines.children[at].style.boxShadow = "inset 0 -2px var(--accent)";
      if (at !== atLine && known.player.plays) lines.children[at].scrollIntoView({ block: "nearest" });
    }
    atLine = at;
  };
  const toggle = () => {
    list.hidden = !list.hidden;
    open.ariaPressed = !list.hidden;
    atLine = -1;
    show();
  };
  open.onclick = close.onclick = toggle;
  search.oninput = show;
  replay.on("events", show);
  replay.on("player", mark_now);
  shell.on("card", (card) => { chosen = card; [...lines.children].forEach(mark); });
  shortcuts.on(({ code }) => {
    if (code === "KeyL") toggle();
    return code === "KeyL";
  });
  replay.ready(() => {
    replay.dock.buttons.append(open);
    document.body.append(list);
    replay.observer.observe(list);
  });
})();
