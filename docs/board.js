(() => {
  const board = document.querySelector("div.board");
  if (!board) return;
  const rows = [...board.querySelectorAll("tbody tr")];
  const heads = [...board.querySelectorAll("th")];
  const names = heads.map((head) => head.textContent);
  const text = (row, place) => row.cells[place].textContent;
  const make = (tag, label) => {
    const found = document.createElement(tag);
    found.setAttribute("aria-label", label);
    return found;
  };

  // Filters. A row of several machines is one of each.
  const controls = document.createElement("div");
  controls.className = "board-controls";
  const chosen = new Map();
  const search = make("input", "find");
  const count = make("span", "rows");
  const parts = (row, place) => text(row, place).split("; ");
  const show = () => {
    const word = search.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = [...chosen].every(([place, want]) => !want || parts(row, place).includes(want));
      row.hidden = !fits || !row.textContent.toLowerCase().includes(word);
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  };
  for (const name of ["data", "machine", "device", "part", "experiment"]) {
    const place = names.indexOf(name);
    if (place < 0) continue;
    const select = make("select", name);
    select.append(new Option(`${name}: all`, ""));
    for (const value of [...new Set(rows.flatMap((row) => parts(row, place)))].sort()) {
      select.append(new Option(value, value));
    }
    select.onchange = () => { chosen.set(place, select.value); show(); };
    controls.append(select);
  }

  // Order, by a click on a heading, or by a list where headings are hidden.
  const number = (row, place) => {
    const given = row.cells[place].dataset.number;
    return given === undefined ? null : Number(given);
  };
  let last = { place: -1, falling: false };
  const sort = (place) => {
    const counts = rows.some((row) => number(row, place) !== null);
    const falling = last.place === place ? !last.falling : counts;
    last = { place, falling };
    rows.sort((a, b) => {
      const [x, y] = [number(a, place), number(b, place)];
      if (x === null && y === null) return text(a, place).localeCompare(text(b, place)) * (falling ? -1 : 1);
      if (x === null || y === null) return x === null ? 1 : -1;
      return falling ? y - x : x - y;
    });
    board.querySelector("tbody").append(...rows);
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[place].setAttribute("aria-sort", falling ? "descending" : "ascending");
  };
  const order = make("select", "sort");
  order.append(new Option("sort by", ""));
  names.forEach((name, place) => order.append(new Option(name, place)));
  order.onchange = () => { if (order.value) sort(Number(order.value)); order.value = ""; };
  heads.forEach((head, place) => {
    const button = make("button", `sort by ${names[place]}`);
    button.type = "button";
    button.textContent = names[place];
    button.onclick = () => sort(place);
    head.replaceChildren(button);
  });

  search.type = "search";
  search.placeholder = "find";
  search.oninput = show;
  controls.append(order, search, count);
  board.before(controls);
  for (const row of rows) {
    names.forEach((name, place) => { row.cells[place].dataset.name = name; });
  }
  board.classList.add("scripted");
  show();
})();
