"use strict";

// Colours: as Airflow's own pages where we stand inside of one, else as the reader's system says.
function theme() {
  if (window.parent === window) return;
  try {
    const root = window.parent.document.documentElement;
    const follow = () => {
      document.documentElement.dataset.theme = root.classList.contains("dark") ? "dark" : "light";
    };
    follow();
    new MutationObserver(() => { follow(); charts(document); }).observe(root, { attributeFilter: ["class"] });
  } catch (error) { /* another origin: as the system says */ }
}

// Instants: the page says UTC, the reader's own time is beside it.
function times(root) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const same = /^(Etc\/)?(UTC|GMT)$/.test(zone);
  for (const label of document.querySelectorAll("[data-zone]")) label.textContent = same ? "" : `, and in ${zone}`;
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const whole = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
  const long = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const instant = new Date(time.dateTime);
    if (isNaN(instant)) continue;
    time.title = long.format(instant);
    if (same) continue;
    const today = instant.getDate() === instant.getUTCDate();
    const local = document.createElement("span");
    local.className = "faint";
    local.textContent = ` (${(today ? clock : whole).format(instant)})`;
    time.append(local);
  }
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function charts(root) {
  for (const place of root.querySelectorAll(".chart[data-figure]")) {
    const source = document.getElementById(place.dataset.figure);
    if (!source || typeof Plotly === "undefined") continue;
    const figure = JSON.parse(source.textContent);
    const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true };
    const inks = ["batch", "speed", "certified", "never", "holed", "dirty", "provisional", "failed"];
    const layout = {
      ...figure.layout,
      xaxis: { ...axis, ...figure.layout.xaxis }, yaxis: { ...axis, ...figure.layout.yaxis },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("--ink"), size: 12 },
      colorway: inks.map((name) => colour(`--${name}`)),
      margin: { l: 56, r: 16, t: 16, b: 44 }, legend: { orientation: "h", y: -0.28 }, showlegend: figure.layout.showlegend ?? true,
    };
    Plotly.react(place, figure.data, layout, { responsive: true, displayModeBar: false }).then(() => {
      place.removeAllListeners("plotly_click");
      place.on("plotly_click", (event) => {
        const target = event.points[0]?.customdata;
        if (typeof target === "string" && target) window.location.assign(target);
      });
    });
  }
}

// Tables: a click on a heading sorts, and the address says so.
function sorting(root) {
  for (const table of root.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        sort(table, column, down);
        history.replaceState(null, "", `#${table.id}:${column}:${down ? "down" : "up"}`);
      });
    });
  }
  const [, id, column, way] = /^#([\w-]+):(\d+):(up|down)$/.exec(location.hash) ?? [];
  const named = way && document.getElementById(id);
  if (named && named.matches("table.sortable")) sort(named, Number(column), way === "down");
}

