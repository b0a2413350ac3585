function unpack(data) {
  const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
  return {
    ...data,
    views: data.views.map(text => new Int16Array(bytes(text))),
    near: data.near.map(text => new Uint16Array(bytes(text))),
    features: new Float32Array(bytes(data.features)),
    branch: new Uint16Array(bytes(data.branch)),
    colours: data.colours.map(([name, codes, kind, bar, ...ends]) => (
      {name, codes: new Uint8Array(bytes(codes)), palette: data.palettes[kind], bar, ends})),
  };
}

function project(view, turn, tilt) {
  const a = turn * Math.PI / 180, b = tilt * Math.PI / 180, out = [];
  for (let i = 0; i < view.length; i += 3) {
    const [p, q, r] = [view[i] / 32767, view[i + 1] / 32767, view[i + 2] / 32767];
    const right = Math.cos(a) * p - Math.sin(a) * q, back = Math.sin(a) * p + Math.cos(a) * q;
    out.push([right, Math.sin(b) * back + Math.cos(b) * r, Math.sin(b) * r - Math.cos(b) * back]);
  }
  return out;
}

function squaredGap(data, i, j) {
  const n = data.features.length / data.points;
  let sum = 0;
  for (let c = 0; c < n; c++) sum += (data.features[n * i + c] - data.features[n * j + c]) ** 2;
  return sum;
}

function spread(data, point, near) {
  return Math.sqrt(near.reduce((sum, i) => sum + squaredGap(data, i, point), 0) / near.length);
}

function least(data, point, k) {
  const gaps = Float64Array.from({length: data.points}, (_, i) => squaredGap(data, i, point)).sort();
  return Math.sqrt(gaps.subarray(1, k + 1).reduce((sum, gap) => sum + gap, 0) / k);
}

function neighbours(data, step, choice, k) {
  return data.near[step].subarray(choice * data.neighbors, choice * data.neighbors + k);
}

function description(data, step, choice, k) {
  const point = data.chosen[choice], near = neighbours(data, step, choice, k);
  const own = near.filter(i => data.branch[i] === data.branch[point]).length;
  const gap = spread(data, point, near), before = spread(data, point, neighbours(data, 0, choice, k));
  return `Iteration ${step} of ${data.views.length - 1} with tau = ${data.tau}, which leaves ` +
    `${data.left[step]} of the old metric. Among the ${k} neighbours of ` +
    `${data.names[point]} the feature differs by ${gap.toFixed(3)} standard deviations ` +
    `(${before.toFixed(3)} in the data)` +
    (data.branches > 1 ? `; ${own} of them lie on its branch.` : ".");
}

function sheet(canvas) {
  const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  canvas.width = box.width * scale; canvas.height = box.height * scale;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return [pen, box.width, box.height];
}

function dots(pen, w, h, places, which, radius, fill) {
  for (const i of which) {
    pen.fillStyle = fill(i); pen.beginPath();
    pen.arc(w / 2 + places[i][0] * w / 2.1, h / 2 - places[i][1] * w / 2.1, radius, 0, 7);
    pen.fill();
  }
}

function drawCloud(canvas, places, colour, red, point) {
  const [pen, w, h] = sheet(canvas);
  const backToFront = [...places.keys()].sort((i, j) => places[i][2] - places[j][2]);
  dots(pen, w, h, places, backToFront, 1.6, i => colour.palette[colour.codes[i]]);
  dots(pen, w, h, places, red, 2.4, () => "#e0203c");
  dots(pen, w, h, places, [point], 6, () => getComputedStyle(canvas).color);
  dots(pen, w, h, places, [point], 3.5, () => "#e0203c");
}

function drawCurve(canvas, curve, floor, step) {
  const [pen, w, h] = sheet(canvas), top = 1.08 * Math.max(...curve), last = curve.length - 1;
  const at = (k, value) => [40 + (w - 52) * k / last, h - 40 - (h - 50) * value / top];
  const line = places => {
    pen.beginPath(); places.forEach(place => pen.lineTo(...place)); pen.stroke();
  };
  pen.strokeStyle = pen.fillStyle = getComputedStyle(canvas).color;
  pen.font = "12px sans-serif"; pen.globalAlpha = 0.8; pen.textAlign = "center";
  pen.fillText("iteration (dashed: least possible)", w / 2, h - 6);
  pen.fillText("0", at(0, 0)[0], h - 24); pen.fillText(last, at(last, 0)[0], h - 24);
  pen.textAlign = "right";
  for (const value of [0, top / 1.08]) pen.fillText(value.toFixed(2), 34, at(0, value)[1] + 4);
  pen.globalAlpha = 0.5;
  line([at(0, top), at(0, 0), at(last, 0)]); line(curve.map((value, k) => at(k, value)));
  pen.setLineDash([4, 4]); line([at(0, floor), at(last, floor)]); pen.setLineDash([]);
  pen.globalAlpha = 1; pen.fillStyle = "#e0203c";
  pen.beginPath(); pen.arc(...at(step, curve[step]), 4.5, 0, 7); pen.fill();
}

