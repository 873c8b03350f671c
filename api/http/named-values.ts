/** Values by their names: of a query, or of a form. */
export type NamedValues = Record<string, string | string[]>;

/** A name that comes more than once gets a list, which a schema for one value refuses. */
export function byName(pairs: Iterable<readonly [string, string]>): NamedValues {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of pairs) {
    const known = values.get(name);
    values.set(name, known === undefined ? value : [known, value].flat());
  }
  // fromEntries defines and does not assign: a name may well be __proto__.
  return Object.fromEntries(values);
}
