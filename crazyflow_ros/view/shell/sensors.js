// The list of the selected drone's sensors, each with its reading and a switch to draw it.
(() => {
  const list = cards.make("section", { className: "readings" });
  let names = "";

  const make = ({ name, drawn, picture }) => {
    const row = cards.make("div", {},
      cards.make("span", { textContent: picture ? name.replace(/\/image_raw$/, "") : name }),
      cards.make("span", { className: "reading" }));
    if (picture) {
      const open = () => { pictures.open(); shell.send("choose onboard camera", name.replace(/\/image_raw$/, "")); };
      row.append(cards.make("button", { type: "button", textContent: "Show", onclick: open }));
    } else if (drawn !== undefined) {
      const draw = ({ target }) => shell.send("draw", [name, target.ariaPressed !== "true"]);
      row.append(cards.make("button", { type: "button", textContent: "Draw", title: "In the scene", onclick: draw }));
    }
    return row;
  };

  shell.on("sensors", ({ drone, rows = [] }) => {
    const now = JSON.stringify([drone, rows.map(({ name }) => name)]);
    if (now !== names) {
      names = now;
      const none = cards.make("p", { textContent: `${drone} has no sensors.` });
      list.replaceChildren(...(rows.length ? rows.map(make) : [none]));
    }
    rows.forEach(({ text, drawn, picture }, index) => {
      const row = list.children[index];
      row.querySelector(".reading").textContent = text;
      const button = row.querySelector("button");
      if (button && !picture) button.ariaPressed = String(drawn);
    });
  });
  places.put("sensors", list, (isSeen) => shell.want("sensors", isSeen));
})();
