// Vectors [x, y, z], quaternions [x, y, z, w] and 4 x 4 matrices, column by column, as WebGL has them.
const matrices = (() => {
  const add = (a, b) => a.map((value, i) => value + b[i]);
  const sub = (a, b) => a.map((value, i) => value - b[i]);
  const scaled = (a, factor) => a.map((value) => value * factor);
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const cross = ([a, b, c], [x, y, z]) => [b * z - c * y, c * x - a * z, a * y - b * x];
  const unit = (a) => scaled(a, 1 / (Math.hypot(...a) || 1));
  const mix = (a, b, share) => a.map((value, i) => value + share * (b[i] - value));

  const turn_of = ([roll, pitch, yaw]) => { // degrees, about x, then y, then z
    const half = Math.PI / 360;
    const [cr, cp, cy] = [roll, pitch, yaw].map((angle) => Math.cos(half * angle));
    const [sr, sp, sy] = [roll, pitch, yaw].map((angle) => Math.sin(half * angle));
    return [
      sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
      cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy,
    ];
  };
  const between = (a, b, share) => unit(mix(a, dot(a, b) < 0 ? scaled(b, -1) : b, share));

  // A pose with a size, which is one number or three.
  const pose = (place, [x, y, z, w], size = 1) => {
    const [a, b, c] = Array.isArray(size) ? size : [size, size, size];
    return [
      a * (1 - 2 * (y * y + z * z)), a * 2 * (x * y + z * w), a * 2 * (x * z - y * w), 0,
      b * 2 * (x * y - z * w), b * (1 - 2 * (x * x + z * z)), b * 2 * (y * z + x * w), 0,
      c * 2 * (x * z + y * w), c * 2 * (y * z - x * w), c * (1 - 2 * (x * x + y * y)), 0,
      ...place, 1,
    ];
  };
  const times = (a, b) => {
    const result = new Array(16).fill(0);
    for (let column = 0; column < 4; column++) {
      for (let row = 0; row < 4; row++) {
        for (let k = 0; k < 4; k++) result[4 * column + row] += a[4 * k + row] * b[4 * column + k];
      }
    }
    return result;
  };
  const perspective = (fov, aspect, near, far) => {
    const focus = 1 / Math.tan(fov / 2);
    const depth = 1 / (near - far);
    return [focus / aspect, 0, 0, 0, 0, focus, 0, 0, 0, 0, (near + far) * depth, -1, 0, 0, 2 * near * far * depth, 0];
  };
  const looking = (eye, at) => {
    const back = unit(sub(eye, at));
    const right = unit(cross([0, 0, 1], back));
    const up = cross(back, right);
    return [
      right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
      -dot(right, eye), -dot(up, eye), -dot(back, eye), 1,
    ];
  };
  return { add, sub, scaled, mix, cross, unit, turn_of, between, pose, times, perspective, looking };
})();
