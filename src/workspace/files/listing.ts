const MAX_ENTRIES = 10_000;

/** Bytes as JSON. Names may be long, and of letters that JSON spells with six. */
const MAX_BYTES = 4 * 1024 * 1024;

/** Bytes that an entry may take beside what it is: a comma, and that it has no children, or not all. */
const BESIDE = 32;

/** The room that an answer has for entries. */
export class ListingRoom {
  #entries = MAX_ENTRIES;
  #bytes = MAX_BYTES;

  /** Whether one more fits in. Once one does not, none does. */
  take(entry: Readonly<Record<string, string>>): boolean {
    this.#entries -= 1;
    this.#bytes -= Buffer.byteLength(JSON.stringify(entry)) + BESIDE;
    return this.#entries >= 0 && this.#bytes >= 0;
  }
}
