
function showReplay(told) {
  const find = (id) => document.getElementById(id);
  const map = find("map"), slider = find("slider"), play = find("play"), chosen = find("stretch");
  const make = (name, parent, attributes) => {
    const element = document.createElementNS(map.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return parent.appendChild(element);
  };
  const x = (state) => told.column[state] + 0.5, y = (state) => told.row[state] + 0.5;
  const cell = (state) => told.row[state] * told.width + told.column[state];
  const crowd = new Map();  // states in each cell
  told.row.forEach((_, state) => crowd.set(cell(state), (crowd.get(cell(state)) ?? 0) + 1));

  map.setAttribute("viewBox", `-0.1 -0.1 ${told.width + 0.2} ${told.height + 0.2}`);
  const drawn = new Set();
  told.row.forEach((_, state) => {
    const left = told.column[state], top = told.row[state];
    if (!drawn.has(cell(state))) make("rect", map, { class: "cell", x: left, y: top, width: 1, height: 1 });
    drawn.add(cell(state));
    if (told.costly[state]) make("line", map, { class: "cost", x1: left, y1: top + 1, x2: left + 1, y2: top });
    if (told.rewarded[state]) make("circle", map, { class: "reward", cx: x(state), cy: y(state), r: 0.42 });
  });
  const trail = make("polyline", map, { class: "trail" }), agent = make("path", map, { id: "agent" });
  const arrows = make("g", map, { id: "arrow-layer" });
  const shapes = {  // as in the figures, about the middle of a cell
    "●": "M-0.3 0a0.3 0.3 0 1 0 0.6 0a0.3 0.3 0 1 0 -0.6 0", "◆": "M0 -0.36L0.36 0L0 0.36L-0.36 0Z",
    "■": "M-0.27 -0.27H0.27V0.27H-0.27Z", "▲": "M0 -0.35L0.33 0.25H-0.33Z", "▼": "M0 0.35L0.33 -0.25H-0.33Z",
    "✚": "M-0.1 -0.32H0.1V-0.1H0.32V0.1H0.1V0.32H-0.1V0.1H-0.32V-0.1H-0.1Z",
  };

  function arrow(state, here) {
    const goal = told.goals[state];
    if (goal < 0) return;
    const across = x(goal) - x(state), down = y(goal) - y(state), far = Math.hypot(across, down);
    if (far === 0) {
      make("circle", arrows, { class: here ? "stay here" : "stay", cx: x(state), cy: y(state), r: 0.09 });
      return;
    }
    const u = across / far, v = down / far, tipX = x(state) + 0.35 * u, tipY = y(state) + 0.35 * v;
    const wing = (side) => `${tipX - 0.16 * u + side * 0.12 * v} ${tipY - 0.16 * v - side * 0.12 * u}`;
    make("path", arrows, {
      class: here ? "arrow here" : "arrow",
      d: `M${x(state) - 0.25 * u} ${y(state) - 0.25 * v}L${tipX} ${tipY}M${wing(1)}L${tipX} ${tipY}L${wing(-1)}`,
    });
  }

  // Where several states share a cell, only the arrow of the one the agent is in is drawn.
  function drawArrows(here) {
    arrows.replaceChildren();
    if (!find("arrows").checked || told.goals === null) return;
    told.goals.forEach((_, state) => {
      if (crowd.get(cell(state)) === 1 || state === here) arrow(state, state === here);
    });
  }

  const few = (value) => (value === null ? "not known" : String(Number(value.toPrecision(4))));
  const named = (names, number) => (names ? `${number} (${names[number]})` : String(number));
  let timer = null;
  const stretch = () => told.stretches[Number(chosen.value)];

  function show() {
    const life = stretch(), at = Number(slider.value), state = life.states[at];
    const [phase, sign] = told.phases[life.phases[at]];
    drawArrows(state);
    const past = life.states.slice(Math.max(0, at - 12), at + 1);
    trail.setAttribute("points", past.map((s) => `${x(s)},${y(s)}`).join(" "));
    agent.setAttribute("transform", `translate(${x(state)} ${y(state)})`);
    agent.setAttribute("class", phase);
    agent.setAttribute("d", shapes[sign]);
    const words = `Step ${(life.first + at + 1).toLocaleString("en")}: state ${named(told.states, state)}, ` +
      `action ${named(told.actions, life.actions[at])}. ${sign} ${phase}: ${told.reasons[life.reasons[at]] ?? "no reason noted"}. ` +
      `Promise ${life.promise[at].map(few).join(", ")}, reserved ${life.reserved[at].map(few).join(", ")}; ` +
      `reward ${few(life.rewards[at])}, cost ${life.costs[at].map(few).join(", ")}.`;
    find("readout").textContent = words;
    slider.setAttribute("aria-valuetext", `step ${life.first + at + 1}, ${phase}`);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
    find("readout").setAttribute("aria-live", "polite");
  }

  function move(by) {
    slider.value = String(Number(slider.value) + by);
    show();
  }

  play.addEventListener("click", () => {
    if (timer !== null) return pause();
    if (slider.value === slider.max) slider.value = "0";
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    find("readout").setAttribute("aria-live", "off");
    timer = setInterval(() => (slider.value === slider.max ? pause() : move(1)), 160);
  });
  find("back").addEventListener("click", () => { pause(); move(-1); });
  find("on").addEventListener("click", () => { pause(); move(1); });
  slider.addEventListener("input", () => { pause(); show(); });
  find("arrows").addEventListener("change", show);

  function choose() {
    pause();
    slider.max = String(stretch().states.length - 1);
    slider.value = "0";
    show();
  }
  told.stretches.forEach((entry, place) => {
    const last = entry.first + entry.states.length;
    chosen.add(new Option(`${entry.name} (${entry.first + 1} to ${last})`, String(place)));
  });
  chosen.addEventListener("change", choose);
  find("arrows").disabled = told.goals === null;
  choose();
}

if (given.replay) showReplay(given.replay);
