// Notes for the user of this tab: what was refused, and what takes long.
(() => {
  const { make, ready } = dom;
  const STAYS = 8000; // ms
  const box = make("div", "shell-notes");
  box.role = "status";
  const shown = new Map();

  const remove = (id) => {
    shown.get(id)?.remove();
    shown.delete(id);
  };
  shell.on("note", ({ id, title, text, waits }) => {
    remove(id);
    if (title === undefined) return;
    const close = make("button", "", "×");
    close.ariaLabel = `Close: ${title}`;
    close.onclick = () => remove(id);
    const note = make("div", `note ${waits ? "waits" : ""}`, make("div", "", make("strong", "", title), text), close);
    box.append(note);
    shown.set(id, note);
    if (!waits) setTimeout(remove, STAYS, id);
  });
  shell.on("connected", (is) => { if (!is) [...shown.keys()].forEach(remove); });
  ready(() => document.body.append(box));
})();