function drawScale(scale, {bar, ends}) {
  const [low, middle, high] = scale.children, size = 100 / bar.length;
  const stops = bar.map((colour, i) => `${colour} ${i * size}% ${(i + 1) * size}%`);
  middle.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  [low.textContent, high.textContent] = ends;
}

function watchCloud(canvas, turn, choose, hover) {
  const arrows = {ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5]};
  let moved = 0;
  const place = e => {
    const size = canvas.getBoundingClientRect().width;
    return [2.1 * (e.offsetX / size - 0.5), 2.1 * (0.5 - e.offsetY / size)];
  };
  canvas.onpointerdown = () => { moved = 0; };
  canvas.onpointermove = e => {
    if (!e.buttons) hover(...place(e));
    else if ((moved += Math.abs(e.movementX) + Math.abs(e.movementY)) > 4)
      turn(-e.movementX / 2, e.movementY / 2);
  };
  canvas.onpointerleave = () => hover(Infinity, 0);
  canvas.onclick = e => { if (moved <= 4) choose(...place(e)); };
  canvas.onkeydown = e => {
    if (arrows[e.key]) { turn(...arrows[e.key]); e.preventDefault(); }
  };
}

function explorer(root, data) {
  const part = name => root.querySelector("." + name), value = name => +part(name).value;
  const places = [[], []], last = data.views.length - 1;
  const start = (name, max, now) => { part(name).max = max; part(name).value = now; };
  start("iteration", last, Math.min(1, last));
  start("point", data.chosen.length, 1);
  start("neighbors", data.neighbors, Math.max(2, Math.floor(data.neighbors * 2 / 3)));
  for (const {name} of data.colours) part("colour").add(new Option(name));

  function render() {
    const step = value("iteration"), k = value("neighbors"), choice = value("point") - 1;
    const point = data.chosen[choice], red = neighbours(data, step, choice, k);
    [0, step].forEach((s, j) => {
      const angles = data.flat[s] ? [0, 90] : [value("turn"), value("tilt")];
      places[j] = project(data.views[s], ...angles);
      drawCloud(part("cloud" + j), places[j], data.colours[part("colour").selectedIndex], red, point);
    });
    const curve = data.near.map((_, s) => spread(data, point, neighbours(data, s, choice, k)));
    drawCurve(part("curve"), curve, least(data, point, k), step);
    drawScale(part("scale"), data.colours[part("colour").selectedIndex]);
    for (const input of root.querySelectorAll("input")) input.nextElementSibling.value = input.value;
    part("point").nextElementSibling.value = data.names[point];
    [0, 1].forEach(j => entitle(j));
    part("status").textContent = description(data, step, choice, k);
  }

  function entitle(j, name) {
    const step = j * value("iteration"), title = step ? `after iteration ${step}` : "data";
    part("cloud" + j).previousElementSibling.textContent = title + (name ? `: ${name}` : "");
  }

  function turn(right, up) {
    part("turn").value = (value("turn") + right + 540) % 360 - 180;
    part("tilt").value = value("tilt") + up;
    render();
  }

  [0, 1].forEach(j => {
    const far = (x, y) => i => Math.hypot(places[j][i][0] - x, places[j][i][1] - y);
    const nearest = (points, gap) => points.reduce((a, b) => gap(b) < gap(a) ? b : a);
    const choose = (x, y) => {
      part("point").value = data.chosen.indexOf(nearest(data.chosen, far(x, y))) + 1;
      render();
    };
    const hover = (x, y) => {
      const best = nearest([...places[j].keys()], far(x, y));
      entitle(j, far(x, y)(best) < 0.05 && data.names[best]);
    };
    watchCloud(part("cloud" + j), turn, choose, hover);
  });
  root.addEventListener("input", render);
  new ResizeObserver(render).observe(root);
}
