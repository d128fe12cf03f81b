// The keys: in short when one is used first, all of them with "?" or the button in the status line.
(() => {
  const { make, ready } = dom;
  const OTHERS = [
    ["click on a drone", "select it"],
    ["click on the floor", "send the selected drone there"],
    ["drag left, right, wheel", "turn, move, zoom the camera"],
    ["Tab", "from one control to the next, where keys are for the control"],
    ["Escape", "back to the drones; closes what is open"],
    ["?", "these keys"],
  ];
  const HINT = 8000; // ms that the hint stays
  const row = ([key, effect]) => make("tr", "", make("th", "", key), make("td", "", effect));
  const close = make("button", "close", "Close");
  const table = make("table");
  const title = make("h2", "", "Keys and mouse");
  const sheet = make("div", "sheet", title, table,
    make("p", "", "A gamepad works too: height and heading with the left stick, place with the right."),
    shortcuts.makeSwitch(), close);
  const page = make("dialog", "shell-help", sheet);
  page.ariaLabel = title.textContent;
  close.onclick = () => page.close();
  page.onclick = (event) => { if (event.target === page) page.close(); };
  const button = make("button", "help", "?");
  button.ariaLabel = button.title = title.textContent;
  button.onclick = () => page.showModal();

  const hint = make("div", "shell-hint");
  hint.hidden = true;
  shell.on("keys", (keys) => {
    table.replaceChildren(...[...keys, ...OTHERS].map(row));
    hint.replaceChildren();
    for (const [key, effect] of keys) hint.append(make("kbd", "", key), ` ${effect} `);
    hint.append(make("kbd", "", "?"), " all keys");
  });
  let isTold = false;
  flight.onKey(() => {
    if (isTold) return;
    isTold = true;
    hint.hidden = false;
    setTimeout(() => { hint.hidden = true; }, HINT);
  });

  shortcuts.on(({ key }) => {
    if (key === "?") page.showModal();
    return key === "?";
  });
  ready(() => {
    document.body.append(page, hint);
    document.querySelector(".shell-status .line")?.append(button);
  });
})();
