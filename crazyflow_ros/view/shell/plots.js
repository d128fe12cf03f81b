// The plots of the panel, each of which can be made large over the scene.
(() => {
  const COUNT = 2;
  const PICTURE = [1000, 500]; // px

  const begin = (number) => {
    const kind = `plot${number}`;
    const small = new Chart("plot");
    const big = new Chart("plot");
    let series = null;
    let isSeen = false;

    const card = cards.add(kind, "Plot", { tell: () => listen() });
    const listen = () => shell.want(kind, isSeen || card.isOpen());
    card.body.append(big.element);

    const tool = (text, title, act) => cards.make("button", { type: "button", textContent: text, title, onclick: act });
    const saveFile = () => shell.send("csv", number);
    const savePicture = async () => {
      if (series) files.save(`${series.title.replace(/[^\w-]+/g, "_")}.png`, await Chart.picture(series, ...PICTURE));
    };
    const tools = () => [
      tool("CSV", "Save what the plot shows as a table", saveFile),
      tool("PNG", "Save the plot as a picture", savePicture),
    ];
    card.tools.append(...tools());
    const figure = cards.make("figure", { className: "plot-figure" }, small.element,
      cards.make("figcaption", {}, tool("Large", "Over the scene", () => card.open(true)), ...tools()));

    shell.on(kind, (content) => {
      if (content.labels) series = content;
      else if (series) {
        series.rows.push(...content.rows);
        series.rows.splice(0, series.rows.length - series.most);
      }
      card.heading.textContent = series?.title ?? "Plot";
      small.show(series);
      big.show(series);
    });
    places.put(kind, figure, (isNowSeen) => {
      isSeen = isNowSeen;
      listen();
      if (isSeen) small.draw();
    });
  };

  for (let number = 0; number < COUNT; number += 1) begin(number);
})();
