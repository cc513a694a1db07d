(() => {
  const board = document.getElementById("board");
  if (!board) return;
  const rows = [...board.querySelectorAll("tbody tr")];
  const heads = [...board.querySelectorAll("th")];
  const column = (name) => heads.findIndex((head) => head.textContent === name);
  const text = (row, place) => row.cells[place].textContent;
  const controls = document.createElement("p");
  const chosen = {};
  const count = document.createElement("span");

  const show = () => {
    const word = search.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = Object.entries(chosen).every(([place, want]) => !want || text(row, place) === want);
      row.hidden = !fits || !row.textContent.toLowerCase().includes(word);
      shown += !row.hidden;
    }
    count.textContent = ` ${shown} of ${rows.length} rows`;
  };

  for (const name of ["data", "machine", "device", "part"]) {
    const place = column(name);
    if (place < 0) continue;
    const select = document.createElement("select");
    select.setAttribute("aria-label", name);
    select.append(new Option(`${name}: all`, ""));
    for (const value of [...new Set(rows.map((row) => text(row, place)))].sort()) {
      select.append(new Option(value, value));
    }
    select.onchange = () => { chosen[place] = select.value; show(); };
    controls.append(select, " ");
  }
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "find";
  search.setAttribute("aria-label", "find");
  search.oninput = show;
  controls.append(search, count);
  board.prepend(controls);

  const key = (row, place) => {
    const number = row.cells[place].dataset.number;
    return number === undefined ? null : Number(number);
  };
  let sorted = null;
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const falling = sorted !== place;
      sorted = falling ? place : null;
      rows.sort((a, b) => {
        const [x, y] = [key(a, place), key(b, place)];
        if (x === null && y === null) return text(a, place).localeCompare(text(b, place)) * (falling ? 1 : -1);
        if (x === null || y === null) return x === null ? 1 : -1;
        return falling ? y - x : x - y;
      });
      board.querySelector("tbody").append(...rows);
    };
  });
  show();
})();