function sort(table, column, down) {
  const value = (row) => {
    const cell = row.cells[column];
    const text = cell?.dataset.value ?? cell?.querySelector("time")?.dateTime ?? cell?.textContent.trim() ?? "";
    const number = Number(text.replaceAll(",", ""));
    return text !== "" && !isNaN(number) ? number : text;
  };
  const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
  const less = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  rows.sort(([a], [b]) => typeof a === typeof b ? less(a, b) : typeof a === "number" ? -1 : 1);
  if (down) rows.reverse();
  table.tBodies[0].append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    if (at === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

async function fetched(address, whatever = true, signal = undefined) {
  const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" }, signal });
  if (!answer.ok && !whatever) throw new Error(answer.statusText);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// What is live is fetched again once the server says that it is another, and put in the place of what has changed,
// unless somebody is busy in it. Where nothing is said, or not for a minute, the page looks for itself.
const QUIET = 60_000;

function live() {
  const wait = Number(document.body.dataset.live || 0) * 1000;
  if (!wait) return;
  const was = new Map();
  for (const part of document.querySelectorAll("[data-part]")) was.set(part, part.dataset.text ?? "");
  let address = document.body.dataset.changes, due = false;
  let shown = document.body.dataset.seen, told = shown;
  let looked = Date.now(), looking = false, opened = 0, heard = 0, timer = 0, source = null;
  let seen = new Date();
  const stale = (text) => {
    const note = document.getElementById("stale");
    note.textContent = text;
    note.hidden = !text;
  };
  const look = async () => {
    looking = true;
    due = false;
    try {
      let all = true;
      const fresh = await fetched(location.pathname + location.search, false, AbortSignal.timeout(QUIET));
      for (const part of document.querySelectorAll("[data-part]")) {
        const other = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
        if (!other || other.innerHTML === was.get(part)) continue;
        const busy = document.activeElement;
        if (part.contains(busy) && busy.matches("input, select, button")) {
          all = false;
          continue;
        }
        was.set(part, other.innerHTML);
        const open = [...part.querySelectorAll("details")].map((each) => each.open);
        part.replaceChildren(...other.childNodes);
        part.querySelectorAll("details").forEach((each, at) => { each.open = open[at] ?? each.open; });
        dress(part);
      }
      if (all) shown = fresh.body.dataset.seen;
      address = fresh.body.dataset.changes;
      seen = new Date();
      stale("");
    } catch (error) {
      stale(`Not looked at since ${seen.toLocaleTimeString()}: the server does not answer, or you are logged out.`);
    }
    looking = false;
    looked = Date.now();
    next();
  };
  const listen = () => {
    source?.close();
    source = new EventSource(`${address}?seen=${told}`);
    opened = heard = Date.now();
    source.addEventListener("open", () => { heard = Date.now(); next(); });
    source.addEventListener("alive", () => { heard = Date.now(); });
    source.addEventListener("changed", (event) => { heard = Date.now(); told = event.data; next(); });
    source.addEventListener("error", next);
  };
  // A browser has few connections: a page that nobody sees keeps none.
  const next = () => {
    clearTimeout(timer);
    if (document.hidden || !address) {
      source?.close();
      source = null;
    }
    if (document.hidden) return;
    const now = Date.now();
    const deaf = !source || source.readyState === EventSource.CLOSED || now - heard > 3 * 15_000;
    if (address && deaf && now - opened >= (source ? QUIET : 0)) listen();
    // A server that takes long is asked once, however much it says meanwhile.
    if (looking) return;
    const listening = source?.readyState === EventSource.OPEN && told === shown && !due;
    timer = setTimeout(look, Math.max(0, looked + (listening ? QUIET : wait) - now));
  };
  document.addEventListener("visibilitychange", next);
  document.addEventListener("acted", () => { due = true; next(); });
  next();
}

// What takes long comes after the page.
async function later(root) {
  for (const place of root.querySelectorAll("[data-src]")) {
    const address = place.dataset.src;
    place.removeAttribute("data-src");
    try {
      const found = await fetched(address);
      place.replaceChildren(...(found.querySelector("main") ?? found.body).childNodes);
    } catch (error) {
      place.textContent = "This could not be fetched.";
    }
    dress(place);
  }
}

// Questions: a frame may not ask with the browser's own.
function asked(text) {
  const dialog = document.createElement("dialog");
  const said = document.createElement("p");
  said.id = "asked";
  said.textContent = text;
  dialog.setAttribute("aria-labelledby", said.id);
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "inline";
  for (const [label, value] of [["Leave it", ""], ["Do it", "yes"]]) {
    const button = document.createElement("button");
    button.textContent = label;
    button.value = value;
    if (value) button.className = "primary";
    form.append(button);
  }
  dialog.append(said, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => {
    dialog.remove();
    done(dialog.returnValue === "yes");
  }));
}

function bodyOf(form, pressed) {
  const body = {};
  const dropped = (pressed?.dataset.drop || "").split(" ");
  for (const field of form.elements) {
    if (!field.name || field.tagName === "BUTTON" || field.tagName === "OUTPUT" || dropped.includes(field.name)) continue;
    if (field.type === "checkbox") body[field.name] = field.checked;
    else if (field.value !== "") body[field.name] = field.value;
  }
  if (pressed?.name) body[pressed.name] = pressed.value;
  return body;
}

function told(found) {
  const lines = found.done || found.plan || [];
  if (found.run_id) lines.push(`Run ${found.run_id} of ${found.dag_id} is started.`);
  if (found.backfill) lines.push(`Backfill ${found.backfill} is started.`);
  return lines.join("\n");
}

// Buttons for what another one has shown: not before it, and not once a field has changed since.
function follow(form, shown) {
  for (const button of form.querySelectorAll("button[data-after]")) button.disabled = button.dataset.after !== shown;
}

// Forms that change something: JSON, after a question where one is due.
function posting(root) {
  for (const form of root.querySelectorAll("form[data-post]")) {
    form.addEventListener("input", () => follow(form, ""));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const pressed = event.submitter;
      const said = form.querySelector("output");
      const body = JSON.stringify(bodyOf(form, pressed));
      if (pressed?.dataset.confirm && !(await asked(pressed.dataset.confirm))) return;
      if (said.textContent === "Asking ...") return;
      said.className = "";
      said.textContent = "Asking ...";
      try {
        const answer = await fetch(pressed?.dataset.post || form.dataset.post, {
          method: "POST", credentials: "same-origin", body, headers: { "Content-Type": "application/json" },
        });
        const found = await answer.json();
        said.className = answer.ok ? "good" : "bad";
        said.textContent = answer.ok ? told(found) : [found.message, found.hint].filter(Boolean).join(" ");
        // What was typed while the answer was awaited is not what was planned.
        const same = answer.ok && pressed && JSON.stringify(bodyOf(form, pressed)) === body;
        follow(form, same ? pressed.value : "");
        document.dispatchEvent(new Event("acted"));
      } catch (error) {
        said.className = "bad";
        said.textContent = "No answer: nothing is known of what became of it.";
      }
    });
  }
}

