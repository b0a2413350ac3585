const MAP = "#e0203c", ACROSS = 10, ALIKE = 5;

function unpack(data) {
  const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
  return {
    ...data,
    views: data.views.map(text => new Int16Array(bytes(text))),
    near: data.near.map(text => new Uint16Array(bytes(text))),
    features: new Float32Array(bytes(data.features)),
    branch: new Uint16Array(bytes(data.branch)),
    marks: new Int16Array(bytes(data.marks)),
    pictures: data.image && new Uint8Array(bytes(data.pictures)),
    colours: data.colours.map(([name, codes, kind, bar, ends]) => (
      {name, codes: new Uint8Array(bytes(codes)), palette: data.palettes[kind], kind, bar, ends})),
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

function squaredGap(values, width, i, j) {
  let sum = 0;
  for (let c = 0; c < width; c++) sum += (values[width * i + c] - values[width * j + c]) ** 2;
  return sum;
}

const gap = (data, i, j) => squaredGap(data.features, data.features.length / data.points, i, j);
const near = (data, step, point) =>
  data.near[step ? 1 : 0].subarray(point * data.neighbors, (point + 1) * data.neighbors);

function spread(data, step, point) {
  const rows = near(data, step, point);
  return Math.sqrt(rows.reduce((sum, i) => sum + gap(data, i, point), 0) / rows.length);
}

// Rows with nearly the same feature: one of each other branch, or those that differ most in the data.
function otherWays(data, point) {
  const rows = [...Array(data.points).keys()].filter(i => i !== point);
  const sorted = rows.sort((i, j) => gap(data, i, point) - gap(data, j, point));
  if (data.branches > 1) {
    const first = new Map();
    for (const i of sorted) if (!first.has(data.branch[i])) first.set(data.branch[i], i);
    first.delete(data.branch[point]);
    const meets = i => gap(data, i, point) < 0.01;  // a tenth of a standard deviation
    return [...first.values()].filter(meets).slice(0, 3);
  }
  const far = i => squaredGap(data.views[0], 3, i, point);
  return sorted.slice(0, Math.max(20, data.points / 50)).sort((i, j) => far(j) - far(i)).slice(0, 3);
}

function description(data, point) {
  const own = near(data, 1, point).filter(i => data.branch[i] === data.branch[point]).length;
  return (data.predicted ? found(data, point) : "") +
    `Among the ${data.neighbors} rows nearest to ${data.names[point]} in the map, the ${data.feature} differs by ` +
    `${spread(data, 1, point).toFixed(3)} standard deviations; in the data, by ${spread(data, 0, point).toFixed(3)}` +
    (data.branches > 1 ? `. ${own} of them lie on its branch.` : ".");
}

function found(data, point) {
  const kind = point < data.known ? "predicted without the row" : "kept back, predicted";
  return `Row ${data.names[point]}: ${data.feature} ${data.values[point]}; ${kind} ${data.predicted[point]}, ` +
    `standard error ${data.errors[point]}. ` + (data.novel.includes(point) ? "It is novel: unlike the rows of the training. " : "");
}

function sheet(canvas) {
  const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  canvas.width = box.width * scale; canvas.height = box.height * scale;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return [pen, box.width, box.height];
}

function picture(data, point) {
  const [h, w] = data.image, made = document.createElement("canvas");
  made.width = w; made.height = h;
  const pen = made.getContext("2d"), pixels = pen.createImageData(w, h);
  for (let k = 0; k < w * h; k++)
    pixels.data.set([...Array(3).fill(255 - data.pictures[point * w * h + k]), 255], 4 * k);
  pen.putImageData(pixels, 0, 0);
  return made;
}

// One row of each branch in each square of a grid: that next to the middle of the square.
function spaced(data, places, side) {
  const best = new Map();
  places.forEach(([x, y], i) => {
    const [p, q] = [x / side + 100, y / side + 100], off = Math.hypot(p % 1 - 0.5, q % 1 - 0.5);
    const key = [data.branch[i], Math.floor(p), Math.floor(q)].join();
    if (!best.has(key) || off < best.get(key)[0]) best.set(key, [off, i]);
  });
  return [...best.values()].map(([, i]) => i);
}

// From places to pixels: everything fits, with one scale.
function scaleOf(w, h, places, data) {
  const room = data.image ? 2.5 : 2.16;
  const most = k => places.reduce((top, place) => Math.max(top, Math.abs(place[k])), 1e-9);
  return Math.min(w / room / most(0), h / room / most(1));
}

function drawCloud(canvas, data, places, colour, point) {
  const [pen, w, h] = sheet(canvas), size = scaleOf(w, h, places, data), ink = getComputedStyle(canvas).color;
  const at = i => [w / 2 + places[i][0] * size, h / 2 - places[i][1] * size];
  const shade = i => colour.palette[colour.codes[i]];
  const dot = (i, radius, fill) => { pen.fillStyle = fill; pen.beginPath(); pen.arc(...at(i), radius, 0, 7); pen.fill(); };
  const backToFront = [...places.keys()].sort((i, j) => places[i][2] - places[j][2]);
  for (const i of backToFront) { pen.fillStyle = shade(i); const [x, y] = at(i); pen.fillRect(x - 1.5, y - 1.5, 3, 3); }
  if (data.image) {
    pen.imageSmoothingEnabled = false; pen.lineWidth = 1.5;
    const side = w / ACROSS / size, [tall, wide] = data.image.map(n => 0.88 * side * size * n / Math.max(...data.image));
    for (const i of spaced(data, places, side)) {
      const [x, y] = at(i), box = [x - wide / 2, y - tall / 2, wide, tall];
      pen.drawImage(picture(data, i), ...box); pen.strokeStyle = shade(i); pen.strokeRect(...box);
    }
  }
  pen.strokeStyle = ink; pen.lineWidth = 1;
  for (const i of near(data, 0, point)) { pen.beginPath(); pen.arc(...at(i), 4, 0, 7); pen.stroke(); }
  for (const i of near(data, 1, point)) dot(i, 2.4, MAP);
  dot(point, 6, ink); dot(point, 3.5, MAP);
}

function drawScale(scale, {kind, bar, ends}) {
  scale.textContent = "";
  const patch = (fill, wide) => { put(scale, "span", "", wide ? "bar" : "patch").style.background = fill; };
  if (kind === "label") return ends.forEach((name, k) => { patch(bar[k]); put(scale, "span", name); });
  const size = 100 / bar.length, stops = bar.map((colour, i) => `${colour} ${i * size}% ${(i + 1) * size}%`);
  put(scale, "span", ends[0]); patch(`linear-gradient(to right, ${stops.join(",")})`, true); put(scale, "span", ends[1]);
}

function watchCloud(canvas, scale, turn, choose, hover) {
  const arrows = {ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5]};
  let moved = 0;
  const place = e => {
    const {width: w, height: h} = canvas.getBoundingClientRect(), size = scale(w, h);
    return [(e.offsetX - w / 2) / size, (h / 2 - e.offsetY) / size];
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

function put(parent, name, text, kind) {
  const made = parent.appendChild(document.createElement(name));
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// The chosen row, those alike, and other ways to its feature: lines of a table, or strips of pictures.
function fillPanel(panel, data, point, choose) {
  const several = data.branches > 1, width = data.marks.length / data.points, others = data.ways ? otherWays(data, point) : [];
  const alike = [...near(data, 1, point).slice(0, data.image ? 2 * ALIKE : ALIKE)];
  const parts = [["the chosen row", [point]], ["alike: nearest in the map", alike]];
  if (others.length) parts.push([`the same ${data.feature} in another way`, others]);
  panel.textContent = "";
  if (data.image) {
    for (const [title, rows] of parts) {
      put(panel, "div", title);
      const strip = put(panel, "div", undefined, "strip");
      for (const i of rows) {
        const made = put(strip, "button");
        made.append(picture(data, i)); put(made, "span", data.values[i]);
        made.title = data.names[i]; made.onclick = () => choose(i);
      }
    }
    return;
  }
  const table = put(panel, "table"), head = put(table, "tr");
  const titles = ["row", data.feature, ...(several ? ["branch"] : []), ...data.columns];
  for (const title of titles) put(head, "th", title).scope = "col";
  const line = i => {
    const made = put(table, "tr");
    put(made, "td", data.names[i]); put(made, "td", data.values[i]);
    if (several) put(made, "td", data.branch[i]);
    data.cells.forEach((column, c) => {
      const differs = Math.abs(data.marks[width * i + c] - data.marks[width * point + c]) > data.far;
      put(made, "td", column[i], differs && "differs");
    });
    made.onclick = () => choose(i);
  };
  for (const [title, rows] of parts) {
    if (rows[0] !== point) Object.assign(put(put(table, "tr"), "th", title), {colSpan: titles.length, scope: "rowgroup"});
    rows.forEach(line);
  }
}

function explorer(root, data) {
  const part = name => root.querySelector("." + name), last = data.views.length - 1;
  const canvas = part("cloud"), caption = root.querySelector("figcaption");
  let places = [], point = data.start, [turned, tilted] = [0, 90];
  part("step").max = last; part("step").value = last;
  for (const {name} of data.colours) part("colour").add(new Option(name));
  part("colour").selectedIndex = data.colour;
  for (const name of data.names.slice(0, 200)) put(root.querySelector("datalist"), "option").value = name;

  function render() {
    const step = +part("step").value, colour = data.colours[part("colour").selectedIndex];
    places = project(data.views[step], turned, tilted);
    drawCloud(canvas, data, places, colour, point);
    drawScale(part("scale"), colour);
    part("step").nextElementSibling.value = data.titles[step];
    part("status").textContent = description(data, point);
  }

  function choose(i) {
    point = i; part("name").value = data.names[i];
    fillPanel(root.querySelector(".wide"), data, i, choose); render(); entitle();
  }

  function entitle(i) {
    caption.textContent = i === undefined
      ? `On the map: ${data.feature} across${data.branches > 1 ? ", branches apart" : ", rows that differ apart"}. Large dot: the chosen row. Red: its nearest rows in the map; rings: those nearest in the data. Click a row to choose it; drag to turn.`
      : `${data.names[i]}: ${data.feature} ${data.values[i]}`;
    if (i !== undefined && data.image) caption.prepend(picture(data, i), " ");
  }

  const far = (x, y) => i => Math.hypot(places[i][0] - x, places[i][1] - y);
  const nearest = (x, y) => [...places.keys()].reduce((a, b) => far(x, y)(b) < far(x, y)(a) ? b : a);
  watchCloud(canvas, (w, h) => scaleOf(w, h, places, data), (right, up) => {
    [turned, tilted] = [(turned + right + 540) % 360 - 180, Math.max(-90, Math.min(90, tilted + up))];
    render();
  }, (x, y) => choose(nearest(x, y)), (x, y) => {
    const best = nearest(x, y);
    entitle(Math.hypot(places[best][0] - x, places[best][1] - y) < 0.05 ? best : undefined);
  });
  part("name").addEventListener("change", e => {
    const i = data.names.indexOf(e.target.value.trim());
    if (i < 0) part("status").textContent = "No such row on this page."; else choose(i);
  });
  for (const name of ["step", "colour"]) part(name).addEventListener("input", render);
  new ResizeObserver(render).observe(root);
  choose(point);
}
