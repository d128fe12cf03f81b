// Where drones and bodies are at a time, between the states of the file.
const tracks = (() => {
  const { mix, between, turn_of } = matrices;
  const JUMP = 1; // m between two states, above which a drone was reset and did not fly
  const GAP = 0.3; // s, or some states: a longer one without a drone means that it was not there
  const TRAIL = 6; // s

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

  // One drone: its curves are its motion.
  const of_drone = (track) => {
    const { t, place, height, attitude, rotors } = track;
    const steps = t.slice(1).map((time, i) => time - t[i]).sort((a, b) => a - b);
    const gap = Math.max(GAP, 4 * (steps[steps.length >> 1] ?? 0));
    const at = (i) => [place[0][i], place[1][i], height[0][i]];
    const turn = (i) => turn_of(attitude.map((line) => line[i]));
    const isNear = (i) => i + 1 < t.length && t[i + 1] - t[i] <= gap &&
      !at(i + 1).includes(null) && Math.hypot(...matrices.sub(at(i + 1), at(i))) < JUMP;
    const pose = (time) => {
      const i = Math.max(index_at(t, time + 1e-6), t.length && t[0] - time < gap ? 0 : -1);
      if (i < 0 || time - t[i] > gap || at(i).includes(null)) return null;
      const share = isNear(i) ? Math.min(Math.max((time - t[i]) / (t[i + 1] - t[i]), 0), 1) : 0;
      const next = share ? i + 1 : i;
      return {
        at: mix(at(i), at(next), share),
        turn: between(turn(i), turn(next), share),
        below: track.below[i],
        rotors: rotors.map((line) => line[i] ?? 0),
      };
    };
    // The path of the last seconds, as segments.
    const trail = (time) => {
      const corners = [];
      const ages = [];
      for (let i = index_at(t, time) - 1; i >= 0 && time - t[i] < TRAIL && isNear(i); i--) {
        corners.push(...at(i + 1), ...at(i));
        ages.push((time - t[i + 1]) / TRAIL, (time - t[i]) / TRAIL);
      }
      return { corners, ages };
    };
    return { ...track, pose, trail };
  };

  // Something else that moves: rows of time, place and turn.
  const of_body = (rows) => {
    const times = rows.map(([t]) => t);
    return (time) => {
      const i = Math.max(index_at(times, time), 0);
      const [now, next] = [rows[i], rows[Math.min(i + 1, rows.length - 1)]];
      const share = next === now ? 0 : Math.min(Math.max((time - now[0]) / (next[0] - now[0]), 0), 1);
      return { at: mix(now.slice(1, 4), next.slice(1, 4), share), turn: between(now.slice(4), next.slice(4), share) };
    };
  };
  const latest = (rows, time) => rows[Math.max(index_at(rows.map(([t]) => t), time), 0)]?.[1] ?? [];
  return { of_drone, of_body, latest, index_at };
})();
