/** A statement as the driver takes it, with the names of its values in their order. */
interface Positional {
  readonly name?: string;
  readonly text: string;
  readonly names: readonly string[];
}

/** So many are prepared on each connection; further ones are parsed by the server each time. */
const MAX_PREPARED = 100;

/**
 * Statements with `$name` for their values. Each is read here once, and prepared under a name of its
 * own, once for each connection: planning would otherwise cost more than finding a row.
 */
export class NamedValues {
  readonly #known = new Map<string, Positional>();

  /** @throws TypeError for a name without a value. */
  statement(
    sql: string,
    values: Readonly<Record<string, unknown>>,
  ): { name?: string; text: string; values: unknown[] } {
    const { names, ...statement } = this.#positional(sql);
    return {
      ...statement,
      values: names.map((name) => {
        if (!(name in values)) throw new TypeError(`$${name} is given no value`);
        return withoutNul(values[name]);
      }),
    };
  }

  #positional(sql: string): Positional {
    const known = this.#known.get(sql);
    if (known) return known;
    const names: string[] = [];
    const text = sql.replace(/(?<!\$)\$([a-zA-Z]\w*)/g, (_, name: string) => {
      if (!names.includes(name)) names.push(name);
      return `$${names.indexOf(name) + 1}`;
    });
    if (this.#known.size >= MAX_PREPARED) return { text, names };
    const prepared = { name: `statement_${this.#known.size}`, text, names };
    this.#known.set(sql, prepared);
    return prepared;
  }
}

/** PostgreSQL's text has no NUL; Sequelize writes it in the same way. */
export const withoutNul = (value: unknown) =>
  typeof value === 'string' ? value.replaceAll('\0', '\\0') : value;
