// Two runs: which is which, what is the same time in both, and where they first differ.
(() => {
  const { known, make, button, ask } = replay;
  const names = make("span", "");
  const align = make("select", "");
  align.title = align.ariaLabel = "What is the same time in both runs";
  const limit = make("input", "");
  limit.type = "number";
  limit.min = limit.step = 0.01;
  limit.max = 10;
  limit.style.width = "5.5em";
  limit.title = limit.ariaLabel = "They differ from this distance on [m]";
  const words = make("span", "");
  const go = button("", "Go to where they first differ", "Go there");
  const line = make("div", "", names, make("span", "faint", "aligned at the"), align,
    make("span", "faint", "limit [m]"), limit, words, go);
  go.hidden = true;

  let difference = null;
  replay.on("recording", () => {
    const { names: [first, second], other, alignments, alignment, limit: metres } = known.recording;
    if (!second) return;
    names.textContent = `${first}, and pale ${second} ${other},`;
    if (!align.options.length) {
      align.append(...alignments.map((text) => make("option", "", text)));
      replay.dock.comparison = line;
      replay.show_notes();
    }
    if (document.activeElement !== align) align.value = alignment;
    if (document.activeElement !== limit) limit.value = metres;
  });
  align.onchange = () => ask("align", { value: align.value });
  limit.onchange = () => ask("limit", { value: limit.valueAsNumber });
  go.onclick = () => {
    ask("seek", { t: difference.t });
    ask("select", { drone: difference.drone });
  };
  shell.on("difference", (content) => {
    difference = content;
    words.textContent = content.text;
    go.hidden = content.t === null;
  });
})();
