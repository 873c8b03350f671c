/**
 * `config.plan`, `recipients[0].share`.
 *
 * @param whole what is named where the path leads nowhere.
 */
export function fieldName(path: readonly PropertyKey[], whole: string): string {
  let name = '';
  for (const key of path) {
    if (typeof key === 'number') name += `[${key}]`;
    else name += name === '' ? String(key) : `.${String(key)}`;
  }
  return name === '' ? whole : name;
}

/** What a schema says of a value that it refuses, after the name of the field that has it. */
export const ofField = (text: string) => ({
  error: ({ path = [] }: { readonly path?: readonly PropertyKey[] | undefined }): string =>
    `${fieldName(path, 'value')} ${text}`,
});
