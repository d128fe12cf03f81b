// Inputs: `inputs.make(properties, send)` returns a row, what may be put inside it, and how to show
// other properties. A value that a user is changing is left alone until it has been sent.
const inputs = (() => {
  const { make, write } = dom;
  const PAUSE = 60; // ms between two values of a slider that is moved
  const ICONS = {
    Pause: "M7 5h4v14H7zM13 5h4v14h-4z",
    Resume: "M8 5l11 7-11 7z",
    Step: "M6 5l9 7-9 7zM16 5h3v14h-3z",
    "Reset all": "M12 5V1L7 6l5 5V7a5 5 0 1 1-5 5H5a7 7 0 1 0 7-7z",
    "Take off": "M12 4l7 8h-4v8H9v-8H5z",
    Land: "M12 20l-7-8h4V4h6v8h4z",
  };
  let count = 0;

  const icon = (text) => {
    if (!ICONS[text]) return [];
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const path = document.createElementNS(space, "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", ICONS[text]);
    svg.append(path);
    return [svg];
  };
  const button = (text, tone, act) => {
    const one = make("button", `button ${tone}`, ...icon(text), text);
    one.type = "button";
    one.onclick = act;
    return one;
  };

  // A row with a label and its fields. `isHeld` says whether a user is changing one of them.
  const row = (name, properties, fields, read, fill, send) => {
    const label = make(fields.length === 1 ? "label" : "div", fields.length === 1 ? "" : "label");
    const box = make("div", "input", ...fields);
    const element = make("div", `row ${name}`, label, box);
    if (fields.length === 1) label.htmlFor = fields[0].id = `input${(count += 1)}`;
    let isHeld = false;
    let latest = properties;
    let due = 0;
    const free = () => { isHeld = false; fill(latest.value); };
    const tell = () => { clearTimeout(due); due = 0; const value = read(); if (value !== null) { latest = { ...latest, value }; send(value); } };
    for (const field of fields) {
      field.addEventListener("input", () => {
        isHeld = true;
        if (field.type === "range") due ||= setTimeout(tell, PAUSE);
      });
      field.addEventListener("change", () => { tell(); free(); });
      field.addEventListener("blur", free);
    }
    const show = (now) => {
      latest = now;
      write(label, now.label);
      element.title = now.hint ?? "";
      fields.forEach((field, number) => {
        field.ariaLabel = fields.length < 3 ? now.label : `${now.label}, ${"xyz"[number]}`;
      });
      if (!isHeld) fill(now.value);
    };
    return { element, show };
  };

  const number = ({ min, max, step }) => {
    const limits = Object.fromEntries(Object.entries({ min, max, step: step ?? "any" }).filter(([, one]) => one !== undefined));
    return Object.assign(make("input", "entry"), { type: "number", inputMode: "decimal", ...limits });
  };
  const limited = (text, { min = -Infinity, max = Infinity }) => {
    const value = parseFloat(text);
    return Number.isFinite(value) ? Math.min(Math.max(value, min), max) : null;
  };
  const written = (value) => String(Number(value.toFixed(3)));
  const set = (field, text) => { if (field.value !== text) field.value = text; };

  const kinds = {
    section: ({ is_open: isOpen = true }) => {
      const title = make("button", "head");
      const inside = make("div", "inside");
      const open = (isNow) => { inside.hidden = !isNow; title.ariaExpanded = String(isNow); };
      title.type = "button";
      title.onclick = () => open(inside.hidden);
      open(isOpen);
      return { element: make("div", "section", title, inside), inside, show: ({ label }) => write(title, label) };
    },
    text: () => {
      const element = make("div", "said");
      let shown = null;
      return { element, show: ({ content }) => { if (content !== shown) element.innerHTML = shown = content; } };
    },
    button: (properties, send) => {
      const element = button(properties.label, properties.tone ?? "", () => send(true));
      return { element, show: ({ label, hint }) => { write(element, label); element.title = hint ?? ""; } };
    },
    buttons: (properties, send) => {
      const [label, box] = [make("div", "label"), make("div", "input")];
      const element = make("div", `row ${properties.is_bare ? "bare" : ""}`, label, box);
      element.role = "group";
      let shown = "";
      const show = ({ label: name, options, hint, tone = "", danger = [] }) => {
        write(label, name);
        element.ariaLabel = name;
        element.title = hint ?? "";
        if (shown === (shown = options.join())) return;
        const focus = [...box.children].indexOf(document.activeElement);
        const toneOf = (option) => (danger.includes(option) ? "danger" : tone);
        box.replaceChildren(...options.map((option) => button(option, toneOf(option), () => send(option))));
        box.children[focus]?.focus();
      };
      return { element, show };
    },
    choice: (properties, send) => {
      const field = make("select", "choice");
      const one = row("", properties, [field], () => field.value, (value) => set(field, value), send);
      let shown = "";
      const show = (now) => {
        if (shown !== (shown = JSON.stringify(now.options))) {
          field.replaceChildren(...now.options.map((option) => new Option(option, option)));
        }
        one.show(now);
      };
      return { element: one.element, show };
    },
    switch: (properties, send) => {
      const field = Object.assign(make("input"), { type: "checkbox", role: "switch" });
      const name = make("span");
      const element = make("label", "row shell-switch", name, field);
      field.onchange = () => send(field.checked);
      return { element, show: ({ label, value, hint }) => { write(name, label); element.title = hint ?? ""; field.checked = value; } };
    },
    slider: (properties, send) => {
      const { min, max, step } = properties;
      const range = Object.assign(make("input", "range"), { type: "range", min, max, step });
      const field = number(properties);
      const fill = (value) => { set(range, String(value)); set(field, written(value)); };
      const read = () => limited(document.activeElement === field ? field.value : range.value, properties);
      range.addEventListener("input", () => set(field, range.value));
      return row("slider", properties, [range, field], read, fill, send);
    },
    number: (properties, send) => {
      const field = number(properties);
      return row("", properties, [field], () => limited(field.value, properties), (value) => set(field, written(value)), send);
    },
    vector: (properties, send) => {
      const fields = properties.value.map(() => number(properties));
      const read = () => {
        const values = fields.map((field) => limited(field.value, properties));
        return values.includes(null) ? null : values;
      };
      const fill = (value) => fields.forEach((field, at) => set(field, written(value[at])));
      return row("wide", properties, fields, read, fill, send);
    },
    field: (properties, send) => {
      const field = Object.assign(make("input", "entry"), { type: "text", maxLength: 200 });
      return row("", properties, [field], () => field.value, (value) => set(field, value), send);
    },
  };

  return { make: (properties, send) => kinds[properties.kind](properties, send), button };
})();
