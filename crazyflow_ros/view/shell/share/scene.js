// The picture: the world, the drones with shadows, trails and names, at the time of the player.
const scene = (() => {
  const { make } = dom;
  const { pose, times } = matrices;
  const LEVEL = [0, 0, 0, 1];
  const WIDTH = 42; // pixels, as wide as drones are drawn at least
  const LARGEST = 10; // times their true size
  const TURNS = 22; // rad/s of rotors as drawn: faster ones would seem to stand still
  const MOST_NAMES = 24;
  const STEP = 5; // m by which the floor goes along with the camera, so that its lines stay

  const start = (content, select) => {
    const root = document.getElementById("root");
    const canvas = make("canvas", "");
    canvas.dataset.engine = "share"; // for shortcuts.js: keys act on the flight here
    canvas.ariaLabel = "The flight in 3-D: drag to turn, wheel to zoom";
    canvas.tabIndex = -1;
    const labels = make("div", "names");
    root.append(canvas, labels);
    const gl = canvas.getContext("webgl2", { antialias: true });
    if (!gl) {
      root.append(make("div", "no-picture", "This browser does not draw in 3-D: WebGL is missing or switched off."));
      return { show: () => {}, follow: () => {} };
    }
    const pen = meshes.start(gl);
    const loaded = content.meshes.map((text) => pen.load(shell.bytes_of(text)));
    const drones = content.drones.map(tracks.of_drone);
    const bodies = Object.fromEntries(Object.entries(content.moving?.bodies ?? {}).map(([name, rows]) => [name, tracks.of_body(rows)]));
    const edges = content.worlds.map(({ edges: corners, edgeColors }) => {
      const colors = [];
      for (let i = 0; i < edgeColors.length; i += 3) colors.push(...edgeColors.slice(i, i + 3).map((value) => value / 255), 1);
      return pen.lines(corners, colors);
    });
    const { looks, shadow, stages, worlds } = content;
    const names = drones.map(({ name }) => {
      const label = make("span", "", name);
      labels.append(label);
      return label;
    });

    let shown = null; // time, selected drone
    let isDue = true;
    let isMoving = true; // the camera, towards what it follows
    let angle = 0; // of the rotors
    let before = 0; // ms
    let places = {};
    const changed = () => { isDue = true; };
    const pick = ({ clientX, clientY }) => {
      const box = canvas.getBoundingClientRect();
      const view = eye.view();
      const near = Object.entries(places).map(([name, at]) => {
        const [x, y] = eye.pixel(view, at) ?? [Infinity, Infinity];
        return [Math.hypot(clientX - box.left - x, clientY - box.top - y), name];
      }).sort(([one], [other]) => one - other)[0];
      if (near && near[0] < WIDTH) select(near[1]);
    };
    const eye = camera.start(canvas, replay.dock.element, changed, pick);

    const middle_of = (all) => (all.length ? matrices.scaled(all.reduce(matrices.add), 1 / all.length) : null);
    const aim = () => (eye.state.follows === "all" ? middle_of(Object.values(places)) : places[shown.drone]);
    const rotors_of = (state, size, { color }) => looks.rotors.map((rotor, i) => {
      const speed = state.rotors[i] ?? 0;
      const turn = speed ? rotor.spin * Math.sign(speed) * angle : 0;
      const own = times(pose(rotor.at, rotor.turned), pose([0, 0, 0], [0, 0, Math.sin(turn / 2), Math.cos(turn / 2)]));
      return { parts: loaded[rotor.mesh], model: times(pose(state.at, state.turn, size), own), color: rotor.color ?? color };
    });
    const seen_rgb = (linear) => linear.map((x) => (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));

    const draw = () => {
      const { t } = shown;
      const world = Math.max(tracks.index_at(worlds.map(({ since }) => since), t + 1e-6), 0);
      const { floor, mesh, bodies: parts } = worlds[world];
      const states = drones.map((drone) => drone.pose(t));
      const isDark = document.documentElement.classList.contains("dark");
      const stage = stages[Number(isDark)];
      const flat = eye.state.at.slice(0, 2).map((value) => STEP * Math.round(value / STEP));
      const items = [{ parts: loaded[stage.mesh], model: pose([...flat, floor], LEVEL) }];
      if (mesh !== null) items.push({ parts: loaded[mesh], model: pose([0, 0, 0], LEVEL) });
      items.push({ parts: edges[world], model: pose([0, 0, 0], LEVEL) });
      for (const [name, number] of Object.entries(parts)) {
        if (!bodies[name]) continue;
        const { at, turn } = bodies[name](t);
        items.push({ parts: loaded[number], model: pose(at, turn) });
      }
      const corners = [];
      const colors = [];
      const wide = Math.max(...states.map((state) => (state ? WIDTH / (2 * looks.radius * eye.scale_at(state.at)) : 1)));
      const size = Math.min(Math.max(wide, 1), LARGEST);
      states.forEach((state, number) => {
        if (!state) return;
        const drone = drones[number];
        items.push({ parts: loaded[looks.body], model: pose(state.at, state.turn, size) }, ...rotors_of(state, size, drone));
        const width = size * looks.radius;
        const ground = [state.at[0], state.at[1], state.below + shadow.above];
        items.push({ parts: loaded[shadow.mesh], model: pose(ground, LEVEL, [width, width, Math.max(state.at[2] - state.below, 1e-4)]) });
        const { corners: path, ages } = drone.trail(t);
        corners.push(...path);
        const rgb = seen_rgb(drone.color);
        for (const age of ages) colors.push(...rgb, 1 - 0.85 * age);
      });
      const cables = tracks.latest(content.moving?.cables ?? [], t);
      corners.push(...cables);
      for (let i = 0; i < cables.length; i += 3) colors.push(0.27, 0.29, 0.32, 1);
      const moving = pen.lines(corners, colors);
      items.push({ parts: moving, model: pose([0, 0, 0], LEVEL) });
      const view = eye.view();
      pen.draw(items, view, [stage.sun, stage.fill, stage.sky], [canvas.width, canvas.height]);
      pen.remove(moving);
      names.forEach((label, number) => {
        const state = states[number];
        const isChosen = drones[number].name === shown.drone;
        const pixel = state && (isChosen || names.length <= MOST_NAMES) ? eye.pixel(view, state.at) : null;
        label.style.display = pixel ? "" : "none";
        label.classList.toggle("chosen", isChosen);
        if (pixel) label.style.transform = `translate(-50%, -100%) translate(${pixel[0].toFixed(1)}px, ${(pixel[1] - 16).toFixed(1)}px)`;
      });
    };

    const resize = () => {
      const scale = window.devicePixelRatio || 1;
      canvas.width = Math.max(Math.round(canvas.clientWidth * scale), 1);
      canvas.height = Math.max(Math.round(canvas.clientHeight * scale), 1);
      isDue = true;
    };
    new ResizeObserver(resize).observe(canvas);
    new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["class"] });
    const frame = (now) => {
      const seconds = Math.min((now - before) / 1000, 0.2);
      before = now;
      if (shown) {
        if (shown.plays) angle += seconds * TURNS;
        isMoving = eye.follow(aim(), seconds);
        if (isMoving || isDue) {
          isDue = false;
          draw();
        }
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);

    const show = (player) => {
      const isFirst = shown === null;
      shown = player;
      places = Object.fromEntries(drones.map((drone) => [drone.name, drone.pose(player.t)?.at]).filter(([, at]) => at));
      if (isFirst) {
        const all = drones.flatMap(({ place: [x, y], height: [z] }) => x.map((value, i) => [value, y[i], z[i]]))
          .filter((place) => !place.includes(null));
        const [low, high] = [Math.min, Math.max].map((best) => all.reduce((a, b) => a.map((value, i) => best(value, b[i])), all[0] ?? [0, 0, 0]));
        eye.state.distance = Math.min(Math.max(1.1 * Math.hypot(...matrices.sub(high, low)), 1.5), 40);
        eye.follow(aim(), Infinity);
      }
      isDue = true;
    };
    const follow = (what) => { eye.state.follows = what; isDue = true; };
    // Where a drone is in the picture [CSS pixels from its corner]; null if it is not there.
    const pixel_of = (name) => (places[name] ? eye.pixel(eye.view(), places[name]) : null);
    const isStill = () => !isDue && !isMoving;
    return { show, follow, pixel_of, isStill, eye: eye.eye, state: eye.state };
  };
  return { start };
})();
