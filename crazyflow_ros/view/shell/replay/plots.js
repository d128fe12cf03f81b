// Curves of the selected drone over the time of the recording, above the time bar.
(() => {
  const { known, make, button, icon, ask } = replay;
  const CHART = "M4 19h16v2H2V3h2zM8 16l4-6 3 3 5-8-1.6-1L14.7 10l-3-3L6.4 15z";
  const FIRST = ["height", "error", "rotors"];
  const COLORS = { light: ["#0b63c5", "#c75300", "#1c7a32", "#8a3ffc"], dark: ["#6db3ff", "#ff9d4d", "#5fcf7d", "#c39bff"] };
  const MOVED = 4; // pixels, from which a click is a drag

  const drone = make("select", "");
  drone.title = drone.ariaLabel = "Drone";
  const choices = make("span", "kinds");
  const all = button("", "Show the whole flight again", "Whole flight");
  const table = button("", "Save the curves that are shown as a table", "CSV");
  const picture = button("", "Save the plots as a picture", "PNG");
  const head = make("div", "plot-head", drone, choices, make("span", "gap"), all, table, picture);
  const rows = make("div", "plots");
  const pane = make("div", "plot-pane", head, rows);
  pane.hidden = true;
  const open = button("", "Plots of the selected drone (G)", icon(CHART));
  open.ariaPressed = false;

  let curves = null;
  const chosen = new Set(FIRST);
  const plots = new Map();

  const is_dark = () => document.documentElement.classList.contains("dark");
  // What is wanted has the colour of what is, and is thinner.
  const style_of = (row, number) => {
    const colors = COLORS[is_dark() ? "dark" : "light"];
    const wanted = row.lines[number].endsWith("wanted");
    const own = row.lines.filter((label) => !label.endsWith("wanted")).length;
    return { color: colors[(wanted ? number - own : number) % colors.length], wanted };
  };
  const times_of = (run, row) => (row.id === "battery" ? run.battery[0] : run.t);
  const lines_of = (run, row) => (row.id === "battery" ? [run.battery[1]] : run[row.id]);

  const index_at = (times, t) => {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };

  const limits_of = (row) => {
    const { begin, end } = replay.span();
    let [least, most] = [Infinity, -Infinity];
    for (const run of curves.runs) {
      const times = times_of(run, row);
      for (const line of lines_of(run, row)) {
        line.forEach((value, i) => {
          if (value === null || times[i] < begin || times[i] > end) return;
          least = Math.min(least, value);
          most = Math.max(most, value);
        });
      }
    }
    if (least > most) return null;
    const margin = Math.max((most - least) * 0.06, { m: 0.02, "°": 1 }[row.unit] ?? 0.05);
    return [least >= 0 ? Math.max(least - margin, 0) : least - margin, most + margin];
  };

  const draw = (plot) => {
    const { row, canvas, top, bottom } = plot;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    pen.strokeStyle = style.getPropertyValue("--edge");
    pen.strokeRect(0.5, 0.5, width - 1, height - 1);
    const limits = curves && limits_of(row);
    top.textContent = bottom.textContent = "";
    if (!limits) {
      pen.fillStyle = style.getPropertyValue("--faint");
      pen.font = dom.font(pane, 12);
      pen.fillText(curves ? "not in the file, or not at this time" : "reading …", 8, height / 2 + 4);
      return;
    }
    const digits = Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(limits[1] - limits[0]))));
    top.textContent = limits[1].toFixed(digits);
    bottom.textContent = limits[0].toFixed(digits);
    const x = (t) => replay.share(t) * width;
    const y = (value) => height * (1 - (value - limits[0]) / (limits[1] - limits[0]));
    for (const event of replay.shown()) { // lines where something happened
      if (event.severity === "info" && event.group !== "command") continue;
      pen.fillStyle = style.getPropertyValue(`--of-${event.group}`);
      pen.globalAlpha = event.severity === "error" ? 0.8 : 0.35;
      pen.fillRect(Math.round(x(event.t)), 1, 1, height - 2);
    }
    pen.globalAlpha = 1;
    pen.lineJoin = "round";
    curves.runs.forEach((run, number) => {
      const times = times_of(run, row);
      lines_of(run, row).forEach((line, i) => {
        const { color, wanted } = style_of(row, i);
        if (wanted && number) return;
        pen.strokeStyle = color;
        pen.lineWidth = wanted ? 1 : 1.6;
        pen.globalAlpha = wanted ? 0.65 : 1;
        pen.setLineDash(number ? [5, 3] : wanted ? [1.5, 2.5] : []);
        pen.beginPath();
        let isDown = false;
        line.forEach((value, k) => {
          if (value === null) { isDown = false; return; }
          if (isDown) pen.lineTo(x(times[k]), y(value));
          else pen.moveTo(x(times[k]), y(value));
          isDown = true;
        });
        pen.stroke();
      });
    });
  };

  // Values at the pointer, or at the time of the recording.
  const write = (plot, t) => {
    const { row, legend } = plot;
    const texts = row.lines.map((label, i) => {
      const found = (curves?.runs ?? []).map((run) => {
        const value = lines_of(run, row)[i]?.[index_at(times_of(run, row), t)];
        return value === null || value === undefined ? "–" : value.toFixed(row.unit === "rad/s" || row.unit === "°" ? 0 : 2);
      });
      return `${label} ${found.join(" | ")}`;
    });
    texts.forEach((text, i) => { legend.children[i + 1].textContent = text; });
  };
  const write_all = (t) => plots.forEach((plot) => write(plot, t));

  const add = (row) => {
    const name = make("b", "", `${row.label} [${row.unit}]`);
    const legend = make("div", "legend", name, ...row.lines.map(() => make("span", "")));
    const canvas = make("canvas", "");
    const area = make("div", "area", canvas); // takes the pointer: canvases are the picture's
    const [top, bottom] = [make("div", "top"), make("div", "bottom")];
    const zoom = make("div", "zoom");
    zoom.hidden = true;
    const plot = { row, legend, canvas, top, bottom };
    plot.element = make("div", "plot", legend, area, top, bottom, zoom, make("div", "needle"));
    plot.element.dataset.row = row.id;
    let begin = null;
    const at = ({ clientX }) => {
      const box = area.getBoundingClientRect();
      return Math.min(Math.max(clientX - box.left, 0), box.width);
    };
    const time_of = (place) => replay.time_at(place / area.clientWidth);
    area.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      begin = at(event);
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      const now = at(event);
      write_all(time_of(now));
      if (begin === null) return;
      zoom.hidden = Math.abs(now - begin) < MOVED;
      zoom.style.left = `${area.offsetLeft + Math.min(begin, now)}px`;
      zoom.style.width = `${Math.abs(now - begin)}px`;
    });
    area.addEventListener("pointerup", (event) => {
      if (begin === null) return;
      const now = at(event);
      const [first, last] = [Math.min(begin, now), Math.max(begin, now)].map(time_of);
      if (Math.abs(now - begin) < MOVED) ask("seek", { t: first });
      else replay.look_at(first, last);
      begin = null;
      zoom.hidden = true;
    });
    area.addEventListener("pointercancel", () => { begin = null; zoom.hidden = true; });
    area.addEventListener("pointerleave", () => known.player && write_all(known.player.t));
    area.addEventListener("dblclick", () => replay.look_at());
    return plot;
  };

  const redraw = () => {
    if (pane.hidden || !known.recording) return;
    all.hidden = known.window === null;
    plots.forEach((plot) => {
      plot.row.lines.forEach((_, i) => {
        const { color, wanted } = style_of(plot.row, i);
        plot.legend.children[i + 1].style.setProperty("--line", color);
        plot.legend.children[i + 1].classList.toggle("wanted", wanted);
      });
      draw(plot);
    });
    if (known.player) write_all(known.player.t);
  };
  const arrange = () => {
    for (const row of known.recording.rows) {
      if (chosen.has(row.id) && !plots.has(row.id)) plots.set(row.id, add(row));
      if (!chosen.has(row.id)) plots.delete(row.id);
    }
    const order = known.recording.rows.filter((row) => plots.has(row.id)).map((row) => plots.get(row.id).element);
    rows.replaceChildren(...order);
    choices.replaceChildren(...known.recording.rows.map((row) => {
      const choice = button("", `Show or hide the plot: ${row.label}`, row.label);
      choice.ariaPressed = chosen.has(row.id);
      choice.onclick = () => {
        if (!chosen.delete(row.id)) chosen.add(row.id);
        arrange();
      };
      return choice;
    }));
    redraw();
  };
  const toggle = () => {
    pane.hidden = !pane.hidden;
    open.ariaPressed = !pane.hidden;
    redraw();
  };

  // A table of what is in sight, as the pointer would read it; a second run has lines of its own.
  const rows_in_sight = () => known.recording.rows.filter((row) => plots.has(row.id));
  const is_in_sight = (t) => t >= replay.span().begin && t <= replay.span().end;
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const table_of = () => {
    const shown = rows_in_sight();
    const labels = shown.flatMap((row) => row.lines.map((label) => `${row.label}: ${label} [${row.unit}]`));
    const lines = [["run", "time [s]", ...labels].map(quoted)];
    curves.runs.forEach((run, number) => run.t.forEach((t) => {
      if (!is_in_sight(t)) return;
      const values = shown.flatMap((row) => {
        const at = index_at(times_of(run, row), t);
        return row.lines.map((_, i) => lines_of(run, row)[i]?.[at] ?? "");
      });
      lines.push([quoted(known.recording.names[number]), t, ...values]);
    }));
    return lines.map((line) => line.join(",") + "\n").join("");
  };
  const name_of_file = (ending) => `${known.recording.names[0]}_${curves.drone}.${ending}`.replace(/[^\w.-]+/g, "_");
  table.onclick = () => {
    if (curves) files.save(name_of_file("csv"), new Blob([table_of()], { type: "text/csv" }));
  };

  // The plots below each other, each with its label and limits.
  const HEAD = 20; // px, for the label of a plot
  const SIDE = 60; // px, for the limits
  const paint = (pen, { row, canvas, top, bottom }, y, ink) => {
    let x = SIDE;
    pen.textAlign = "left";
    [`${row.label} [${row.unit}]`, ...row.lines].forEach((text, i) => {
      pen.fillStyle = i ? style_of(row, i - 1).color : ink;
      pen.fillText(text, x, y + 14);
      x += pen.measureText(text).width + 12;
    });
    pen.drawImage(canvas, SIDE, y + HEAD, canvas.clientWidth, canvas.clientHeight);
    pen.fillStyle = ink;
    pen.textAlign = "right";
    pen.fillText(top.textContent, SIDE - 6, y + HEAD + 10);
    pen.fillText(bottom.textContent, SIDE - 6, y + HEAD + canvas.clientHeight - 1);
  };
  picture.onclick = () => {
    if (!curves || !plots.size) return;
    const scale = devicePixelRatio || 1;
    const style = getComputedStyle(pane);
    const shown = rows_in_sight().map((row) => plots.get(row.id));
    const heights = shown.map(({ canvas }) => HEAD + canvas.clientHeight);
    const [width, height] = [SIDE + shown[0].canvas.clientWidth + 8, heights.reduce((sum, one) => sum + one, HEAD)];
    const sheet = make("canvas", "");
    [sheet.width, sheet.height] = [Math.round(width * scale), Math.round(height * scale)];
    const pen = sheet.getContext("2d");
    pen.fillStyle = style.getPropertyValue("--sheet");
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.scale(scale, scale);
    pen.font = dom.font(pane, 12);
    const ink = style.getPropertyValue("--ink");
    const end = shown.reduce((y, plot, number) => { paint(pen, plot, y, ink); return y + heights[number]; }, 0);
    pen.textAlign = "left";
    pen.fillText(`${replay.seconds(replay.span().begin)}, ${curves.drone}`, SIDE, end + 14);
    pen.textAlign = "right";
    pen.fillText(replay.seconds(replay.span().end), width - 8, end + 14);
    sheet.toBlob((blob) => files.save(name_of_file("png"), blob), "image/png");
  };

  const show_drone = () => {
    if (known.player && document.activeElement !== drone) drone.value = known.player.drone;
  };
  shell.on("drones", (names) => {
    drone.replaceChildren(...names.map((name) => make("option", "", name)));
    show_drone();
  });
  drone.onchange = () => ask("select", { drone: drone.value });
  all.onclick = () => replay.look_at();
  open.onclick = toggle;
  shortcuts.on(({ code }) => {
    if (code === "KeyG") toggle();
    return code === "KeyG";
  });
  shell.on("curves", (content) => { curves = content; redraw(); });
  replay.on("begin", arrange);
  replay.on("window", redraw);
  replay.on("events", redraw);
  replay.on("player", () => { show_drone(); if (!pane.hidden && !rows.matches(":hover")) write_all(known.player.t); });
  replay.ready(() => {
    replay.dock.element.prepend(pane);
    replay.dock.buttons.append(open);
    new ResizeObserver(redraw).observe(pane);
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["class"] });
  });
})();
