/** A statement in the driver's form, with the names of its values in order. */
interface Positional {
  readonly name?: string;
  readonly text: string;
  readonly names: readonly string[];
}

/** Maximum number of prepared statements on a connection; the server parses further ones each time. */
const MAX_PREPARED = 100;

/** Statements with `$name` for values, prepared once per connection: planning outweighs finding a row. */
export class NamedValues {
  readonly #known = new Map<string, Positional>();

  /** Returns a statement in the driver's form. @throws TypeError for a name without a value. */
  statement(
    sql: string,
    values: Readonly<Record<string, unknown>>,
  ): { name?: string; text: string; values: unknown[] } {
    const { names, ...statement } = this.#positional(sql);
    return {
      ...statement,
      values: names.map((name) => {
        if (!(name in values)) throw new TypeError(`$${name} has no value`);
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

/** Escapes NUL, which PostgreSQL's text does not allow, in the same way as Sequelize. */
export const withoutNul = (value: unknown) =>
  typeof value === 'string' ? value.replaceAll('\0', '\\0') : value;
