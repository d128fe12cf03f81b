// The panel, as controls.py describes it, and `places` in it, which other scripts fill:
// `places.put(name, element, tell)` tells whether the element is seen.
const places = (() => {
  const { make, ready, write } = dom;
  const PHONE = matchMedia(
    "(max-width: 576px) and (orientation: portrait), (max-width: 576px) and (pointer: coarse), " +
    "(max-height: 500px) and (pointer: coarse)"); // no small window
  const shown = new Map(); // by number
  const kept = new Map(); // elements of other scripts, by the name of their place

  const toggle = make("button", "toggle", "Controls");
  const inside = make("div", "inside");
  const body = make("div", "body", inside);
  const panel = make("aside", "shell-panel", toggle, body);
  panel.ariaLabel = "Controls";
  toggle.type = "button";
  body.tabIndex = -1;
  const open = (isOpen) => {
    panel.classList.toggle("closed", !isOpen);
    toggle.ariaExpanded = String(isOpen);
    toggle.ariaLabel = isOpen ? "Hide controls" : "Show controls";
  };
  toggle.onclick = () => open(panel.classList.contains("closed"));
  PHONE.addEventListener("change", () => open(!PHONE.matches));
  open(!PHONE.matches); // there the drones come first
  panel.hidden = true;

  const put = (name, element, tell = () => {}) => {
    new IntersectionObserver((seen) => tell(seen.at(-1).isIntersecting)).observe(element);
    kept.set(name, element);
    for (const one of shown.values()) if (one.properties.kind === "place" && one.properties.label === name) one.element.replaceChildren(element);
  };

  kept.set("shortcuts", shortcuts.makeSwitch());

  // A group of tabs: its buttons, and below them the tab that is chosen.
  const makeTabs = () => {
    const bar = make("div", "tabs");
    bar.role = "tablist";
    const pages = make("div", "inside");
    const choose = (chosen) => {
      for (const one of bar.children) {
        one.ariaSelected = String(one === chosen);
        one.page.hidden = one !== chosen;
      }
    };
    bar.onkeydown = ({ key, target }) => {
      const next = { ArrowRight: target.nextSibling, ArrowLeft: target.previousSibling }[key];
      if (!next) return;
      choose(next);
      next.focus();
    };
    return { element: make("div", "tabbed", bar, pages), inside: pages, bar, choose, show: () => {} };
  };
  const makeTab = (properties, group) => {
    const page = make("div", "inside");
    const tab = Object.assign(make("button", "", properties.label), { type: "button", role: "tab", page });
    [tab.id, page.id, page.role] = [`tab${properties.id}`, `page${properties.id}`, "tabpanel"];
    tab.setAttribute("aria-controls", page.id);
    page.setAttribute("aria-labelledby", tab.id);
    tab.onclick = () => group.choose(tab);
    group.bar.append(tab);
    group.choose(group.bar.firstChild);
    return { element: page, inside: page, show: () => {} };
  };
  const makePlace = ({ label }) => {
    const element = make("div", "place", ...(kept.has(label) ? [kept.get(label)] : []));
    return { element, show: () => {} };
  };

  const begin = (properties) => {
    const { id, kind, own } = properties;
    const owner = shown.get(properties.in);
    const send = (value) => { if (own) shell.send(own, value); else shell.send("control", [id, value]); };
    const one = kind === "tabs" ? makeTabs() : kind === "tab" ? makeTab(properties, owner)
      : kind === "place" ? makePlace(properties) : inputs.make(properties, own ? choose : send);
    // A tab's own value: what its user has chosen, or the server has told.
    let chosen = null;
    function choose(value) { chosen = value; send(value); }
    if (own) {
      shell.on(own, (value) => { chosen = value; one.show({ ...one.properties, value }); });
      shell.on("connected", (is) => { if (is && chosen !== null) send(chosen); });
    }
    const among = (owner?.inside ?? inside).children;
    const after = [...among].find((other) => other.order > properties.order);
    Object.assign(one.element, { order: properties.order });
    (owner?.inside ?? inside).insertBefore(one.element, after ?? null);
    shown.set(id, one);
    return one;
  };
  shell.on("control", (properties) => {
    panel.hidden = false;
    const one = shown.get(properties.id) ?? begin(properties);
    one.properties = properties;
    if (properties.kind !== "tab") one.element.hidden = !properties.visible;
    one.show(properties);
  });

  // A question over the page.
  const heading = make("h2");
  const text = make("p");
  const yes = inputs.button("", "harm", () => { shell.send("answer", true); dialog.close(); });
  const no = inputs.button("Cancel", "", () => dialog.close());
  const dialog = make("dialog", "shell-dialog", heading, text, make("div", "", yes, no));
  dialog.onclose = () => shell.send("answer", false);
  shell.on("question", ({ question, text: what, yes: label }) => {
    for (const [element, words] of [[heading, question], [text, what], [yes, label]]) write(element, words);
    dialog.ariaLabel = question;
    if (!dialog.open) dialog.showModal();
    no.focus();
  });

  ready(() => document.body.append(panel, dialog));
  return { put };
})();
