// What only those with the token may do: it is asked for where it is wanted, then the work is done again.

import * as api from "./api.js";

/** @param form has a field for the token */
export class Guard {
  constructor(form) {
    this.form = form;
    this.field = form.querySelector("input");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      api.useToken(this.field.value.trim());
      this.again?.();
    });
  }

  /** Do the work: gives what went wrong, and whether a token is asked for, with which `again` is called. */
  async attempt(work, again) {
    try {
      await work();
      this.form.hidden = true;
      return { problem: "", asked: false };
    } catch (problem) {
      if (!(problem instanceof api.NeedsToken)) return { problem: problem.message, asked: false };
      const wrong = this.field.value && !this.form.hidden;
      this.again = again;
      this.form.hidden = false;
      this.field.focus();
      return { problem: wrong ? "That is not the token." : "", asked: true };
    }
  }
}
