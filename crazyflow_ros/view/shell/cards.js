// Small windows over the scene: `cards.add(name, title, options)`. Each tab has its own choice of
// which are open, and keeps it; a phone begins with none.
const cards = (() => {
  const isWide = () => matchMedia("(min-width: 577px) and (pointer: fine)").matches;
  const dock = Object.assign(document.createElement("div"), { id: "cards" });

  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const stored = (name) => {
    try { return localStorage.getItem(`card ${name}`); } catch { return null; }
  };
  const store = (name, isOpen) => {
    try { localStorage.setItem(`card ${name}`, isOpen ? "open" : "closed"); } catch { /* as it is */ }
  };

  // `opener`: the label of a button that is seen while the card is closed; `isOpen`: at first, on a
  // wide window; `tell`: hears whether it is open.
  const add = (name, title, { opener = "", isOpen = false, tell = () => {} } = {}) => {
    const heading = make("strong", { textContent: title });
    const tools = make("span", { className: "tools" });
    const close = make("button", { type: "button", textContent: "×", title: `Close ${title}`, ariaLabel: `Close ${title}` });
    const body = make("div", { className: "body" });
    const card = make("section", { className: "card", id: `card-${name}`, hidden: true },
      make("header", {}, heading, tools, close), body);
    const button = make("button", { type: "button", className: "opener", textContent: opener });
    button.hidden = !opener;
    const set = (isNowOpen, isChosen) => {
      card.hidden = !isNowOpen;
      button.hidden = isNowOpen || !opener;
      if (isChosen && opener) store(name, isNowOpen);
      if (isChosen) (isNowOpen ? close : button).focus(); // not lost with what was pressed
      tell(isNowOpen);
    };
    close.onclick = () => set(false, true);
    button.onclick = () => set(true, true);
    dock.append(card, button);
    const before = stored(name);
    const opens = before === null ? isOpen && isWide() : before === "open";
    // When the script that adds it has the card.
    if (opener) queueMicrotask(() => set(opens, false));
    return { body, tools, heading, open: (isNowOpen) => set(isNowOpen, true), isOpen: () => !card.hidden };
  };

  // Calls a function when the page becomes dark or light, with which colours change.
  const onTheme = (act) => new MutationObserver(act).observe(document.documentElement, { attributes: true });

  dom.ready(() => document.body.append(dock));
  return { add, make, onTheme };
})();
