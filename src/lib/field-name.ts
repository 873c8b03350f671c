/** Returns a field's name, such as `recipients[0].share`; `whole` for an empty path. */
export function fieldName(path: readonly PropertyKey[], whole: string): string {
  let name = '';
  for (const key of path) {
    if (typeof key === 'number') name += `[${key}]`;
    else name += name === '' ? String(key) : `.${String(key)}`;
  }
  return name === '' ? whole : name;
}

/** The error text of a schema, prefixed with the name of the refused field. */
export const fieldMessage = (text: string) => ({
  error: ({ path = [] }: { readonly path?: readonly PropertyKey[] | undefined }): string =>
    `${fieldName(path, 'value')} ${text}`,
});
