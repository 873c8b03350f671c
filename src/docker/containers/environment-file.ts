/*
 * Variables in the format of npm's `dotenv` package, which has three kinds of quotes, and no escape for a
 * quote inside quotes of its own kind.
 */

/** Formats variables as the text of a file. @throws RangeError for a value that the format cannot hold. */
export function environmentFile(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => {
      const written = quoted(value);
      if (written === undefined)
        throw new RangeError(`the value of ${name} cannot be written to an environment file`);
      return `${name}=${written}\n`;
    })
    .join('');
}

/** Reports whether the format can hold a value unchanged. */
export const fitsEnvironmentFile = (value: string): boolean => quoted(value) !== undefined;

function quoted(value: string): string | undefined {
  if (value.includes('\0')) return undefined;
  // A backslash before the closing quote would escape the quote and extend the value.
  const endsWell = !value.endsWith('\\');
  if (endsWell && !value.includes('\r')) {
    const quote = ["'", '`'].find((each) => !value.includes(each));
    if (quote !== undefined) return `${quote}${value}${quote}`;
  }
  // Only double quotes interpret `\n` and `\r` as control characters.
  if (endsWell && !value.includes('"') && !/\\[nr]/.test(value)) {
    return `"${value.replaceAll('\r', '\\r')}"`;
  }
  return /^[^\s'"`#][^\r\n#]*$/.test(value) && value === value.trim() ? value : undefined;
}
