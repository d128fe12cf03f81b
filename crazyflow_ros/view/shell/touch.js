// Two sticks and a button on touch screens: height and heading left, place right, as on a gamepad.
(() => {
  const { make, ready, write } = dom;
  const axes = [0, 0, 0, 0];
  const send = () => flight.touch(axes.some((axis) => axis !== 0) ? [...axes] : []);

  const stick = (first, label) => {
    const knob = make("div", "knob");
    const pad = make("div", "pad", knob);
    const set = (x, y) => {
      const length = Math.max(Math.hypot(x, y), 1);
      axes[first] = x / length;
      axes[first + 1] = y / length;
      knob.style.transform = `translate(${axes[first] * 38}px, ${axes[first + 1] * 38}px)`;
      send();
    };
    const move = (event) => {
      const { left, top, width, height } = pad.getBoundingClientRect();
      const x = (event.clientX - left) / width;
      const y = (event.clientY - top) / height;
      set((2 * x - 1) * 1.3, (2 * y - 1) * 1.3); // full before the edge
    };
    pad.addEventListener("pointerdown", (event) => {
      pad.setPointerCapture(event.pointerId);
      move(event);
    });
    pad.addEventListener("pointermove", (event) => {
      if (pad.hasPointerCapture(event.pointerId)) move(event);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      pad.addEventListener(end, () => set(0, 0));
    }
    return make("div", "stick", pad, make("div", "label", label));
  };

  const button = make("button", "switch");
  button.onclick = flight.switch;
  const box = make("div", "shell-sticks", stick(0, "height, heading"), button, stick(2, "place"));

  let isTouched = matchMedia("(pointer: coarse)").matches;
  let state = null;
  const show = () => {
    box.hidden = !(isTouched && state?.drone);
    const flies = ["taking off", "flying", "landing"].includes(state?.drone?.state);
    write(button, flies ? "Land" : "Take off");
    button.disabled = ["crashed", "locked", "lost"].includes(state?.drone?.state); // until it is reset
  };
  shell.on("status", (status) => { state = status; show(); });
  window.addEventListener("touchstart", () => { isTouched = true; show(); }, { once: true });
  show();
  ready(() => document.body.append(box));
})();
