// What a person does on the map: drag, pinch, turn the wheel, point, click, press keys.

const NEAR = 16;  // pixels between the pointer and a dot that it means
const STILL = 5;  // pixels that a click may move
const STEP = 60;  // pixels that an arrow key moves

export function useGestures(map) {
  const { canvas } = map;
  const pointers = new Map();  // id → where it is
  let moved = 0;

  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  function drag(id, now) {
    const before = pointers.get(id);
    const other = [...pointers].find(([each]) => each !== id)?.[1];
    pointers.set(id, now);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (other) {
      const apart = (at) => Math.max(1, Math.hypot(at[0] - other[0], at[1] - other[1]));
      map.zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      map.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    } else {
      canvas.classList.add("held");
      map.pan(now[0] - before[0], now[1] - before[1]);
    }
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, spot(event));
    moved = pointers.size > 1 ? Infinity : 0;  // two fingers do not click
    map.land();
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = spot(event);
    if (pointers.has(event.pointerId)) drag(event.pointerId, now);
    else map.point(map.nearest(...now, NEAR), ...now);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => {
      const last = pointers.get(event.pointerId);
      pointers.delete(event.pointerId);
      canvas.classList.remove("held");
      if (end !== "pointerup" || !last || moved > STILL) return;
      const i = map.nearest(...last, NEAR);
      if (i >= 0) map.told.chosen(i);
    });
  }
  canvas.addEventListener("pointerleave", () => map.point(-1));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
    map.zoom(Math.exp(-0.0018 * pixels), ...spot(event));
  }, { passive: false });

  const keys = {
    ArrowLeft: () => map.pan(STEP, 0), ArrowRight: () => map.pan(-STEP, 0),
    ArrowUp: () => map.pan(0, STEP), ArrowDown: () => map.pan(0, -STEP),
    "+": () => map.zoom(1.4), "=": () => map.zoom(1.4), "-": () => map.zoom(1 / 1.4),
    0: () => map.showAll(), Escape: () => map.told.chosen(-1),
    Enter: () => map.over >= 0 && map.told.chosen(map.over),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
    if (event.key !== "Enter" && event.key !== "Escape") map.pointMiddle();
  });
  canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && map.pointMiddle());
  canvas.addEventListener("blur", () => map.point(-1));
}
