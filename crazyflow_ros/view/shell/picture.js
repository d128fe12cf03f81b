// What a camera of the selected drone sees, over the scene.
const pictures = (() => {
  const image = cards.make("img", { alt: "", hidden: true });
  const text = cards.make("p", {});
  const choice = cards.make("select", { title: "Which camera" });
  // The word camera alone is for where the page looks from.
  const card = cards.add("picture", "Onboard camera", {
    opener: "Onboard camera",
    tell: (isOpen) => {
      shell.want("onboard cameras", isOpen);
      shell.want("onboard picture", isOpen);
    },
  });
  card.body.append(image, text);
  card.tools.append(choice);
  choice.onchange = () => shell.send("choose onboard camera", choice.value);
  let drone = "";

  shell.on("onboard cameras", (content) => {
    const { cameras = [], chosen = "" } = content;
    card.heading.textContent = chosen ? `Onboard camera of ${content.drone}` : "Onboard camera";
    text.textContent = content.text ?? "";
    text.hidden = !content.text;
    if (drone !== content.drone || !chosen) image.hidden = true; // until its own picture comes
    drone = content.drone;
    choice.hidden = cameras.length < 2;
    choice.replaceChildren(...cameras.map((name) => cards.make("option", { value: name, textContent: name })));
    choice.value = chosen;
  });
  shell.on("onboard picture", (jpeg) => {
    const before = image.src;
    image.src = URL.createObjectURL(new Blob([jpeg], { type: "image/jpeg" }));
    image.hidden = false;
    if (before) URL.revokeObjectURL(before);
  });
  return { open: () => card.open(true) };
})();