function copying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch (error) {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
    });
  }
}

// Inside of Airflow a link to one of its pages moves Airflow, not the frame we stand in.
function outward(root) {
  if (window.parent === window) return;
  for (const link of root.querySelectorAll("a[data-airflow]")) {
    link.addEventListener("click", (event) => {
      try {
        window.parent.history.pushState({}, "", link.href);
        window.parent.dispatchEvent(new PopStateEvent("popstate"));
        event.preventDefault();
      } catch (error) { /* another origin: the frame moves */ }
    });
  }
}

// Statements: names of views, and of the columns of those that are named, are offered for the word before the caret.
function completing(root) {
  for (const area of root.querySelectorAll("textarea[data-words]")) {
    const words = JSON.parse(document.getElementById(area.dataset.words).textContent);
    const list = document.createElement("ul");
    list.className = "offered";
    list.id = `${area.dataset.words}-offered`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Names");
    list.hidden = true;
    area.after(list);
    area.setAttribute("aria-controls", list.id);
    area.setAttribute("aria-autocomplete", "list");
    let at = 0;
    const close = () => {
      list.hidden = true;
      area.removeAttribute("aria-activedescendant");
    };
    const mark = () => {
      [...list.children].forEach((each, place) => each.setAttribute("aria-selected", String(place === at)));
      if (list.children[at]) area.setAttribute("aria-activedescendant", list.children[at].id);
    };
    const word = () => /[\p{L}_][\p{L}\p{N}_.]*$/u.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";
    const take = (name) => {
      const start = area.selectionStart - word().length;
      area.setRangeText(name, start, area.selectionStart, "end");
      close();
      area.focus();
    };
    const offer = () => {
      const typed = word().toLowerCase();
      const named = Object.keys(words).filter((name) => area.value.includes(name));
      const names = [...new Set([...named.flatMap((name) => words[name]), ...Object.keys(words)])];
      const fitting = typed ? names.filter((name) => name.toLowerCase().includes(typed) && name.toLowerCase() !== typed) : [];
      list.replaceChildren(...fitting.slice(0, 8).map((name, place) => {
        const one = document.createElement("li");
        one.id = `${list.id}-${place}`;
        one.setAttribute("role", "option");
        one.textContent = name;
        one.addEventListener("mousedown", (event) => { event.preventDefault(); take(name); });
        return one;
      }));
      if (!fitting.length) return close();
      list.hidden = false;
      at = 0;
      mark();
    };
    area.addEventListener("input", offer);
    area.addEventListener("blur", close);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return area.form.requestSubmit();
      if (list.hidden) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) at = (at + step + list.children.length) % list.children.length;
      else if (event.key === "Tab") take(list.children[at].textContent);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
      if (step) mark();
    });
  }
}

// Filters: the address keeps them, and they hold for what comes later.
function filtering(root) {
  const form = document.querySelector("form[data-filter]");
  if (!form) return;
  const apply = () => {
    const typed = form.elements.q.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const only = [...form.querySelectorAll("input[name=only]:checked")].map((each) => each.value);
    let shown = 0;
    for (const each of document.querySelectorAll(`[data-part="${form.dataset.filter}"] [data-words]`)) {
      const words = each.dataset.words.toLowerCase();
      const all = new Set(words.split(" "));
      each.hidden = !(typed.every((word) => words.includes(word)) && only.every((word) => all.has(word)));
      if (!each.hidden && each.matches("tr")) shown += 1;
    }
    form.querySelector("output").textContent = typed.length || only.length ? `${shown} shown` : "";
  };
  if (root === document) {
    const given = new URLSearchParams(location.search);
    form.elements.q.value = given.get("q") ?? "";
    for (const each of form.querySelectorAll("input[name=only]")) each.checked = given.getAll("only").includes(each.value);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      const now = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
      history.replaceState(null, "", `${location.pathname}${now.size ? `?${now}` : ""}${location.hash}`);
      apply();
    });
  }
  apply();
}

function dress(root) {
  for (const does of [filtering, times, charts, sorting, posting, copying, completing, outward, later]) does(root);
}

theme();
dress(document);
live();
