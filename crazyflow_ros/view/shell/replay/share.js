// Saves the flight, or the span of it in sight, as a page for somebody else.
(() => {
  const { make, button, ask } = replay;
  const LABEL = "Share";
  const open = button("", "Save the flight, or what of it is in sight, as one file for others", LABEL);
  let waits = false; // whether this tab has asked
  open.onclick = () => {
    waits = true;
    ask("share");
  };
  shell.on("share", ({ done, path, name }) => {
    open.disabled = done < 1;
    open.textContent = done < 1 ? `${LABEL} ${Math.round(100 * done)} %` : LABEL;
    if (!waits || done < 1) return;
    waits = false;
    if (path) Object.assign(make("a", ""), { href: path, download: name }).click();
  });
  replay.ready(() => replay.dock.buttons.append(open));
})();
