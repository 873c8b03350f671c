const MAX_ENTRIES = 10_000;

/** Maximum bytes of the answer as JSON: names may be long, and JSON may escape a character with six bytes. */
const MAX_BYTES = 4 * 1024 * 1024;

/** Bytes of an entry beyond its own fields: a comma, and flags such as `truncated`. */
const BESIDE = 32;

/** The space left for entries in an answer. */
export class ListingRoom {
  #entries = MAX_ENTRIES;
  #bytes = MAX_BYTES;

  /** Reports whether another entry fits. After the first that does not fit, none does. */
  take(entry: Readonly<Record<string, string>>): boolean {
    this.#entries -= 1;
    this.#bytes -= Buffer.byteLength(JSON.stringify(entry)) + BESIDE;
    return this.#entries >= 0 && this.#bytes >= 0;
  }
}
