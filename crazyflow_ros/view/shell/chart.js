// Draws lines over time on a canvas: axes with round numbers, gaps, the values under the pointer.
class Chart {
  static #LINE = 15; // px from one line of the legend to the next
  static #MOST = 12; // labels of a legend

  constructor(className) {
    this.element = Object.assign(document.createElement("canvas"), { className });
    this.series = null;
    this.pointer = null; // px from the left
    this.isDue = false;
    this.element.onpointermove = (event) => { this.pointer = event.offsetX; this.draw(); };
    this.element.onpointerleave = () => { this.pointer = null; this.draw(); };
    new ResizeObserver(() => this.draw()).observe(this.element);
    cards.onTheme(() => this.draw());
  }

  show(series) {
    this.series = series;
    this.draw();
  }

  // Once in a frame of the browser, if it is seen.
  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      const { clientWidth: width, clientHeight: height } = this.element;
      if (!width || !height) return;
      const style = getComputedStyle(this.element);
      Chart.#paint(this.element, this.series, width, height, devicePixelRatio, style.color, "", this.pointer);
    });
  }

  // A picture for a document: on white, in twice the pixels.
  static picture(series, width, height) {
    const canvas = document.createElement("canvas");
    Chart.#paint(canvas, series, width, height, 2, "#222", "#fff", null);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  static #paint(canvas, series, width, height, ratio, ink, ground, pointer) {
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (ground) { pen.fillStyle = ground; pen.fillRect(0, 0, width, height); }
    pen.font = dom.font(document.body, 11);
    pen.fillStyle = pen.strokeStyle = ink;
    pen.lineWidth = 1;
    const rows = series?.rows ?? [];
    if (!rows.length) {
      pen.globalAlpha = 0.6;
      pen.textAlign = "center";
      pen.fillText("nothing measured yet", width / 2, height / 2);
      pen.globalAlpha = 1;
      return;
    }
    const [low, high] = Chart.#range(series);
    const yStep = Chart.#step(high - low, Math.max((height - 60) / 32, 2));
    const yText = (value) => Chart.#text(value, yStep);
    const ticks = Chart.#ticks(low, high, yStep);
    const left = Math.max(...ticks.map((tick) => pen.measureText(yText(tick)).width)) + 10;
    const right = width - 10;
    const [first, last] = [rows[0][0], rows.at(-1)[0]];
    const span = Math.max(last - first, 1e-3);
    const x = (time) => left + ((time - first) / span) * (right - left);
    const under = pointer === null ? rows.length - 1 : Chart.#nearest(rows, first + ((pointer - left) / (right - left)) * span);
    const top = Chart.#legend(pen, series, rows[under], width, yStep) + 8;
    const bottom = height - 20;
    const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);

    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of ticks) {
      pen.globalAlpha = 0.15;
      pen.fillRect(left, Math.round(y(tick)), right - left, 1);
      pen.globalAlpha = 0.8;
      pen.fillText(yText(tick), left - 5, y(tick));
    }
    pen.textAlign = "center";
    const xStep = Chart.#step(span, Math.max((right - left) / 70, 2));
    for (const tick of Chart.#ticks(first, last, xStep)) {
      pen.globalAlpha = 0.15;
      pen.fillRect(Math.round(x(tick)), top, 1, bottom - top);
      pen.globalAlpha = 0.8;
      const text = `${Chart.#text(tick, xStep)} s`;
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(x(tick), half + 2), width - half - 2), height - 9);
    }
    pen.globalAlpha = 1;
    pen.save();
    pen.beginPath();
    pen.rect(left, top - 2, right - left + 2, bottom - top + 4);
    pen.clip();
    pen.lineCap = pen.lineJoin = "round";
    const lines = series.labels.map((_, line) => line);
    // Setpoints below what follows them, so that both are seen where they are one.
    for (const line of lines.sort((a, b) => series.setpoint[b] - series.setpoint[a])) {
      Chart.#style(pen, series, line);
      pen.beginPath();
      let isGap = true;
      for (const row of rows) {
        const value = row[line + 1];
        if (value !== null) {
          if (isGap) pen.moveTo(x(row[0]), y(value)); // and there, in case it is alone
          pen.lineTo(x(row[0]), y(value));
        }
        isGap = value === null;
      }
      pen.stroke();
    }
    pen.restore();
    if (pointer !== null) {
      pen.globalAlpha = 0.5;
      pen.fillRect(Math.round(x(rows[under][0])), top, 1, bottom - top);
      pen.globalAlpha = 1;
    }
  }

  // Labels and the values of one time, in as many lines as they need; returns where they end.
  static #legend(pen, series, row, width, step) {
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    const texts = series.labels.slice(0, Chart.#MOST).map((label, line) => {
      const value = row[line + 1];
      const [, name, unit] = /^(.*?) *(?:\[(.*)\])?$/.exec(label);
      return [value === null ? `${name} –` : `${name} ${Chart.#text(value, step / 50)} ${unit ?? ""}`, line];
    });
    const more = series.labels.length - texts.length;
    if (more > 0) texts.push([`and ${more} more`, -1]);
    texts.unshift([`${row[0].toFixed(2)} s`, -1]);
    let [x, y] = [8, 10];
    for (const [text, line] of texts) {
      const swatch = line < 0 ? 0 : 16;
      const size = swatch + pen.measureText(text).width;
      if (x > 8 && x + size > width - 4) [x, y] = [8, y + Chart.#LINE];
      if (line >= 0) {
        pen.save();
        Chart.#style(pen, series, line);
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x + 12, y);
        pen.stroke();
        pen.restore();
      }
      pen.globalAlpha = line < 0 ? 0.7 : 1;
      pen.fillText(text, x + swatch, y);
      pen.globalAlpha = 1;
      x += size + 10;
    }
    return y + Chart.#LINE / 2;
  }

  // A setpoint is a broad, pale line.
  static #style(pen, series, line) {
    pen.strokeStyle = series.colors[line];
    pen.lineWidth = series.setpoint[line] ? 6 : 1.5;
    pen.globalAlpha = series.setpoint[line] ? 0.35 : 1;
  }

  static #range({ rows, least }) {
    let [low, high] = least ? [-least, least] : [Infinity, -Infinity];
    for (const row of rows) {
      for (let line = 1; line < row.length; line += 1) {
        if (row[line] === null) continue;
        low = Math.min(low, row[line]);
        high = Math.max(high, row[line]);
      }
    }
    if (low > high) return [0, 1];
    const room = (high - low) * 0.06 || Math.max(Math.abs(high) * 0.05, 0.01);
    return [low - room, high + room];
  }

  // The smallest round step with which a range has at most so many.
  static #step(span, most) {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return power * [1, 2, 5, 10].find((factor) => factor * power * most >= span * 0.999);
  }

  static #ticks(low, high, step) {
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.max(Math.floor(high / step) - first + 1, 0) }, (_, n) => (first + n) * step);
  }

  static #text(value, step) {
    const digits = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 7);
    const text = value.toFixed(digits);
    return Number(text) === 0 ? text.replace("-", "") : text;
  }

  static #nearest(rows, time) {
    let [low, high] = [0, rows.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (rows[middle][0] < time) low = middle;
      else high = middle;
    }
    return time - rows[low][0] < rows[high][0] - time ? low : high;
  }
}
