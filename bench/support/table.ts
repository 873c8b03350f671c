/** Prints a table that is readable in a terminal and in Markdown. */
export function printTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  const cells = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) =>
    Math.max(...cells.map((row) => (row[column] ?? '').length)),
  );
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, column) => pad(row[column] ?? '', width, column)).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => rulePart(width, column)).join('|')}|`;
  console.log([line(cells[0] ?? []), rule, ...cells.slice(1).map(line)].join('\n'));
  console.log();
}

const pad = (text: string, width: number, column: number) =>
  column === 0 ? text.padEnd(width) : text.padStart(width);

const rulePart = (width: number, column: number) =>
  column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`;
