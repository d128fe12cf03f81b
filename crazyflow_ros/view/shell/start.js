// What is shown while there is no simulator, or its picture has not come: what is waited for.
(() => {
  const { make, ready, write } = dom;
  const root = document.documentElement;
  const icon = make("img", "icon");
  icon.alt = "";
  const head = make("h1", "");
  const where = make("p", "where");
  const since = make("p", "since");
  const lines = make("div", "lines");
  const others = make("div", "others");
  const how = make("p", "how");
  const card = make("div", "card", icon, head, where, since, lines, how, others);
  const page = make("div", "shell-start", card);
  page.hidden = true;

  const command = (text) => make("code", "", text);
  const clock = (seconds) =>
    `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

  let state = null;
  // viser has drawn at least once when its panel had the mark of this tab, see tab.js.
  const isDrawn = () => document.querySelector("canvas[data-engine]") && !root.classList.contains("unmarked");

  const show = () => {
    const waits = state !== null && !(state.is_there && isDrawn());
    page.hidden = !waits;
    root.classList.toggle("ended", waits && state.ended !== null);
    if (!waits) return;
    const { name, domain, seconds, starts, is_there: isThere, ended, lines: said, others: found } = state;
    write(head, isThere ? "Loading the picture"
      : starts ? "The simulator is starting"
      : ended !== null ? `The simulator ended at t\u00a0=\u00a0${ended.toFixed(1)}\u00a0s`
      : "Waiting for the simulator");
    const isOver = ended !== null && !starts && !isThere;
    write(where, isOver
      ? `The next ${name} in the ROS domain ${domain} is shown by itself.`
      : `${name} in the ROS domain ${domain}`);
    write(since, isThere ? "" : isOver ? `${clock(seconds)} ago` : clock(seconds));
    lines.replaceChildren(...said.map((text) => make("div", "", text)));
    how.replaceChildren();
    if (!starts && !isThere && state.start) how.append("Start it with ", command(state.start));
    others.replaceChildren();
    if (!isThere && found.length) {
      others.append(make("p", "", "Other simulators run in this domain. To see one:"));
      others.append(...found.map(command));
    }
  };
  shell.on("start", (content) => { state = content; show(); });
  ready(() => {
    icon.src = document.querySelector("link[rel=icon]").href;
    document.body.append(page);
    const observer = new MutationObserver(() => { if (!page.hidden) show(); });
    observer.observe(document.getElementById("root"), { childList: true, subtree: true });
  });
})();
