import path from 'node:path';
import { projectRoot } from '../dev/root.js';
import { ERROR_CODES } from '../src/lib/error-codes.js';

export const API_PAGE = path.join(projectRoot, 'docs', 'api.md');

const BEGINNING = '<!-- Made by `npm run docs:codes` of `src/lib/error-codes.ts`. -->';
const END = '<!-- The end of the codes. -->';

/** Returns a page with the current table of error codes. @throws if the page has no place for the table. */
export function withErrorCodes(page: string): string {
  const begin = page.indexOf(BEGINNING);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('docs/api.md has no place for the error codes');
  return `${page.slice(0, begin)}${BEGINNING}\n\n${table()}\n\n${page.slice(end)}`;
}

function table(): string {
  const rows = Object.entries(ERROR_CODES).map(([code, { cause, status }]) => [
    `\`${code}\``,
    [status].flat().join(', '),
    cause,
  ]);
  const lines = [['code', 'status', 'cause'], ...rows];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = lines;
  return [head, widths.map((width) => '-'.repeat(width)), ...body].map(line).join('\n');
}
