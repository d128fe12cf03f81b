// The map: the world from above with drones, their headings, trails and goals. A click selects a
// drone; with Send or Shift it sends the selected drone to that place, unless it is a recording.
(() => {
  const NEAR = 14; // px, around a drone that is clicked
  const LEAST = 4; // m, shown at least
  const WIDEST = 40; // m, wider shapes are not fitted into the map
  const TRAIL = 150; // points
  const STEP = 0.05; // m between two of them
  const JUMP = 1; // m, above which a drone was put elsewhere

  const CURSOR = 0.25; // m by which an arrow key moves the cursor

  const canvas = cards.make("canvas", { className: "map", tabIndex: 0, role: "application" });
  const mode = cards.make("button", {
    type: "button", textContent: "Send", title: "A click sends the selected drone there. Or hold Shift",
  });
  const card = cards.add("map", "Map", { opener: "Map", isOpen: true, tell: (isOpen) => shell.want("map", isOpen) });
  card.tools.append(mode);
  card.body.append(canvas);

  let content = null;
  let trails = [];
  let bounds = [0, 0, 1, 1];
  let isSending = false;
  let cursor = null; // m, while keys are used

  const begin = () => {
    trails = content.names.map(() => []);
    const points = content.outlines
      .map(({ corners }) => corners)
      .filter((corners) => Math.max(...[0, 1].map((axis) => extent(corners, axis))) < WIDEST)
      .flat();
    bounds = [Infinity, Infinity, -Infinity, -Infinity];
    points.forEach(include);
  };
  const extent = (corners, axis) => Math.max(...corners.map((c) => c[axis])) - Math.min(...corners.map((c) => c[axis]));
  const include = ([x, y]) => {
    bounds = [Math.min(bounds[0], x), Math.min(bounds[1], y), Math.max(bounds[2], x), Math.max(bounds[3], y)];
  };

  const take = (change) => {
    if (change.names) {
      content = change;
      mode.hidden = !content.canSend;
      canvas.ariaLabel = "Map. Arrow keys move a cross, Enter selects the drone there" +
        (content.canSend ? ", or sends the selected one with Send or Shift" : "");
      begin();
    } else if (content) {
      for (const [name, value] of Object.entries(change)) {
        if (name === "drones" || name === "goals") Object.assign(content[name], value);
        else content[name] = value;
      }
    }
    for (const [number, [x, y]] of Object.entries(change.drones ?? {})) {
      include([x - 0.5, y - 0.5]);
      include([x + 0.5, y + 0.5]);
      const trail = trails[number];
      const last = trail.at(-1);
      const step = last ? Math.hypot(x - last[0], y - last[1]) : Infinity;
      if (step > JUMP) trail.length = 0;
      if (step > STEP) trail.push([x, y]);
      if (trail.length > TRAIL) trail.shift();
    }
    draw();
  };

  const scale = () => {
    const [west, south, east, north] = bounds;
    const { clientWidth: width, clientHeight: height } = canvas;
    const metre = Math.min(width / Math.max(east - west, LEAST), height / Math.max(north - south, LEAST)) * 0.94;
    return { metre, width, height, x0: width / 2 - (metre * (east + west)) / 2, y0: height / 2 + (metre * (north + south)) / 2 };
  };

  const path = (pen, points) => {
    pen.beginPath();
    points.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  };

  let isDue = false;
  const draw = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => { isDue = false; paint(); });
  };

  const paint = () => {
    const { metre, width, height, x0, y0 } = scale();
    if (!content || !width || !height) return;
    const ratio = devicePixelRatio;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const at = ([x, y]) => [x0 + metre * x, y0 - metre * y];
    const ink = getComputedStyle(canvas).color;

    for (const { corners, color, floor } of content.outlines) {
      path(pen, corners.map(at));
      pen.closePath();
      pen.globalAlpha = floor ? 0.12 : 0.75;
      pen.fillStyle = floor ? ink : color;
      pen.fill();
      pen.globalAlpha = floor ? 0.1 : 0.6;
      pen.strokeStyle = ink;
      pen.lineWidth = 1;
      pen.stroke();
    }
    pen.globalAlpha = 0.12;
    pen.fillStyle = ink;
    for (let x = Math.ceil(-x0 / metre); x * metre + x0 < width; x += 1) pen.fillRect(Math.round(x0 + metre * x), 0, 1, height);
    for (let y = Math.ceil((y0 - height) / metre); y0 - metre * y > 0; y += 1) pen.fillRect(0, Math.round(y0 - metre * y), width, 1);

    pen.lineWidth = 1.5;
    content.names.forEach((_, number) => {
      pen.strokeStyle = content.colors[number];
      pen.globalAlpha = 0.6;
      path(pen, trails[number].map(at));
      pen.stroke();
      pen.globalAlpha = 1;
      const goal = content.goals[number];
      if (!goal) return;
      const [x, y] = at(goal);
      path(pen, [[x - 4, y], [x + 4, y]]);
      pen.moveTo(x, y - 4);
      pen.lineTo(x, y + 4);
      pen.stroke();
    });
    content.names.forEach((name, number) => drone(pen, at, name, number, ink));
    pen.fillStyle = pen.strokeStyle = ink;
    pen.font = dom.font(canvas, 11);
    pen.textAlign = "right";
    pen.fillText("1 m grid", width - 5, height - 5);
    if (!cursor) return;
    const [x, y] = at(cursor);
    pen.lineWidth = 1;
    path(pen, [[0, y], [width, y]]);
    pen.moveTo(x, 0);
    pen.lineTo(x, height);
    pen.stroke();
    pen.textAlign = "left";
    pen.fillText(`${cursor.map((metres) => metres.toFixed(2)).join(", ")} m`, 5, 13);
  };

  const drone = (pen, at, name, number, ink) => {
    const [place, yaw] = [content.drones[number], content.drones[number][2]];
    const [x, y] = at(place);
    const corner = (ahead, left) => [
      x + ahead * Math.cos(yaw) - left * Math.sin(yaw), y - ahead * Math.sin(yaw) - left * Math.cos(yaw),
    ];
    path(pen, [corner(8, 0), corner(-5, 5), corner(-2, 0), corner(-5, -5)]);
    pen.closePath();
    pen.fillStyle = content.colors[number];
    pen.fill();
    pen.strokeStyle = ink;
    pen.lineWidth = 1;
    pen.stroke();
    if (content.down.includes(number)) {
      pen.strokeStyle = "#e03131";
      pen.lineWidth = 2.5;
      path(pen, [[x - 7, y - 7], [x + 7, y + 7]]);
      pen.moveTo(x - 7, y + 7);
      pen.lineTo(x + 7, y - 7);
      pen.stroke();
    }
    if (number !== content.selected) return;
    pen.beginPath();
    pen.arc(x, y, 11, 0, 2 * Math.PI);
    pen.strokeStyle = content.colors[number];
    pen.lineWidth = 2;
    pen.stroke();
    pen.fillStyle = ink;
    pen.font = dom.font(canvas, 11, 600);
    const isLeft = x + 14 + pen.measureText(name).width > canvas.clientWidth;
    pen.textAlign = isLeft ? "right" : "left";
    pen.fillText(name, x + (isLeft ? -14 : 14), y + 4);
  };

  // Selects the drone at a place [m], or sends the selected one there.
  const choose = ([x, y], sends) => {
    const { metre } = scale();
    const away = (number) => metre * Math.hypot(content.drones[number][0] - x, content.drones[number][1] - y);
    const near = content.names.map((_, number) => number).sort((a, b) => away(a) - away(b))[0];
    if (near !== undefined && away(near) < NEAR) shell.send("map_select", content.names[near]);
    else if (content.canSend && (isSending || sends)) shell.send("map_send", [x, y]);
  };
  canvas.onclick = (event) => {
    if (!content) return;
    const { metre, x0, y0 } = scale();
    choose([(event.offsetX - x0) / metre, (y0 - event.offsetY) / metre], event.shiftKey);
  };
  canvas.onkeydown = (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.code];
    const chooses = event.key === "Enter" || event.key === " ";
    if (!content || !(by || chooses)) return;
    event.preventDefault();
    cursor ??= content.drones[content.selected]?.slice(0, 2) ?? [0, 0];
    if (by) cursor = cursor.map((at, axis) => at + CURSOR * by[axis]);
    else choose(cursor, event.shiftKey);
    draw();
  };
  canvas.onblur = () => { cursor = null; draw(); };
  mode.onclick = () => {
    isSending = !isSending;
    mode.ariaPressed = String(isSending);
    canvas.classList.toggle("sending", isSending);
  };
  shell.on("map", take);
  new ResizeObserver(draw).observe(canvas);
  cards.onTheme(draw);
})();
