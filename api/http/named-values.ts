/** Values of a query or a form, by name. */
export type NamedValues = Record<string, string | string[]>;

/** Groups pairs by name; a repeated name gets a list, which the schema for a single value rejects. */
export function byName(pairs: Iterable<readonly [string, string]>): NamedValues {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of pairs) {
    const known = values.get(name);
    values.set(name, known === undefined ? value : [known, value].flat());
  }
  // Object.fromEntries defines properties and never calls setters, so `__proto__` is safe as a name.
  return Object.fromEntries(values);
}
