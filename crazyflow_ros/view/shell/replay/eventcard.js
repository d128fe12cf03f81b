// Why did it crash? The card of the event that somebody clicked on.
(() => {
  const { make, button, icon, ask, seconds } = replay;
  const body = make("div", "body");
  const title = make("b", "");
  const close = button("plain", "Close", icon(replay.CLOSE));
  const slowly = make("input", "");
  slowly.type = "checkbox";
  const again = button("", "Go to the event again", "Go there again");
  const before = button("", "Previous event (P)", "‹");
  const after = button("", "Next event (N)", "›");
  const footer = make("footer", "", again, make("label", "", slowly, "play it slowly"), make("span", "gap"), before, after);
  const card = make("section", "replay events why", make("header", "", make("span", "dot"), title, close), body, footer);
  card.ariaLabel = "Explanation of the event";
  card.hidden = true;
  card.tabIndex = -1;

  const ago = (time) => (time < 0.005 ? "then" : `−${seconds(time)}`);
  const line_of = ({ t, ago: time, group, text }) => {
    const line = make("button", "line", make("span", "dot"), make("span", "when", ago(time)), make("span", "words", text));
    line.type = "button";
    line.dataset.group = group;
    line.onclick = () => ask("seek", { t });
    return line;
  };
  let shown = null;
  let opener = null; // the line of the list that was chosen by keys
  const show = (content) => {
    const focus = document.activeElement;
    const isInside = card.contains(focus);
    shown = content;
    card.hidden = content === null;
    if (content === null) {
      if (isInside) opener?.focus();
      return;
    }
    card.dataset.group = content.group;
    title.textContent = `${content.drone || "All drones"}: ${content.kind}, ${seconds(content.t)}`;
    const parts = [make("div", "what", content.text)];
    if (content.cause) parts.push(make("div", "cause", content.cause));
    if (content.before.length) parts.push(make("h3", "", "What led to it"), ...content.before.map(line_of));
    if (content.facts.length) {
      const facts = make("dl", "");
      for (const { label, text, is_bad: isBad } of content.facts) {
        facts.append(make("dt", "", label), make("dd", isBad ? "bad" : "", text));
      }
      parts.push(make("h3", "", "At this moment, and in the 5 s before"), facts);
    }
    body.replaceChildren(...parts);
    body.scrollTop = 0;
    if (!isInside && focus.matches(".events .line")) {
      opener = focus;
      card.focus();
    }
  };
  close.onclick = () => ask("close");
  again.onclick = () => shown && ask("event", { run: shown.run, number: shown.number });
  before.onclick = () => replay.go_on(-1);
  after.onclick = () => replay.go_on(1);
  slowly.onchange = () => {
    ask("mode", { value: slowly.checked ? "slowly" : "stop" });
    if (slowly.checked) again.click();
  };
  shell.on("card", show);
  replay.on("player", () => { slowly.checked = replay.known.player.mode === "slowly"; });
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || card.hidden || event.target.matches?.("input, select")) return;
    event.preventDefault();
    ask("close");
  }, true);
  replay.ready(() => {
    document.body.append(card);
    replay.observer.observe(card);
  });
})();
