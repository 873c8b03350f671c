/** One measured number of a benchmark's table. */
export interface Figure {
  /** Identifies the figure in the output of every state: table, row and column. */
  readonly key: string;
  /** Place of the table in the output. */
  readonly table: number;
  /** The sentence above the table. */
  readonly caption: string;
  readonly name: string;
  readonly value: number;
  readonly kind: 'CPU' | 'rate' | 'other';
}

/** Columns that are not measurements themselves: targets, ratios, and the CPU of the load generator. */
const DERIVED = /^aim\b|share of|\bover\b|ratio|the load's/;
/** A number, or a sum with its parts: `142 (api 100, PostgreSQL 42)`. */
const CELL = /^(\d+(?:\.\d+)?)(?: \((.+)\))?$/;

/**
 * Returns the figures in a benchmark's output. The tables are read, because every state prints them: an
 * older state has no other form of its figures.
 */
export function figuresIn(output: string): Figure[] {
  return tablesIn(output).flatMap(({ caption, lines }, table) => {
    const [header = [], , ...rows] = lines.map(cellsOf);
    let group = '';
    return rows.flatMap(([name = '', ...cells]) => {
      if (!/^\s/.test(name)) group = name.trim();
      const row = /^\s/.test(name) ? `${group} > ${name.trim()}` : group;
      return cells.flatMap((cell, index) => {
        const column = header[index + 1]?.trim() ?? '';
        if (DERIVED.test(column)) return [];
        return numbersIn(cell.trim()).map(({ part, value }) => {
          const label = `${row}: ${column}${part}`;
          return {
            key: `${table} ${label}`,
            table,
            caption,
            name: label,
            value,
            kind: kindOf(column),
          };
        });
      });
    });
  });
}

function tablesIn(output: string): { caption: string; lines: string[] }[] {
  const tables: { caption: string; lines: string[] }[] = [];
  let caption = '';
  let last: string[] | undefined;
  for (const line of output.split('\n')) {
    if (!line.startsWith('| ') && !line.startsWith('|--')) {
      last = undefined;
      if (line.trim() !== '') caption = line.trim();
    } else if (last) {
      last.push(line);
    } else {
      last = [line];
      tables.push({ caption, lines: last });
    }
  }
  return tables;
}

/** Returns the cells of a line; only the indentation of the first cell is kept. */
function cellsOf(line: string): string[] {
  return line
    .slice(2, -2)
    .split('|')
    .map((cell) => cell.trimEnd());
}

function numbersIn(cell: string): { part: string; value: number }[] {
  const [, whole, parts = ''] = CELL.exec(cell) ?? [];
  if (whole === undefined) return [];
  const named = [...parts.matchAll(/([^,]+) (\d+(?:\.\d+)?)(?:, |$)/g)];
  return [
    { part: '', value: Number(whole) },
    ...named.map(([, name = '', value]) => ({ part: ` (${name})`, value: Number(value) })),
  ];
}

function kindOf(column: string): Figure['kind'] {
  if (column.includes('CPU')) return 'CPU';
  return column.endsWith('a second') ? 'rate' : 'other';
}
