/*
 * Variables in the form that the `dotenv` package of npm reads. It knows three kinds of quotes, and no
 * way to write a quote inside quotes of its own kind.
 */

/** Variables as the text of a file. @throws RangeError for a value that no such file can hold. */
export function environmentFile(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => {
      const written = quoted(value);
      if (written === undefined) throw new RangeError(`the value of ${name} cannot be in a file`);
      return `${name}=${written}\n`;
    })
    .join('');
}

/** Whether a value can stand in such a file as it is. */
export const fitsEnvironmentFile = (value: string): boolean => quoted(value) !== undefined;

function quoted(value: string): string | undefined {
  if (value.includes('\0')) return undefined;
  // A backslash before the closing quote would be taken for part of it, and the end for elsewhere.
  const endsWell = !value.endsWith('\\');
  if (endsWell && !value.includes('\r')) {
    const quote = ["'", '`'].find((each) => !value.includes(each));
    if (quote !== undefined) return `${quote}${value}${quote}`;
  }
  // In these, and only in these, `\n` and `\r` mean the characters.
  if (endsWell && !value.includes('"') && !/\\[nr]/.test(value)) {
    return `"${value.replaceAll('\r', '\\r')}"`;
  }
  return /^[^\s'"`#][^\r\n#]*$/.test(value) && value === value.trim() ? value : undefined;
}
