"use strict";
document.documentElement.classList.add("js");

// The text of a cell; of one with details, only its summary.
const textOf = (cell) => (cell.querySelector("summary") ?? cell).textContent.trim();

// The number at the start of a text, such as 41.2 in "41.2 [35.0, 47.1]"; NaN if there is none.
function number(text) {
  const match = text.replace(/\u2212/g, "-").match(/^([<>~≥]?=?)\s*([+-]?[\d,]*\.?\d+)/);
  if (!match) return NaN;
  return parseFloat(match[2].replace(/,/g, "")) + (match[1] === "<" ? -1e-9 : match[1] ? 1e-9 : 0);
}

function sort(table, head) {
  const column = head.cellIndex;
  const order = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort];
  for (const other of head.parentElement.cells) other.ariaSort = "none";
  head.ariaSort = order;
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: textOf(row.cells[column]) }));
  const numeric = rows.every(({ text }) => !text || text === "none" || !isNaN(number(text)));
  const sign = order === "descending" ? -1 : 1;
  const compare = (a, b) => {
    if (order === "none") return a.row.dataset.order - b.row.dataset.order;
    if (!a.text || !b.text) return !a.text - !b.text; // empty cells come last in both directions
    if (!numeric) return sign * a.text.localeCompare(b.text, "en", { numeric: true });
    const value = ({ text }) => (text === "none" ? -Infinity : number(text));
    return value(a) === value(b) ? 0 : sign * (value(a) - value(b));
  };
  table.tBodies[0].append(...rows.sort(compare).map(({ row }) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tBodies[0].rows].forEach((row, index) => (row.dataset.order = index));
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () => sort(table, head));
  }
}

for (const input of document.querySelectorAll("input[data-filter]")) {
  const rows = [...document.getElementById(input.dataset.filter).tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, [...row.cells].map(textOf).join(" ").toLowerCase()]));
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
    const shown = rows.filter((row) => !row.hidden).length;
    input.closest("p").querySelector("output").textContent = `${shown} of ${rows.length} rows`;
  });
}
