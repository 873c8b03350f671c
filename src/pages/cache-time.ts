import type { IncomingHttpHeaders } from 'node:http';

/** Longest caching time in milliseconds, regardless of what a page allows. */
const MAX_MS = 5 * 60_000;

/** Returns an answer's lifetime in ms by its headers: 0 without `Cache-Control` or if private. */
export function cacheTime({ age, 'cache-control': control, vary }: IncomingHttpHeaders): number {
  if (control === undefined || vary?.trim() === '*') return 0;
  const said = new Map(
    control
      .toLowerCase()
      .split(',')
      .map((part) => {
        const [name = '', value = ''] = part.split('=');
        return [name.trim(), value.trim().replaceAll('"', '')] as const;
      }),
  );
  if (said.has('no-store') || said.has('no-cache') || said.has('private')) return 0;
  const seconds = wholeSeconds(said.get('s-maxage') ?? said.get('max-age'));
  const left = (seconds - wholeSeconds(age)) * 1_000;
  return Math.min(MAX_MS, Math.max(0, left));
}

const wholeSeconds = (text: string | undefined): number =>
  text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : 0;
