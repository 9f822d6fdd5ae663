"use strict";

// Where a number comes from: what a point says is shown at once, and more is fetched where a reader stops.
const pause = 250;
const known = new Map();

function reading(place) {
  const said = place.querySelector("[data-readout]");
  let turn = 0;
  return (told, explain) => {
    if (!told || said.dataset.told === told + explain) return;
    said.dataset.told = told + explain;
    const mine = ++turn;
    const line = document.createElement("p");
    line.textContent = told;
    if (explain) {
      const link = document.createElement("a");
      link.href = explain;
      link.textContent = "explain";
      line.append(" ", link);
    }
    said.replaceChildren(line);
    if (explain) setTimeout(() => { if (turn === mine) more(said, explain, () => turn === mine); }, pause);
  };
}

async function more(said, explain, still) {
  try {
    // All keys of a window come from the same intervals.
    const [path, query] = explain.split("?");
    // The last part is the view; a pipeline may be called explain, too.
    const address = `${path.replace(/\/explain\/([^/]*)$/, "/origins/$1")}?window=${encodeURIComponent(new URLSearchParams(query).get("window"))}`;
    if (!known.has(address)) known.set(address, await fetched(address, false));
    const list = known.get(address).querySelector("main ul")?.cloneNode(true);
    if (!list || !still()) return;
    times(list);
    said.append(list);
    outward(list);
  } catch (error) { /* what is shown already stays */ }
}

// Cells and points: one of each row is reached by Tab, the others by arrow keys.
function points(place, read) {
  const rows = [...place.querySelectorAll("[data-row]")].map((row) => [...row.querySelectorAll("[aria-label][tabindex]")]);
  if (!rows.length) return;
  const single = place.querySelector("[role=grid]") !== null;
  (single ? [rows.find((row) => row.length)] : rows).forEach((row) => { if (row?.length) row[0].tabIndex = 0; });
  const where = (point) => {
    const row = rows.findIndex((each) => each.includes(point));
    return [row, rows[row]?.indexOf(point)];
  };
  const show = (point) => {
    const mark = point.closest("svg")?.querySelector(".mark");
    if (mark) {
      for (const each of place.querySelectorAll(".mark")) each.setAttribute("hidden", "");
      mark.setAttribute("cx", point.dataset.x);
      mark.setAttribute("cy", point.dataset.y);
      mark.removeAttribute("hidden");
    }
    read(point.getAttribute("aria-label"), point.dataset.explain ?? "");
  };
  const go = (from, to) => {
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  const beside = (cell, step) => {
    // Of a table the cell above is the one of the same column.
    const [row, at] = where(cell);
    for (let next = row + step; rows[next]; next += step) {
      const found = single ? rows[next].find((each) => each.cellIndex === cell.cellIndex) : rows[next][Math.min(at, rows[next].length - 1)];
      if (found) return found;
    }
    return undefined;
  };
  for (const point of rows.flat()) {
    point.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(point); });
    point.addEventListener("focus", () => show(point));
    point.addEventListener("click", (event) => {
      show(point);
      if (event.pointerType !== "touch" && point.dataset.explain) window.location.assign(point.dataset.explain);
    });
    point.addEventListener("keydown", (event) => {
      const [row, at] = where(point);
      const line = rows[row];
      const to = {
        ArrowRight: () => line[at + 1], ArrowLeft: () => line[at - 1], Home: () => line[0], End: () => line[line.length - 1],
        ArrowDown: () => beside(point, 1), ArrowUp: () => beside(point, -1),
      }[event.key];
      if (to) go(point, to());
      else if (event.key === "Enter" && point.dataset.explain) window.location.assign(point.dataset.explain);
      else return;
      event.preventDefault();
    });
  }
}

// Points of a chart of the library: the pointer by its own events, the keyboard by ours.
function chartPoints(place, read) {
  const chart = place.querySelector(".chart[data-reads]");
  if (!chart || !chart.on) return;
  const show = (line, at) => {
    const trace = chart.data[line];
    read(trace.meta?.told?.[at], trace.customdata?.[at] ?? "");
  };
  chart.on("plotly_hover", (event) => {
    const [point] = event.points;
    if (point) show(point.curveNumber, point.pointNumber);
  });
  let line = 0;
  let at = -1;
  const go = (step) => {
    const told = chart.data[line].meta?.told ?? [];
    let next = at + step;
    while (next >= 0 && next < told.length && !told[next]) next += step;
    if (next < 0 || next >= told.length) return;
    at = next;
    Plotly.Fx.hover(chart, [{ curveNumber: line, pointNumber: at }]);
    show(line, at);
  };
  chart.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const lines = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) go(steps[event.key]);
    else if (event.key in lines) {
      line = (line + lines[event.key] + chart.data.length) % chart.data.length;
      at = Math.min(Math.max(at, 0), (chart.data[line].meta?.told?.length ?? 1) - 1) - 1;
      go(1);
    } else if (event.key === "Enter" && chart.data[line].customdata?.[at]) window.location.assign(chart.data[line].customdata[at]);
    else return;
    event.preventDefault();
  });
}

for (const place of document.querySelectorAll("[data-readings]")) {
  const read = reading(place);
  points(place, read);
  chartPoints(place, read);
}
