/** Splits git's output at each NUL as it arrives, and keeps at most `most` bytes of each field. */
export class Fields {
  readonly #most: number;
  readonly #onField: (field: Buffer, isCut: boolean) => void;
  #pieces: Buffer[] = [];
  #kept = 0;
  #isCut = false;

  /** @param onField must not throw: it is called while git's output is read. */
  constructor(most: number, onField: (field: Buffer, isCut: boolean) => void) {
    this.#most = most;
    this.#onField = onField;
  }

  readonly read = (piece: Buffer): void => {
    let from = 0;
    for (let at = piece.indexOf(0); at >= 0; at = piece.indexOf(0, from)) {
      this.#keep(piece.subarray(from, at));
      this.#end();
      from = at + 1;
    }
    this.#keep(piece.subarray(from));
  };

  #keep(part: Buffer): void {
    const kept = part.subarray(0, this.#most - this.#kept);
    if (kept.length > 0) this.#pieces.push(kept);
    this.#kept += kept.length;
    this.#isCut ||= kept.length < part.length;
  }

  #end(): void {
    const field = Buffer.concat(this.#pieces, this.#kept);
    const isCut = this.#isCut;
    this.#pieces = [];
    this.#kept = 0;
    this.#isCut = false;
    this.#onField(field, isCut);
  }
}
