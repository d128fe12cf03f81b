// The keys: in short when one is used first, all of them with "?" or the button in the status line.
(() => {
  const { make, ready } = dom;
  const OTHERS = [
    ["click on a drone", "select it"],
    ["click on the floor", "send the selected drone there"],
    ["drag left, right, wheel", "turn, move, zoom the camera"],
    ["?", "these keys; Escape closes them"],
  ];
  const HINT = 8000; // ms that the hint stays
  const row = ([key, effect]) => make("tr", "", make("th", "", key), make("td", "", effect));
  const close = make("button", "close", "Close");
  const table = make("table");
  const sheet = make("div", "sheet", make("h2", "", "Keys and mouse"), table,
    make("p", "", "A gamepad works too: height and heading with the left stick, place with the right."),
    close);
  const page = make("div", "shell-help", sheet);
  page.hidden = true;
  page.setAttribute("role", "dialog");
  page.ariaLabel = "Keys and mouse";
  const set = (isOpen) => { page.hidden = !isOpen; };
  close.onclick = () => set(false);
  page.onclick = (event) => { if (event.target === page) set(false); };
  const button = make("button", "help", "?");
  button.ariaLabel = button.title = "Keys and mouse";
  button.onclick = () => set(page.hidden);

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

  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") set(false);
    else if (event.key === "?" && !flight.isTyping(event)) set(page.hidden);
  });
  ready(() => {
    document.body.append(page, hint);
    document.querySelector(".shell-status .line")?.append(button);
  });
})();
