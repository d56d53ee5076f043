// Cuts between layers, moved by mouse, touch and keys, and the picture of what they cost.
//
// The kernel makes the picture (figures/strips.py) and every number in it. Its answer to a move may take long on a far
// or busy machine; until then `retimeStages` and `retimeStep` move the bars of the last picture by the same arithmetic.
// A browser test holds both to the same numbers.

const STRIPES = ["", "45deg", "-45deg", "90deg"]; // stages differ without colour too
const COLOURS = ["#56B4E9", "#E69F00", "#009E73", "#CC79A7"];
const FOLLOWED = ["cuts", "costs", "head", "status"];
const LABELLED = 1.6; // percent of the width that a bar needs for its number
const GRIP = 24; // pixels: a handle is no smaller under a finger

function element(tag, name, attributes = {}) {
  const made = document.createElement(tag);
  made.className = name;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// As `move_cut` in splits.py: a cut pushes the others along, so that no stage is empty.
function moveCut(cuts, index, to, layers) {
  to = Math.max(index + 1, Math.min(layers - cuts.length + index, to));
  return cuts.map((cut, i) =>
    i === index ? to : i < index ? Math.min(cut, to + i - index) : Math.max(cut, to + i - index));
}

// As `time_text` in figures/pipeline.py.
function timeText(time, unit) {
  if (unit !== "s") return String(Number(time.toPrecision(4)));
  for (const [size, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
    if (time >= size) return `${Number((time / size).toPrecision(3))} ${name}`;
  return time <= 0 ? "0 s" : `${Number((time * 1e9).toPrecision(3))} ns`;
}

// When each action of each stage starts: as soon as its stage is free and what it needs has come, at no cost.
// rows: of each stage its actions in order, {kind, number, seconds}. As `simulate` with free messages.
function startTimes(rows) {
  const ended = rows.map(() => new Map()), starts = rows.map(() => []), free = rows.map(() => 0);
  for (let moved = true; moved; ) {
    moved = false;
    rows.forEach((row, stage) => {
      while (starts[stage].length < row.length) {
        const { kind, number, seconds } = row[starts[stage].length];
        const source = { F: ended[stage - 1], B: ended[stage + 1] }[kind];
        const ready = source ? source.get(kind + number) : 0;
        if (ready === undefined) return;
        const start = Math.max(free[stage], ready);
        starts[stage].push(start);
        free[stage] = start + seconds;
        ended[stage].set(kind + number, free[stage]);
        moved = true;
      }
    });
  }
  return { starts, length: Math.max(...free) };
}

function place(bar, left, width) {
  bar.style.left = `${left.toFixed(3)}%`;
  bar.style.width = `${width.toFixed(3)}%`;
  if (bar.firstChild) bar.firstChild.hidden = width < LABELLED;
}

const rowsOf = (picture, role) => [...picture.querySelectorAll(`[data-row="${role}"]`)];

// Load and stored layers of each stage, as `split_strips`. sizes: layers; costs: [forward, backward] of each stage.
function retimeStages(picture, sizes, costs) {
  const loads = rowsOf(picture, "load"), stores = rowsOf(picture, "stored");
  const { limit, unit } = loads[0].closest("[data-limit]").dataset;
  const load = costs.map(([forward, backward]) => forward + backward), longest = Math.max(...load) || 1;
  const stored = stores.map((row, stage) => sizes[stage] * row.dataset.held), most = Math.max(limit, ...stored);
  stores.forEach((row, stage) => {
    const bar = row.querySelector("i"), line = row.querySelector(".limit");
    const over = Number(limit) && stored[stage] > limit;
    bar.className = over ? "over" : "stored";
    place(bar, 0, (100 * stored[stage]) / most);
    if (line) line.style.left = `${((100 * limit) / most).toFixed(3)}%`;
    row.querySelector(".words").textContent = `${sizes[stage]} × ${row.dataset.held} = ${stored[stage]} stored`
      + (over ? `, ${stored[stage] - limit} too many` : "");
    place(loads[stage].querySelector("i"), 0, (100 * load[stage]) / longest);
    loads[stage].querySelector(".words").textContent = `load ${timeText(load[stage], unit)}`;
  });
}

// The predicted step, as `predict` and `step_strips`. A measured step below it stays as it is.
function retimeStep(picture, sizes, costs) {
  const bars = rowsOf(picture, "predicted").map((row) => [...row.querySelectorAll("i")]);
  const halves = bars[0].some((bar) => bar.className === "W");
  const rows = bars.map((row, stage) => row.map((bar) => {
    const [forward, backward] = costs[stage], kind = bar.className;
    return { kind, number: bar.textContent, seconds: kind === "F" ? forward : halves ? backward / 2 : backward };
  }));
  const { starts, length } = startTimes(rows), box = bars[0][0].closest("[data-length]");
  const scale = 100 / (Math.max(box.dataset.length, length) || 1);
  bars.forEach((row, stage) => row.forEach((bar, i) =>
    place(bar, starts[stage][i] * scale, rows[stage][i].seconds * scale)));
  const busy = rows.flat().reduce((sum, { seconds }) => sum + seconds, 0);
  const bubble = length ? 100 * (1 - busy / (sizes.length * length)) : 0;
  const heading = box.querySelector("strong");
  heading.textContent = heading.textContent
    .replace(/[\d-]+(?=·)/, sizes.join("-"))
    .replace(/[\d.]+(?= %)/, bubble.toFixed(1));
}

function render({ model, el }) {
  const root = element("div", "splitter", { role: "group", "aria-label": "Layers over stages" });
  const rail = element("div", "rail");
  const head = element("div", "head");
  const status = element("div", "status", { role: "status", "aria-live": "polite" });
  const bar = element("div", "bar");
  const picture = element("div", "picture");
  bar.append(rail, head);
  root.append(bar, status, picture);
  el.append(root);
  const stages = [], handles = [];

  function move(index, to) {
    const before = model.get("cuts"), after = moveCut(before, index, Math.round(to), model.get("costs").length);
    if (after.some((cut, i) => cut !== before[i])) {
      model.set("cuts", after); // draws, through the event
      model.save_changes();
    }
  }

  function pressed(event, index) {
    const cut = model.get("cuts")[index], layers = model.get("costs").length;
    const to = {
      ArrowLeft: cut - 1, ArrowDown: cut - 1, ArrowRight: cut + 1, ArrowUp: cut + 1,
      PageDown: cut - 4, PageUp: cut + 4, Home: 1, End: layers,
    }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab has shortcuts on these keys
    move(index, to);
  }

  function makeHandle(index) {
    const handle = element("div", "handle", {
      role: "slider", tabindex: "0", "aria-orientation": "horizontal",
      "aria-label": `cut between stage ${index} and stage ${index + 1}`,
      "data-lm-suppress-shortcuts": "true", // Notebook 7 takes the arrow keys otherwise
    });
    handle.append(element("div", "grip"));
    handle.addEventListener("keydown", (event) => pressed(event, index));
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus();
      event.preventDefault();
    });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const box = rail.getBoundingClientRect();
      move(index, ((event.clientX - box.left) / box.width) * model.get("costs").length);
    });
    return handle;
  }

  function build(count) {
    rail.replaceChildren();
    stages.length = handles.length = 0;
    for (let stage = 0; stage <= count; stage++) {
      const part = element("div", "stage");
      const turn = STRIPES[stage % STRIPES.length];
      const stripes = `repeating-linear-gradient(${turn}, #0004 0 1px, #0000 1px 7px)`;
      part.style.background = `${turn ? stripes + ", " : ""}${COLOURS[stage % COLOURS.length]}`;
      part.append(element("span", "count"));
      stages.push(part);
    }
    for (let index = 0; index < count; index++) handles.push(makeHandle(index));
    rail.append(...stages, ...handles);
  }

  function draw() {
    const cuts = model.get("cuts"), layers = model.get("costs").length, edges = [0, ...cuts, layers];
    if (handles.length !== cuts.length || !stages.length) build(cuts.length);
    const sizes = stages.map((_, stage) => edges[stage + 1] - edges[stage]);
    stages.forEach((part, stage) => {
      part.style.left = `${(100 * edges[stage]) / layers}%`;
      part.style.width = `${(100 * sizes[stage]) / layers}%`;
      part.title = `stage ${stage}: ${sizes[stage]} layers`;
      part.firstChild.textContent = sizes[stage];
    });
    handles.forEach((handle, i) => {
      handle.style.left = `${(100 * cuts[i]) / layers}%`;
      handle.setAttribute("aria-valuemin", i + 1);
      handle.setAttribute("aria-valuemax", layers - cuts.length + i);
      handle.setAttribute("aria-valuenow", cuts[i]);
      handle.setAttribute("aria-valuetext",
        `stage ${i} has ${sizes[i]} layers, stage ${i + 1} has ${sizes[i + 1]}`);
    });
    head.textContent = model.get("head");
    head.hidden = !model.get("head");
    status.textContent = model.get("status");
    spread();
    if (picture.firstChild) follow(sizes, edges);
  }

  // The picture is the kernel's where that has seen these cuts.
  function follow(sizes, edges) {
    const shown = picture.querySelector("[data-cuts]"), cuts = model.get("cuts").join();
    if (shown.dataset.cuts === cuts) return;
    const costs = sizes.map((_, stage) => {
      const layers = model.get("costs").slice(edges[stage], edges[stage + 1]);
      return [0, 1].map((which) => layers.reduce((total, cost) => total + cost[which], 0));
    });
    if (rowsOf(shown, "predicted").length === sizes.length) {
      retimeStages(shown, sizes, costs);
      retimeStep(shown, sizes, costs);
    } // else the kernel has changed the number of stages, and its picture comes next
    shown.dataset.cuts = cuts;
  }

  function show() {
    picture.innerHTML = model.get("picture");
    draw();
  }

  // Grips closer than their width hang at different heights, so that each can be reached; there is room for the worst.
  function spread() {
    const cuts = model.get("cuts"), width = rail.clientWidth / model.get("costs").length;
    const most = width ? Math.min(cuts.length || 1, Math.ceil(GRIP / width)) : 1;
    const ends = Array(most).fill(-Infinity); // of each row: where its last grip is
    handles.forEach((handle, i) => {
      const free = ends.findIndex((end) => cuts[i] * width - end >= GRIP);
      const row = free < 0 ? i % most : free;
      ends[row] = cuts[i] * width;
      handle.style.setProperty("--row", row);
    });
    bar.style.setProperty("--rows", most);
  }

  show();
  const watcher = new ResizeObserver(spread);
  watcher.observe(rail);
  for (const name of FOLLOWED) model.on(`change:${name}`, draw);
  model.on("change:picture", show);
  return () => {
    watcher.disconnect();
    for (const name of FOLLOWED) model.off(`change:${name}`, draw);
    model.off("change:picture", show);
  };
}

export default { render };
