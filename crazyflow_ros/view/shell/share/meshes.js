// Draws meshes of GLB files, and lines, with WebGL: the light and the colours are those of the page
// of a running simulator, whose meshes have colours for its curve of tones (see glb.py).
const meshes = (() => {
  const FLOATS = 5126;
  const COLUMNS = { SCALAR: 1, VEC3: 3, VEC4: 4 };
  const PLACES = { POSITION: 0, NORMAL: 1, COLOR_0: 2 };
  const VERTEX = `#version 300 es
    layout(location = 0) in vec3 position;
    layout(location = 1) in vec3 normal;
    layout(location = 2) in vec4 color;
    uniform mat4 view, model;
    out vec3 turned;
    out vec4 own;
    void main() {
      turned = mat3(model) * normal;
      own = color;
      gl_Position = view * (model * vec4(position, 1.0));
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    in vec3 turned;
    in vec4 own;
    uniform vec4 base;
    uniform vec3 light; // of the sun, from the other side, and from the whole sky
    uniform int kind; // 0: lit, 1: not lit, 2: as it is
    out vec4 seen;
    const vec3 SUN = normalize(vec3(4, -7, 11)), FILL = normalize(vec3(-8, 5, 3));
    vec3 curve(vec3 x) { // of three.js, ACESFilmicToneMapping
      x = x / 0.6 * mat3(0.59719, 0.35458, 0.04823, 0.07600, 0.90834, 0.01566, 0.02840, 0.13383, 0.83777);
      x = (x * (x + 0.0245786) - 0.000090537) / (x * (0.983729 * x + 0.4329510) + 0.238081);
      return clamp(x * mat3(1.60475, -0.53108, -0.07367, -0.10208, 1.10813, -0.00605, -0.00327, -0.07276, 1.07602), 0.0, 1.0);
    }
    void main() {
      vec4 color = base * own;
      if (kind == 0) {
        vec3 up = normalize(gl_FrontFacing ? turned : -turned);
        vec3 sky = mix(vec3(0.31), vec3(0.83, 0.89, 1.0), 0.5 * up.z + 0.5);
        vec3 sum = light.x * max(dot(up, SUN), 0.0) * vec3(1.0, 0.92, 0.79);
        sum += light.y * max(dot(up, FILL), 0.0) * vec3(0.67, 0.79, 1.0) + light.z * sky;
        color.rgb *= sum / 3.14159;
      }
      if (kind < 2) {
        vec3 x = curve(color.rgb);
        color.rgb = mix(12.92 * x, 1.055 * pow(x, vec3(1.0 / 2.4)) - 0.055, step(0.0031308, x));
      }
      seen = color;
    }`;

  const program_of = (gl) => {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    return program;
  };

  const start = (gl) => {
    const program = program_of(gl);
    const places = Object.fromEntries(["view", "model", "base", "light", "kind"].map((name) => [name, gl.getUniformLocation(program, name)]));
    gl.useProgram(program);
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);

    const buffer_of = (place, array, columns) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, columns, gl.FLOAT, false, 0, 0);
    };

    // The parts of a GLB file as glb.py writes it.
    const load = (bytes) => {
      const view = new DataView(bytes.buffer);
      const length = view.getUint32(12, true);
      const file = JSON.parse(new TextDecoder().decode(bytes.subarray(20, 20 + length)));
      const array_of = (number) => {
        const { bufferView, componentType, count, type } = file.accessors[number];
        const Kind = componentType === FLOATS ? Float32Array : Uint32Array;
        const begin = 28 + length + file.bufferViews[bufferView].byteOffset;
        return new Kind(bytes.buffer, begin, count * COLUMNS[type]);
      };
      return file.meshes.map(({ primitives: [{ attributes, indices, material }] }) => {
        const looks = file.materials[material];
        const vertices = gl.createVertexArray();
        gl.bindVertexArray(vertices);
        for (const [name, number] of Object.entries(attributes)) {
          buffer_of(PLACES[name], array_of(number), COLUMNS[file.accessors[number].type]);
        }
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
        gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, array_of(indices), gl.STATIC_DRAW);
        return {
          vertices,
          count: file.accessors[indices].count,
          base: looks.pbrMetallicRoughness.baseColorFactor,
          kind: looks.extensions ? 1 : 0,
          isClear: looks.alphaMode === "BLEND",
          isDouble: looks.doubleSided,
        };
      });
    };

    // Lines [m], each corner with a colour, red, green, blue and opacity from 0 to 1.
    const lines = (corners, colors) => {
      const vertices = gl.createVertexArray();
      gl.bindVertexArray(vertices);
      buffer_of(PLACES.POSITION, new Float32Array(corners), 3);
      buffer_of(PLACES.COLOR_0, new Float32Array(colors), 4);
      return [{ vertices, lines: corners.length / 3, base: [1, 1, 1, 1], kind: 2, isClear: true }];
    };
    const remove = (parts) => parts.forEach(({ vertices }) => gl.deleteVertexArray(vertices));

    const draw_part = ({ part, model, color }) => {
      gl.bindVertexArray(part.vertices);
      gl.vertexAttrib4f(PLACES.COLOR_0, 1, 1, 1, 1);
      gl.uniformMatrix4fv(places.model, false, model);
      gl.uniform4fv(places.base, color ? [...color, 1] : part.base);
      gl.uniform1i(places.kind, part.kind);
      if (part.isDouble) gl.disable(gl.CULL_FACE);
      else gl.enable(gl.CULL_FACE);
      if ("lines" in part) gl.drawArrays(gl.LINES, 0, part.lines);
      else gl.drawElements(gl.TRIANGLES, part.count, gl.UNSIGNED_INT, 0);
    };
    // Items are { parts, model, color }: a mesh, its pose, and a colour instead of its own.
    const draw = (items, view, light, [width, height]) => {
      gl.viewport(0, 0, width, height);
      gl.disable(gl.BLEND);
      gl.depthMask(true);
      gl.clearColor(0, 0, 0, 1);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      gl.uniformMatrix4fv(places.view, false, view);
      gl.uniform3fv(places.light, light);
      const all = items.flatMap(({ parts, ...rest }) => parts.map((part) => ({ part, ...rest })));
      all.filter(({ part }) => !part.isClear).forEach(draw_part);
      gl.enable(gl.BLEND);
      gl.depthMask(false);
      all.filter(({ part }) => part.isClear).forEach(draw_part);
    };
    return { load, lines, remove, draw };
  };
  return { start };
})();
