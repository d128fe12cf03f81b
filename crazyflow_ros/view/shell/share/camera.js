// The camera of a flight in a file: it looks at the drones from where the user has turned it.
const camera = (() => {
  const { add, scaled, sub, cross, unit, mix } = matrices;
  const FOV = (50 * Math.PI) / 180;
  const CLICK = 5; // pixels, from which a click is a drag
  const NEAREST = 0.25;
  const FARTHEST = 200; // m
  const LAG = 0.25; // s

  const start = (canvas, covered, changed, clicked) => {
    const state = { at: [0, 0, 0.5], distance: 4, turn: -2.2, rise: 0.45, follows: "all" };
    const eye = () => {
      const flat = Math.cos(state.rise);
      const away = [flat * Math.cos(state.turn), flat * Math.sin(state.turn), Math.sin(state.rise)];
      return add(state.at, scaled(away, state.distance));
    };
    const zoom = (factor) => {
      state.distance = Math.min(Math.max(state.distance * factor, NEAREST), FARTHEST);
      changed();
    };
    const orbit = (x, y) => {
      state.turn -= x * 0.006;
      state.rise = Math.min(Math.max(state.rise + y * 0.006, -0.2), 1.55);
      changed();
    };
    const shift = (x, y) => {
      const back = unit(sub(eye(), state.at));
      const right = unit(cross([0, 0, 1], back));
      const scale = (2 * state.distance * Math.tan(FOV / 2)) / canvas.clientHeight;
      state.at = add(state.at, add(scaled(right, -x * scale), scaled(cross(back, right), y * scale)));
      state.follows = "";
      changed();
    };

    const touched = new Map(); // pointers that are down, by their numbers
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      touched.set(event.pointerId, event);
      moved = touched.size > 1 ? Infinity : 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = touched.get(event.pointerId);
      if (!before) return;
      const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
      const other = [...touched.values()].find(({ pointerId }) => pointerId !== event.pointerId);
      touched.set(event.pointerId, event);
      moved += Math.hypot(x, y);
      if (other) {
        const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        zoom(apart(before) / Math.max(apart(event), 1));
        shift(x / 2, y / 2);
      } else if (event.buttons & 6 || event.shiftKey) shift(x, y);
      else orbit(x, y);
    });
    const leave = (event) => {
      if (event.type === "pointerup" && touched.has(event.pointerId) && moved < CLICK) clicked(event);
      touched.delete(event.pointerId);
    };
    canvas.addEventListener("pointerup", leave);
    canvas.addEventListener("pointercancel", leave);
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.0012));
    }, { passive: false });

    // Goes towards a place in some wall time [s], and returns whether it is still on its way.
    const follow = (place, seconds) => {
      if (!state.follows || !place) return false;
      const step = mix(state.at, place, 1 - Math.exp(-seconds / LAG));
      const rest = Math.hypot(...sub(place, step));
      state.at = rest < 1e-3 || seconds === Infinity ? place : step;
      return rest >= 1e-3;
    };
    // What it looks at is in the middle of what the dock leaves free.
    const view = () => {
      const height = Math.max(canvas.clientHeight, 1);
      const lens = matrices.perspective(FOV, canvas.clientWidth / height, 0.03, 1000);
      lens[9] = -Math.max(canvas.getBoundingClientRect().bottom - covered.getBoundingClientRect().top, 0) / height;
      return matrices.times(lens, matrices.looking(eye(), state.at));
    };
    // Pixels of a length of 1 m at a place.
    const scale_at = (place) => canvas.clientHeight / (2 * Math.tan(FOV / 2) * Math.max(Math.hypot(...sub(place, eye())), 0.05));
    // Where a place is in the picture [CSS pixels]; null behind the camera.
    const pixel = (matrix, [x, y, z]) => {
      const [a, b, , w] = [0, 1, 2, 3].map((row) => matrix[row] * x + matrix[4 + row] * y + matrix[8 + row] * z + matrix[12 + row]);
      return w > 0.01 ? [((a / w + 1) / 2) * canvas.clientWidth, ((1 - b / w) / 2) * canvas.clientHeight] : null;
    };
    return { state, eye, follow, view, pixel, scale_at };
  };
  return { start };
})();
